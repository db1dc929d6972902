//! Creating what must not be there yet.

use store::{Commit, Execution, Instance, Rejection, StoreError};

use crate::{
    backend::{Protocol, ask},
    commits::{PATHS, by, dump, everything, without_counters},
    meddling::{Fault, Plan},
    naive,
    twin::with_each,
};

// C24
#[test]
fn naively_the_second_of_two_creators_is_told_of_a_conflict() {
    with_each(|backend, side| {
        let (mut first, mut second) = (Execution::new("a", "d"), Execution::new("a", "d"));
        let mut store = side.store(backend);
        assert_eq!(
            (store.load("a").unwrap(), store.load("a").unwrap()),
            (None, None)
        );
        store.save(&mut first).unwrap();
        let error = store.save(&mut second).unwrap_err();
        assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
    });
}

// C24
#[test]
fn the_second_of_two_creators_is_told_that_it_exists_and_nothing_changes() {
    with_each(|backend, side| {
        for path in PATHS {
            for commit in [Commit::for_event("e"), everything("e")] {
                ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
                let mut store = side.store_with(backend, by(path), Plan::none());
                let (mut first, mut second) = (Execution::new("a", "d"), Execution::new("a", "d"));
                store.create(&mut first, &commit).unwrap();
                let before = without_counters(dump(backend));
                let error = store.create(&mut second, &commit).unwrap_err();
                assert!(
                    matches!(&error, StoreError::AlreadyExists { id } if id == "a"),
                    "{path:?}: {error}"
                );
                assert_eq!((first.version.get(), second.version.get()), (1, 0));
                assert_eq!(without_counters(dump(backend)), before);
                store.commit(&mut first, &commit).unwrap();
            }
        }
    });
}

#[test]
fn a_row_at_version_0_exists_too() {
    with_each(|backend, side| {
        for path in PATHS {
            let row = naive::row(0);
            ask(
                &mut backend.connect(Protocol::Resp2),
                &["SET", "stm:exe:a", &row],
            );
            let mut store = side.store_with(backend, by(path), Plan::none());
            let mut execution = Execution::new("a", "d");
            let error = store.create(&mut execution, &Commit::new()).unwrap_err();
            assert!(
                matches!(error, StoreError::AlreadyExists { .. }),
                "{path:?}: {error}"
            );
            store.save(&mut execution).unwrap();
        }
    });
}

#[test]
fn what_was_stored_before_is_not_created_again() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let mut cart = Instance::new("a", "cart", vec![1]);
        store.create(&mut cart, &Commit::new()).unwrap();
        let error = store.create(&mut cart, &Commit::new()).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Invalid {
                    reason: Rejection::NotNew,
                    ..
                }
            ),
            "{error}"
        );
    });
}

#[test]
fn a_rival_between_the_look_and_the_write_exists_for_the_watch_path_too() {
    with_each(|backend, side| {
        let mut rival = backend.connect(Protocol::Resp2);
        let row = naive::row(1);
        let plan = Plan::before(1, move || {
            drop(ask(&mut rival, &["SET", "stm:exe:a", &row]));
        });
        let error = side
            .store_with(backend, by(store::CommitPath::Watch), plan)
            .create(&mut Execution::new("a", "d"), &Commit::new())
            .unwrap_err();
        assert!(matches!(error, StoreError::AlreadyExists { .. }), "{error}");
    });
}

#[test]
fn a_creation_whose_reply_was_lost_is_indeterminate() {
    with_each(|backend, side| {
        side.store(backend)
            .save(&mut Execution::new("other", "d"))
            .unwrap();
        let plan = Plan::at(0, Fault::LoseReply);
        let error = side
            .store_with(backend, by(store::CommitPath::Script), plan)
            .create(&mut Execution::new("a", "d"), &Commit::new())
            .unwrap_err();
        assert!(matches!(error, StoreError::Indeterminate { .. }), "{error}");
    });
}
