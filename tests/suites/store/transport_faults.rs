//! Keys that are not a transport's, lost replies, and input that is refused.

use std::time::Duration;

use store::{
    Rejection, Settings, StoreError, Strictness,
    transport::{Clock, Priority},
};

use crate::{
    backend::{Backend, Protocol, ask, on_each},
    keyspace::{self, Keyspace},
    meddling::{Fault, Plan},
    transport::{Courier, LONG, SHORT, event, pass},
    twin::{Side, with_each, with_each_alone},
};

fn keys(backend: &Backend) -> Keyspace {
    keyspace::read(&mut backend.connect(Protocol::Resp2))
}

fn run(backend: &Backend, words: &[&str]) {
    ask(&mut backend.connect(Protocol::Resp2), words);
}

/// A transport with one event of one group, leased if so wished.
fn leased(backend: &Backend, side: Side) -> (Courier, store::transport::Lease) {
    run(backend, &["FLUSHDB"]);
    let mut transport = Courier::new(backend, side);
    transport.publish("a", &event("e"), Priority::MIN).unwrap();
    let lease = transport.lease("a");
    (transport, lease)
}

fn corrupt_in<T: std::fmt::Debug>(result: Result<T, StoreError>, wanted: &str) {
    match result {
        Err(StoreError::Corrupt { key, .. }) => assert_eq!(key, wanted),
        other => panic!("{wanted}: {other:?}"),
    }
}

#[test]
fn a_publication_finds_a_foreign_key_and_writes_nothing() {
    with_each(|backend, side| {
        for key in ["stm:q:a", "stm:prio", "stm:ready:0"] {
            run(backend, &["FLUSHDB"]);
            run(backend, &["SET", key, "foreign"]);
            let before = keys(backend);
            let published = Courier::new(backend, side).publish("a", &event("e"), Priority::MIN);
            corrupt_in(published, key);
            assert_eq!(keys(backend), before);
        }
        for tier in ["5", "-1", "", "high", "00"] {
            run(backend, &["FLUSHDB"]);
            run(backend, &["HSET", "stm:prio", "a", tier]);
            let before = keys(backend);
            let published = Courier::new(backend, side).publish("a", &event("e"), Priority::MIN);
            corrupt_in(published, "stm:prio");
            assert_eq!(keys(backend), before);
        }
    });
}

#[test]
fn a_settlement_finds_a_foreign_key_and_writes_nothing() {
    with_each(|backend, side| {
        for key in ["stm:lock:a", "stm:q:a", "stm:prio", "stm:ready:0"] {
            let (mut transport, lease) = leased(backend, side);
            run(backend, &["DEL", key]);
            run(backend, &["SADD", key, "foreign"]);
            if key == "stm:lock:a" {
                run(backend, &["PEXPIRE", key, "30000"]);
            }
            let before = keys(backend);
            corrupt_in(transport.ack(&lease), key);
            corrupt_in(transport.nack(&lease, Duration::ZERO), key);
            corrupt_in(transport.nack(&lease, LONG), key);
            corrupt_in(transport.extend(&lease, LONG), key);
            assert_eq!(keys(backend), before);
        }
    });
}

#[test]
fn a_claim_finds_a_foreign_tier_and_writes_nothing() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        transport.publish("a", &event("e"), Priority::MIN).unwrap();
        run(backend, &["SET", "stm:ready:3", "foreign"]);
        let before = keys(backend);
        corrupt_in(transport.claim("w", LONG, Priority::MIN), "stm:ready:3");
        corrupt_in(transport.backlog(), "stm:ready:3");
        assert_eq!(keys(backend), before);
    });
}

