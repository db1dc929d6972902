//! Documents of other types than the execution.

use serde_json::{Value, json};
use store::{Commit, Instance, ListFilter, Rejection, Status, StoreError};

use crate::{
    backend::{Protocol, ask},
    commits::{PATHS, by, dump, everything},
    keyspace::{Bytes, Held},
    meddling::Plan,
    twin::with_each,
};

#[test]
fn an_instance_is_stored_loaded_and_listed_on_every_path() {
    with_each(|backend, side| {
        let mut rows = Vec::new();
        for path in PATHS {
            ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
            let mut store = side.store_with(backend, by(path), Plan::none());
            let mut cart = Instance::new("a", "cart", json!({"total": 4.5}));
            cart.parent_id = Some("p".to_owned());
            store.create(&mut cart, &everything("e")).unwrap();
            cart.status = Status::Running;
            store.commit(&mut cart, &Commit::for_event("f")).unwrap();
            let loaded: Instance<Value> = store.load_as("a").unwrap().unwrap();
            assert_eq!(loaded, cart);
            let (loaded, handled) = store
                .load_for_event_as::<Instance<Value>>("a", "f")
                .unwrap()
                .unwrap();
            assert_eq!((loaded, handled), (cart, true));
            let page = store
                .list_executions(&ListFilter::default(), 10, None)
                .unwrap();
            assert_eq!((page.items.len(), page.items[0].version.get()), (1, 2));
            rows.push(dump(backend));
        }
        assert!(rows.iter().all(|row| *row == rows[0]));
        let row = r#"{"id":"a","definition_id":"cart","status":"RUNNING","parent_id":"p","state":{"total":4.5},"version":2}"#;
        assert_eq!(
            rows[0].get(&Bytes(b"stm:exe:a".to_vec())),
            Some(&Held::String(Bytes(row.as_bytes().to_vec())))
        );
    });
}

#[test]
fn a_state_that_json_can_not_say_is_refused_and_nothing_is_written() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let mut number = Instance::new("a", "d", vec![1.0, f64::NAN]);
        let error = store.commit(&mut number, &everything("e")).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Invalid {
                    what: "state",
                    reason: Rejection::NotFinite
                }
            ),
            "{error}"
        );
        let deep = (0..300).fold(json!(1), |inner, _| Value::Array(vec![inner]));
        let mut deep = Instance::new("a", "d", deep);
        let error = store.commit(&mut deep, &everything("e")).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Invalid {
                    what: "state",
                    reason: Rejection::TooDeep
                }
            ),
            "{error}"
        );
        assert!(dump(backend).is_empty());
    });
}

// C11
#[test]
fn naively_a_row_is_written_that_its_readers_refuse() {
    let nested = "[".repeat(210) + &"]".repeat(210);
    with_each(|backend, _| {
        let mut connection = backend.connect(Protocol::Resp2);
        ask(&mut connection, &["SET", "row", &nested]);
        let Value::String(stored) = json!(nested) else {
            unreachable!()
        };
        assert!(serde_json::from_str::<Value>(&stored).is_err());
    });
}

// C11
#[test]
fn what_readers_refuse_is_not_written_on_any_path() {
    with_each(|backend, side| {
        for path in PATHS {
            for (levels, is_taken) in [(197, true), (198, false), (210, false)] {
                ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
                let deep = (0..levels).fold(json!(1), |inner, _| Value::Array(vec![inner]));
                let mut execution = store::Execution::new("a", "d");
                execution.context.insert("x".to_owned(), deep);
                let saved = side
                    .store_with(backend, by(path), Plan::none())
                    .save(&mut execution);
                assert_eq!(saved.is_ok(), is_taken, "{levels}");
                assert_eq!(dump(backend).is_empty(), !is_taken, "{levels}");
            }
        }
    });
}

#[test]
fn a_row_of_another_type_is_corrupt_and_named() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        store
            .save(&mut Instance::new("a", "d", "text".to_owned()))
            .unwrap();
        let error = store.load_as::<Instance<u8>>("a").unwrap_err();
        assert!(
            matches!(&error, StoreError::Corrupt { key, .. } if key == "stm:exe:a"),
            "{error}"
        );
        assert!(!error.to_string().contains("text"), "{error}");
    });
}
