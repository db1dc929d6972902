//! Listing among keys of others.

use std::collections::BTreeSet;

use redis::{Pipeline, cmd};
use store::{Cursor, Execution, ExecutionPage, ListFilter, Listing, Settings, Status, StoreError};

use crate::{
    backend::{Backend, Protocol, SyncConnection, ask, on_each},
    meddling::{Fault, Plan},
    twin::{Side, Twin, with_each},
};

fn all_pages(store: &mut Twin, filter: &ListFilter, limit: u32) -> Vec<ExecutionPage> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.list_executions(filter, limit, cursor).unwrap();
        cursor = page.next_cursor;
        pages.push(page);
        if cursor.is_none() {
            return pages;
        }
    }
}

fn ids(pages: &[ExecutionPage]) -> BTreeSet<&str> {
    pages
        .iter()
        .flat_map(|page| &page.items)
        .map(|summary| summary.id.as_str())
        .collect()
}

#[test]
fn a_few_rows_among_many_foreign_keys_are_all_found() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        let mut foreign = Pipeline::new();
        for index in 0..5_000 {
            foreign.add_command(cmd("SET").arg(format!("foreign:{index}")).arg(index).take());
            foreign.add_command(cmd("SET").arg(format!("stmx:exe:{index}")).arg("{}").take());
        }
        foreign.exec(&mut connection).unwrap();
        let mut store = side.store(backend);
        let expected: Vec<_> = (0..50).map(|index| format!("row-{index:02}")).collect();
        for id in &expected {
            store.save(&mut Execution::new(id, "d")).unwrap();
        }
        for limit in [1, 100, 1_000] {
            let pages = all_pages(&mut store, &ListFilter::default(), limit);
            assert_eq!(
                ids(&pages),
                expected.iter().map(String::as_str).collect(),
                "limit {limit}"
            );
            assert!(pages.iter().all(|page| page.unreadable.is_empty()));
            assert!(
                pages
                    .iter()
                    .all(|page| page.items.is_sorted_by(|left, right| left.id < right.id))
            );
        }
    });
}

#[test]
fn glob_characters_in_a_prefix_are_only_characters() {
    with_each(|backend, side| {
        let prefixes = ["stm", "s[t]m", "s*", "s?m", r"s\tm", "{stm}"];
        let mut stores: Vec<_> = prefixes
            .iter()
            .map(|prefix| side.store_with(backend, Settings::new(*prefix).unwrap(), Plan::none()))
            .collect();
        for (store, prefix) in stores.iter_mut().zip(prefixes) {
            store
                .save(&mut Execution::new(format!("of {prefix}"), "d"))
                .unwrap();
        }
        for (store, prefix) in stores.iter_mut().zip(prefixes) {
            let pages = all_pages(store, &ListFilter::default(), 100);
            assert_eq!(
                ids(&pages),
                BTreeSet::from([format!("of {prefix}").as_str()]),
                "{prefix}"
            );
        }
    });
}

