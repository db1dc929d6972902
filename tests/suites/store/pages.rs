//! Relay and sweep in pages: bounded, in order, past what nobody can read, and nothing taken off but what was read.

use std::collections::BTreeSet;

use redis::Value;
use store::{
    Commit, Event, Execution, OutboxEntry, Seq, SpawnIntent, StoreError, TimerOp,
    relay::{Continuation, Delivered, Origin, PageStart, RelayPage, Repaired, timeout_event},
};

use crate::{
    backend::{Backend, Protocol, SyncConnection, ask},
    meddling::{Fault, Plan},
    twin::{Side, Twin, with_each},
};

fn raw(backend: &Backend) -> SyncConnection {
    backend.connect(Protocol::Resp2)
}

fn int(connection: &mut SyncConnection, words: &[&str]) -> i64 {
    match ask(connection, words) {
        Value::Int(number) => number,
        other => panic!("{words:?}: {other:?}"),
    }
}

fn texts(connection: &mut SyncConnection, words: &[&str]) -> Vec<String> {
    redis::from_redis_value(ask(connection, words)).unwrap()
}

/// Leaves so many events and spawn intents behind.
fn leave(store: &mut Twin, count: usize) {
    let mut execution = Execution::new("a", "d");
    for first in (0..count).step_by(100) {
        let commit = (first..count.min(first + 100)).fold(Commit::new(), |commit, index| {
            commit
                .emit(Some("t"), Event::new(format!("e{index}"), "K"))
                .spawn(SpawnIntent::new(format!("c{index}"), ""))
        });
        store.commit(&mut execution, &commit).unwrap();
    }
}

fn walk<E>(
    mut start: PageStart,
    mut page: impl FnMut(PageStart) -> RelayPage<E>,
) -> Vec<RelayPage<E>> {
    let mut pages = Vec::new();
    loop {
        let found = page(start);
        let next: Option<Continuation> = found.next;
        pages.push(found);
        match next {
            Some(next) => start = PageStart::At(next),
            None => return pages,
        }
    }
}

#[test]
fn pages_of_any_start_meet_every_entry_and_none_is_much_longer_than_its_limit() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        leave(&mut store, 1000);
        for seq in (1..=1000).step_by(7) {
            store.ack_outbox(Seq::new(seq)).unwrap();
        }
        let wanted: BTreeSet<Seq> = (1..=1000)
            .filter(|seq| seq % 7 != 1)
            .map(Seq::new)
            .collect();
        for start in [PageStart::Anywhere, PageStart::Oldest(Seq::new(1))] {
            let pages = walk(start, |start| store.outbox_page(start, 50).unwrap());
            assert!(pages.len() >= 10, "{}", pages.len());
            let mut seen = BTreeSet::new();
            for page in &pages {
                assert!(page.entries.len() <= 80, "{}", page.entries.len());
                assert!(page.entries.is_sorted_by_key(|entry| entry.seq));
                assert_eq!((page.waiting, page.poison.len()), (wanted.len() as u64, 0));
                seen.extend(page.entries.iter().map(|entry| entry.seq));
            }
            assert_eq!(seen, wanted);
        }
        let oldest = walk(PageStart::Oldest(Seq::new(500)), |start| {
            store.outbox_page(start, 50).unwrap()
        });
        let seqs: Vec<Seq> = oldest
            .iter()
            .flat_map(|page| page.entries.iter().map(|entry| entry.seq))
            .collect();
        assert!(seqs.is_sorted() && seqs[0] == Seq::new(500));
        let spawns = walk(PageStart::Anywhere, |start| {
            store.spawns_page(start, 100).unwrap()
        });
        let children: BTreeSet<String> = spawns
            .iter()
            .flat_map(|page| page.entries.iter().map(|entry| entry.child_id.clone()))
            .collect();
        assert_eq!(children.len(), 1000);
    });
}

#[test]
fn due_timers_come_in_pages_by_time_then_by_name_also_where_many_share_a_time() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let commit = (0..90).fold(Commit::new(), |commit, index| {
            let time = if index < 60 { 5.0 } else { f64::from(index) };
            commit.timer(TimerOp::schedule(format!("p{index:02}"), time))
        });
        store
            .commit(&mut Execution::new("a", "d"), &commit)
            .unwrap();
        for limit in [1, 7, 30, 60, 89, 1000] {
            let pages = walk(PageStart::Anywhere, |start| {
                store.due_timers_page(80.0, start, limit).unwrap()
            });
            let paths: Vec<String> = pages
                .iter()
                .flat_map(|page| page.entries.iter().map(|timer| timer.path.clone()))
                .collect();
            let wanted: Vec<String> = (0..=80).map(|index| format!("p{index:02}")).collect();
            assert_eq!(paths, wanted, "limit {limit}");
            assert!(
                pages
                    .iter()
                    .all(|page| page.entries.len() <= limit as usize)
            );
        }
        assert!(matches!(
            store.due_timers_page(f64::NAN, PageStart::Anywhere, 1),
            Err(StoreError::Invalid { .. })
        ));
    });
}

