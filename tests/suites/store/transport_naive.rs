//! What goes wrong in the Python transport's way, provoked; and that ours does not.

use std::{
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use redis::Value;
use store::transport::Priority;

use crate::{
    backend::{Backend, Protocol, SyncConnection, ask},
    transport::{Courier, LONG, SHORT, event, pass},
    twin::with_each,
};

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_millis() as u64
}

/// The four commands of the Python transport's `nack`, with something in between the check and the rest.
fn naive_nack(raw: &mut SyncConnection, group: &str, token: &str, between: impl FnOnce()) {
    let lock = format!("stm:lock:{group}");
    if ask(raw, &["GET", &lock]) != Value::BulkString(token.as_bytes().to_vec()) {
        return;
    }
    between();
    ask(raw, &["HGET", "stm:prio", group]);
    ask(raw, &["ZADD", "stm:ready:0", "0", group]);
    ask(raw, &["DEL", &lock]);
}

/// A worker with a clock of its own that acknowledges.
fn naive_ack(raw: &mut SyncConnection, group: &str, now_ms: u64) {
    ask(raw, &["LPOP", &format!("stm:q:{group}")]);
    ask(raw, &["ZADD", "stm:ready:0", &now_ms.to_string(), group]);
    ask(raw, &["DEL", &format!("stm:lock:{group}")]);
}

/// A worker with a clock of its own that looks at eight groups; the first that is not locked.
fn naive_candidate(raw: &mut SyncConnection, now_ms: u64) -> Option<String> {
    let range = [
        "ZRANGEBYSCORE",
        "stm:ready:0",
        "-inf",
        &now_ms.to_string(),
        "LIMIT",
        "0",
        "8",
    ];
    let groups: Vec<String> = redis::from_redis_value(ask(raw, &range)).unwrap();
    groups
        .into_iter()
        .find(|group| ask(raw, &["EXISTS", &format!("stm:lock:{group}")]) == Value::Int(0))
}

fn raw(backend: &Backend) -> SyncConnection {
    backend.connect(Protocol::Resp2)
}

// C27
#[test]
fn a_nack_of_several_commands_frees_the_lease_of_another_worker() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        transport.publish("a", &event("e"), Priority::MIN).unwrap();
        let stale = transport
            .claim("w1", SHORT, Priority::MIN)
            .unwrap()
            .lease
            .unwrap();
        let mut second = None;
        naive_nack(&mut raw(backend), "a", &stale.token, || {
            pass(SHORT);
            second = Some(transport.lease("a"));
        });
        // Two workers have the same event.
        let third = transport.lease("a");
        assert_eq!(third.event, second.unwrap().event);
    });
}

// C27
#[test]
fn our_nack_leaves_the_lease_of_another_worker_alone() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        transport.publish("a", &event("e"), Priority::MIN).unwrap();
        let stale = transport
            .claim("w1", SHORT, Priority::MIN)
            .unwrap()
            .lease
            .unwrap();
        pass(SHORT);
        let second = transport.lease("a");
        assert!(!transport.nack(&stale, Duration::ZERO).unwrap());
        assert_eq!(transport.next(), None);
        assert!(transport.ack(&second).unwrap());
    });
}

// C28
#[test]
fn an_event_that_nobody_can_read_blocks_its_group_if_it_stays() {
    with_each(|backend, side| {
        let mut raw = raw(backend);
        ask(&mut raw, &["RPUSH", "stm:q:a", "not an event"]);
        ask(&mut raw, &["ZADD", "stm:ready:0", "0", "a"]);
        Courier::new(backend, side)
            .publish("a", &event("e"), Priority::MIN)
            .unwrap();
        // Locked, then unreadable: the naive worker raises here, and again whenever the lock ends.
        for _ in 0..2 {
            assert_eq!(naive_candidate(&mut raw, now_ms()).as_deref(), Some("a"));
            ask(&mut raw, &["SET", "stm:lock:a", "w:1", "PX", "20"]);
            let head = ask(&mut raw, &["LINDEX", "stm:q:a", "0"]);
            assert_eq!(head, Value::BulkString(b"not an event".to_vec()));
            thread::sleep(Duration::from_millis(30));
        }
        assert_eq!(ask(&mut raw, &["LLEN", "stm:q:a"]), Value::Int(2));
    });
}

