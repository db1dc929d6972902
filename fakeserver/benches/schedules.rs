//! What exploring costs: every schedule of two optimistic clients, ordinary async code under the scheduler, against the same
//! commands in the same order straight on the engine.
//!
//! `cargo bench -p fakeserver --features explore --bench schedules`. Rounds alternate; the row is the median of their ratios.
//! Times are those of the processor where the system tells them (Linux), so that other programs disturb less.
//!
//! `-- --memory 1000000` explores so many schedules and fails if the memory of the process has grown since the first tenth.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark ends where it fails, and prints"
)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fakeserver::clock::Timestamp;
use fakeserver::config::Config;
use fakeserver::engine::{Engine, Peer};
use fakeserver::explore::{
    Budget, Choice, Client, Exhaustive, Explorer, Reduction, Run, Violation, Workload,
};
use fakeserver::wire::Request;
use redis::{Value, cmd, pipe};

const CLIENTS: usize = 2;
const ROUNDS: usize = 11;
/// How often a round goes through all schedules.
const PASSES: usize = 20;

/// The commands of one attempt.
const ATTEMPT: [&[&str]; 5] = [
    &["WATCH", "n"],
    &["GET", "n"],
    &["MULTI"],
    &["SET", "n", "1"],
    &["EXEC"],
];

/// Clients that add one to a counter under WATCH, until it succeeds.
#[derive(Default)]
struct Counters {
    /// The choices of each schedule, taken down for the other side.
    schedules: Mutex<Vec<Vec<Choice>>>,
}

impl Workload for Counters {
    type Input = ();
    type Output = ();

    fn description(&self) -> String {
        "optimistic counters".to_owned()
    }

    fn clients(&self) -> usize {
        CLIENTS
    }

    fn client(&self, client: Client<(), ()>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut connection = client.connect().await.unwrap();
            loop {
                cmd("WATCH")
                    .arg("n")
                    .exec_async(&mut connection)
                    .await
                    .unwrap();
                let count: Option<i64> = cmd("GET")
                    .arg("n")
                    .query_async(&mut connection)
                    .await
                    .unwrap();
                let mut add = pipe();
                add.atomic().cmd("SET").arg("n").arg(count.unwrap_or(0) + 1);
                let done: Option<Vec<Value>> = add.query_async(&mut connection).await.unwrap();
                if done.is_some() {
                    return;
                }
            }
        })
    }

    fn check(&self, run: &Run<(), ()>) -> Result<(), Violation> {
        self.schedules.lock().unwrap().push(run.choices.clone());
        Ok(())
    }
}

/// Time that this thread has had a processor for, or else time.
struct Stopwatch {
    on_cpu: Option<Duration>,
    started: Instant,
}

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch {
            on_cpu: on_cpu(),
            started: Instant::now(),
        }
    }

    fn elapsed(&self) -> Duration {
        match (self.on_cpu, on_cpu()) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => self.started.elapsed(),
        }
    }
}

fn on_cpu() -> Option<Duration> {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = figures.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Resident memory of the process, in pages.
fn pages() -> u64 {
    let figures = std::fs::read_to_string("/proc/self/statm").unwrap();
    figures.split(' ').nth(1).unwrap().parse().unwrap()
}

fn explore(counters: &Counters) -> Duration {
    counters.schedules.lock().unwrap().clear();
    let started = Stopwatch::start();
    let strategy = Box::new(Exhaustive::new(Reduction::None));
    Explorer::new()
        .explore(counters, strategy, Budget::schedules(10_000))
        .unwrap();
    started.elapsed()
}

fn straight(schedules: &[Vec<Choice>], requests: &[Request]) -> Duration {
    let now = Timestamp::from_millis(1_700_000_000_000);
    let started = Stopwatch::start();
    for schedule in schedules {
        let mut engine = Engine::new(Config::default(), now);
        let sessions: Vec<_> = (0..CLIENTS)
            .map(|_| engine.connect_direct(Peer::default(), now))
            .collect();
        let mut next = [0; CLIENTS];
        for choice in schedule {
            let lane = choice.lane.index();
            let request = requests[next[lane] % requests.len()].clone();
            next[lane] += 1;
            engine.submit(sessions[lane], request, now);
            while engine.poll_reply(sessions[lane]).is_some() {}
        }
    }
    started.elapsed()
}

/// All schedules, over and over: the memory that the first tenth took must do for the rest.
fn memory(schedules: usize) {
    let counters = Counters::default();
    let (mut explored, mut first) = (0, None);
    while explored < schedules {
        explore(&counters);
        explored += counters.schedules.lock().unwrap().len();
        if first.is_none() && explored >= schedules / 10 {
            first = Some(pages());
        }
    }
    let (first, last) = (first.unwrap(), pages());
    println!("{explored} schedules: {first} pages after the first tenth, {last} at the end");
    // What the allocator sets aside settles late: a few dozen pages. One byte kept for each of a million schedules is 220.
    assert!(last <= first + 64, "memory has grown");
}

fn main() {
    let mut arguments = std::env::args().skip_while(|word| word != "--memory");
    if let Some(count) = arguments.nth(1) {
        return memory(count.parse().unwrap());
    }
    let counters = Counters::default();
    let requests: Vec<_> = ATTEMPT
        .iter()
        .map(|words| Request::new(words.iter()))
        .collect();
    explore(&counters);
    let schedules = counters.schedules.lock().unwrap().clone();
    let commands: usize = schedules.iter().map(Vec::len).sum();
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let explored: Duration = (0..PASSES).map(|_| explore(&counters)).sum();
        let engine: Duration = (0..PASSES).map(|_| straight(&schedules, &requests)).sum();
        ratios.push(explored.as_secs_f64() / engine.as_secs_f64());
        rates.push((schedules.len() * PASSES) as f64 / explored.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    rates.sort_by(f64::total_cmp);
    println!(
        "{} schedules of {commands} commands in all, {ROUNDS} alternated rounds",
        schedules.len()
    );
    println!(
        "explored / straight on the engine: median {:.2} ({:.2}-{:.2}); {:.0} schedules per CPU-second",
        ratios[ROUNDS / 2],
        ratios[0],
        ratios[ROUNDS - 1],
        rates[ROUNDS / 2],
    );
}
