//! Queues of events: leases, fences, priorities, parking, figures; both twins behind one set of methods.

use std::{rc::Rc, thread, time::Duration};

use store::{
    Event, Settings, StoreError, aio, sync,
    transport::{
        AsyncRedisTransport, Backlog, Claimed, Clock, Deliveries, Lease, Priority, RedisTransport,
        Tokens,
    },
};
use tests::both;
use tokio::runtime::{Builder, Runtime};

use crate::{
    backend::{AsyncConnection, Backend, Protocol, SyncConnection, ask},
    meddling::{Meddling, Plan},
    twin::{Side, with_each},
};

pub(crate) enum Courier {
    Sync(Box<RedisTransport<sync::Exclusive<Meddling<SyncConnection>>>>),
    Async(
        Rc<Runtime>,
        Box<AsyncRedisTransport<aio::Exclusive<Meddling<AsyncConnection>>>>,
    ),
}

type Result<T> = std::result::Result<T, StoreError>;

impl Courier {
    pub(crate) fn new(backend: &Backend, side: Side) -> Self {
        let settings = Settings::default();
        Self::with(backend, side, Protocol::Resp3, settings, Plan::none())
    }

    pub(crate) fn meddled(backend: &Backend, side: Side, plan: Plan) -> Self {
        // So that the first batch is the one that counts.
        let mut warm = Self::new(backend, side);
        warm.publish("warm", &event("w"), Priority::MIN).unwrap();
        let lease = warm.lease("warm");
        assert!(warm.nack(&lease, Duration::ZERO).unwrap());
        let lease = warm.lease("warm");
        assert!(warm.ack(&lease).unwrap());
        Self::with(backend, side, Protocol::Resp3, Settings::default(), plan)
    }

    pub(crate) fn with(
        backend: &Backend,
        side: Side,
        protocol: Protocol,
        settings: Settings,
        plan: Plan,
    ) -> Self {
        match side {
            Side::Sync => {
                let connection = Meddling::new(backend.connect(protocol), plan);
                let connections = sync::Exclusive::new(connection);
                let transport = RedisTransport::with_connections(connections, settings);
                Self::Sync(Box::new(transport))
            }
            Side::Async => {
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                let connection = runtime.block_on(backend.connect_async(protocol));
                let connections = aio::Exclusive::new(Meddling::new(connection, plan));
                let transport = AsyncRedisTransport::with_connections(connections, settings);
                Self::Async(Rc::new(runtime), Box::new(transport))
            }
        }
    }

    /// With tokens that end in 1, 2, 3.
    pub(crate) fn counting(self) -> Self {
        let mut count = 0;
        let tokens = Tokens::new(move || {
            count += 1;
            count
        });
        match self {
            Self::Sync(transport) => Self::Sync(Box::new(transport.tokens(tokens))),
            Self::Async(runtime, transport) => {
                Self::Async(runtime, Box::new(transport.tokens(tokens)))
            }
        }
    }

    pub(crate) fn deliveries(self, deliveries: Deliveries) -> Self {
        match self {
            Self::Sync(transport) => Self::Sync(Box::new(transport.deliveries(deliveries))),
            Self::Async(runtime, transport) => {
                Self::Async(runtime, Box::new(transport.deliveries(deliveries)))
            }
        }
    }

    pub(crate) fn set_clock(&mut self, clock: Clock) {
        match self {
            Self::Sync(transport) => transport.set_clock(clock),
            Self::Async(_, transport) => transport.set_clock(clock),
        }
    }

    pub(crate) fn publish(
        &mut self,
        group: &str,
        event: &Event,
        priority: Priority,
    ) -> Result<u64> {
        both!(self.publish(group, event, priority))
    }

    pub(crate) fn claim(
        &mut self,
        worker: &str,
        visibility: Duration,
        min_priority: Priority,
    ) -> Result<Claimed> {
        both!(self.claim(worker, visibility, min_priority))
    }

    pub(crate) fn ack(&mut self, lease: &Lease) -> Result<bool> {
        both!(self.ack(lease))
    }

    pub(crate) fn nack(&mut self, lease: &Lease, delay: Duration) -> Result<bool> {
        both!(self.nack(lease, delay))
    }

    pub(crate) fn postpone(&mut self, lease: &Lease, delay: Duration) -> Result<bool> {
        both!(self.postpone(lease, delay))
    }

    pub(crate) fn extend(&mut self, lease: &Lease, visibility: Duration) -> Result<bool> {
        both!(self.extend(lease, visibility))
    }

    pub(crate) fn backlog(&mut self) -> Result<Backlog> {
        both!(self.backlog())
    }

    pub(crate) fn queue_length(&mut self, group: &str) -> Result<u64> {
        both!(self.queue_length(group))
    }

