//! Bad input of every kind: one clear error, nothing written, no panic; both twins.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use store::{
    ChildState, Commit, CommitPath, Cursor, Event, Execution, Index, ListFilter, Listing,
    OrderedCursor, Rejection, Settings, SpawnIntent, Status, StoreError, Sweep, TimerOp, Version,
    keys::Keys,
    transport::{Lease, Priority},
};

use crate::{
    backend::{Backend, Protocol, ask},
    keyspace::{self, Bytes},
    meddling::Plan,
    transport::Courier,
    twin::{Side, Twin, with_each},
};

type Outcome = Result<(), StoreError>;

fn store_on(backend: &Backend, side: Side, path: CommitPath) -> Twin {
    let settings = Settings::default().commit_path(path).index(Index::Ordered);
    side.store_with(backend, settings, Plan::none())
}

/// A call has to end with this refusal, and to leave everything as it was.
fn is_refused(backend: &Backend, about: &str, reason: Rejection, call: impl FnOnce() -> Outcome) {
    let mut connection = backend.connect(Protocol::Resp2);
    let before = keyspace::read(&mut connection);
    let error = call().expect_err(about);
    let StoreError::Invalid {
        what,
        reason: found,
    } = &error
    else {
        panic!("{about}: {error}")
    };
    assert_eq!(*found, reason, "{about}: {error}");
    assert_eq!(error.to_string(), format!("invalid {what}: {reason}"));
    assert_eq!(keyspace::read(&mut connection), before, "{about}");
}

fn timers(times: impl IntoIterator<Item = f64>) -> Commit {
    let timers = times.into_iter().map(|time| TimerOp::schedule("P", time));
    timers.fold(Commit::new(), Commit::timer)
}

fn deep(levels: usize) -> Map<String, Json> {
    let mut value = json!(1);
    for _ in 1..levels {
        value = json!({ "k": value });
    }
    Map::from_iter([("k".to_owned(), value)])
}

fn changed(change: impl FnOnce(&mut Execution)) -> Execution {
    let mut execution = Execution::new("a", "d");
    change(&mut execution);
    execution
}

/// Nested more deeply than may be stored.
fn heavy() -> Event {
    let mut event = Event::new("f", "K");
    event.data = deep(400);
    event
}