#[test]
fn a_group_with_foreign_keys_is_passed_over_and_reported_when_nothing_else_waits() {
    with_each(|backend, side| {
        for key in ["stm:q:a", "stm:lock:a"] {
            run(backend, &["FLUSHDB"]);
            let mut transport = Courier::new(backend, side);
            transport.publish("a", &event("e"), Priority::MIN).unwrap();
            transport.publish("b", &event("e"), Priority::MIN).unwrap();
            run(backend, &["DEL", key]);
            run(backend, &["SADD", key, "foreign"]);
            if key == "stm:lock:a" {
                run(backend, &["PEXPIRE", key, "30000"]);
            }
            let lease = transport.lease("b");
            let before = keys(backend);
            corrupt_in(transport.claim("w", LONG, Priority::MIN), key);
            assert_eq!(keys(backend), before);
            assert!(transport.ack(&lease).unwrap());
        }
    });
}

#[test]
fn a_lock_without_an_end_is_reported_and_a_group_without_events_leaves() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        transport.publish("a", &event("e"), Priority::MIN).unwrap();
        run(backend, &["SET", "stm:lock:a", "for ever"]);
        corrupt_in(transport.claim("w", LONG, Priority::MIN), "stm:lock:a");
        run(backend, &["DEL", "stm:lock:a", "stm:q:a"]);
        assert_eq!(transport.next(), None);
        assert_eq!(transport.backlog().unwrap().tiers[0].groups, 0);
    });
}

#[test]
fn a_lost_reply_to_a_publication_is_indeterminate() {
    with_each(|backend, side| {
        for (fault, length) in [(Fault::LoseReply, 1), (Fault::DropBefore, 0)] {
            run(backend, &["FLUSHDB"]);
            let mut transport = Courier::meddled(backend, side, Plan::at(0, fault));
            let error = transport
                .publish("a", &event("e"), Priority::MIN)
                .unwrap_err();
            assert!(
                matches!(&error, StoreError::Indeterminate { operation: "publish", id, expected: None, .. } if id == "a"),
                "{error}"
            );
            assert_eq!(transport.queue_length("a").unwrap(), length);
        }
    });
}

#[test]
fn a_lost_reply_to_a_claim_costs_the_lease_that_nobody_knows() {
    with_each(|backend, side| {
        let mut transport = Courier::meddled(backend, side, Plan::at(1, Fault::LoseReply));
        transport.publish("a", &event("e"), Priority::MIN).unwrap();
        let error = transport.claim("w", SHORT, Priority::MIN).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        assert_eq!(transport.next(), None);
        pass(SHORT);
        assert_eq!(transport.lease("a").event.id, "e");
    });
}

#[test]
fn a_claim_that_is_dropped_costs_the_lease_that_nobody_knows() {
    on_each(|backend| {
        let Courier::Async(runtime, mut transport) =
            Courier::meddled(backend, Side::Async, Plan::at(1, Fault::Hang))
        else {
            panic!("it was asked for")
        };
        runtime.block_on(async {
            let first = event("e");
            transport.publish("a", &first, Priority::MIN).await.unwrap();
            let claim = transport.claim("w", SHORT, Priority::MIN);
            let dropped = tokio::time::timeout(Duration::from_millis(30), claim).await;
            assert!(dropped.is_err());
            pass(SHORT);
            let claimed = transport.claim("w", LONG, Priority::MIN).await.unwrap();
            assert_eq!(claimed.lease.unwrap().event, first);
        });
    });
}

#[test]
fn a_lost_reply_to_a_settlement_is_repeated_without_harm() {
    with_each(|backend, side| {
        let mut transport = Courier::meddled(backend, side, Plan::at(3, Fault::LoseReply));
        transport.publish("a", &event("e1"), Priority::MIN).unwrap();
        transport.publish("a", &event("e2"), Priority::MIN).unwrap();
        let lease = transport.lease("a");
        let error = transport.ack(&lease).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        // The fence has fallen: the second event stays.
        assert!(!transport.ack(&lease).unwrap());
        assert_eq!(transport.queue_length("a").unwrap(), 1);
        assert_eq!(transport.lease("a").event.id, "e2");
    });
    with_each(|backend, side| {
        for delay in [Duration::ZERO, LONG] {
            run(backend, &["FLUSHDB"]);
            let mut transport = Courier::meddled(backend, side, Plan::at(2, Fault::LoseReply));
            transport.publish("a", &event("e1"), Priority::MIN).unwrap();
            let lease = transport.lease("a");
            let error = transport.nack(&lease, delay).unwrap_err();
            assert!(matches!(error, StoreError::Io { .. }), "{error}");
            // A parked lease keeps its fence, a released one has lost it.
            assert_eq!(transport.nack(&lease, delay).unwrap(), !delay.is_zero());
            assert_eq!(transport.queue_length("a").unwrap(), 1);
        }
    });
}

