//! Two dialects on one key space.

use serde_json::Value;
use store::{
    ChildState, Commit, CommitPath, Dialect, Event, Execution, Rejection, Settings, StoreError,
    Strictness, codec,
};

use crate::{
    backend::{Backend, Protocol, ask},
    commits::dump,
    keyspace::{Bytes, Held, Keyspace},
    meddling::Plan,
    twin::{Side, Twin, with_each},
};

const DIALECTS: [Dialect; 2] = [Dialect::Seed, Dialect::V09];
const PATHS: [CommitPath; 3] = [CommitPath::Script, CommitPath::Mixed, CommitPath::Watch];

/// A row of a writer that knows more than both dialects, in an order of its own.
const NEWER: &str = r#"{"first":{"n":1e-7},"id":"a","definition_id":"d","definition_fqn":null,"root_path":"","status":"DONE","outcome":null,"error":null,"active_path":null,"history":{},"context":{},"processed_events":0,"version":1,"priority":0,"parent_id":null,"child_id":null,"deferred":[{"v":2,"id":"e","kind":"k","created_time":null,"received_time":null,"data":{},"trace_parent":"x"}],"children":{"c":{"root_path":"r","since":1,"finished":false,"outcome":null,"result":{},"submachine":false,"key":"","label":[]}},"invoke_seq":{},"tags":["t"],"created_at":1700000000.5,"updated_at":1700000001,"finished_at":null,"expires_at":1e-7,"last":null}"#;

fn store(backend: &Backend, side: Side, dialect: Dialect, path: CommitPath) -> Twin {
    let settings = Settings::in_dialect(dialect, "shared").unwrap();
    side.store_with(backend, settings.commit_path(path), Plan::none())
}

fn row(backend: &Backend) -> String {
    let row = dump(backend).remove(&Bytes(b"shared:exe:a".to_vec()));
    match row {
        Some(Held::String(row)) => String::from_utf8(row.0).unwrap(),
        other => panic!("{other:?}"),
    }
}

// C15, the naive way: a reader that takes what it knows and writes that back.
#[test]
fn a_writer_that_keeps_only_what_it_knows_loses_the_times() {
    let mut read = codec::decode_execution(NEWER.as_bytes()).unwrap();
    let known = Execution::new("a", "d");
    read.unknown = known.unknown.clone();
    (read.created_at, read.updated_at) = (known.created_at, known.updated_at);
    read.expires_at = known.expires_at;
    let written = codec::encode_execution(&read, read.version);
    for lost in ["created_at", "expires_at", "tags", "first"] {
        assert!(NEWER.contains(lost) && !written.contains(lost), "{lost}");
    }
}

