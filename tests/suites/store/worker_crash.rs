//! Workers that die at every command, and one that comes after them.

use crate::{
    backend::{Backend, Protocol, ask},
    meddling::{Fault, Plan},
    twin::{Side, with_each},
    workers::{Hand, Ledger, expire, left, log, options, publish, seed},
};

const GROUPS: [&str; 3] = ["a", "b", "a*1"];

/// A worker whose connection is cut at a batch, whether or not the server still gets it, and stays cut: it is dead.
fn dies(backend: &Backend, side: Side, batch: usize, fault: fn() -> Fault) -> bool {
    let plan = (batch + 1..batch + 500).fold(Plan::at(batch, fault()), |plan, batch| {
        plan.and(batch, Fault::DropBefore)
    });
    let mut worker = Hand::with(backend, side, options("dead"), Ledger::default(), plan);
    for _ in 0..40 {
        match worker.turn() {
            Err(_) => return true,
            Ok(turn) if turn.is_idle() => return false,
            Ok(_) => {}
        }
    }
    panic!("neither dead nor done");
}

fn prepare(backend: &Backend) {
    ask(&mut backend.connect(Protocol::Resp2), &["FLUSHDB"]);
    seed(backend, "a", "d");
    seed(backend, "b", "d");
    publish(backend, "a", "1", "All");
}

fn assert_whole(backend: &Backend, crash: &str) {
    let expected = [
        ("a", vec!["1", "timeout:a:p:1.5"]),
        ("b", vec!["1>b"]),
        ("a*1", vec!["start:a*1:0"]),
    ];
    for (id, events) in expected {
        assert_eq!(log(backend, id), events, "{id}, {crash}");
    }
    assert!(left(backend).is_empty(), "{crash}: {:?}", left(backend));
}

// C8
#[test]
fn an_event_of_a_worker_that_dies_at_any_command_has_all_its_effects_once() {
    with_each(|backend, side| {
        let faults: [fn() -> Fault; 2] = [|| Fault::DropBefore, || Fault::LoseReply];
        for fault in faults {
            let mut batch = 0;
            loop {
                prepare(backend);
                let is_dead = dies(backend, side, batch, fault);
                expire(backend, &GROUPS);
                Hand::new(backend, side, "heir").work();
                assert_whole(backend, &format!("batch {batch}, {:?}", fault()));
                if !is_dead {
                    break;
                }
                batch += 1;
            }
            assert!(batch > 20, "only {batch} commands");
        }
    });
}

// C8
#[test]
fn an_event_of_two_workers_that_die_one_after_the_other_has_all_its_effects_once() {
    with_each(|backend, side| {
        for first in [6, 9] {
            for second in 0..24 {
                prepare(backend);
                dies(backend, side, first, || Fault::LoseReply);
                expire(backend, &GROUPS);
                dies(backend, side, second, || Fault::LoseReply);
                expire(backend, &GROUPS);
                Hand::new(backend, side, "heir").work();
                assert_whole(backend, &format!("batches {first} and {second}"));
            }
        }
    });
}