#[test]
fn a_probe_says_how_much_waits() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let empty = store.waiting().unwrap();
        assert_eq!(
            (empty.outbox, empty.spawns, empty.next_timer_s),
            (0, 0, None)
        );
        leave(&mut store, 3);
        let timer = Commit::new().timer(TimerOp::schedule("p", 12.5));
        store.commit(&mut Execution::new("b", "d"), &timer).unwrap();
        let waiting = store.waiting().unwrap();
        assert_eq!((waiting.outbox, waiting.spawns), (3, 3));
        assert_eq!(waiting.next_timer_s, Some(12.5));
        assert!(waiting.now_s >= empty.now_s);
        ask(&mut raw(backend), &["SET", "stm:spawns", "x"]);
        assert!(
            matches!(store.waiting(), Err(StoreError::Corrupt { key, .. }) if key == "stm:spawns")
        );
    });
}

/// Entries that nobody can work off, among some that are in order.
fn poison(store: &mut Twin, connection: &mut SyncConnection) {
    leave(store, 3);
    for (key, field, value) in [
        ("stm:outbox", "2", "not json"),
        (
            "stm:outbox",
            "x",
            r#"{"t": null, "e": "{\"id\":\"1\",\"kind\":\"k\"}"}"#,
        ),
        (
            "stm:outbox",
            "007",
            r#"{"t": null, "e": "{\"id\":\"1\",\"kind\":\"k\"}"}"#,
        ),
        (
            "stm:outbox",
            "8",
            r#"{"t": "seq:1", "e": "{\"id\":\"1\",\"kind\":\"k\"}"}"#,
        ),
        ("stm:spawns", "2", r#"{"p": "a"}"#),
    ] {
        ask(connection, &["HSET", key, field, value]);
    }
    for (score, member) in [
        ("1", "a\0p"),
        ("1", "no-nul"),
        ("-inf", "a\0q"),
        ("1", "seq:a\0p"),
    ] {
        ask(connection, &["ZADD", "stm:timers", score, member]);
    }
}

// C10
#[test]
fn one_entry_that_nobody_can_read_stops_those_who_read_everything_at_once() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        poison(&mut store, &mut raw(backend));
        assert!(matches!(
            store.pending_outbox(),
            Err(StoreError::Corrupt { .. })
        ));
        assert!(matches!(
            store.pending_spawns(),
            Err(StoreError::Corrupt { .. })
        ));
    });
}

// C10
#[test]
fn a_page_reports_what_nobody_can_read_and_it_is_set_aside_once() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let mut connection = raw(backend);
        poison(&mut store, &mut connection);
        let outbox = store.outbox_page(PageStart::Anywhere, 100).unwrap();
        let spawns = store.spawns_page(PageStart::Anywhere, 100).unwrap();
        let timers = store
            .due_timers_page(9.0, PageStart::Anywhere, 100)
            .unwrap();
        let seqs: Vec<i64> = outbox.entries.iter().map(|entry| entry.seq.get()).collect();
        assert_eq!(seqs, [1, 3]);
        assert_eq!((spawns.entries.len(), timers.entries.len()), (2, 1));
        assert_eq!(
            (
                outbox.poison.len(),
                spawns.poison.len(),
                timers.poison.len()
            ),
            (4, 1, 3)
        );
        for poison in [outbox.poison, spawns.poison, timers.poison].concat() {
            assert!(store.quarantine(&poison).unwrap(), "{poison:?}");
            assert!(!store.quarantine(&poison).unwrap(), "{poison:?}");
        }
        assert!(
            store
                .outbox_page(PageStart::Anywhere, 9)
                .unwrap()
                .poison
                .is_empty()
        );
        assert_eq!(int(&mut connection, &["HLEN", "stm:dead:seq:outbox"]), 4);
        assert_eq!(
            texts(&mut connection, &["HVALS", "stm:dead:seq:spawns"]),
            [r#"{"p": "a"}"#]
        );
        assert_eq!(
            texts(
                &mut connection,
                &["ZRANGE", "stm:dead:seq:timers", "0", "-1"]
            ),
            ["a\0q", "no-nul", "seq:a\0p"]
        );
        // What has changed since it was read stays; what is set aside already is kept.
        ask(&mut connection, &["HSET", "stm:outbox", "2", "bad"]);
        let poison = store.outbox_page(PageStart::Anywhere, 9).unwrap().poison;
        ask(&mut connection, &["HSET", "stm:outbox", "2", "worse"]);
        assert!(!store.quarantine(&poison[0]).unwrap());
        let poison = store.outbox_page(PageStart::Anywhere, 9).unwrap().poison;
        assert!(store.quarantine(&poison[0]).unwrap());
        assert_eq!(int(&mut connection, &["HLEN", "stm:dead:seq:outbox"]), 5);
        ask(
            &mut connection,
            &[
                "SET",
                &Origin::Outbox.dead_key(store::Settings::default().keys()),
                "x",
            ],
        );
        ask(&mut connection, &["HSET", "stm:outbox", "2", "bad"]);
        let poison = store.outbox_page(PageStart::Anywhere, 9).unwrap().poison;
        assert!(matches!(
            store.quarantine(&poison[0]),
            Err(StoreError::Corrupt { .. })
        ));
        assert_eq!(int(&mut connection, &["HLEN", "stm:outbox"]), 3);
    });
}

