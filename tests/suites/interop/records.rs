//! What both sides tell of the rows as a whole: listings, ids, and what a purge leaves.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use store::{Execution, ListFilter, Status, Version};
use tests::peer::Peer;

use crate::{Table, each, everything};

/// What a listing of Python's says, page by page, by id.
fn their_listing(peer: &mut Peer, filter: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut args = filter.clone();
    args["limit"] = json!(20);
    loop {
        let page = peer.call("store.list_executions", &args).unwrap();
        for item in page["items"].as_array().unwrap() {
            found.insert(item["id"].as_str().unwrap().to_owned(), item.clone());
        }
        args["cursor"] = page["next_cursor"].clone();
        if args["cursor"].is_null() {
            return found;
        }
    }
}

/// The same of ours, in the form of theirs.
fn our_listing(table: &Table, filter: &ListFilter) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let (mut store, mut cursor) = (table.store(), None);
    loop {
        let page = store.list_executions(filter, 20, cursor).unwrap();
        assert!(page.unreadable.is_empty());
        for item in page.items {
            let told = json!({
                "id": item.id, "definition_id": item.definition_id, "status": item.status.as_str(),
                "outcome": item.outcome, "active_path": item.active_path,
                "version": item.version.get(), "parent_id": item.parent_id,
                "finished_at": item.finished_at,
            });
            found.insert(item.id, told);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return found;
        }
    }
}

const ROWS: usize = 60;

#[test]
fn both_sides_list_the_same_rows_whoever_wrote_them() {
    each(|table| {
        let (mut peer, mut store) = (table.peer(), table.store());
        for number in 0..ROWS {
            let id = format!("x[{number}]*");
            let status = Status::ALL[number % Status::ALL.len()];
            let definition = format!("d{}", number % 3);
            let parent = (number % 4 == 0).then(|| "p".to_owned());
            if number % 2 == 0 {
                let mut ours = Execution::new(&id, &definition);
                ours.status = status;
                ours.parent_id = parent;
                store.save(&mut ours).unwrap();
            } else {
                let exe = json!({
                    "id": id, "definition_id": definition, "status": status.as_str(),
                    "parent_id": parent, "finished_at": number as f64 + 0.5,
                });
                peer.call("store.commit", &json!({ "exe": exe, "emits": [] }))
                    .unwrap();
            }
        }
        let done = ListFilter {
            status: Some(vec![Status::Done, Status::Failed]),
            ..ListFilter::default()
        };
        let roots = ListFilter {
            definition_id: Some("d1".to_owned()),
            roots_only: true,
            ..ListFilter::default()
        };
        for (ours, theirs, count) in [
            (ListFilter::default(), json!({}), ROWS),
            (done, json!({ "status": ["DONE", "FAILED"] }), 17),
            (
                roots,
                json!({ "definition_id": "d1", "roots_only": true }),
                15,
            ),
        ] {
            let found = our_listing(table, &ours);
            assert_eq!(found.len(), count, "{theirs}");
            assert_eq!(found, their_listing(&mut peer, &theirs));
        }
        let args = json!({ "prefix": "x[1" });
        let mut told: Vec<String> =
            serde_json::from_value(peer.call("store.ids_with_prefix", &args).unwrap()).unwrap();
        told.sort();
        let mut ids = store.ids_with_prefix("x[1").unwrap();
        ids.sort();
        assert_eq!((told.len(), &told), (11, &ids));
    });
}

#[test]
fn a_purge_of_either_side_leaves_nothing_for_the_other() {
    each(|table| {
        for is_ours in [true, false] {
            let (mut peer, mut store) = (table.peer(), table.store());
            let mut execution = Execution::new("x", "d");
            execution.status = Status::Done;
            store.commit(&mut execution, &everything("e")).unwrap();
            // Both refuse a version that is not the stored one.
            let args = |version: u64| json!({ "execution_id": "x", "expected_version": version });
            assert_eq!(peer.call("store.purge", &args(7)).unwrap(), false);
            assert!(!store.purge("x", Version::new(7)).unwrap());
            if is_ours {
                assert!(store.purge("x", execution.version).unwrap());
            } else {
                assert_eq!(peer.call("store.purge", &args(1)).unwrap(), true);
            }
            let one = json!({ "execution_id": "x" });
            assert!(peer.call("store.load", &one).unwrap().is_null());
            assert_eq!(peer.call("store.read_trace", &one).unwrap(), json!([]));
            assert_eq!(store.load("x").unwrap(), None);
            assert!(!store.is_processed("x", "e").unwrap());
            assert!(store.pending_spawns().unwrap().is_empty());
            assert!(store.due_timers(f64::MAX).unwrap().is_empty());
            // What it had sent to others is theirs.
            assert_eq!(store.pending_outbox().unwrap().len(), 1);
            let mut raw = table.raw();
            let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut raw).unwrap();
            keys.sort();
            assert_eq!(keys, ["stm:outbox", "stm:outbox:seq", "stm:spawns:seq"]);
            redis::cmd("FLUSHDB").exec(&mut raw).unwrap();
        }
    });
}