    pub(crate) fn dead_letters(&mut self, group: &str, limit: u32) -> Result<Vec<Vec<u8>>> {
        both!(self.dead_letters(group, limit))
    }

    pub(crate) fn discard_dead_letter(&mut self, group: &str, payload: &[u8]) -> Result<bool> {
        both!(self.discard_dead_letter(group, payload))
    }

    /// A long lease of what is next, which must be of this group.
    pub(crate) fn lease(&mut self, group: &str) -> Lease {
        let claimed = self.claim("w", LONG, Priority::MIN).unwrap();
        let lease = claimed.lease.unwrap();
        assert_eq!(lease.group_id, group);
        lease
    }

    /// What a claim finds.
    pub(crate) fn next(&mut self) -> Option<(String, String)> {
        let claimed = self.claim("w", LONG, Priority::MIN).unwrap();
        claimed.lease.map(|lease| (lease.group_id, lease.event.id))
    }
}

pub(crate) const LONG: Duration = Duration::from_secs(30);
/// Short enough to wait for, long enough for a call in between.
pub(crate) const SHORT: Duration = Duration::from_millis(150);

pub(crate) fn event(id: &str) -> Event {
    Event::new(id, "K")
}

pub(crate) fn pass(duration: Duration) {
    thread::sleep(duration + Duration::from_millis(20));
}

fn priority(number: u8) -> Priority {
    Priority::try_from(number).unwrap()
}

fn finds(transport: &mut Courier, group: &str, event: &str) {
    let wanted = (group.to_owned(), event.to_owned());
    assert_eq!(transport.next(), Some(wanted));
}

#[test]
fn a_group_is_in_one_hand_and_its_events_come_in_order() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        let first = {
            let mut first = event("e1");
            first.data.insert("n".to_owned(), 1.into());
            first
        };
        assert_eq!(transport.publish("a", &first, Priority::MIN).unwrap(), 1);
        assert_eq!(
            transport.publish("a", &event("e2"), Priority::MIN).unwrap(),
            2
        );
        let lease = transport.lease("a");
        assert_eq!(lease.event, first);
        assert_eq!(transport.next(), None);
        assert_eq!(transport.queue_length("a").unwrap(), 2);
        assert!(transport.ack(&lease).unwrap());
        let lease = transport.lease("a");
        assert_eq!(lease.event.id, "e2");
        assert!(transport.ack(&lease).unwrap());
        assert_eq!(transport.next(), None);
        let left = ask(&mut backend.connect(Protocol::Resp2), &["DBSIZE"]);
        assert_eq!(left, redis::Value::Int(0));
    });
}

#[test]
fn groups_take_turns() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        for round in 1..=2 {
            for group in ["a", "b", "c"] {
                let event = event(&format!("{group}{round}"));
                transport.publish(group, &event, Priority::MIN).unwrap();
            }
        }
        let mut order = Vec::new();
        while let Some(lease) = transport.claim("w", LONG, Priority::MIN).unwrap().lease {
            assert!(transport.ack(&lease).unwrap());
            order.push(lease.event.id);
            thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(order, ["a1", "b1", "c1", "a2", "b2", "c2"]);
    });
}

#[test]
fn a_workers_least_priority_hides_the_others() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        for number in 0..=4 {
            let group = format!("g{number}");
            transport
                .publish(&group, &event("e"), priority(number))
                .unwrap();
        }
        let claim = |transport: &mut Courier, least| {
            let lease = transport.claim("w", LONG, priority(least)).unwrap().lease;
            lease.map(|lease| (lease.group_id, lease.priority.get()))
        };
        assert_eq!(claim(&mut transport, 3), Some(("g3".to_owned(), 3)));
        assert_eq!(claim(&mut transport, 3), Some(("g4".to_owned(), 4)));
        assert_eq!(claim(&mut transport, 3), None);
        assert_eq!(claim(&mut transport, 0), Some(("g0".to_owned(), 0)));
    });
}

#[test]
fn the_first_priority_since_the_queue_was_drained_counts() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        transport.publish("a", &event("e1"), priority(1)).unwrap();
        transport.publish("a", &event("e2"), priority(4)).unwrap();
        for _ in 0..2 {
            let lease = transport.lease("a");
            assert_eq!(lease.priority, priority(1));
            assert!(transport.ack(&lease).unwrap());
        }
        transport.publish("a", &event("e3"), priority(4)).unwrap();
        assert_eq!(transport.lease("a").priority, priority(4));
    });
}

