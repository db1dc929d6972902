//! Broken transports: each does in several commands what ours does in one script.

use redis::{Cmd, Value, cmd};
use store::op::{Batch, Operation, Replies, Step, reply};
use store::transport::{Lease, Priority};
use store::{Event, Settings, codec};

use super::single::misused;

/// What is broken in a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransportFlaw {
    /// `nack` looks at the lock, reads the priority, readies the group and removes the lock: the Python transport's way.
    NackInFour,
    /// `ack` looks at the lock, then takes the head off and frees the group.
    AckUnfenced,
    /// `ack` looks whether the queue is drained, then drops the group.
    DrainUnguarded,
    /// `claim` looks whether the group is locked, then locks it.
    ClaimInTwo,
}

impl TransportFlaw {
    /// All of them.
    pub const ALL: [TransportFlaw; 4] = [
        TransportFlaw::NackInFour,
        TransportFlaw::AckUnfenced,
        TransportFlaw::DrainUnguarded,
        TransportFlaw::ClaimInTwo,
    ];
}

/// Commands one after the other, as long as what the first one reads is what it was to read.
#[derive(Debug)]
pub struct InTurn {
    commands: Vec<Cmd>,
    wanted: Value,
    sent: usize,
}

impl InTurn {
    fn new(wanted: Value, commands: Vec<Cmd>) -> InTurn {
        InTurn {
            commands,
            wanted,
            sent: 0,
        }
    }

    /// A `publish` of an event to a group that is known.
    pub fn push(settings: &Settings, group: &str, event: &Event) -> InTurn {
        let queue = settings.keys().queue(group);
        let push = cmd("RPUSH")
            .arg(queue)
            .arg(codec::encode_event(event))
            .take();
        InTurn::new(Value::Nil, vec![push])
    }

    /// A `nack` that gives the event back at once.
    pub fn nack(settings: &Settings, lease: &Lease) -> InTurn {
        let keys = settings.keys();
        let (group, lock) = (&lease.group_id, keys.lock(&lease.group_id));
        let ready = keys.ready(Priority::MIN);
        InTurn::new(
            Value::BulkString(lease.token.clone().into_bytes()),
            vec![
                cmd("GET").arg(&lock).take(),
                cmd("HGET").arg(keys.priorities()).arg(group).take(),
                cmd("ZADD").arg(ready).arg(0).arg(group).take(),
                cmd("DEL").arg(&lock).take(),
            ],
        )
    }

    /// An `ack` of a group that has more events.
    pub fn ack(settings: &Settings, lease: &Lease) -> InTurn {
        let keys = settings.keys();
        let lock = keys.lock(&lease.group_id);
        InTurn::new(
            Value::BulkString(lease.token.clone().into_bytes()),
            vec![
                cmd("GET").arg(&lock).take(),
                cmd("LPOP").arg(keys.queue(&lease.group_id)).take(),
                cmd("DEL").arg(&lock).take(),
            ],
        )
    }

    /// An `ack` of a group's only event.
    pub fn drain(settings: &Settings, lease: &Lease) -> InTurn {
        let keys = settings.keys();
        let group = &lease.group_id;
        let ready = keys.ready(Priority::MIN);
        InTurn::new(
            Value::Int(1),
            vec![
                cmd("LLEN").arg(keys.queue(group)).take(),
                cmd("LPOP").arg(keys.queue(group)).take(),
                cmd("ZREM").arg(ready).arg(group).take(),
                cmd("HDEL").arg(keys.priorities()).arg(group).take(),
                cmd("DEL").arg(keys.lock(group)).take(),
            ],
        )
    }

    /// A `claim` of this group; whether it was free.
    pub fn claim(settings: &Settings, group: &str, token: &str) -> InTurn {
        let lock = settings.keys().lock(group);
        InTurn::new(
            Value::Int(0),
            vec![
                cmd("EXISTS").arg(&lock).take(),
                cmd("SET")
                    .arg(&lock)
                    .arg(token)
                    .arg("PX")
                    .arg(30_000)
                    .take(),
            ],
        )
    }

    /// What the server does to a lock when its time is over.
    pub fn expire(settings: &Settings, group: &str) -> InTurn {
        let lock = settings.keys().lock(group);
        InTurn::new(Value::Int(1), vec![cmd("DEL").arg(lock).take()])
    }
}

impl Operation for InTurn {
    type Output = bool;

    fn step(&mut self, replies: Replies) -> Step<bool> {
        if !matches!(replies, Replies::Start) {
            let [answer] = match replies.harmless() {
                Ok(answer) => answer,
                Err(error) => return Step::Done(Err(error)),
            };
            if self.sent == 1 && !same(&answer, &self.wanted) {
                return Step::Done(Ok(false));
            }
            if self.sent == self.commands.len() {
                return Step::Done(Ok(true));
            }
        }
        let Some(command) = self.commands.get(self.sent) else {
            return Step::Done(Err(misused()));
        };
        self.sent += 1;
        Step::Send(Batch::shared([command.clone()]))
    }
}

fn same(answer: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Int(number) => reply::integer(answer) == Some(*number),
        wanted => answer == wanted,
    }
}