/// The first entry of the outbox, read; then the data is lost, and another event gets its number.
fn reused(backend: &Backend, side: Side, store: &mut Twin) -> OutboxEntry {
    leave(store, 1);
    let entry = store.pending_outbox().unwrap().remove(0);
    ask(&mut raw(backend), &["FLUSHDB"]);
    let other = Commit::new().emit(Some("t"), Event::new("other", "K"));
    let mut fresh = side.store(backend);
    fresh.commit(&mut Execution::new("b", "d"), &other).unwrap();
    entry
}

// C22
#[test]
fn an_acknowledgement_by_number_removes_an_event_that_was_not_delivered() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let entry = reused(backend, side, &mut store);
        assert!(store.ack_outbox(entry.seq).unwrap());
        assert!(store.pending_outbox().unwrap().is_empty());
    });
}

// C22
#[test]
fn an_acknowledgement_by_value_leaves_another_event_alone() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let entry = reused(backend, side, &mut store);
        assert!(!store.ack_entry(&entry).unwrap());
        assert_eq!(store.deliver(&[entry]).unwrap(), [Delivered::Gone]);
        let left = store.pending_outbox().unwrap();
        assert_eq!(left[0].event.id, "other");
        assert!(store.ack_entry(&left[0]).unwrap() && !store.ack_entry(&left[0]).unwrap());
    });
}

// C22
#[test]
fn a_counter_that_was_lost_overwrites_what_waits_unless_it_is_repaired() {
    with_each(|backend, side| {
        for repaired in [false, true] {
            let mut connection = raw(backend);
            ask(&mut connection, &["FLUSHDB"]);
            let mut store = side.store(backend);
            leave(&mut store, 2500);
            ask(&mut connection, &["SET", "stm:outbox:seq", "1"]);
            ask(&mut connection, &["DEL", "stm:spawns:seq"]);
            if repaired {
                let repaired = store.repair_counters().unwrap();
                assert!(repaired.outbox && repaired.spawns);
                assert_eq!(store.repair_counters().unwrap(), Repaired::default());
            }
            let commit = Commit::new().emit(Some("t"), Event::new("new", "K"));
            let committed = store
                .commit(&mut Execution::new("b", "d"), &commit)
                .unwrap();
            let waiting = store.waiting().unwrap().outbox;
            let wanted = if repaired { (2501, 2501) } else { (2, 2500) };
            assert_eq!((committed.outbox[0].get(), waiting), wanted);
        }
        let mut store = side.store(backend);
        ask(&mut raw(backend), &["SET", "stm:spawns:seq", "many"]);
        assert!(matches!(
            store.repair_counters(),
            Err(StoreError::Corrupt { key, .. }) if key == "stm:spawns:seq"
        ));
    });
}

// C10
#[test]
fn two_relays_that_publish_before_they_acknowledge_queue_an_event_twice() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        leave(&mut store, 1);
        let read = [
            store.pending_outbox().unwrap(),
            store.pending_outbox().unwrap(),
        ];
        for entry in read.iter().flatten() {
            let text = store::codec::encode_event(&entry.event);
            ask(&mut raw(backend), &["RPUSH", "stm:q:t", &text]);
            store.ack_outbox(entry.seq).unwrap();
        }
        assert_eq!(int(&mut raw(backend), &["LLEN", "stm:q:t"]), 2);
    });
}

// C10
#[test]
fn two_relays_that_have_read_the_same_entries_deliver_each_once() {
    with_each(|backend, side| {
        let (mut one, mut other) = (side.store(backend), side.store(backend));
        leave(&mut one, 3);
        let silent = Commit::new().emit(None, Event::new("silent", "K"));
        one.commit(&mut Execution::new("b", "d"), &silent).unwrap();
        let read = one.outbox_page(PageStart::Anywhere, 9).unwrap().entries;
        let again = other.outbox_page(PageStart::Anywhere, 9).unwrap().entries;
        assert_eq!(one.deliver(&read).unwrap(), [Delivered::Done; 4]);
        assert_eq!(other.deliver(&again).unwrap(), [Delivered::Gone; 4]);
        assert_eq!(one.deliver(&[]).unwrap(), []);
        let mut connection = raw(backend);
        assert_eq!(int(&mut connection, &["LLEN", "stm:q:t"]), 3);
        assert_eq!(int(&mut connection, &["EXISTS", "stm:outbox"]), 0);
        assert_eq!(texts(&mut connection, &["HGETALL", "stm:prio"]), ["t", "0"]);
        assert_eq!(
            texts(
                &mut connection,
                &["ZRANGE", "stm:ready:0", "0", "-1", "WITHSCORES"]
            ),
            ["t", "0"]
        );
    });
}

