//! What a store keeps beside rows if it is told to: an order of the ids, a time to live of what has ended.

use std::{collections::BTreeSet, time::Duration};

use redis::{Value, cmd};
use store::{
    Commit, Execution, Index, ListFilter, OrderedCursor, RETENTION_MIN, Settings, Status,
    StoreError, Version,
};

use crate::{
    backend::{Backend, Protocol, ask},
    commits::{PATHS, dump, everything},
    keyspace::Keyspace,
    meddling::Plan,
    twin::{Twin, with_each},
};

const KEYS: [&str; 4] = [
    "stm:exe:a",
    "stm:processed:a",
    "stm:trace:seq:a",
    "stm:trace:a",
];

fn indexed() -> Settings {
    Settings::default().index(Index::Ordered)
}

fn lifetimes(backend: &Backend) -> [i64; 4] {
    let mut connection = backend.connect(Protocol::Resp2);
    KEYS.map(|key| cmd("PTTL").arg(key).query(&mut connection).unwrap())
}

fn everything_ordered(
    store: &mut Twin,
    filter: &ListFilter,
    limit: u32,
) -> (Vec<String>, Vec<usize>) {
    let (mut ids, mut sizes, mut cursor) = (Vec::new(), Vec::new(), None);
    loop {
        let page = store.list_ordered(filter, limit, cursor).unwrap();
        assert!(page.unreadable.is_empty());
        sizes.push(page.items.len());
        ids.extend(page.items.into_iter().map(|summary| summary.id));
        // The text of a cursor is as good as the cursor.
        cursor = page
            .next_cursor
            .map(|cursor| cursor.to_string().parse::<OrderedCursor>().unwrap());
        if cursor.is_none() {
            return (ids, sizes);
        }
    }
}

// C21, the naive way: what has ended stays for ever.
#[test]
fn without_a_retention_nothing_that_has_ended_ever_goes() {
    with_each(|backend, side| {
        let mut execution = Execution::new("a", "d");
        execution.status = Status::Done;
        side.store(backend)
            .commit(&mut execution, &everything("e"))
            .unwrap();
        assert_eq!(lifetimes(backend), [-1; 4]);
    });
}

// C21
#[test]
fn what_has_ended_lives_as_long_as_it_is_retained_and_what_is_revived_for_ever() {
    const KEPT: Duration = Duration::from_secs(3_600);
    with_each(|backend, side| {
        for path in PATHS {
            ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
            let settings = Settings::default()
                .commit_path(path)
                .retain_finished(KEPT)
                .unwrap();
            let mut store = side.store_with(backend, settings, Plan::none());
            let mut execution = Execution::new("a", "d");
            store.commit(&mut execution, &everything("e1")).unwrap();
            assert_eq!(lifetimes(backend), [-1; 4], "{path:?}");
            for (status, is_limited, commit) in [
                (Status::Done, true, Commit::new()),
                (Status::Running, false, Commit::for_event("e2")),
                (Status::Failed, true, everything("e3")),
                (Status::Suspended, false, everything("e4")),
                (Status::Cancelled, true, Commit::for_event("e5")),
            ] {
                execution.status = status;
                store.commit(&mut execution, &commit).unwrap();
                for left in lifetimes(backend) {
                    let limited = (1..=3_600_000).contains(&left);
                    assert_eq!(limited, is_limited, "{path:?} {status:?} {left}");
                    assert!(limited || left == -1, "{path:?} {status:?} {left}");
                }
            }
            assert!(store.is_processed("a", "e1").unwrap());
        }
    });
}

#[test]
fn a_retention_shorter_than_a_redelivery_is_refused() {
    for time in [Duration::ZERO, RETENTION_MIN.mul_f64(0.999), Duration::MAX] {
        let refused = Settings::default().retain_finished(time);
        assert!(
            matches!(refused, Err(StoreError::Invalid { .. })),
            "{time:?}"
        );
    }
    assert!(Settings::default().retain_finished(RETENTION_MIN).is_ok());
}

#[test]
fn a_fork_of_what_has_ended_lives_as_long() {
    with_each(|backend, side| {
        let settings = indexed().retain_finished(RETENTION_MIN).unwrap();
        let mut store = side.store_with(backend, settings, Plan::none());
        let mut execution = Execution::new("b", "d");
        execution.status = Status::Done;
        store.save(&mut execution).unwrap();
        store.fork("b", "a").unwrap().unwrap();
        assert!((1..=60_000).contains(&lifetimes(backend)[0]));
        let (ids, _) = everything_ordered(&mut store, &ListFilter::default(), 10);
        assert_eq!(ids, ["b", "a"]);
    });
}