#[test]
fn rows_that_can_not_be_read_are_reported_and_stop_nothing() {
    with_each(|backend, side| {
        let mut connection = backend.connect(Protocol::Resp2);
        let mut store = side.store(backend);
        store.save(&mut Execution::new("good", "d")).unwrap();
        for (id, row) in [
            ("broken", "not json"),
            ("bare", "{}"),
            ("other", r#"{"id":"x","definition_id":"d","status":"DONE"}"#),
        ] {
            ask(&mut connection, &["SET", &format!("stm:exe:{id}"), row]);
        }
        ask(&mut connection, &["SET", "stm:exe:empty", ""]);
        ask(&mut connection, &["RPUSH", "stm:exe:list", "x"]);
        let pages = all_pages(&mut store, &ListFilter::default(), 100);
        assert_eq!(ids(&pages), BTreeSet::from(["good"]));
        let unreadable: BTreeSet<_> = pages
            .iter()
            .flat_map(|page| &page.unreadable)
            .map(|row| row.key.as_str())
            .collect();
        assert_eq!(
            unreadable,
            BTreeSet::from(["stm:exe:bare", "stm:exe:broken", "stm:exe:other"])
        );
    });
}

#[test]
fn filters_are_joined_and_an_empty_list_of_statuses_matches_nothing() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        for (id, definition, status, parent) in [
            ("a", "d1", Status::Done, None),
            ("b", "d1", Status::Failed, Some("a")),
            ("c", "d2", Status::Done, Some("a")),
        ] {
            let mut execution = Execution::new(id, definition);
            execution.status = status;
            execution.parent_id = parent.map(str::to_owned);
            store.save(&mut execution).unwrap();
        }
        let filter = |status: Option<&[Status]>, definition: Option<&str>, roots_only| ListFilter {
            status: status.map(<[Status]>::to_vec),
            definition_id: definition.map(str::to_owned),
            roots_only,
        };
        for (filter, expected) in [
            (filter(None, None, false), vec!["a", "b", "c"]),
            (filter(Some(&[]), None, false), vec![]),
            (filter(Some(&[Status::Done]), None, false), vec!["a", "c"]),
            (
                filter(Some(&[Status::Done, Status::Failed]), Some("d1"), false),
                vec!["a", "b"],
            ),
            (filter(None, None, true), vec!["a"]),
            (filter(Some(&[Status::Failed]), None, true), vec![]),
        ] {
            let pages = all_pages(&mut store, &filter, 1);
            assert_eq!(ids(&pages), expected.into_iter().collect(), "{filter:?}");
        }
    });
}

#[test]
fn a_cursor_is_text_of_an_unsigned_number() {
    assert_eq!(
        "18446744073709551615"
            .parse::<Cursor>()
            .unwrap()
            .to_string(),
        "18446744073709551615"
    );
    for text in ["", "-1", "x", "18446744073709551616"] {
        assert!(
            matches!(text.parse::<Cursor>(), Err(StoreError::Invalid { .. })),
            "{text}"
        );
    }
}

