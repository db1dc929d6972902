//! [`Crowd`]: relays, sweepers and workers in each other's way, as the explorer runs them.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use fakeserver::explore::{Client, Connector, Run, Violation, Workload};
use redis::{RedisResult, Value};
use serde_json::json;
use store::relay::PageStart;
use store::transport::{AsyncRedisTransport, Priority, Tokens};
use store::worker::{AsyncHandler, AsyncWorker, Conduct, Verdict, WorkerOptions, child_of};
use store::{
    AsyncRedisStore, Commit, Event, Execution, Pacing, Settings, SpawnEntry, SpawnIntent, TimerOp,
    Version,
};

use super::GatedConnections;
use crate::control::{BrokenDelete, CrowdFlaw, InTurn};

/// What gets in whose way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Jam {
    /// Relays deliver the same entry.
    Relays,
    /// Sweepers fire the same timer, while its execution arms it again.
    Sweepers,
    /// An execution is purged while another emits to it and a relay delivers.
    Purge,
    /// Workers handle the same event: leases end at any time, and connections break at any command.
    Workers,
}

impl Jam {
    /// All of them.
    pub const ALL: [Jam; 4] = [Jam::Relays, Jam::Sweepers, Jam::Purge, Jam::Workers];
}

/// A jam, with ours or with a broken one.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// What gets in whose way.
    pub jam: Jam,
    /// How many clients there are.
    pub clients: usize,
    /// What is broken, if something is.
    pub flaw: Option<CrowdFlaw>,
}

type Store = AsyncRedisStore<GatedConnections>;

const PREFIX: &str = "crowd";
const NOW_S: f64 = 100.0;
/// Attempts of a client whose connection breaks; more than any number of faults that is explored.
const ATTEMPTS: usize = 4;
/// Turns of a worker in a run; more than there is to do.
const TURNS: usize = 8;

impl Crowd {
    /// With ours.
    pub fn new(jam: Jam, clients: usize) -> Crowd {
        Crowd {
            jam,
            clients,
            flaw: None,
        }
    }

    /// Where a broken one shows.
    pub fn control(flaw: CrowdFlaw) -> Crowd {
        Crowd {
            flaw: Some(flaw),
            ..Crowd::new(flaw.jam(), 2)
        }
    }

    fn settings() -> Settings {
        Settings::new(PREFIX).unwrap_or_default()
    }

    fn store(connector: Connector) -> Store {
        AsyncRedisStore::with_connections(GatedConnections::new(connector), Crowd::settings())
    }

    async fn relay(self, store: &mut Store) {
        for _ in 0..ATTEMPTS {
            let Ok(page) = store.outbox_page(PageStart::Anywhere, 10).await else {
                continue;
            };
            if page.entries.is_empty() {
                return;
            }
            if self.flaw == Some(CrowdFlaw::PublishThenAck) {
                for entry in &page.entries {
                    let publish = InTurn::push(&Crowd::settings(), "b", &entry.event);
                    let _ = store.run(publish).await;
                    let _ = store.ack_outbox(entry.seq).await;
                }
                return;
            }
            let entries = page.entries.into_iter().map(|entry| (entry, Priority::MIN));
            let _ = store.deliver(&entries.collect::<Vec<_>>()).await;
        }
    }

    async fn sweep(self, store: &mut Store) {
        for _ in 0..ATTEMPTS {
            let page = store.due_timers_page(NOW_S, PageStart::Anywhere, 10).await;
            let Ok(page) = page else {
                continue;
            };
            let Some(timer) = page.entries.first() else {
                return;
            };
            if self.flaw == Some(CrowdFlaw::FireInTwo) {
                let (id, path) = (&timer.execution_id, &timer.path);
                let delete = BrokenDelete::new(&Crowd::settings(), id, path, timer.fire_at_s);
                let _ = store.run(delete).await;
                return;
            }
            let _ = store.fire(&[(timer.clone(), Priority::MIN)]).await;
        }
    }

    async fn arm(store: &mut Store, fire_at_s: f64) {
        let commit = Commit::new().timer(TimerOp::schedule("p", fire_at_s));
        if let Ok(Some(mut execution)) = store.load("a").await {
            let _ = store.commit(&mut execution, &commit).await;
        }
    }