#[test]
fn scripts_are_sent_again_after_the_server_has_forgotten_them() {
    with_each_alone(|backend, side| {
        let mut transport = Courier::new(backend, side);
        for round in ["e1", "e2"] {
            run(backend, &["SCRIPT", "FLUSH"]);
            transport
                .publish("a", &event(round), Priority::MIN)
                .unwrap();
            run(backend, &["SCRIPT", "FLUSH"]);
            let lease = transport.lease("a");
            run(backend, &["SCRIPT", "FLUSH"]);
            assert!(transport.ack(&lease).unwrap());
        }
    });
}

#[test]
fn input_that_breaks_a_rule_is_refused_and_nothing_is_written() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        let invalid = |error: StoreError, wanted: &str, rule| {
            assert!(
                matches!(error, StoreError::Invalid { what, reason } if what == wanted && reason == rule),
                "{error}"
            );
        };
        for (group, rule) in [("a\0b", Rejection::Nul), ("seq:a", Rejection::Reserved)] {
            let published = transport.publish(group, &event("e"), Priority::MIN);
            invalid(published.unwrap_err(), "group id", rule);
            invalid(transport.queue_length(group).unwrap_err(), "group id", rule);
        }
        let nameless = transport.publish("a", &event(""), Priority::MIN);
        invalid(nameless.unwrap_err(), "event id", Rejection::Empty);
        let endless = transport.claim("w", Duration::MAX, Priority::MIN);
        invalid(endless.unwrap_err(), "visibility", Rejection::OutOfRange);
        invalid(
            Priority::try_from(5).unwrap_err(),
            "priority",
            Rejection::OutOfRange,
        );
        assert_eq!(keys(backend), Keyspace::new());

        transport.publish("a", &event("e"), Priority::MIN).unwrap();
        let lease = transport.lease("a");
        let endless = transport.nack(&lease, Duration::MAX).unwrap_err();
        invalid(endless, "delay", Rejection::OutOfRange);

        let lenient = Settings::default().strictness(Strictness::Lenient);
        let mut lenient = Courier::with(backend, side, Protocol::Resp2, lenient, Plan::none());
        lenient.publish("a\0b", &event("e"), Priority::MIN).unwrap();
        lenient.set_clock(Clock::Server);
        assert_eq!(lenient.lease("a\0b").event.id, "e");
    });
}

#[test]
fn queues_can_be_drained_when_memory_is_full() {
    with_each_alone(|backend, side| {
        let mut transport = Courier::new(backend, side);
        for id in ["e1", "e2"] {
            transport.publish("a", &event(id), Priority::MIN).unwrap();
        }
        run(backend, &["CONFIG", "SET", "maxmemory", "1"]);
        let published = transport.publish("a", &event("e3"), Priority::MIN);
        let claimed = transport.claim("w", LONG, Priority::MIN);
        let lease = claimed
            .as_ref()
            .ok()
            .and_then(|claimed| claimed.lease.as_ref());
        let settled = lease.map(|lease| {
            let extended = transport.extend(lease, LONG);
            let parked = transport.nack(lease, LONG);
            [extended, parked, transport.ack(lease)].map(Result::ok)
        });
        run(backend, &["CONFIG", "SET", "maxmemory", "0"]);
        assert!(
            matches!(published, Err(StoreError::Refused { .. })),
            "{published:?}"
        );
        assert!(claimed.is_ok(), "{claimed:?}");
        assert_eq!(settled, Some([Some(true); 3]));
        assert_eq!(transport.queue_length("a").unwrap(), 1);
    });
}
