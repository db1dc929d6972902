//! Listing among keys of others.

use std::collections::BTreeSet;

use redis::{Pipeline, cmd};
use store::{Cursor, Execution, ExecutionPage, ListFilter, Settings, Status, StoreError};

use crate::{
    backend::{Protocol, ask},
    meddling::Plan,
    twin::{Twin, with_each},
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
