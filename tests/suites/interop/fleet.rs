//! Workers of both languages on one queue, some of which are killed: no event's effect is lost, none is applied twice.
//!
//! What a worker decides and what must be left is in `tests::fleet`.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use store::RedisStore;
use store::transport::RedisTransport;
use tests::fleet::{Expected, Worker, decide, member, step};
use tests::peer::{Flavour, Peer};
use tests::proxy::{Proxy, Way};
use tests::server::{Backend, Kind};

use crate::{PREFIX, Table, each, our_lease};

/// How long a fleet may take to finish; servers, workers and other tests share few cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a killed worker's lease keeps others waiting.
const VISIBILITY: Duration = Duration::from_millis(200);

/// Which language a worker is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Rust,
    Python,
}

/// A worker in a process of its own.
#[derive(Debug)]
enum Process {
    Rust(Child),
    Python(Value),
}

/// Starts workers; those of Python are forks of a driver.
struct Yard<'t> {
    table: &'t Table,
    driver: Peer,
}

impl Yard<'_> {
    fn start(&mut self, language: Language, url: &str, turns: Option<i64>) -> Process {
        if language == Language::Rust {
            let mut command = Command::new(env!("CARGO_BIN_EXE_fleet_worker"));
            command
                .args([url, PREFIX, &VISIBILITY.as_millis().to_string()])
                .args(turns.map(|turns| turns.to_string()))
                .stdin(Stdio::piped());
            return Process::Rust(command.spawn().unwrap());
        }
        let args = json!({
            "url": url, "prefix": PREFIX, "flavour": self.table.flavour.name(),
            "visibility": VISIBILITY.as_secs_f64(), "turns": turns.unwrap_or(-1),
        });
        Process::Python(self.driver.call("fleet.start", &args).unwrap())
    }

    fn is_over(&mut self, process: &mut Process) -> bool {
        match process {
            Process::Rust(child) => child.try_wait().unwrap().is_some(),
            Process::Python(pid) => {
                let args = json!({ "pid": pid });
                self.driver.call("fleet.is_over", &args).unwrap() == true
            }
        }
    }

    /// With SIGKILL: nothing of the worker's runs any more.
    fn kill(&mut self, process: Process) {
        match process {
            Process::Rust(mut child) => {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            Process::Python(pid) => {
                self.driver
                    .call("fleet.kill", &json!({ "pid": pid }))
                    .unwrap();
            }
        }
    }
}

/// Lets a worker of each language finish what is left, and looks at the result.
fn finish(yard: &mut Yard<'_>, expected: &Expected) {
    let table = yard.table;
    let mut inspector = Worker::new(&table.url, PREFIX, VISIBILITY).unwrap();
    let healthy =
        [Language::Rust, Language::Python].map(|language| yard.start(language, &table.url, None));
    let until = Instant::now() + PATIENCE;
    let is_finished = |inspector: &mut Worker| {
        // Twice, since something may move from one place to another between two looks.
        inspector.left().unwrap().is_empty()
            && inspector.left().unwrap().is_empty()
            && inspector.audit(expected).unwrap().is_empty()
    };
    while !is_finished(&mut inspector) {
        let (wrong, left) = (inspector.audit(expected), inspector.left());
        assert!(Instant::now() < until, "{wrong:?}, {left:?}");
        thread::sleep(Duration::from_millis(50));
    }
    for process in healthy {
        yard.kill(process);
    }
    // A relay that was slow may have delivered once more what another one had delivered before: nobody may take it for new.
    while !inspector.left().unwrap().is_empty() {
        assert!(Instant::now() < until, "{:?}", inspector.left());
        inspector.turn().unwrap();
    }
    assert_eq!(inspector.audit(expected).unwrap(), Vec::<String>::new());
}

/// Enough for an event, what it causes, and a look at what is left.
const TURNS: i64 = 4;

/// Kills workers at every request that they send and at every reply that they are to get, one each, until one is through
/// with its turns; how many were killed.
fn kill_at_every_step(
    yard: &mut Yard<'_>,
    language: Language,
    way: Way,
    expected: &mut Expected,
) -> usize {
    let table = yard.table;
    let proxy = Proxy::before(&table.url);
    let mut inspector = Worker::new(&table.url, PREFIX, VISIBILITY).unwrap();
    for number in 0.. {
        // Something fresh to take, whatever the dead have leased.
        let name = format!("{language:?}-{way:?}-{number}");
        let path = [format!("{name}-a"), format!("{name}-b")];
        inspector.begin(member(&path[1], "none"), &[]).unwrap();
        inspector
            .begin(member(&path[0], &path[1]), &[step(&name, 1)])
            .unwrap();
        expected.add(&name, &path);

        proxy.hold_nth(way, number);
        let mut victim = yard.start(language, &proxy.url(), Some(TURNS));
        loop {
            if proxy.await_held(Duration::from_millis(5)) {
                yard.kill(victim);
                proxy.sever();
                break;
            }
            if yard.is_over(&mut victim) {
                return number;
            }
        }
    }
    unreachable!("the numbers do not end")
}

