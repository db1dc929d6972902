//! How often an event was delivered, and what becomes of one that is delivered in vain.

use std::{num::NonZeroU32, time::Duration};

use store::{
    Event, Status,
    transport::{Deliveries, Lease, Priority},
    worker::Handling,
};

use crate::{
    backend::{Protocol, ask},
    meddling::Plan,
    transport::Courier,
    twin::with_each,
    workers::{Hand, Ledger, expire, left, log, options, publish, seed},
};

const LONG: Duration = Duration::from_secs(30);
const TRIES: &str = "stm:tries:g";

fn at_most(deliveries: u32) -> Deliveries {
    Deliveries::AtMost(NonZeroU32::new(deliveries).unwrap())
}

fn claim(courier: &mut Courier) -> Lease {
    let claimed = courier.claim("w", LONG, Priority::MIN).unwrap();
    claimed.lease.expect("something to handle")
}

#[test]
fn an_event_that_nobody_settles_is_counted_and_in_the_end_put_aside() {
    with_each(|backend, side| {
        let mut courier = Courier::new(backend, side).deliveries(at_most(2));
        for id in ["poison", "next"] {
            let event = Event::new(id, "K");
            courier.publish("g", &event, Priority::MIN).unwrap();
        }
        for delivery in 1..=2 {
            let lease = claim(&mut courier);
            assert_eq!(
                (&*lease.event.id, lease.delivery),
                ("poison", Some(delivery))
            );
            expire(backend, &["g"]);
        }
        let claimed = courier.claim("w", LONG, Priority::MIN).unwrap();
        let [letter] = &*claimed.buried else {
            panic!("{claimed:?}")
        };
        assert_eq!(letter.reason, "delivered 2 times, and never settled");
        let dead = courier.dead_letters("g", 9).unwrap();
        assert_eq!(dead, [&*letter.payload]);
        let next = claimed.lease.expect("the group goes on");
        assert_eq!((&*next.event.id, next.delivery), ("next", Some(1)));
        assert!(courier.ack(&next).unwrap());
        let mut raw = backend.connect(Protocol::Resp2);
        assert_eq!(ask(&mut raw, &["EXISTS", TRIES]), redis::Value::Int(0));
        assert!(left(backend).is_empty());
    });
}

#[test]
fn what_is_postponed_does_not_count_and_what_is_given_back_does() {
    with_each(|backend, side| {
        let mut courier = Courier::new(backend, side).deliveries(Deliveries::Counted);
        let event = Event::new("e", "K");
        courier.publish("g", &event, Priority::MIN).unwrap();
        let mut seen = Vec::new();
        for pause in [Duration::ZERO, LONG, LONG, Duration::ZERO, LONG] {
            let lease = claim(&mut courier);
            seen.push(lease.delivery.unwrap());
            assert!(courier.extend(&lease, LONG).unwrap());
            // The first two count. What is repeated, as after a lost reply, changes nothing more.
            for is_repetition in [false, true] {
                let done = if seen.len() < 3 {
                    courier.nack(&lease, pause).unwrap()
                } else {
                    courier.postpone(&lease, pause).unwrap()
                };
                assert_eq!(done, !is_repetition || !pause.is_zero());
            }
            expire(backend, &["g"]);
        }
        assert_eq!(seen, [1, 2, 3, 3, 3]);
    });
}

/// Such as those of Python: they leave the count as it is, and it must not be taken for that of another event.
#[test]
fn workers_that_do_not_count_may_share_the_queue() {
    with_each(|backend, side| {
        let mut counting = Courier::new(backend, side).deliveries(at_most(1));
        let mut other = Courier::new(backend, side);
        for id in ["a", "b"] {
            let event = Event::new(id, "K");
            counting.publish("g", &event, Priority::MIN).unwrap();
        }
        assert_eq!(claim(&mut counting).delivery, Some(1));
        expire(backend, &["g"]);
        let lease = claim(&mut other);
        assert_eq!((&*lease.event.id, lease.delivery), ("a", None));
        assert!(other.ack(&lease).unwrap());
        let mut raw = backend.connect(Protocol::Resp2);
        // What is left behind ends by itself.
        let redis::Value::Int(left_ms) = ask(&mut raw, &["PTTL", TRIES]) else {
            panic!("no number")
        };
        assert!((86_000_000..86_431_000).contains(&left_ms), "{left_ms}");
        let lease = claim(&mut counting);
        assert_eq!((&*lease.event.id, lease.delivery), ("b", Some(1)));
        assert!(counting.ack(&lease).unwrap());
        assert!(left(backend).is_empty());
    });
}

#[test]
fn a_count_that_is_not_ours_is_reported_and_left() {
    with_each(|backend, side| {
        let mut courier = Courier::new(backend, side).deliveries(Deliveries::Counted);
        let event = Event::new("e", "K");
        courier.publish("g", &event, Priority::MIN).unwrap();
        let mut raw = backend.connect(Protocol::Resp2);
        ask(&mut raw, &["RPUSH", TRIES, "x"]);
        let error = courier.claim("w", LONG, Priority::MIN).unwrap_err();
        assert!(error.to_string().contains(TRIES), "{error}");
        // Of a spelling that is not ours: it is counted anew.
        ask(&mut raw, &["DEL", TRIES]);
        for found in ["", "x", "-1:0", "1:ff", "99999999999999999999:ff"] {
            ask(&mut raw, &["SET", TRIES, found]);
            assert_eq!(claim(&mut courier).delivery, Some(1), "{found:?}");
            expire(backend, &["g"]);
        }
    });
}

#[test]
fn a_worker_puts_aside_what_it_can_not_handle_and_only_that() {
    with_each(|backend, side| {
        for id in ["a", "b"] {
            seed(backend, id, "d");
        }
        publish(backend, "a", "poison", "Invalid");
        publish(backend, "a", "good", "Note");
        publish(backend, "b", "later", "Later");
        let options = options("w").deliveries(at_most(3));
        let mut worker = Hand::with(backend, side, options, Ledger::default(), Plan::none());
        let mut handled = Vec::new();
        for _ in 0..12 {
            handled.extend(worker.turn().unwrap().handled);
            expire(backend, &["a", "b"]);
        }
        let count = |wanted| handled.iter().filter(|it| **it == wanted).count();
        assert_eq!(
            (count(Handling::Parked), count(Handling::Committed)),
            (3, 1)
        );
        assert_eq!(count(Handling::Postponed), 8);
        assert_eq!(log(backend, "a"), ["good"]);
        let troubles = worker.troubles();
        assert_eq!(troubles.last().unwrap(), "buried of a");
        assert_eq!(troubles.len(), 4);
    });
}

#[test]
fn a_suspended_execution_waits_as_long_as_it_likes() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let mut execution = store::Execution::new("a", "d");
        execution.status = Status::Suspended;
        store.save(&mut execution).unwrap();
        publish(backend, "a", "e", "Note");
        let options = options("w").deliveries(at_most(1));
        let mut worker = Hand::with(backend, side, options, Ledger::default(), Plan::none());
        for _ in 0..4 {
            let turn = worker.turn().unwrap();
            assert_eq!(turn.handled, Some(Handling::Postponed));
            expire(backend, &["a"]);
        }
        execution.status = Status::Running;
        store.save(&mut execution).unwrap();
        let turn = worker.turn().unwrap();
        assert_eq!(turn.handled, Some(Handling::Committed));
        assert_eq!(log(backend, "a"), ["e"]);
    });
}