// C15
#[test]
fn both_dialects_keep_times_and_unknown_members_in_their_places() {
    with_each(|backend, side| {
        for dialect in DIALECTS {
            for path in PATHS {
                ask(
                    &mut backend.connect(Protocol::Resp2),
                    &["SET", "shared:exe:a", NEWER],
                );
                let mut store = store(backend, side, dialect, path);
                let mut execution = store.load("a").unwrap().unwrap();
                assert_eq!(execution.created_at, Some(1_700_000_000.5));
                store.save(&mut execution).unwrap();
                let expected = NEWER.replace(r#""version":1"#, r#""version":2"#);
                assert_eq!(row(backend), expected, "{dialect:?} {path:?}");
            }
        }
    });
}

// C15: what an event carried is in the outbox too.
#[test]
fn unknown_members_of_a_deferred_event_go_out_with_it() {
    with_each(|backend, side| {
        let execution = codec::decode_execution(NEWER.as_bytes()).unwrap();
        let mut store = store(backend, side, Dialect::Seed, CommitPath::Mixed);
        let event: &Event = execution.deferred.first().unwrap();
        let commit = Commit::new().emit(Some("b"), event.clone());
        store
            .commit(&mut Execution::new("a", "d"), &commit)
            .unwrap();
        let entries = store.pending_outbox().unwrap();
        assert_eq!(&entries[0].event, event);
        assert_eq!(event.unknown.iter().count(), 2);
    });
}

// C15
#[test]
fn the_dialects_continue_each_others_rows() {
    with_each(|backend, side| {
        for path in PATHS {
            ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
            let mut stores = DIALECTS.map(|dialect| store(backend, side, dialect, path));
            let mut execution = Execution::new("a", "d");
            execution
                .children
                .insert("c".to_owned(), ChildState::new("r"));
            stores[0].save(&mut execution).unwrap();
            assert!(!row(backend).contains("created_at"));
            for round in 1..5_u32 {
                let writer = &mut stores[(round % 2) as usize];
                let mut execution = writer.load("a").unwrap().unwrap();
                if round == 1 {
                    execution.created_at = Some(7.25);
                }
                let event = format!("e{round}");
                writer
                    .commit(&mut execution, &Commit::for_event(&*event))
                    .unwrap();
                let kept: Value = serde_json::from_str(&row(backend)).unwrap();
                assert_eq!(kept["created_at"], 7.25, "round {round}");
                assert!(kept.as_object().unwrap().contains_key("expires_at"));
            }
            // A conflict is one for both.
            let [seed, newer] = &mut stores;
            let mut stale = seed.load("a").unwrap().unwrap();
            let mut fresh = newer.load("a").unwrap().unwrap();
            newer.save(&mut fresh).unwrap();
            for commit in [
                Commit::new(),
                Commit::new().emit(None, Event::new("x", "k")),
            ] {
                let error = seed.commit(&mut stale, &commit).unwrap_err();
                assert!(
                    matches!(error, StoreError::Conflict { found: Some(found), .. } if found.get() == 6),
                    "{error}"
                );
            }
        }
    });
}

#[test]
fn a_new_row_of_the_newer_dialect_has_all_its_members() {
    with_each(|backend, side| {
        for path in PATHS {
            ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
            let mut store = store(backend, side, Dialect::V09, path);
            store.save(&mut Execution::new("a", "d")).unwrap();
            let members: Value = serde_json::from_str(&row(backend)).unwrap();
            let members: Vec<_> = members.as_object().unwrap().keys().cloned().collect();
            assert_eq!(members.len(), 22);
            assert_eq!(
                members[18..],
                ["created_at", "updated_at", "finished_at", "expires_at"]
            );
        }
    });
}

// C30: not a number has no spelling in a row.
#[test]
fn times_that_are_not_finite_are_refused() {
    with_each(|backend, side| {
        for path in PATHS {
            let mut store = store(backend, side, Dialect::V09, path);
            let mut execution = Execution::new("a", "d");
            execution.expires_at = Some(f64::NAN);
            let error = store.save(&mut execution).unwrap_err();
            assert!(
                matches!(
                    error,
                    StoreError::Invalid {
                        reason: Rejection::NotFinite,
                        ..
                    }
                ),
                "{error}"
            );
            assert_eq!(dump(backend), Keyspace::new());
        }
    });
}

// C17, the naive way: members as the Python store makes them.
#[test]
fn two_executions_with_nul_in_their_ids_share_a_timer() {
    with_each(|backend, _| {
        let mut connection = backend.connect(Protocol::Resp2);
        for (id, path) in [("a\0b", "c"), ("a", "b\0c")] {
            let member = format!("{id}\0{path}");
            ask(&mut connection, &["ZADD", "shared:timers", "1", &member]);
        }
        let count = ask(&mut connection, &["ZCARD", "shared:timers"]);
        assert_eq!(count, redis::Value::Int(1));
    });
}

// C17
#[test]
fn an_id_with_nul_is_refused_wherever_it_could_reach_a_key() {
    with_each(|backend, side| {
        let mut store = store(backend, side, Dialect::V09, CommitPath::Mixed);
        let refusals = [
            store.save(&mut Execution::new("a\0b", "d")).map(drop),
            store.purge("a\0b", store::Version::NEW).map(drop),
            store.fork("a", "a\0b").map(drop),
            store.delete_timer("a\0b", "c", 1.0).map(drop),
        ];
        for refusal in refusals {
            assert!(
                matches!(
                    refusal,
                    Err(StoreError::Invalid {
                        reason: Rejection::Nul,
                        ..
                    })
                ),
                "{refusal:?}"
            );
        }
        assert_eq!(dump(backend), Keyspace::new());
    });
}

// C19, the naive way: one path forgets an event without a name, the other one notes it.
#[test]
fn leniently_an_empty_event_id_depends_on_what_else_is_committed() {
    with_each(|backend, side| {
        let settings = Settings::default()
            .strictness(Strictness::Lenient)
            .commit_path(CommitPath::Mixed);
        let mut store = side.store_with(backend, settings, Plan::none());
        let mut execution = Execution::new("a", "d");
        store
            .commit(&mut execution, &Commit::for_event(""))
            .unwrap();
        assert!(!store.is_processed("a", "").unwrap());
        let commit = Commit::for_event("").emit(None, Event::new("x", "k"));
        store.commit(&mut execution, &commit).unwrap();
        assert!(store.is_processed("a", "").unwrap());
    });
}

// C19
#[test]
fn an_empty_event_id_is_refused_whatever_else_is_committed() {
    with_each(|backend, side| {
        for path in PATHS {
            let mut store = store(backend, side, Dialect::Seed, path);
            for commit in [
                Commit::for_event(""),
                Commit::for_event("").emit(None, Event::new("x", "k")),
                Commit::new().emit(None, Event::new("", "k")),
            ] {
                let error = store
                    .commit(&mut Execution::new("a", "d"), &commit)
                    .unwrap_err();
                assert!(
                    matches!(
                        error,
                        StoreError::Invalid {
                            reason: Rejection::Empty,
                            ..
                        }
                    ),
                    "{error}"
                );
            }
        }
        assert_eq!(dump(backend), Keyspace::new());
    });
}

// C18, the naive way: a prefix as a part of a pattern, and a key as the sum of its parts.
#[test]
fn a_prefix_that_is_a_pattern_lists_other_stores_and_one_with_parts_reads_their_rows() {
    with_each(|backend, _| {
        let mut connection = backend.connect(Protocol::Resp2);
        for key in ["stm:exe:1", "s*:exe:2", "s[t]m:exe:3", "a:exe:exe:1"] {
            ask(&mut connection, &["SET", key, "{}"]);
        }
        let mut listed = |pattern: &str| {
            let redis::Value::Array(keys) = ask(&mut connection, &["KEYS", pattern]) else {
                panic!("not a list")
            };
            keys.len()
        };
        assert_eq!(listed("s*:exe:*"), 3);
        // Its own row is not among them, another one is.
        assert_eq!(listed("s[t]m:exe:*"), 1);
        // The row `1` of the store `a:exe` is the row `exe:1` of the store `a`.
        assert_eq!(listed("a:exe:exe:1"), 1);
    });
}

// C18
#[test]
fn ids_are_found_by_their_first_letters_taken_literally() {
    with_each(|backend, side| {
        let mut stores: Vec<_> = ["stm", "s*", "{stm}"]
            .map(|prefix| side.store_with(backend, Settings::new(prefix).unwrap(), Plan::none()))
            .into();
        for store in &mut stores {
            for id in ["a", "a*", "a*b", "ab", "a[b]", "b", "a\\"] {
                store.save(&mut Execution::new(id, "d")).unwrap();
            }
        }
        for store in &mut stores {
            for (prefix, expected) in [
                ("", vec!["a", "a*", "a*b", "a[b]", "a\\", "ab", "b"]),
                ("a*", vec!["a*", "a*b"]),
                ("a[b]", vec!["a[b]"]),
                ("?", vec![]),
                ("a\\", vec!["a\\"]),
                ("b", vec!["b"]),
            ] {
                assert_eq!(store.ids_with_prefix(prefix).unwrap(), expected, "{prefix}");
            }
        }
        for prefix in ["a:exe", "s*", "app:x", "9"] {
            assert!(
                Settings::in_dialect(Dialect::V09, prefix).is_err(),
                "{prefix}"
            );
        }
        assert!(Settings::new("a:exe").is_err());
    });
}