#[test]
fn a_lease_ends_by_itself_and_its_former_holder_changes_nothing() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        transport.publish("a", &event("e"), Priority::MIN).unwrap();
        let stale = transport
            .claim("w1", SHORT, Priority::MIN)
            .unwrap()
            .lease
            .unwrap();
        pass(SHORT);
        // Ended, but nobody has it yet.
        assert!(!transport.ack(&stale).unwrap());
        let lease = transport.lease("a");
        assert_ne!(lease.token, stale.token);
        assert!(!transport.ack(&stale).unwrap());
        assert!(!transport.nack(&stale, Duration::ZERO).unwrap());
        assert!(!transport.nack(&stale, LONG).unwrap());
        assert!(!transport.extend(&stale, LONG).unwrap());
        assert_eq!(transport.next(), None);
        assert!(transport.ack(&lease).unwrap());
    });
}

#[test]
fn an_extended_lease_holds_longer() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        transport.publish("a", &event("e"), Priority::MIN).unwrap();
        let lease = transport
            .claim("w", SHORT, Priority::MIN)
            .unwrap()
            .lease
            .unwrap();
        assert!(transport.extend(&lease, LONG).unwrap());
        pass(SHORT);
        assert_eq!(transport.next(), None);
        assert!(transport.ack(&lease).unwrap());
        assert!(!transport.extend(&lease, LONG).unwrap());
    });
}

#[test]
fn a_parked_group_comes_back_after_its_pause_and_not_before() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        transport.publish("a", &event("e1"), Priority::MIN).unwrap();
        let lease = transport.lease("a");
        assert!(transport.nack(&lease, SHORT).unwrap());
        transport.publish("a", &event("e2"), Priority::MIN).unwrap();
        transport.publish("b", &event("e3"), Priority::MIN).unwrap();
        finds(&mut transport, "b", "e3");
        assert_eq!(transport.next(), None);
        pass(SHORT);
        finds(&mut transport, "a", "e1");
    });
}

#[test]
fn a_released_group_is_first_in_the_line() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        for group in ["a", "b"] {
            transport
                .publish(group, &event("e"), Priority::MIN)
                .unwrap();
        }
        let lease = transport.lease("a");
        assert!(transport.nack(&lease, Duration::ZERO).unwrap());
        finds(&mut transport, "a", "e");
    });
}

#[test]
fn a_claim_that_finds_nothing_says_when_to_ask_again() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        let nothing = transport.claim("w", LONG, Priority::MIN).unwrap();
        assert_eq!((nothing.lease, nothing.next_ready), (None, None));
        for group in ["a", "b"] {
            transport
                .publish(group, &event("e"), Priority::MIN)
                .unwrap();
        }
        transport.claim("w", LONG, Priority::MIN).unwrap();
        let lease = transport.lease("b");
        assert!(transport.nack(&lease, SHORT).unwrap());
        let nothing = transport.claim("w", LONG, Priority::MIN).unwrap();
        let wait = nothing.next_ready.unwrap().wait();
        assert!(wait <= SHORT, "{wait:?}");
        let backlog = transport.backlog().unwrap();
        assert!(backlog.next_ready(Priority::MIN).unwrap().wait() <= SHORT);
        thread::sleep(wait + Duration::from_millis(2));
        finds(&mut transport, "b", "e");
    });
}

#[test]
fn the_backlog_counts_groups_by_priority() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        for (group, number) in [("a", 0), ("b", 2), ("c", 2)] {
            transport
                .publish(group, &event("e"), priority(number))
                .unwrap();
        }
        transport
            .claim("w", LONG, priority(1))
            .unwrap()
            .lease
            .unwrap();
        let backlog = transport.backlog().unwrap();
        let figures: Vec<_> = backlog
            .tiers
            .iter()
            .map(|tier| (tier.groups, tier.due, tier.next_ready_ms.is_some()))
            .collect();
        let none = (0, 0, false);
        assert_eq!(figures, [(1, 1, false), none, (2, 1, true), none, none]);
    });
}

#[test]
fn more_locked_groups_than_a_page_hide_no_free_one() {
    with_each(|backend, side| {
        let mut transport = Courier::new(backend, side);
        let mut raw = backend.connect(Protocol::Resp2);
        for number in 0..40 {
            let group = format!("g{number:02}");
            transport
                .publish(&group, &event("e"), Priority::MIN)
                .unwrap();
            // As a worker with a slow clock leaves it: locked, but due.
            ask(
                &mut raw,
                &["SET", &format!("stm:lock:{group}"), "other", "PX", "30000"],
            );
        }
        transport
            .publish("free", &event("e"), Priority::MIN)
            .unwrap();
        ask(&mut raw, &["ZADD", "stm:ready:0", "1", "free"]);
        finds(&mut transport, "free", "e");
        // They come back when their locks end.
        let backlog = transport.backlog().unwrap();
        assert_eq!(backlog.tiers[0].due, 0);
        assert!(backlog.tiers[0].next_ready_ms.unwrap() > backlog.now_ms + 20_000);
    });
}
