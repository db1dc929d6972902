//! Copies under a new id, and status by id.

use serde_json::json;
use store::{
    ChildState, Event, Execution, Instance, Rejection, Settings, Status, StoreError, Version,
};

use crate::{
    backend::{Protocol, ask},
    commits::{dump, everything},
    keyspace::{Bytes, Keyspace},
    meddling::{Fault, Plan},
    twin::{Twin, with_each, with_each_alone},
};

/// An execution that stands somewhere, tied to others in every way.
fn source(store: &mut Twin) -> Execution {
    let mut execution = Execution::new("a", "d");
    execution.status = Status::Running;
    execution.active_path = Some("P.Q".to_owned());
    execution
        .context
        .insert("n".to_owned(), json!([1, {"b": 2.5}]));
    execution.parent_id = Some("p".to_owned());
    execution.child_id = Some("p:P:0".to_owned());
    execution.deferred.push(Event::new("later", "k"));
    execution
        .children
        .insert("c".to_owned(), ChildState::new("r"));
    execution.invoke_seq.insert("P".to_owned(), 3);
    execution.created_at = Some(5.0);
    for event in ["e1", "e2"] {
        store.commit(&mut execution, &everything(event)).unwrap();
    }
    execution
}

#[test]
fn a_fork_stands_where_its_source_stood_and_is_tied_to_nobody() {
    with_each_alone(|backend, side| {
        let mut store = side.store(backend);
        let original = source(&mut store);
        let before = dump(backend);
        ask(&mut backend.connect(Protocol::Resp2), &["SCRIPT", "FLUSH"]);
        let copy = store.fork("a", "b").unwrap().unwrap();
        let mut expected = original.clone();
        expected.id = "b".to_owned();
        expected.version = Version::new(1);
        (expected.parent_id, expected.child_id) = (None, None);
        expected.children.clear();
        assert_eq!(copy, expected);
        assert_eq!(store.load("b").unwrap(), Some(expected));
        assert!(!store.is_processed("b", "e1").unwrap());
        let mut after = dump(backend);
        after.remove(&Bytes(b"stm:exe:b".to_vec())).unwrap();
        assert_eq!(after, before);
        // Each goes on by itself.
        let mut copy = copy;
        store.commit(&mut copy, &everything("e1")).unwrap();
        let mut original = original;
        store.save(&mut original).unwrap();
        assert_eq!((copy.version.get(), original.version.get()), (2, 3));
    });
}

#[test]
fn a_fork_makes_nothing_where_it_can_not_make_all() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let mut connection = backend.connect(Protocol::Resp2);
        assert_eq!(store.fork("none", "b").unwrap(), None);
        assert_eq!(dump(backend), Keyspace::new());
        source(&mut store);
        store.save(&mut Execution::new("taken", "d")).unwrap();
        let deep = "[".repeat(205) + &"]".repeat(205);
        let deep = format!(r#"{{"id":"deep","definition_id":"d","context":{{"x":{deep}}}}}"#);
        for (id, row) in [
            ("bad", "not json"),
            ("other", r#"{"id":"x","definition_id":"d"}"#),
            ("deep", &deep),
        ] {
            ask(&mut connection, &["SET", &format!("stm:exe:{id}"), row]);
        }
        ask(&mut connection, &["RPUSH", "stm:exe:list", "x"]);
        let before = dump(backend);
        let invalid = |error: &StoreError, reason: Rejection| matches!(error, StoreError::Invalid { reason: found, .. } if *found == reason);
        for (id, new_id) in [("a", "taken"), ("a", "a"), ("a", "list")] {
            let error = store.fork(id, new_id).unwrap_err();
            assert!(
                matches!(&error, StoreError::AlreadyExists { id } if id == new_id),
                "{error}"
            );
        }
        for id in ["bad", "other", "list"] {
            let error = store.fork(id, "b").unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        }
        assert!(invalid(
            &store.fork("deep", "b").unwrap_err(),
            Rejection::TooDeep
        ));
        assert!(invalid(
            &store.fork("a", "b\0").unwrap_err(),
            Rejection::Nul
        ));
        assert!(invalid(
            &store.fork("a", "seq:b").unwrap_err(),
            Rejection::Reserved
        ));
        assert_eq!(dump(backend), before);
    });
}