type Refused<T> = Vec<(&'static str, Rejection, T)>;

/// Documents that may not be stored.
fn refused_documents() -> Refused<Execution> {
    use Rejection::*;

    let named = |id: &str| Execution::new(id, "d");
    let last = Version::new((1 << 53) - 1);
    let mut child = ChildState::new("R");
    child.result = deep(400);
    let children = [("c".to_owned(), child)];
    vec![
        ("NUL in an id", Nul, named("a\0b")),
        ("only NUL", Nul, named("\0")),
        ("a reserved id", Reserved, named("seq:a")),
        (
            "its time",
            NotFinite,
            changed(|a| a.finished_at = Some(f64::INFINITY)),
        ),
        ("a priority", OutOfRange, changed(|a| a.priority = 5)),
        (
            "a deep context",
            TooDeep,
            changed(|a| a.context = deep(400)),
        ),
        (
            "a deep deferred event",
            TooDeep,
            changed(|a| a.deferred.push(heavy())),
        ),
        (
            "a deep result",
            TooDeep,
            changed(|a| a.children.extend(children)),
        ),
        (
            "the last version",
            VersionAtEdge,
            changed(|a| a.version = last),
        ),
    ]
}

/// Effects that may not be stored.
fn refused_effects() -> Refused<Commit> {
    use Rejection::*;

    let emit = |target, id: &str| Commit::new().emit(target, Event::new(id, "K"));
    let mut timed = Event::new("f", "K");
    timed.created_time = Some("yesterday".to_owned());
    let mut spawn = SpawnIntent::new("c", "R");
    spawn.context = deep(400);
    let nul = SpawnIntent::new("\0", "R");
    vec![
        ("NUL in a target", Nul, emit(Some("a\0b"), "f")),
        ("a reserved target", Reserved, emit(Some("seq:"), "f")),
        ("NUL in a child", Nul, Commit::new().spawn(nul)),
        ("an empty event id", Empty, emit(None, "")),
        ("an empty handled id", Empty, Commit::for_event("")),
        (
            "a time of an event",
            Malformed,
            Commit::new().emit(None, timed),
        ),
        ("a timer at NaN", NotFinite, timers([f64::NAN])),
        (
            "a timer at infinity",
            NotFinite,
            timers([1.0, f64::INFINITY]),
        ),
        (
            "a timer before all time",
            NotFinite,
            timers([f64::NEG_INFINITY]),
        ),
        ("a deep event", TooDeep, Commit::new().emit(None, heavy())),
        ("a deep spawn", TooDeep, Commit::new().spawn(spawn)),
        ("a deep step", TooDeep, Commit::new().trace(deep(400))),
    ]
}

/// Documents and effects that may not be stored.
fn refused_commits() -> Vec<(&'static str, Rejection, Execution, Commit)> {
    let documents = refused_documents().into_iter();
    let documents =
        documents.map(|(about, reason, document)| (about, reason, document, Commit::new()));
    let effects = refused_effects().into_iter();
    let effects = effects.map(|(about, reason, commit)| (about, reason, changed(|_| {}), commit));
    documents.chain(effects).collect()
}

#[test]
fn a_commit_of_what_can_not_be_stored_is_refused_before_anything_is_written() {
    with_each(|backend, side| {
        for path in [CommitPath::Script, CommitPath::Mixed, CommitPath::Watch] {
            let mut store = store_on(backend, side, path);
            store
                .commit(
                    &mut Execution::new(format!("old {path:?}"), "d"),
                    &Commit::new(),
                )
                .unwrap();
            for (about, reason, execution, commit) in refused_commits() {
                let about = format!("{about} over {path:?}");
                let mut passed = execution.clone();
                is_refused(backend, &about, reason, || {
                    store.commit(&mut passed, &commit).map(drop)
                });
                assert_eq!(passed, execution, "{about}");
                let creating = if reason == Rejection::VersionAtEdge {
                    Rejection::NotNew
                } else {
                    reason
                };
                is_refused(backend, &about, creating, || {
                    store.create(&mut passed, &commit).map(drop)
                });
                assert_eq!(passed, execution, "{about}");
            }
        }
    });
}

#[test]
fn every_other_call_refuses_what_it_can_not_do() {
    use Rejection::*;

    let calls: [(&str, Rejection, Call); 16] = [
        ("a timer's id", Nul, |s| {
            s.delete_timer("a\0", "P", 1.0).map(drop)
        }),
        ("a timer's time", NotFinite, |s| {
            s.delete_timer("a", "P", f64::NAN).map(drop)
        }),
        ("a timer's endless time", NotFinite, |s| {
            s.delete_timer("a", "P", f64::INFINITY).map(drop)
        }),
        ("a present", NotFinite, |s| s.due_timers(f64::NAN).map(drop)),
        ("a trace's id", Nul, |s| s.append_trace("a\0", &Map::new())),
        ("a trace's reserved id", Reserved, |s| {
            s.append_trace("seq:a", &Map::new())
        }),
        ("a step", TooDeep, |s| s.append_trace("a", &deep(400))),
        ("a trace to read", Reserved, |s| {
            s.read_trace("seq:a").map(drop)
        }),
        ("the name of a fork", Nul, |s| s.fork("a", "n\0").map(drop)),
        ("a reserved fork", Reserved, |s| {
            s.fork("a", "seq:n").map(drop)
        }),
        ("what to purge", Nul, |s| {
            s.purge("a\0", Version::new(1)).map(drop)
        }),
        ("what to purge, reserved", Reserved, |s| {
            s.purge("seq:a", Version::new(1)).map(drop)
        }),
        ("a page of nothing", OutOfRange, |s| {
            s.list_ordered(&ListFilter::default(), 0, None).map(drop)
        }),
        ("a sweep's time", NotFinite, |s| {
            s.sweep_finished(&Sweep::finished_before(f64::NAN), 10, None)
                .map(drop)
        }),
        ("a cursor", Malformed, |_| "-1".parse::<Cursor>().map(drop)),
        ("an ordered cursor", Malformed, |_| {
            "x".parse::<OrderedCursor>().map(drop)
        }),
    ];
    with_each(|backend, side| {
        let mut store = store_on(backend, side, CommitPath::Script);
        store
            .commit(&mut Execution::new("a", "d"), &timers([1.0]))
            .unwrap();
        for (about, reason, call) in calls {
            is_refused(backend, about, reason, || call(&mut store));
        }
    });
}

#[test]
fn prefixes_that_share_keys_with_others_are_refused() {
    for prefix in [
        "",
        "\0",
        "a\0b",
        "a:exe",
        "a:exe:b",
        "a:outbox",
        "a:timers:",
        "a:q",
        "a:dead",
    ] {
        let error = Keys::new(prefix).unwrap_err();
        let reason = Rejection::PrefixCollides;
        assert!(matches!(error, StoreError::Invalid { reason: found, .. } if found == reason));
    }
}

#[test]
fn odd_but_valid_input_comes_back_as_it_went_in() {
    let huge = "x".repeat(1 << 16);
    let ids = [
        "",
        " ",
        "*?[a-z]\\",
        "\r\n$-1\r\n",
        "\u{1F600}\u{0}".trim_end_matches('\0'),
        "é",
        &huge,
        "exe",
        "index",
        "a:seq:b",
    ];
    with_each(|backend, side| {
        for path in [CommitPath::Script, CommitPath::Watch] {
            for id in ids {
                ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
                let mut store = store_on(backend, side, path);
                let mut execution = changed(|execution| {
                    execution.id = id.to_owned();
                    execution.context = deep(150);
                    execution.status = Status::Running;
                });
                let event = if id.is_empty() { "e" } else { id };
                let commit = Commit::for_event(event)
                    .emit(Some(id), Event::new(event, id))
                    .spawn(SpawnIntent::new(id, id))
                    .timer(TimerOp::schedule(id, -1e300))
                    .timer(TimerOp::schedule("max", f64::MAX))
                    .trace(Map::from_iter([(id.to_owned(), json!(id))]));
                store.commit(&mut execution, &commit).unwrap();
                let about = id.chars().take(20).collect::<String>();
                assert_eq!(
                    store.load(id).unwrap().as_ref(),
                    Some(&execution),
                    "{about}"
                );
                assert!(store.is_processed(id, event).unwrap());
                assert_eq!(store.due_timers(f64::INFINITY).unwrap().len(), 2);
                assert_eq!(store.due_timers(f64::NEG_INFINITY).unwrap().len(), 0);
                assert!(store.delete_timer(id, id, -1e300).unwrap());
                let page = store
                    .list_executions(&ListFilter::default(), u32::MAX, None)
                    .unwrap();
                assert_eq!(page.items.len(), 1, "{about}");
                let mut found = Vec::new();
                let listing = Listing::new(ListFilter::default(), 0, None);
                found.extend(store.executions(listing, |_| {}));
                assert_eq!(found.len(), 1, "{about}");
                let page = store
                    .list_ordered(&ListFilter::default(), u32::MAX, None)
                    .unwrap();
                assert_eq!(page.items.len(), 1, "{about}");
                assert_eq!(store.ids_with_prefix(id).unwrap(), [id]);
                assert_eq!(store.pending_spawns().unwrap().len(), 1);
                assert_eq!(store.pending_outbox().unwrap().len(), 1);
                assert_eq!(store.read_trace(id).unwrap().len(), 1);
                assert!(store.purge(id, Version::new(1)).unwrap(), "{about}");
                let cursor = u64::MAX.to_string().parse().unwrap();
                store
                    .list_executions(&ListFilter::default(), 1, Some(cursor))
                    .unwrap();
            }
        }
    });
}

type Call = fn(&mut Twin) -> Outcome;

/// Every call of a store, on an execution `a` at version 1.
const CALLS: [(&str, Call); 24] = [
    ("commit", |s| {
        let commit = Commit::for_event("f")
            .emit(None, Event::new("f", "K"))
            .spawn(SpawnIntent::new("c", "R"))
            .timer(TimerOp::schedule("P", 1.0))
            .trace(Map::new());
        s.commit(&mut changed(|a| a.version = Version::new(1)), &commit)
            .map(drop)
    }),
    ("commit of the state", |s| {
        let commit = Commit::for_event("f");
        s.commit(&mut changed(|a| a.version = Version::new(1)), &commit)
            .map(drop)
    }),
    ("save", |s| {
        s.save(&mut changed(|a| a.version = Version::new(1)))
            .map(drop)
    }),
    ("create", |s| {
        let commit = Commit::new().trace(Map::new());
        s.create(&mut Execution::new("n", "d"), &commit).map(drop)
    }),
    ("load", |s| s.load("a").map(drop)),
    ("load_for_event", |s| s.load_for_event("a", "e").map(drop)),
    ("is_processed", |s| s.is_processed("a", "e").map(drop)),
    ("status", |s| s.status("a").map(drop)),
    ("pending_outbox", |s| s.pending_outbox().map(drop)),
    ("pending_spawns", |s| s.pending_spawns().map(drop)),
    ("ack_outbox", |s| s.ack_outbox(store::Seq::new(1)).map(drop)),
    ("ack_spawn", |s| s.ack_spawn(store::Seq::new(1)).map(drop)),
    ("due_timers", |s| s.due_timers(9.0).map(drop)),
    ("delete_timer", |s| s.delete_timer("a", "P", 1.0).map(drop)),
    ("append_trace", |s| s.append_trace("a", &Map::new())),
    ("read_trace", |s| s.read_trace("a").map(drop)),
    ("fork", |s| s.fork("a", "n").map(drop)),
    ("purge", |s| s.purge("a", Version::new(1)).map(drop)),
    ("sweep_finished", |s| {
        s.sweep_finished(&Sweep::finished_before(9.0), 10, None)
            .map(drop)
    }),
    ("ids_with_prefix", |s| s.ids_with_prefix("").map(drop)),
    ("list_executions", |s| {
        s.list_executions(&ListFilter::default(), 10, None)
            .map(drop)
    }),
    ("list_ordered", |s| {
        s.list_ordered(&ListFilter::default(), 10, None).map(drop)
    }),
    ("rebuild_index", |s| s.rebuild_index().map(drop)),
    ("count_waiting", |s| {
        s.run(store::op::CountWaiting::new(&Settings::default(), 9.0).unwrap())
            .map(drop)
    }),
];

/// Things that a key may hold, and the commands that put them there.
const KINDS: [(&str, &[&str]); 3] = [
    ("SET", &["junk"]),
    ("HSET", &["junk", "junk"]),
    ("ZADD", &["1", "junk"]),
];

const KEYS: [&str; 10] = [
    "stm:exe:a",
    "stm:processed:a",
    "stm:trace:a",
    "stm:trace:seq:a",
    "stm:outbox",
    "stm:outbox:seq",
    "stm:spawns",
    "stm:spawns:seq",
    "stm:timers",
    "stm:index",
];

#[test]
fn a_key_that_holds_something_else_is_named_and_nothing_is_written() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        for key in KEYS {
            for (kind, words) in KINDS {
                for (name, call) in CALLS {
                    ask(&mut connection, &["FLUSHDB"]);
                    let mut store = store_on(backend, side, CommitPath::Script);
                    let mut execution = changed(|a| {
                        a.status = Status::Done;
                        a.finished_at = Some(1.0);
                    });
                    let commit = Commit::for_event("e")
                        .emit(None, Event::new("f", "K"))
                        .spawn(SpawnIntent::new("c", "R"))
                        .timer(TimerOp::schedule("P", 1.0))
                        .trace(Map::new());
                    store.commit(&mut execution, &commit).unwrap();
                    ask(&mut connection, &["DEL", key]);
                    let put: Vec<&str> = [kind, key].iter().chain(words).copied().collect();
                    ask(&mut connection, &put);
                    let before = keyspace::read(&mut connection);
                    let about = format!("{name} with {kind} of {key}");
                    match call(&mut store) {
                        // It has nothing to do with that key, or what it holds is of the right type.
                        Ok(()) => continue,
                        Err(StoreError::Corrupt {
                            key: named, reason, ..
                        }) => {
                            assert_eq!(named, key, "{about}");
                            assert!(!reason.is_empty(), "{about}");
                        }
                        Err(other) => panic!("{about}: {other}"),
                    }
                    let mut after = keyspace::read(&mut connection);
                    if name == "append_trace" {
                        // Its three commands are no transaction: the number that it drew stays unused.
                        let counter = Bytes(b"stm:trace:seq:a".to_vec());
                        if let Some(held) = before.get(&counter) {
                            after.insert(counter, held.clone());
                        }
                    }
                    assert_eq!(after, before, "{about}");
                }
            }
        }
    });
}

