//! What spans and metrics tell about calls, and what they do not.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::{Map, Value as Json, json};
use store::{
    Commit, CommitPath, Decision, Event, Execution, ListFilter, Listing, Observer, ObserverClock,
    RetryPolicy, Round, Settings, SpawnIntent, StoreError, Sweep, TimerOp, Version,
    describe_metrics, op, transport::Priority,
};
use tests::both;

use crate::{
    backend::{Backend, Protocol, ask},
    meddling::{Fault, Plan},
    overheard::{about, overhear},
    transport::Courier,
    twin::{Side, Twin, with_each},
    twin_relay::Pauses,
};

impl Twin {
    fn observed(self, observer: Observer) -> Self {
        match self {
            Self::Sync(store) => Self::Sync(Box::new(store.observed(observer))),
            Self::Async(runtime, store) => Self::Async(runtime, Box::new(store.observed(observer))),
        }
    }

    fn record_backlog(&mut self, now_s: f64) -> Result<store::WaitingCounts, StoreError> {
        both!(self.record_backlog(now_s))
    }
}

impl Courier {
    fn record_backlog(&mut self) -> Result<store::transport::Backlog, StoreError> {
        both!(self.record_backlog())
    }
}

fn object(value: Json) -> Map<String, Json> {
    match value {
        Json::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

/// A document whose every text is a secret.
fn secretive(id: &str) -> Execution {
    let mut execution = Execution::new(id, "secret-definition");
    execution.context = object(json!({"secret-key": "secret-value"}));
    execution
}

/// Effects whose every text is a secret.
fn secrets() -> Commit {
    let mut event = Event::new("secret-event", "secret-kind");
    event.data = object(json!({"secret-key": "secret-value"}));
    Commit::for_event("secret-handled")
        .emit(Some("secret-target"), event)
        .spawn(SpawnIntent::new("secret-child", "secret-root"))
        .timer(TimerOp::schedule("secret-path", 5.0))
        .trace(object(json!({"secret": "secret-step"})))
}

/// Each call of a store once, with secrets in all that goes in.
fn tour(store: &mut Twin) {
    let mut a = secretive("secret-a");
    store.create(&mut a, &secrets()).unwrap();
    store.commit(&mut a, &secrets()).unwrap();
    store.save(&mut a).unwrap();
    store.load("secret-a").unwrap().unwrap();
    store.load_for_event("secret-a", "secret-e").unwrap();
    store.is_processed("secret-a", "secret-e").unwrap();
    for entry in store.pending_outbox().unwrap() {
        store.ack_outbox(entry.seq).unwrap();
    }
    for entry in store.pending_spawns().unwrap() {
        store.ack_spawn(entry.seq).unwrap();
    }
    store.due_timers(9.0).unwrap();
    store.delete_timer("secret-a", "secret-path", 5.0).unwrap();
    let step = object(json!({"secret": "secret-step"}));
    store.append_trace("secret-a", &step).unwrap();
    store.read_trace("secret-a").unwrap();
    store
        .list_executions(&ListFilter::default(), 10, None)
        .unwrap();
    store.executions(Listing::new(ListFilter::default(), 10, None), |_| {});
    store
        .list_ordered(&ListFilter::default(), 10, None)
        .unwrap();
    store.rebuild_index().unwrap();
    store.ids_with_prefix("secret-").unwrap();
    store.status("secret-a").unwrap();
    store.fork("secret-a", "secret-b").unwrap();
    store.check().unwrap();
    store
        .sweep_finished(&Sweep::finished_before(9.0), 10, None)
        .unwrap();
    store.record_backlog(9.0).unwrap();
    store.purge("secret-a", Version::new(3)).unwrap();
}

/// Calls that go wrong, each in a way of its own, with secrets in what they are about.
fn mishaps(backend: &Backend, side: Side, settings: &Settings) {
    let mut connection = backend.connect(Protocol::Resp2);
    let with = |plan| side.store_with(backend, settings.clone(), plan);
    let mut store = with(Plan::none());
    let mut stale = secretive("secret-c");
    store.save(&mut stale.clone()).unwrap();
    store.save(&mut stale).unwrap_err();
    store.create(&mut stale, &Commit::new()).unwrap_err();
    store.fork("secret-c", "secret-\0").unwrap_err();
    store.purge("secret-\0", Version::NEW).unwrap_err();
    store.due_timers(f64::NAN).unwrap_err();
    store
        .commit(&mut secretive("secret-\0"), &Commit::new())
        .unwrap_err();

    let mut lost = secretive("secret-d");
    let error = with(Plan::at(0, Fault::LoseReply)).save(&mut lost);
    let Err(StoreError::Indeterminate { attempt, .. }) = error else {
        panic!("{error:?}")
    };
    store.resolve(&mut lost, &attempt.unwrap()).unwrap();
    with(Plan::at(0, Fault::DropBefore))
        .load("secret-d")
        .unwrap_err();

    let prefix = settings.keys().prefix().to_owned();
    ask(
        &mut connection,
        &["SET", &format!("{prefix}:exe:secret-e"), "secret"],
    );
    store.load("secret-e").unwrap_err();
    ask(&mut connection, &["DEL", &format!("{prefix}:outbox")]);
    ask(
        &mut connection,
        &["SET", &format!("{prefix}:outbox"), "secret"],
    );
    store.pending_outbox().unwrap_err();
    store
        .commit(&mut secretive("secret-f"), &secrets())
        .unwrap_err();
    let watching = settings.clone().commit_path(CommitPath::Watch);
    side.store_with(backend, watching, Plan::none())
        .commit(&mut secretive("secret-g"), &secrets())
        .unwrap_err();
    ask(
        &mut connection,
        &["SET", &format!("{prefix}:timers"), "secret"],
    );
    store.record_backlog(1.0).unwrap_err();
}

#[test]
fn nothing_that_went_in_or_came_out_is_told() {
    with_each(|backend, side| {
        let settings = Settings::new("secret_prefix")
            .unwrap()
            .index(store::Index::Ordered);
        let told = overhear(|| {
            describe_metrics();
            tour(&mut side.store_with(backend, settings.clone(), Plan::none()));
            mishaps(backend, side, &settings);
            let mut courier = Courier::with(
                backend,
                side,
                Protocol::Resp3,
                settings.clone(),
                Plan::none(),
            );
            let event = Event::new("secret-event", "secret-kind");
            courier.publish("secret-g", &event, Priority::MIN).unwrap();
            let lease = courier.lease("secret-g");
            courier.nack(&lease, Duration::ZERO).unwrap();
            let lease = courier.lease("secret-g");
            courier.record_backlog().unwrap();
            courier.ack(&lease).unwrap();
            courier
                .publish("secret-\0", &event, Priority::MIN)
                .unwrap_err();
        });
        assert!(told.len() > 100);
        for line in &told {
            // Neither the caller's texts nor the server's.
            for word in ["secret", ":exe:", ":outbox", ":timers", "WRONGTYPE"] {
                assert!(!line.contains(word), "{line}");
            }
        }
        let operations: BTreeSet<&str> = about(&told, "span call")
            .into_iter()
            .filter_map(|line| line.split(" operation=").nth(1)?.split(' ').next())
            .collect();
        let expected = "ack ack_outbox ack_spawn append_trace backlog check claim commit \
            count_waiting create delete_timer due_timers fork ids_with_prefix is_processed \
            list_executions list_ordered load load_for_event nack pending_outbox pending_spawns \
            publish purge read_trace rebuild_index resolve status sweep_finished";
        assert_eq!(operations, expected.split_whitespace().collect());
    });
}

#[test]
fn how_calls_ended_is_counted_by_operation() {
    with_each(|backend, side| {
        let told = overhear(|| mishaps(backend, side, &Settings::default()));
        for (operation, outcome) in [
            ("commit", "ok"),
            ("commit", "conflict"),
            ("create", "already_exists"),
            ("fork", "invalid"),
            ("purge", "invalid"),
            ("due_timers", "invalid"),
            ("commit", "invalid"),
            ("commit", "indeterminate"),
            ("resolve", "ok"),
            ("load", "io"),
            ("load", "corrupt"),
            ("pending_outbox", "corrupt"),
            ("commit", "corrupt"),
            ("commit", "partial"),
            ("count_waiting", "corrupt"),
        ] {
            let line =
                format!("store_calls_total store=store operation={operation} outcome={outcome}: 1");
            assert!(told.contains(&line), "{line} is not in {told:#?}");
        }
        // Data that is damaged, or that nobody knows of, is worth a line in a log.
        let mut alarms = about(&told, "event");
        alarms.dedup();
        let words = "message=a call needs attention";
        let alarm = |outcome| format!("event WARN {words} outcome={outcome}");
        assert!(alarms.iter().all(|line| line.contains(words)), "{alarms:?}");
        for outcome in ["indeterminate", "corrupt", "partial"] {
            let alarm = alarm(outcome);
            let reversed = format!("event WARN outcome={outcome} {words}");
            assert!(
                alarms.contains(&alarm.as_str()) || alarms.contains(&reversed.as_str()),
                "{alarm} is not in {alarms:?}"
            );
        }
    });
}

#[test]
fn a_span_has_versions_and_round_trips() {
    with_each(|backend, side| {
        let watching = Settings::default().commit_path(CommitPath::Watch);
        let mut store = side
            .store_with(backend, watching, Plan::none())
            .observed(Observer::named("orders"));
        let mut execution = Execution::new("a", "d");
        store.save(&mut execution).unwrap();
        let mut stale = execution.clone();
        store.save(&mut execution).unwrap();
        let told = overhear(|| {
            store.save(&mut stale).unwrap_err();
            store
                .commit(&mut Execution::new("\0", "d"), &Commit::new())
                .unwrap_err();
        });
        assert_eq!(
            about(&told, "span"),
            [
                "span call store=orders operation=commit expected=1",
                "span outcome=conflict",
                "span round_trips=2",
                "span found=2",
                "span call store=orders operation=commit",
                "span outcome=invalid",
                "span round_trips=0",
            ]
        );
        let told_of_a_retry = overhear(|| Observer::named("orders").retried("commit"));
        assert_eq!(
            told_of_a_retry,
            ["store_retries_total store=orders operation=commit: 1"]
        );
        assert_eq!(
            about(&told, "store_round_trips_total"),
            [
                "store_round_trips_total store=orders operation=commit: 2",
                "store_round_trips_total store=orders operation=commit: 0",
            ]
        );
    });
}

#[test]
fn times_are_measured_by_the_clock_that_was_given() {
    with_each(|backend, side| {
        let reads = AtomicU64::new(0);
        let clock = ObserverClock::new(move || {
            Duration::from_millis(250) * reads.fetch_add(1, Ordering::Relaxed) as u32
        });
        let observer = Observer::named("orders").timed_by(clock);
        let mut store = side.store(backend).observed(observer);
        let told = overhear(|| {
            store.load("a").unwrap();
            store.status("a").unwrap();
        });
        assert_eq!(
            about(&told, "store_call_duration_seconds"),
            [
                "store_call_duration_seconds store=orders operation=load: 0.25",
                "store_call_duration_seconds store=orders operation=status: 0.25",
            ]
        );
    });
}

#[test]
fn what_waits_is_a_gauge_when_it_is_asked_for() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let mut execution = Execution::new("a", "d");
        store.commit(&mut execution, &secrets()).unwrap();
        let mut courier = Courier::new(backend, side);
        for group in ["g", "h"] {
            let event = Event::new("e", "K");
            courier.publish(group, &event, Priority::MAX).unwrap();
        }
        courier
            .claim("w", Duration::from_secs(9), Priority::MIN)
            .unwrap();
        let told = overhear(|| {
            let waiting = store.record_backlog(5.0).unwrap();
            assert_eq!(
                (waiting.outbox, waiting.spawns, waiting.due_timers),
                (1, 1, 1)
            );
            assert_eq!(store.record_backlog(4.0).unwrap().due_timers, 0);
            courier.record_backlog().unwrap();
        });
        let gauges = |name| about(&told, name);
        assert_eq!(
            gauges("store_outbox"),
            ["store_outbox_waiting store=store: 1"; 2]
        );
        assert_eq!(
            gauges("store_spawns"),
            ["store_spawns_waiting store=store: 1"; 2]
        );
        assert_eq!(
            gauges("store_timers"),
            [
                "store_timers_due store=store: 1",
                "store_timers_due store=store: 0"
            ]
        );
        let ready = "store_groups_ready store=store priority=4: 1".to_owned();
        let all = "store_groups_waiting store=store priority=4: 2".to_owned();
        assert!(told.contains(&ready) && told.contains(&all), "{told:#?}");
    });
}