#[test]
fn a_delivery_whose_reply_was_lost_may_be_repeated() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        leave(&mut store, 2);
        let read = store.outbox_page(PageStart::Anywhere, 9).unwrap().entries;
        store.deliver(&read[..1]).unwrap();
        let plan = Plan::at(0, Fault::LoseReply);
        let mut cut = side.store_with(backend, store::Settings::default(), plan);
        assert!(matches!(
            cut.deliver(&read[1..]),
            Err(StoreError::Io { .. })
        ));
        assert_eq!(store.deliver(&read).unwrap(), [Delivered::Gone; 2]);
        assert_eq!(int(&mut raw(backend), &["LLEN", "stm:q:t"]), 2);
    });
}

#[test]
fn a_queue_that_is_none_holds_up_its_own_events_only() {
    with_each(|backend, side| {
        let mut store = side.store(backend);
        let commit = ["bad", "good", "odd"]
            .into_iter()
            .fold(Commit::new(), |commit, target| {
                commit.emit(Some(target), Event::new(target, "K"))
            });
        store
            .commit(&mut Execution::new("a", "d"), &commit)
            .unwrap();
        let mut connection = raw(backend);
        ask(&mut connection, &["SET", "stm:q:bad", "x"]);
        ask(&mut connection, &["HSET", "stm:prio", "odd", "9"]);
        let read = store.outbox_page(PageStart::Anywhere, 9).unwrap().entries;
        assert_eq!(
            store.deliver(&read).unwrap(),
            [Delivered::Blocked, Delivered::Done, Delivered::Blocked]
        );
        assert_eq!(store.waiting().unwrap().outbox, 2);
        ask(&mut connection, &["DEL", "stm:prio"]);
        ask(&mut connection, &["SET", "stm:prio", "x"]);
        assert!(matches!(
            store.deliver(&read),
            Err(StoreError::Corrupt { key, .. }) if key == "stm:prio"
        ));
    });
}

// C1
#[test]
fn a_sweeper_of_two_steps_loses_a_timer_that_is_armed_again_in_between() {
    with_each(|backend, side| {
        let mut connection = raw(backend);
        ask(&mut connection, &["ZADD", "stm:timers", "1", "a\0p"]);
        assert_eq!(
            ask(&mut connection, &["ZSCORE", "stm:timers", "a\0p"]),
            Value::BulkString(b"1".to_vec())
        );
        ask(&mut raw(backend), &["ZADD", "stm:timers", "9", "a\0p"]);
        ask(&mut connection, &["ZREM", "stm:timers", "a\0p"]);
        assert_eq!(side.store(backend).waiting().unwrap().next_timer_s, None);
    });
}

// C1
#[test]
fn a_timer_fires_once_and_one_that_is_armed_again_in_between_stays() {
    with_each(|backend, side| {
        let (mut one, mut other) = (side.store(backend), side.store(backend));
        let commit = ["p", "q"].into_iter().fold(Commit::new(), |commit, path| {
            commit.timer(TimerOp::schedule(path, 0.1))
        });
        one.commit(&mut Execution::new("a", "d"), &commit).unwrap();
        let page = |store: &mut Twin| store.due_timers_page(1.0, PageStart::Anywhere, 9).unwrap();
        let (read, again) = (page(&mut one).entries, page(&mut other).entries);
        let mut connection = raw(backend);
        ask(&mut connection, &["ZADD", "stm:timers", "9", "a\0q"]);
        assert_eq!(one.fire(&read).unwrap(), [Delivered::Done, Delivered::Gone]);
        assert_eq!(other.fire(&again).unwrap(), [Delivered::Gone; 2]);
        assert_eq!(one.waiting().unwrap().next_timer_s, Some(9.0));
        let queued = texts(&mut connection, &["LRANGE", "stm:q:a", "0", "-1"]);
        assert_eq!(
            queued,
            [store::codec::encode_event(&timeout_event(&read[0]))]
        );
        assert_eq!(
            queued[0],
            r#"{"id":"timeout:a:p:0.1","kind":"Timeout","created_time":null,"received_time":null,"data":{"path":"p","fire_at":0.1}}"#
        );
    });
}