// C20: with an index a page has what was asked for, in an order, and each execution once.
#[test]
fn an_ordered_listing_has_exact_pages_in_the_order_of_the_first_commits() {
    with_each(|backend, side| {
        for path in PATHS {
            ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
            let mut store = side.store_with(backend, indexed().commit_path(path), Plan::none());
            let mut names: Vec<_> = (0..50).map(|index| format!("row-{index:02}")).collect();
            for (index, id) in names.iter().enumerate() {
                let mut execution = Execution::new(id, "d");
                if index % 2 == 0 {
                    execution.status = Status::Done;
                }
                store.commit(&mut execution, &everything(id)).unwrap();
            }
            // Later commits move nothing.
            let mut later = store.load("row-07").unwrap().unwrap();
            store.save(&mut later).unwrap();
            let (ids, sizes) = everything_ordered(&mut store, &ListFilter::default(), 20);
            assert_eq!((&ids, sizes), (&names, vec![20, 20, 10]), "{path:?}");
            let done = ListFilter {
                status: Some(vec![Status::Done]),
                ..ListFilter::default()
            };
            let (ids, sizes) = everything_ordered(&mut store, &done, 10);
            assert_eq!((ids.len(), &sizes[..2]), (25, &[10, 10][..]));
            // The entry that a cursor stands at may go.
            let page = store
                .list_ordered(&ListFilter::default(), 10, None)
                .unwrap();
            let last = page.items.last().unwrap().clone();
            assert!(store.purge(&last.id, last.version).unwrap());
            let rest = store
                .list_ordered(&ListFilter::default(), 100, page.next_cursor)
                .unwrap();
            assert_eq!(
                (rest.items.len(), rest.items[0].id.as_str()),
                (40, "row-10")
            );
            names.retain(|name| *name != last.id);
            let (ids, _) = everything_ordered(&mut store, &ListFilter::default(), 7);
            assert_eq!(ids, names);
        }
    });
}

#[test]
fn a_conflict_adds_nothing_to_the_index_and_an_execution_may_be_called_index() {
    with_each(|backend, side| {
        for path in PATHS {
            ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
            let mut store = side.store_with(backend, indexed().commit_path(path), Plan::none());
            let mut stale = Execution::new("ghost", "d");
            stale.version = Version::new(3);
            assert!(store.save(&mut stale).is_err());
            assert_eq!(dump(backend), Keyspace::new());
            store.save(&mut Execution::new("index", "d")).unwrap();
            assert!(store.load("index").unwrap().is_some());
            let (ids, _) = everything_ordered(&mut store, &ListFilter::default(), 7);
            assert_eq!(ids, ["index"]);
        }
    });
}

#[test]
fn an_index_of_another_type_stops_script_and_purge_before_they_write() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        let mut plain = side.store(backend);
        plain.save(&mut Execution::new("a", "d")).unwrap();
        ask(&mut connection, &["SET", "stm:index", "x"]);
        let before = dump(backend);
        let mut store = side.store_with(backend, indexed(), Plan::none());
        let errors = [
            store.save(&mut Execution::new("b", "d")).map(drop),
            store.purge("a", Version::new(1)).map(drop),
            store.fork("a", "b").map(drop),
            store
                .list_ordered(&ListFilter::default(), 1, None)
                .map(drop),
            store.rebuild_index().map(drop),
        ];
        for error in errors {
            assert!(
                matches!(&error, Err(StoreError::Corrupt { key, .. }) if key == "stm:index"),
                "{error:?}"
            );
        }
        assert_eq!(dump(backend), before);
    });
}

#[test]
fn a_rebuilt_index_has_every_row_and_nothing_else() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        let mut plain = side.store(backend);
        for index in 0..300 {
            let mut execution = Execution::new(format!("row-{index:03}"), "d");
            execution.created_at = (index >= 200).then(|| 1e9 - f64::from(index));
            plain.save(&mut execution).unwrap();
        }
        ask(&mut connection, &["SET", "stm:exe:bad", "not json"]);
        let mut store = side.store_with(backend, indexed(), Plan::none());
        store.save(&mut Execution::new("new", "d")).unwrap();
        assert_eq!(store.rebuild_index().unwrap(), 300);
        assert_eq!(store.rebuild_index().unwrap(), 0);
        let (ids, sizes) = everything_ordered(&mut store, &ListFilter::default(), 50);
        assert_eq!(sizes, [50, 50, 50, 50, 50, 50, 1]);
        let distinct: BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), 301);
        // Without a time by id, then by the times, then by the server's clock.
        assert_eq!(
            (&*ids[199], &*ids[200], &*ids[300]),
            ("row-199", "row-299", "new")
        );
        for index in 0..10 {
            ask(
                &mut connection,
                &["DEL", &format!("stm:exe:row-{index:03}")],
            );
        }
        let (ids, _) = everything_ordered(&mut store, &ListFilter::default(), 50);
        assert_eq!(ids.len(), 291);
        assert_eq!(store.rebuild_index().unwrap(), 10);
        let left = ask(&mut connection, &["ZCARD", "stm:index"]);
        assert_eq!(left, Value::Int(291));
    });
}

#[test]
fn a_limit_of_nothing_and_a_cursor_of_nothing_are_refused() {
    with_each(|backend, side| {
        let mut store = side.store_with(backend, indexed(), Plan::none());
        let refused = store.list_ordered(&ListFilter::default(), 0, None);
        assert!(matches!(refused, Err(StoreError::Invalid { .. })));
    });
    for text in ["", "x", "nan:a", "inf:a", "1"] {
        assert!(text.parse::<OrderedCursor>().is_err(), "{text}");
    }
    let cursor: OrderedCursor = "1.5:a:b".parse().unwrap();
    assert_eq!(cursor.to_string(), "1.5:a:b");
}