    async fn emit(store: &mut Store) {
        let commit = Commit::for_event("e").emit(Some("b"), Event::new("late", "Note"));
        if let Ok(Some(mut execution)) = store.load("a").await {
            let _ = store.commit(&mut execution, &commit).await;
        }
    }

    async fn work(store: Store, client: usize) {
        let options = WorkerOptions::new("w").idle_pause(Duration::from_millis(1));
        let mut count = client as u128 * 1_000;
        let tokens = Tokens::new(move || {
            count += 1;
            count
        });
        let pacing = Pacing::new(tokio::time::sleep)
            .elapsed(|| Duration::ZERO)
            .random(|| 0);
        let mut worker = AsyncWorker::new(store, options, Note)
            .pacing(pacing)
            .tokens(tokens);
        for _ in 0..TURNS {
            for group in ["a", "b", "a*"] {
                let expire = InTurn::expire(&Crowd::settings(), group);
                let _ = worker.store().run(expire).await;
            }
            if worker.turn().await.is_ok_and(|turn| turn.is_idle()) {
                return;
            }
        }
    }

    fn judge(self, left: &Left) -> Result<(), Violation> {
        let wrong = |property: &str| Err(Violation::new(property, format!("{left:?}")));
        let count = |id: &str| left.queue_b.iter().filter(|event| *event == id).count();
        match self.jam {
            Jam::Relays => {
                if count("one") > 1 || count("two") > 1 {
                    return wrong("once");
                }
                if left.outbox > 0 || count("one") + count("two") < 2 {
                    return wrong("delivered");
                }
            }
            Jam::Sweepers => {
                let old = left.queue_a.iter().filter(|id| *id == "timeout:a:p:1.0");
                if old.count() > 1 {
                    return wrong("once");
                }
                // Armed again, it is there with its new time; else it has fired.
                let kept = left.timer == (left.version > 1).then_some(900.0);
                if !kept {
                    return wrong("kept");
                }
            }
            Jam::Purge => {
                if count("late") + left.outbox > 1 {
                    return wrong("once");
                }
                if left.marks_b > 0 && !left.row_b {
                    return wrong("purged");
                }
            }
            Jam::Workers => {
                let mut logs = left.log_a.clone();
                logs.extend(left.log_b.iter().cloned());
                logs.extend(left.log_child.iter().cloned());
                logs.sort();
                let effects = logs.len();
                logs.dedup();
                if logs.len() != effects {
                    return wrong("once");
                }
                // What the run's end has cut off still waits somewhere, or was handled.
                let has = |id: &str| logs.iter().any(|event| event == id);
                let waits_b = left.outbox > 0 || count("1>b") > 0;
                if has("1") && !(has("1>b") || waits_b) {
                    return wrong("delivered");
                }
                if has("1") && !(left.child || left.spawns > 0) {
                    return wrong("started");
                }
                let waits = left.queue_a.iter().any(|id| id == "1");
                if !has("1") && !waits {
                    return wrong("kept");
                }
            }
        }
        Ok(())
    }
}

/// Notes each event; the first one leaves something of each kind.
struct Note;

impl Conduct<Execution> for Note {
    fn child(&mut self, parent: &Execution, spawn: &SpawnEntry) -> Option<(Execution, Commit)> {
        Some(child_of(parent, spawn))
    }
}

impl AsyncHandler<Execution> for Note {
    async fn handle(&mut self, execution: &mut Execution, event: &Event) -> Verdict {
        let log = execution.context.entry("log").or_insert(json!([]));
        if let Some(log) = log.as_array_mut() {
            log.push(json!(event.id));
        }
        let commit = Commit::new();
        Verdict::Commit(match event.id.as_str() {
            "1" => commit
                .emit(Some("b"), Event::new("1>b", "Note"))
                .spawn(SpawnIntent::new("a*", "root")),
            _ => commit,
        })
    }
}

/// What the run left.
#[derive(Debug, Default)]
struct Left {
    outbox: usize,
    spawns: usize,
    queue_a: Vec<String>,
    queue_b: Vec<String>,
    timer: Option<f64>,
    version: i64,
    row_b: bool,
    marks_b: usize,
    child: bool,
    log_a: Vec<String>,
    log_b: Vec<String>,
    log_child: Vec<String>,
}