#[test]
fn a_transport_refuses_bad_input_too() {
    use Rejection::*;

    with_each(|backend, side| {
        let mut courier = Courier::new(backend, side);
        let event = Event::new("e", "K");
        courier.publish("g", &event, Priority::MIN).unwrap();
        let lease: Lease = courier.lease("g");
        let mut deep_event = event.clone();
        deep_event.data = deep(400);
        let low = Priority::MIN;
        for (group, reason) in [("a\0b", Nul), ("seq:g", Reserved)] {
            is_refused(backend, group, reason, || {
                courier.publish(group, &event, low).map(drop)
            });
            is_refused(backend, group, reason, || {
                courier.queue_length(group).map(drop)
            });
            is_refused(backend, group, reason, || {
                courier.dead_letters(group, 1).map(drop)
            });
            is_refused(backend, group, reason, || {
                courier.discard_dead_letter(group, b"").map(drop)
            });
        }
        let nameless = Event::new("", "K");
        is_refused(backend, "no id", Empty, || {
            courier.publish("g", &nameless, low).map(drop)
        });
        is_refused(backend, "depth", TooDeep, || {
            courier.publish("g", &deep_event, low).map(drop)
        });
        is_refused(backend, "delay", OutOfRange, || {
            courier.nack(&lease, Duration::MAX).map(drop)
        });
        is_refused(backend, "time", OutOfRange, || {
            courier.extend(&lease, Duration::MAX).map(drop)
        });
        is_refused(backend, "time", OutOfRange, || {
            courier.claim("w", Duration::MAX, low).map(drop)
        });
        assert!(matches!(
            Priority::try_from(5),
            Err(StoreError::Invalid {
                reason: OutOfRange,
                ..
            })
        ));
        assert!(courier.ack(&lease).unwrap());
    });
}
