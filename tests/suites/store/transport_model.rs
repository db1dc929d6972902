//! Random work of several workers, some with wrong clocks, against a model: on the fake, whose clock stands still until it is
//! moved.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use fakeserver::{Clock as ServerClock, Server};
use store::{
    Event, Settings,
    sync::Exclusive,
    transport::{Clock, Lease, Priority, RedisTransport},
};

const ORIGIN_MS: i64 = 1_700_000_000_000;
const SEEDS: u64 = 15;
const STEPS: usize = 500;
const GROUPS: usize = 7;

type Worker = RedisTransport<Exclusive<fakeserver::redis_client::Connection>>;

/// What must be true of each group.
#[derive(Default)]
struct Group {
    queue: VecDeque<String>,
    /// The token of the lease and the last moment that it holds.
    lock: Option<(String, u64)>,
}

impl Group {
    fn holder(&self, now_ms: u64) -> Option<&str> {
        let (token, until) = self.lock.as_ref()?;
        (*until >= now_ms).then_some(token.as_str())
    }
}

struct Bench {
    server: Server,
    now_ms: u64,
    groups: BTreeMap<String, Group>,
    leases: Vec<Lease>,
    published: usize,
}

// C29
#[test]
fn whatever_workers_do_the_lock_alone_decides_who_has_a_group() {
    for seed in 0..SEEDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let clock = ServerClock::frozen_at(ORIGIN_MS);
        let server = Server::builder().clock(clock).build();
        let mut workers: Vec<Worker> = (0..3)
            .map(|_| {
                let connections = Exclusive::new(server.connection());
                Worker::with_connections(connections, Settings::default())
            })
            .collect();
        let mut bench = Bench {
            server,
            now_ms: ORIGIN_MS as u64,
            groups: BTreeMap::new(),
            leases: Vec::new(),
            published: 0,
        };
        for step in 0..STEPS {
            let at = format!("seed {seed}, step {step}");
            let worker = random.usize(..workers.len());
            // The first goes by the server's clock, the others by their own, which are a minute wrong.
            let skew = [0, 60_000, -60_000][worker];
            let now_ms = bench.now_ms.saturating_add_signed(skew);
            let own = if worker == 0 {
                Clock::Server
            } else {
                Clock::Fixed(now_ms)
            };
            workers[worker].set_clock(own);
            bench.step(&at, &mut workers[worker], worker == 0, &mut random);
        }
        bench.drain(seed, &mut workers[0]);
    }
}

impl Bench {
    fn step(&mut self, at: &str, worker: &mut Worker, right: bool, random: &mut fastrand::Rng) {
        let pause = Duration::from_millis(random.u64(1..300));
        match random.u8(..10) {
            0..3 => self.publish(worker, random),
            3..6 => {
                self.claim(at, worker, right, pause);
            }
            6..9 if !self.leases.is_empty() => {
                let lease = random.usize(..self.leases.len());
                self.settle(at, worker, lease, pause, random);
            }
            _ => {
                self.server.advance(pause);
                self.now_ms += pause.as_millis() as u64;
            }
        }
    }

    fn publish(&mut self, worker: &mut Worker, random: &mut fastrand::Rng) {
        let group = format!("g{}", random.usize(..GROUPS));
        let id = format!("e{}", self.published);
        self.published += 1;
        let priority = Priority::clamped(random.i64(..5));
        let length = worker
            .publish(&group, &Event::new(&id, "K"), priority)
            .unwrap();
        let queue = &mut self.groups.entry(group).or_default().queue;
        queue.push_back(id);
        assert_eq!(length, queue.len() as u64);
    }

    fn claim(&mut self, at: &str, worker: &mut Worker, right: bool, visibility: Duration) -> bool {
        let claimed = worker.claim("w", visibility, Priority::MIN).unwrap();
        let now_ms = self.now_ms;
        let Some(lease) = claimed.lease else {
            let mut free = self.groups.values().filter(|group| !group.queue.is_empty());
            let is_free = free.any(|group| group.holder(now_ms).is_none());
            assert!(!(right && is_free), "{at}: something is claimable");
            return false;
        };
        let group = self.groups.get_mut(&lease.group_id).unwrap();
        assert_eq!(
            group.holder(now_ms),
            None,
            "{at}: {} is locked",
            lease.group_id
        );
        assert_eq!(group.queue.front(), Some(&lease.event.id), "{at}");
        let until = now_ms + visibility.as_millis() as u64;
        group.lock = Some((lease.token.clone(), until));
        self.leases.push(lease);
        true
    }

    fn settle(
        &mut self,
        at: &str,
        worker: &mut Worker,
        lease: usize,
        pause: Duration,
        random: &mut fastrand::Rng,
    ) {
        let lease = self.leases[lease].clone();
        let group = self.groups.get_mut(&lease.group_id).unwrap();
        let holds = group.holder(self.now_ms) == Some(&lease.token);
        let until = self.now_ms + pause.as_millis() as u64;
        let (done, lock) = match random.u8(..4) {
            0 => (worker.nack(&lease, Duration::ZERO), None),
            1 => (
                worker.nack(&lease, pause),
                Some((lease.token.clone(), until)),
            ),
            2 => (
                worker.extend(&lease, pause),
                Some((lease.token.clone(), until)),
            ),
            _ => {
                if holds {
                    assert_eq!(
                        group.queue.pop_front(),
                        Some(lease.event.id.clone()),
                        "{at}"
                    );
                }
                (worker.ack(&lease), None)
            }
        };
        assert_eq!(done.unwrap(), holds, "{at}: {}", lease.token);
        if holds {
            group.lock = lock;
        }
    }

    /// All that is left comes out, and then nothing is left.
    fn drain(&mut self, seed: u64, worker: &mut Worker) {
        let at = format!("seed {seed}, at the end");
        worker.set_clock(Clock::Server);
        self.server.advance(Duration::from_secs(1));
        self.now_ms += 1_000;
        while self.claim(&at, worker, true, Duration::from_secs(1)) {
            let lease = self.leases.pop().unwrap();
            assert!(worker.ack(&lease).unwrap());
            let group = self.groups.get_mut(&lease.group_id).unwrap();
            group.queue.pop_front();
            group.lock = None;
        }
        assert!(
            self.groups.values().all(|group| group.queue.is_empty()),
            "{at}"
        );
        let left = self.server.command(["DBSIZE"]);
        assert_eq!(format!("{left:?}"), "Integer(0)", "{at}");
    }
}