#[test]
fn a_fork_of_what_moves_meanwhile_is_a_conflict() {
    with_each(|backend, side| {
        source(&mut side.store(backend));
        for change in ["SET", "DEL"] {
            let mut connection = backend.connect(Protocol::Resp2);
            let plan = Plan::before(1, move || {
                let words: &[&str] = &["SET", "stm:exe:a", "{}"];
                let words = if change == "SET" {
                    words
                } else {
                    &["DEL", "stm:exe:a"]
                };
                drop(ask(&mut connection, words));
            });
            source_row(backend, side);
            let mut store = side.store_with(backend, Settings::default(), plan);
            let error = store.fork("a", "b").unwrap_err();
            assert!(
                matches!(&error, StoreError::Conflict { expected, found: None, .. } if expected.get() == 1),
                "{error}"
            );
            assert!(store.load("b").unwrap().is_none());
        }
    });
}

fn source_row(backend: &crate::backend::Backend, side: crate::twin::Side) {
    let mut connection = backend.connect(Protocol::Resp2);
    ask(&mut connection, &["DEL", "stm:exe:a"]);
    side.store(backend)
        .save(&mut Execution::new("a", "d"))
        .unwrap();
}

#[test]
fn a_fork_whose_reply_is_lost_is_indeterminate_and_a_load_tells() {
    with_each(|backend, side| {
        source(&mut side.store(backend));
        // From now on the server knows the script.
        side.store(backend).fork("a", "first").unwrap();
        let plan = Plan::at(1, Fault::LoseReply);
        let mut store = side.store_with(backend, Settings::default(), plan);
        let error = store.fork("a", "b").unwrap_err();
        assert!(
            matches!(&error, StoreError::Indeterminate { operation: "fork", id, .. } if id == "b"),
            "{error}"
        );
        assert_eq!(store.load("b").unwrap().unwrap().version.get(), 1);
    });
}

#[test]
fn a_status_is_there_where_a_summary_is() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let execution = source(&mut store);
        let summary = store.status("a").unwrap().unwrap();
        assert_eq!(
            (
                summary.status,
                summary.version,
                summary.active_path.as_deref()
            ),
            (Status::Running, execution.version, Some("P.Q"))
        );
        assert_eq!(store.status("b").unwrap(), None);
        let mut connection = backend.connect(Protocol::Resp2);
        ask(
            &mut connection,
            &[
                "SET",
                "stm:exe:b",
                r#"{"id":"b","definition_id":"d","status":"DONE","priority":9}"#,
            ],
        );
        // Not to be loaded, but its status is clear.
        assert!(store.load("b").is_err());
        assert_eq!(store.status("b").unwrap().unwrap().status, Status::Done);
        for row in [
            "{}",
            "x",
            r#"{"id":"a","definition_id":"d","status":"DONE"}"#,
        ] {
            ask(&mut connection, &["SET", "stm:exe:b", row]);
            assert!(
                matches!(store.status("b"), Err(StoreError::Corrupt { .. })),
                "{row}"
            );
        }
    });
}

#[test]
fn a_document_of_ones_own_has_a_status_and_can_be_forked() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let mut cart = Instance::new("cart", "shop", vec![1, 2]);
        cart.parent_id = Some("p".to_owned());
        cart.status = Status::Done;
        store.commit(&mut cart, &everything("e")).unwrap();
        assert_eq!(store.status("cart").unwrap().unwrap().status, Status::Done);
        let mut copy: Instance<Vec<i32>> = store.fork_as("cart", "copy").unwrap().unwrap();
        assert_eq!(
            (copy.version.get(), &copy.state, &copy.parent_id),
            (1, &cart.state, &None)
        );
        copy.state.push(3);
        store.commit(&mut copy, &everything("e")).unwrap();
        assert!(store.purge("cart", cart.version).unwrap());
        assert_eq!(store.ids_with_prefix("").unwrap(), ["copy"]);
    });
}