// C28
#[test]
fn we_put_an_unreadable_event_aside_and_the_group_goes_on() {
    with_each(|backend, side| {
        let mut raw = raw(backend);
        let mut transport = Courier::new(backend, side);
        for payload in ["not an event", "{\"kind\":1}"] {
            ask(&mut raw, &["RPUSH", "stm:q:a", payload]);
        }
        transport.publish("a", &event("e"), Priority::MIN).unwrap();
        let claimed = transport.claim("w", LONG, Priority::MIN).unwrap();
        let lease = claimed.lease.unwrap();
        assert_eq!(lease.event.id, "e");
        let buried: Vec<_> = claimed
            .buried
            .iter()
            .map(|letter| letter.payload.as_slice())
            .collect();
        assert_eq!(buried, [&b"not an event"[..], b"{\"kind\":1}"]);
        assert!(claimed.buried.iter().all(|letter| letter.group_id == "a"));
        let letters = transport.dead_letters("a", 10).unwrap();
        assert_eq!(letters, buried);
        assert_eq!(transport.dead_letters("a", 1).unwrap().len(), 1);
        assert_eq!(transport.dead_letters("a", 0).unwrap().len(), 0);
        assert!(transport.discard_dead_letter("a", buried[0]).unwrap());
        assert!(!transport.discard_dead_letter("a", buried[0]).unwrap());
        assert!(transport.ack(&lease).unwrap());

        // Alone in its queue: the group is drained.
        ask(&mut raw, &["RPUSH", "stm:q:b", "nothing"]);
        ask(&mut raw, &["ZADD", "stm:ready:0", "0", "b"]);
        let claimed = transport.claim("w", LONG, Priority::MIN).unwrap();
        assert_eq!((claimed.lease, claimed.buried.len()), (None, 1));
        assert_eq!(transport.backlog().unwrap().tiers[0].groups, 0);
    });
}

// C28
#[test]
fn where_dead_letters_cannot_go_nothing_is_lost() {
    with_each(|backend, side| {
        let mut raw = raw(backend);
        ask(&mut raw, &["RPUSH", "stm:q:a", "not an event"]);
        ask(&mut raw, &["ZADD", "stm:ready:0", "0", "a"]);
        ask(&mut raw, &["SET", "stm:dead:a", "foreign"]);
        let mut transport = Courier::new(backend, side);
        let error = transport.claim("w", LONG, Priority::MIN).unwrap_err();
        assert!(error.to_string().contains("stm:dead:a"), "{error}");
        assert_eq!(ask(&mut raw, &["LLEN", "stm:q:a"]), Value::Int(1));
    });
}

// C29
#[test]
fn a_workers_own_clock_hides_groups_from_it_or_from_all() {
    with_each(|backend, side| {
        let mut raw = raw(backend);
        let mut transport = Courier::new(backend, side);
        for id in ["e1", "e2", "e3"] {
            transport.publish("a", &event(id), Priority::MIN).unwrap();
        }
        naive_ack(&mut raw, "a", now_ms());
        // A minute slow: it does not see what waits.
        assert_eq!(naive_candidate(&mut raw, now_ms() - 60_000), None);
        // A minute fast: its acknowledgement puts the group off, for those whose clocks are right.
        naive_ack(&mut raw, "a", now_ms() + 60_000);
        assert_eq!(naive_candidate(&mut raw, now_ms()), None);
    });
    with_each(|backend, side| {
        let mut raw = raw(backend);
        let mut transport = Courier::new(backend, side);
        for number in 0..8 {
            let group = format!("g{number}");
            transport
                .publish(&group, &event("e"), Priority::MIN)
                .unwrap();
            ask(
                &mut raw,
                &["SET", &format!("stm:lock:{group}"), "w", "PX", "30000"],
            );
        }
        transport.publish("z", &event("e"), Priority::MIN).unwrap();
        // Eight locked groups that are due fill its window.
        assert_eq!(naive_candidate(&mut raw, now_ms()), None);
    });
}

// C29
#[test]
fn we_find_what_waits_whatever_the_clocks_of_workers_say() {
    with_each(|backend, side| {
        let mut raw = raw(backend);
        let mut transport = Courier::new(backend, side);
        for id in ["e1", "e2", "e3"] {
            transport.publish("a", &event(id), Priority::MIN).unwrap();
        }
        // Put off by a worker whose clock is a minute fast, but not locked: so nobody has it.
        naive_ack(&mut raw, "a", now_ms() + 60_000);
        let lease = transport.lease("a");
        assert_eq!(lease.event.id, "e2");
        assert!(transport.ack(&lease).unwrap());
        // Leased by that worker: the lock says until when, not the score.
        ask(&mut raw, &["SET", "stm:lock:a", "w:1", "PX", "150"]);
        let late = (now_ms() + 60_000).to_string();
        ask(&mut raw, &["ZADD", "stm:ready:0", &late, "a"]);
        let nothing = transport.claim("w", LONG, Priority::MIN).unwrap();
        assert_eq!(nothing.lease, None);
        let wait = nothing.next_ready.unwrap().wait();
        assert!(wait <= SHORT, "{wait:?}");
        pass(wait);
        assert_eq!(transport.lease("a").event.id, "e3");
    });
}