/// Rows among which a server shrinks its table when most of them go.
fn crowd(backend: &Backend) {
    let mut connection = backend.connect(Protocol::Resp2);
    ask(&mut connection, &["FLUSHDB"]);
    let mut rows = Pipeline::new();
    for index in 0..4_000 {
        let row = format!(r#"{{"id":"{index}","definition_id":"d","status":"DONE"}}"#);
        rows.add_command(cmd("SET").arg(format!("stm:exe:{index}")).arg(row).take());
    }
    rows.exec(&mut connection).unwrap();
}

/// Leaves every fortieth row.
fn thin_out(connection: &mut SyncConnection) {
    let mut rows = Pipeline::new();
    for index in (0..4_000).filter(|index| index % 40 != 0) {
        rows.add_command(cmd("DEL").arg(format!("stm:exe:{index}")).take());
    }
    rows.exec(connection).unwrap();
    // The server looks at its tables a few times a second.
    std::thread::sleep(std::time::Duration::from_millis(150));
}

// C20, the naive way: the pages of a listing one after the other, while most rows go.
#[test]
fn pages_of_a_shrinking_table_hold_a_row_twice() {
    on_each(|backend| {
        // How a table is split up is the server's own; the real one is what this is about.
        if backend.name != "redis-server" {
            return;
        }
        let repeated = (20..60).any(|turn| {
            crowd(backend);
            let mut store = Side::Sync.store(backend);
            let (mut ids, mut cursor) = (Vec::new(), None);
            for page in 0.. {
                let found = store
                    .list_executions(&ListFilter::default(), 50, cursor)
                    .unwrap();
                ids.extend(found.items.into_iter().map(|summary| summary.id));
                cursor = found.next_cursor;
                if cursor.is_none() {
                    break;
                }
                if page == turn {
                    thin_out(&mut backend.connect(Protocol::Resp2));
                }
            }
            let distinct: BTreeSet<_> = ids.iter().collect();
            distinct.len() < ids.len()
        });
        assert!(repeated, "no listing of forty repeated a row");
    });
}

// C20
#[test]
fn a_listing_of_a_shrinking_table_holds_each_row_once_and_every_survivor() {
    with_each(|backend, side| {
        for _ in 0..3 {
            crowd(backend);
            let mut connection = backend.connect(Protocol::Resp2);
            let mut store = side.store(backend);
            let listing = Listing::new(ListFilter::default(), 50, None);
            let found = store.executions(listing, |count| {
                if count == 2_000 {
                    thin_out(&mut connection);
                }
            });
            let ids: Vec<_> = found.into_iter().map(|found| found.unwrap().id).collect();
            let distinct: BTreeSet<_> = ids.iter().map(String::as_str).collect();
            assert_eq!(distinct.len(), ids.len());
            for survivor in (0..4_000).step_by(40) {
                assert!(
                    distinct.contains(survivor.to_string().as_str()),
                    "{survivor}"
                );
            }
        }
    });
}

// C20: few rows among many foreign keys cost few calls, none of which comes back without anything to say.
#[test]
fn empty_scans_are_passed_over_up_to_a_bound() {
    with_each(|backend, side| {
        let mut foreign = Pipeline::new();
        for index in 0..20_000 {
            foreign.add_command(cmd("SET").arg(format!("foreign:{index}")).arg(index).take());
        }
        foreign.exec(&mut backend.connect(Protocol::Resp2)).unwrap();
        let mut store = side.store(backend);
        for index in 0..20 {
            store
                .save(&mut Execution::new(index.to_string(), "d"))
                .unwrap();
        }
        let pages = all_pages(&mut store, &ListFilter::default(), 20);
        assert_eq!(ids(&pages).len(), 20);
        assert!(pages.len() <= 25, "{}", pages.len());
        let empty = pages.iter().filter(|page| page.items.is_empty()).count();
        assert!(empty <= 3, "{empty} of {}", pages.len());
    });
}

// C11: the naive way, row after row until one can not be read.
#[test]
fn a_listing_that_stops_at_a_bad_row_shows_nothing_behind_it() {
    let rows = [
        r#"{"id":"a","definition_id":"d","status":"DONE"}"#,
        "{}",
        r#"{"id":"c","definition_id":"d","status":"DONE"}"#,
    ];
    let listed: Result<Vec<_>, _> = rows
        .iter()
        .map(|row| store::codec::decode_summary(row.as_bytes()))
        .collect();
    assert!(listed.is_err());
}

// C11
#[test]
fn a_bad_row_is_an_item_of_its_own_and_the_listing_goes_on() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        for index in 0..50 {
            store
                .save(&mut Execution::new(index.to_string(), "d"))
                .unwrap();
        }
        let mut connection = backend.connect(Protocol::Resp2);
        for id in ["x", "y"] {
            ask(
                &mut connection,
                &["SET", &format!("stm:exe:{id}"), "not json"],
            );
        }
        let found = store.executions(Listing::new(ListFilter::default(), 10, None), |_| {});
        let bad = found
            .iter()
            .filter(|item| matches!(item, Err(StoreError::Corrupt { .. })));
        assert_eq!((bad.count(), found.len()), (2, 52));
    });
}

#[test]
fn a_listing_that_fails_says_where_it_can_go_on() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        for index in 0..200 {
            store
                .save(&mut Execution::new(index.to_string(), "d"))
                .unwrap();
        }
        let plan = Plan::at(4, Fault::DropBefore);
        let mut store = side.store_with(backend, Settings::default(), plan);
        let listing = || Listing::new(ListFilter::default(), 20, None);
        let found = store.executions(listing(), |_| {});
        assert!(matches!(found.last(), Some(Err(StoreError::Io { .. }))));
        assert_eq!(found.iter().filter(|item| item.is_err()).count(), 1);
        let found = store.executions(listing().seen_max(100), |_| {});
        assert!(matches!(
            found.last(),
            Some(Err(StoreError::Invalid { .. }))
        ));
        assert!((100..200).contains(&found.len()), "{}", found.len());
        assert_eq!(store.executions(listing(), |_| {}).len(), 200);
    });
}