impl Left {
    fn read(run: &Run<(), ()>) -> RedisResult<Left> {
        let keys = Crowd::settings().keys().clone();
        let read = |words: &[&str]| run.call(words);
        let queue = |group: &str| -> RedisResult<Vec<String>> {
            let events = read(&["LRANGE", &keys.queue(group), "0", "-1"])?;
            let events: Vec<String> = redis::from_redis_value(events)?;
            Ok(events.iter().map(|event| text(event, "id")).collect())
        };
        let log = |id: &str| -> RedisResult<(Option<String>, Vec<String>)> {
            let row: Option<String> =
                redis::from_redis_value(read(&["GET", &keys.execution(id)])?)?;
            let parsed: serde_json::Value =
                serde_json::from_str(row.as_deref().unwrap_or("{}")).unwrap_or_default();
            let log = parsed["context"]["log"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let log = log.iter().filter_map(|id| id.as_str().map(str::to_owned));
            Ok((row, log.collect()))
        };
        let size =
            |words: &[&str]| -> RedisResult<usize> { Ok(redis::from_redis_value(read(words)?)?) };
        let member = keys.timer_member("a", "p");
        let timer: Option<String> = match read(&["ZSCORE", &keys.timers(), &member])? {
            Value::Double(score) => Some(score.to_string()),
            other => redis::from_redis_value(other)?,
        };
        let (row_a, log_a) = log("a")?;
        let (row_b, log_b) = log("b")?;
        let (child, log_child) = log("a*")?;
        let row_a: serde_json::Value =
            serde_json::from_str(row_a.as_deref().unwrap_or("{}")).unwrap_or_default();
        Ok(Left {
            outbox: size(&["HLEN", &keys.outbox()])?,
            spawns: size(&["HLEN", &keys.spawns()])?,
            queue_a: queue("a")?,
            queue_b: queue("b")?,
            timer: timer.and_then(|score| score.parse().ok()),
            version: row_a["version"].as_i64().unwrap_or_default(),
            row_b: row_b.is_some(),
            marks_b: size(&["EXISTS", &keys.processed("b")])?,
            child: child.is_some(),
            log_a,
            log_b,
            log_child,
        })
    }
}

fn text(json: &str, member: &str) -> String {
    let parsed: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    parsed[member].as_str().unwrap_or_default().to_owned()
}

impl Workload for Crowd {
    type Input = ();
    type Output = ();

    fn description(&self) -> String {
        format!("{self:?}")
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn prepare(&self, connector: Connector) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let jam = self.jam;
        Box::pin(async move {
            let mut store = Crowd::store(connector.clone());
            let commit = match jam {
                Jam::Relays => Commit::new()
                    .emit(Some("b"), Event::new("one", "Note"))
                    .emit(Some("b"), Event::new("two", "Note")),
                Jam::Sweepers => Commit::new().timer(TimerOp::schedule("p", 1.0)),
                Jam::Purge | Jam::Workers => Commit::new(),
            };
            let mark = Commit::for_event("before");
            let rows = [("a", &commit), ("b", &mark)];
            for (id, commit) in rows {
                let mut execution = Execution::new(id, "d");
                let landed = store.commit(&mut execution, commit).await;
                landed.expect("an empty store takes its first rows");
            }
            if jam == Jam::Workers {
                let connections = GatedConnections::new(connector);
                let mut transport =
                    AsyncRedisTransport::with_connections(connections, Crowd::settings());
                let event = Event::new("1", "Note");
                let published = transport.publish("a", &event, Priority::MIN).await;
                published.expect("an empty queue takes events");
            }
        })
    }

    fn client(&self, client: Client<(), ()>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let crowd = *self;
        Box::pin(async move {
            let mut store = Crowd::store(client.connector());
            match (crowd.jam, client.index()) {
                (Jam::Relays, _) => crowd.relay(&mut store).await,
                (Jam::Sweepers, 0) => Crowd::arm(&mut store, 900.0).await,
                (Jam::Sweepers, _) => crowd.sweep(&mut store).await,
                (Jam::Purge, 0) => {
                    let _ = store.purge("b", Version::new(1)).await;
                }
                (Jam::Purge, 1) => Crowd::emit(&mut store).await,
                (Jam::Purge, _) => crowd.relay(&mut store).await,
                (Jam::Workers, index) => Crowd::work(store, index).await,
            }
        })
    }

    fn check(&self, run: &Run<(), ()>) -> Result<(), Violation> {
        let left =
            Left::read(run).map_err(|error| Violation::new("readable", error.to_string()))?;
        self.judge(&left)
    }
}
