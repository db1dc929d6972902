//! Whoever looks on while others' commands run: subscribers, monitors, the slow log; and the pause that holds commands back.

use std::fmt::Write;

use crate::command::{Caller, Row};
use crate::engine::Engine;
use crate::keyspace::KeyEvent;
use crate::pause::PauseMode;
use crate::pubsub::Topic;
use crate::session::SessionId;
use crate::value::Blob;
use crate::wire::{Reply, Request};

impl Engine {
    /// Hands the recorded keyspace events to whoever listens.
    pub(crate) fn publish_events(&mut self) {
        if self.keyspace.events.get_mut().is_empty() {
            return;
        }
        let classes = self.keyspace.notify;
        for KeyEvent { db, key, event } in self.keyspace.events.take() {
            let name = event.name().as_bytes();
            if classes.keyspace {
                let channel = [format!("__keyspace@{}__:", db.0).as_bytes(), &key].concat();
                self.publish(&channel, name);
            }
            if classes.keyevent {
                let channel = [format!("__keyevent@{}__:", db.0).as_bytes(), name].concat();
                self.publish(&channel, &key);
            }
        }
    }

    /// Delivers a message to all who subscribe to the channel or to a pattern that matches it; how many deliveries.
    pub(crate) fn publish(&mut self, channel: &[u8], message: &[u8]) -> usize {
        let direct = self.publish_to(Topic::Channel, channel, message);
        let by_pattern = self.pubsub.matching(channel);
        let count = direct + by_pattern.len();
        for (pattern, id) in by_pattern {
            let parts = [b"pmessage", pattern.as_bytes(), channel, message];
            self.send(id, Reply::Push(parts.map(Reply::bulk).into()));
        }
        count
    }

    /// Delivers a message to all who subscribe to a channel by its name; how many there are.
    pub(crate) fn publish_to(&mut self, topic: Topic, channel: &[u8], message: &[u8]) -> usize {
        let kind: &[u8] = match topic {
            Topic::Channel | Topic::Pattern => b"message",
            Topic::Shard => b"smessage",
        };
        let subscribers = self.pubsub.subscribers(topic, channel);
        for id in &subscribers {
            let parts = [kind, channel, message];
            self.send(*id, Reply::Push(parts.map(Reply::bulk).into()));
        }
        subscribers.len()
    }

    /// Notes what monitors are to see of a command.
    pub(crate) fn feed_monitors(&mut self, id: SessionId, request: &Request, caller: Caller) {
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let source = match caller {
            Caller::Script => "lua",
            Caller::Client | Caller::Exec => &*session.address,
        };
        let now = self.now.micros();
        let (seconds, micros) = (now.div_euclid(1_000_000), now.rem_euclid(1_000_000));
        let mut line = format!("{seconds}.{micros:06} [{} {source}]", session.db.0);
        for word in request.words() {
            line.push_str(" \"");
            line.push_str(&quote(word));
            line.push('"');
        }
        self.monitor_feed.push(Reply::Simple(line.into()));
    }

    /// Shows monitors what was noted.
    pub(crate) fn flush_monitor_feed(&mut self) {
        for line in std::mem::take(&mut self.monitor_feed) {
            for monitor in self.monitors.clone() {
                self.send(monitor, line.clone());
            }
        }
    }

    /// Puts a command into the slow log.
    pub(crate) fn log_slow(&mut self, id: SessionId, request: &Request, caller: Caller) {
        let (now, len_max) = (self.now, self.config.slowlog_max_len.max(0) as usize);
        if let Some(session) = self.sessions.get(&id) {
            // What scripts call comes from a client of the server's own.
            let client = match caller {
                Caller::Script => ("?:0", &Blob::default()),
                Caller::Client | Caller::Exec => (&*session.address, &session.name),
            };
            self.slowlog.push(request, client, now, len_max);
        }
    }

    /// Whether a pause of any kind is under way.
    pub(crate) fn is_paused(&self) -> bool {
        self.pause.mode(self.now).is_some()
    }

    /// Whether `CLIENT PAUSE` holds back this command.
    pub(crate) fn holds_back(&self, id: SessionId, row: &Row, request: &Request) -> bool {
        let Some(session) = self.sessions.get(&id) else {
            return false;
        };
        match self.pause.mode(self.now) {
            None => false,
            Some(PauseMode::All) => true,
            Some(PauseMode::Write) => self.may(session, row, request, |effects| {
                effects.writes || effects.replicates
            }),
        }
    }

    /// Puts a request back until the pause is over.
    pub(crate) fn postpone(&mut self, id: SessionId, request: &Request) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.pending.push_front(request.clone());
            session.postponed = true;
            self.pause.postponed.insert(id);
        }
    }
}

/// An argument as MONITOR prints it: bytes that are not printable ASCII as escapes (sds.c, `sdscatrepr`).
fn quote(bytes: &[u8]) -> String {
    let mut quoted = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' | b'"' => {
                quoted.push('\\');
                quoted.push(char::from(*byte));
            }
            b'\n' => quoted.push_str("\\n"),
            b'\r' => quoted.push_str("\\r"),
            b'\t' => quoted.push_str("\\t"),
            7 => quoted.push_str("\\a"),
            8 => quoted.push_str("\\b"),
            b' '..=b'~' => quoted.push(char::from(*byte)),
            byte => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted
}