#[test]
fn a_round_after_the_first_is_counted_as_a_retry() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        store.save(&mut Execution::new("a", "d")).unwrap();
        let policy = RetryPolicy::default().attempts(3);
        let told = overhear(|| {
            let decide = |execution: &mut Execution, _: &Round| {
                // A rival is faster, every time.
                let mut rival = Side::Sync.store(backend);
                rival.save(&mut execution.clone()).unwrap();
                Decision::Commit(Commit::new())
            };
            store
                .with_retry("a", &policy, &Pauses::default(), decide)
                .unwrap_err();
        });
        let line = "store_retries_total store=store operation=commit: 1";
        assert_eq!(about(&told, "store_retries_total"), [line; 2]);
    });
}

#[test]
fn a_call_that_is_given_up_is_told_as_abandoned() {
    with_each(|backend, side| {
        if let Side::Sync = side {
            return;
        }
        let plan = Plan::at(0, Fault::Hang);
        let Twin::Async(runtime, mut store) = side.store_with(backend, Settings::default(), plan)
        else {
            panic!("not the asynchronous twin")
        };
        let told = overhear(|| {
            runtime.block_on(async {
                let load = store.load("a");
                let limit = Duration::from_millis(20);
                tokio::time::timeout(limit, load).await.unwrap_err();
            });
        });
        let line = "store_calls_total store=store operation=load outcome=abandoned: 1".to_owned();
        assert!(told.contains(&line), "{told:#?}");
    });
}

#[test]
fn an_operation_of_ones_own_has_a_name_too() {
    #[derive(Debug)]
    struct Nothing;

    impl op::Operation for Nothing {
        type Output = ();

        fn step(&mut self, _: op::Replies) -> op::Step<()> {
            op::Step::Done(Ok(()))
        }
    }

    with_each(|backend, side| {
        let told = overhear(|| side.store(backend).run(Nothing).unwrap());
        let line = "store_calls_total store=store operation=custom outcome=ok: 1".to_owned();
        assert!(told.contains(&line), "{told:#?}");
    });
}

#[test]
fn every_operation_of_the_store_says_its_name() {
    let mut nameless = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2) {
                let is_operation =
                    pair[0].starts_with("impl") && pair[0].contains(" Operation for ");
                if is_operation && !pair[1].contains("const NAME") {
                    nameless.push(format!("{}: {}", path.display(), pair[0]));
                }
            }
        }
    }
    assert_eq!(nameless, Vec::<String>::new());
}