#[test]
fn workers_killed_at_every_step_lose_nothing_and_repeat_nothing() {
    each(|table| {
        let mut yard = Yard {
            table,
            driver: table.peer(),
        };
        let mut expected = Expected::default();
        for language in [Language::Rust, Language::Python] {
            // Those of Rust have been killed when it was the other flavour's turn.
            if language == Language::Rust && table.flavour == Flavour::Async {
                continue;
            }
            for way in [Way::Request, Way::Reply] {
                let killed = kill_at_every_step(&mut yard, language, way, &mut expected);
                eprintln!("{killed} workers killed: {language:?}, {way:?}");
                assert!(killed > 20, "{killed}");
            }
        }
        finish(&mut yard, &expected);
    });
}

const MEMBERS: usize = 6;
const STEPS: usize = 10;
const HOPS: usize = 2;
const KILLS: usize = 60;
/// The most requests that a worker lives for.
const LIFE: usize = 80;

#[test]
fn a_mixed_fleet_that_is_killed_again_and_again_loses_nothing_and_repeats_nothing() {
    each(|table| {
        let mut yard = Yard {
            table,
            driver: table.peer(),
        };
        let mut random = fastrand::Rng::with_seed(7);
        let mut expected = Expected::default();
        let mut inspector = Worker::new(&table.url, PREFIX, VISIBILITY).unwrap();
        let name = |number: usize| format!("m{}", number % MEMBERS);
        for number in 0..MEMBERS {
            let steps: Vec<_> = (0..STEPS)
                .map(|n| step(&format!("s{number}-{n}"), HOPS as u64))
                .collect();
            let path: Vec<String> = (0..=HOPS).map(|hop| name(number + hop)).collect();
            for step in &steps {
                expected.add(&step.id, &path);
            }
            let begun = member(&name(number), &name(number + 1));
            inspector.begin(begun, &steps).unwrap();
        }
        let mut arm = |proxy: &Proxy| {
            let way = if random.bool() {
                Way::Request
            } else {
                Way::Reply
            };
            proxy.hold_nth(way, random.usize(..LIFE));
        };
        let languages = [
            Language::Rust,
            Language::Python,
            Language::Rust,
            Language::Python,
        ];
        let mut slots: Vec<(Language, Proxy, Option<Process>)> = languages
            .map(|language| (language, Proxy::before(&table.url), None))
            .into();
        let (mut killed, until) = (0, Instant::now() + PATIENCE);
        while killed < KILLS && Instant::now() < until {
            for (language, proxy, process) in &mut slots {
                if process.is_none() {
                    arm(proxy);
                    *process = Some(yard.start(*language, &proxy.url(), None));
                }
                if proxy.await_held(Duration::from_millis(2))
                    && let Some(process) = process.take()
                {
                    yard.kill(process);
                    proxy.sever();
                    killed += 1;
                }
            }
        }
        for (_, proxy, process) in slots {
            if let Some(process) = process {
                yard.kill(process);
            }
            proxy.sever();
        }
        assert!(killed >= KILLS, "{killed} killed: too slow");
        finish(&mut yard, &expected);
    });
}

#[test]
fn the_audit_notices_an_effect_that_is_lost_or_applied_twice() {
    let backend = Backend::start(Kind::Tcp);
    let url = backend.url().unwrap();
    let mut worker = Worker::new(&url, PREFIX, VISIBILITY).unwrap();
    let mut store = RedisStore::from_url(&url).unwrap();
    for id in ["lost", "twice", "well"] {
        worker.begin(member(id, "none"), &[step(id, 0)]).unwrap();
    }
    let mut transport = RedisTransport::from_url(&url).unwrap();
    // Taken off its queue by one who then dies.
    let lease = our_lease(&mut transport, VISIBILITY).unwrap();
    assert_eq!(lease.event.id, "lost");
    assert!(transport.ack(&lease).unwrap());
    // Handled by two who do not ask whether it was handled.
    for _ in 0..2 {
        let mut execution = store.load("twice").unwrap().unwrap();
        let commit = decide(&mut execution, &step("twice", 0));
        store.commit(&mut execution, &commit).unwrap();
    }
    while !worker.left().unwrap().is_empty() {
        worker.turn().unwrap();
    }
    for (id, is_wrong) in [("lost", true), ("twice", true), ("well", false)] {
        let mut expected = Expected::default();
        expected.add(id, &[id.to_owned()]);
        let wrong = worker.audit(&expected).unwrap();
        assert_eq!(!wrong.is_empty(), is_wrong, "{id}: {wrong:?}");
    }
}
