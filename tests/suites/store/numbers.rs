//! Versions and positions: exact on every path, in the order of the commits.

use redis::cmd;
use store::{Commit, CommitPath, Event, Execution, Seq, StoreError, Version};

use crate::{
    backend::{Protocol, ask},
    commits::{PATHS, by, dump, everything},
    keyspace::{Bytes, Held},
    meddling::Plan,
    naive,
    twin::with_each,
};

fn at(version: i64) -> Execution {
    let mut execution = Execution::new("a", "d");
    execution.version = Version::new(version);
    execution
}

// C12
#[test]
fn naively_a_version_beyond_doubles_is_overwritten_by_a_stale_commit() {
    with_each(|backend, _| {
        let mut connection = backend.connect(Protocol::Resp2);
        ask(
            &mut connection,
            &["SET", "stm:exe:a", &naive::row((1 << 53) + 1)],
        );
        let stale = naive::by_script(&mut connection, &naive::row(7), 1 << 53, "");
        assert!(stale.is_ok(), "{stale:?}");
    });
}

/// The stored member, loaded at, the version that it makes, or the one found; none if the row is corrupt.
type Case = (&'static str, i64, Result<i64, Option<i64>>);

// C12
#[test]
fn versions_of_any_spelling_are_judged_alike_on_every_path() {
    const FAR: i64 = (1 << 53) - 2;
    let cases: [Case; 22] = [
        (r#""version":3"#, 3, Ok(4)),
        (r#""version":"3""#, 3, Ok(4)),
        (r#""version":" +3 ""#, 3, Ok(4)),
        (r#""version":3.0"#, 3, Ok(4)),
        (r#""version":30e-1"#, 3, Ok(4)),
        (r#""version":-3"#, -3, Ok(-2)),
        (r#""version":9,"version":3"#, 3, Ok(4)),
        (r#""version":9,"\u0076ersion":3"#, 3, Ok(4)),
        (r#""version":4"#, 3, Err(Some(4))),
        (r#""version":"4""#, 3, Err(Some(4))),
        (
            r#""version":3,"x":{"version":3},"version":5"#,
            3,
            Err(Some(5)),
        ),
        (
            r#""version":100000000000001"#,
            100_000_000_000_000,
            Err(Some(100_000_000_000_001)),
        ),
        (r#""version":9007199254740990"#, FAR, Ok(FAR + 1)),
        (
            r#""version":9007199254740993"#,
            FAR,
            Err(Some(9_007_199_254_740_993)),
        ),
        (
            r#""version":"9007199254740993""#,
            FAR,
            Err(Some(9_007_199_254_740_993)),
        ),
        (r#""version":9223372036854775807"#, 3, Err(Some(i64::MAX))),
        (r#""version":9223372036854775808"#, 3, Err(None)),
        (r#""version":1e300"#, 3, Err(None)),
        (r#""version":3.5"#, 3, Err(None)),
        (r#""version":null"#, 3, Err(None)),
        (r#""version":"three""#, 3, Err(None)),
        (r#""other":3"#, 3, Err(None)),
    ];
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        for (member, loaded_at, expected) in cases {
            for path in PATHS {
                let row =
                    format!(r#"{{"id":"a","definition_id":"d",{member},"x":{{"version":1}}}}"#);
                ask(&mut connection, &["SET", "stm:exe:a", &row]);
                let mut store = side.store_with(backend, by(path), Plan::none());
                let result = store.save(&mut at(loaded_at));
                let judged = match result {
                    Ok(committed) => Ok(committed.version.get()),
                    Err(StoreError::Conflict { found, .. }) => Err(found.map(Version::get)),
                    Err(StoreError::Corrupt { key, .. }) if key == "stm:exe:a" => Err(None),
                    Err(error) => panic!("{member} {path:?}: {error}"),
                };
                assert_eq!(judged, expected, "{member} {path:?}");
            }
        }
    });
}

// C13
#[test]
fn naively_a_row_that_the_servers_reader_refuses_can_not_be_written_any_more() {
    with_each(|backend, _| {
        let mut connection = backend.connect(Protocol::Resp2);
        let deep = "[".repeat(1_001) + &"]".repeat(1_001);
        for odd in [r#""\ud800""#, &deep] {
            let row = format!(r#"{{"id":"a","definition_id":"d","x":{odd},"version":3}}"#);
            ask(&mut connection, &["SET", "stm:exe:a", &row]);
            assert!(naive::by_script(&mut connection, &naive::row(4), 3, "").is_err());
        }
    });
}

// C13
#[test]
fn a_row_that_the_servers_reader_refuses_is_written_on_every_path() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        let row = r#"{"id":"a","definition_id":"d","x":"\ud800","version":3}"#;
        for path in PATHS {
            ask(&mut connection, &["SET", "stm:exe:a", row]);
            let mut store = side.store_with(backend, by(path), Plan::none());
            let stale = store.save(&mut at(2)).unwrap_err();
            let text = "stale write to a: expected version 2, found 3";
            assert_eq!(stale.to_string(), text, "{path:?}");
            store.commit(&mut at(3), &everything("e")).unwrap();
        }
    });
}

// C23
#[test]
fn naively_positions_are_taken_in_another_order_than_commits_land() {
    with_each(|backend, side| {
        let mut rival = side.store_with(backend, by(CommitPath::Watch), Plan::none());
        let mut connection = backend.connect(Protocol::Resp2);
        // A slow committer has drawn its number, and then another one draws and lands.
        let drawn: i64 = cmd("INCR")
            .arg("stm:outbox:seq")
            .query(&mut connection)
            .unwrap();
        let landed = rival
            .commit(&mut Execution::new("b", "d"), &everything("e"))
            .unwrap();
        assert_eq!((drawn, landed.outbox), (1, vec![Seq::new(2)]));
        // Whoever kept 2 as the last one that it has seen will not see 1.
        let seen = rival.pending_outbox().unwrap();
        assert_eq!(seen.last().unwrap().seq, Seq::new(2));
    });
}

// C23
#[test]
fn positions_follow_the_order_in_which_commits_land_and_conflicts_draw_none() {
    with_each(|backend, side| {
        let (mut one, mut other) = (side.store(backend), side.store(backend));
        let (mut a, mut b) = (Execution::new("a", "d"), Execution::new("b", "d"));
        let mut stale = a.clone();
        let mut last = 0;
        for round in 0..3 {
            for (store, execution) in [(&mut one, &mut a), (&mut other, &mut b)] {
                let commit = everything(&format!("e{round}")).emit(None, Event::new("m", "K"));
                let landed = store.commit(execution, &commit).unwrap();
                assert_eq!(landed.outbox, [Seq::new(last + 1), Seq::new(last + 2)]);
                assert_eq!(landed.spawns, [Seq::new(last / 2 + 1)]);
                last += 2;
            }
            assert!(one.commit(&mut stale, &everything("lost")).is_err());
        }
    });
}

#[test]
fn positions_beyond_doubles_keep_their_digits_on_every_path() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        for start in [
            999_999_999_999_998_i64,
            (1 << 53) - 1,
            1 << 53,
            (1 << 53) + 1,
            999_999_999_999_999_998,
            -9_007_199_254_740_995,
        ] {
            for path in PATHS {
                ask(&mut connection, &["FLUSHDB"]);
                for counter in ["stm:outbox:seq", "stm:spawns:seq", "stm:trace:seq:a"] {
                    ask(&mut connection, &["SET", counter, &start.to_string()]);
                }
                let mut store = side.store_with(backend, by(path), Plan::none());
                let commit = everything("e").emit(None, Event::new("m", "K"));
                let landed = store
                    .commit(&mut Execution::new("a", "d"), &commit)
                    .unwrap();
                let expected = [Seq::new(start + 1), Seq::new(start + 2)];
                assert_eq!(landed.outbox, expected, "{path:?}");
                assert_eq!(landed.spawns, expected[..1], "{path:?}");
                let entries = store.pending_outbox().unwrap();
                let seqs: Vec<_> = entries.iter().map(|entry| entry.seq).collect();
                assert_eq!(seqs, expected, "{path:?}");
                let index = &store.read_trace("a").unwrap()[0]["index"];
                assert_eq!(index.to_string(), start.to_string(), "{path:?}");
            }
        }
    });
}

#[test]
fn a_counter_that_can_not_grow_stops_a_commit_before_it_writes() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        for value in [
            "9223372036854775807",
            "9223372036854775806",
            "x",
            "",
            " 1",
            "+1",
            "01",
            "-0",
            "1.0",
            "1e3",
        ] {
            for counter in ["stm:outbox:seq", "stm:spawns:seq", "stm:trace:seq:a"] {
                ask(&mut connection, &["FLUSHDB"]);
                ask(&mut connection, &["SET", counter, value]);
                let before = dump(backend);
                let mut execution = Execution::new("a", "d");
                let error = side
                    .store(backend)
                    .commit(&mut execution, &everything("e"))
                    .unwrap_err();
                assert!(
                    matches!(&error, StoreError::Corrupt { key, .. } if key == counter),
                    "{value}: {error}"
                );
                assert_eq!(dump(backend), before, "{value}");
            }
        }
    });
}

#[test]
fn the_ring_keeps_what_it_is_told_on_every_path() {
    with_each(|backend, side| {
        for (keep, count) in [(0, 5), (1, 1), (3, 3), (-2, 0)] {
            let mut left = Vec::new();
            for path in PATHS {
                ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
                let settings = by(path).trace_max(keep);
                let mut store = side.store_with(backend, settings, Plan::none());
                let mut execution = Execution::new("a", "d");
                for _ in 0..5 {
                    let commit = Commit::new().trace(serde_json::Map::new());
                    store.commit(&mut execution, &commit).unwrap();
                }
                left.push(dump(backend));
            }
            assert!(left.iter().all(|one| *one == left[0]), "{keep}");
            let steps = match left[0].get(&Bytes(b"stm:trace:a".to_vec())) {
                Some(Held::List(steps)) => steps.len(),
                _ => 0,
            };
            assert_eq!(steps, count, "{keep}");
        }
    });
}
