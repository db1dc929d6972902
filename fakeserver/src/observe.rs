//! Whoever looks on while others' commands run: subscribers, monitors, the slow log; and the pause that holds commands back.

use std::fmt::Write;

use crate::command::{Caller, Effects, Row};
use crate::engine::Engine;
use crate::keyspace::{KeyEvent, Note};
use crate::pause::PauseMode;
use crate::pubsub::Topic;
use crate::session::SessionId;
use crate::value::Blob;
use crate::wire::{Reply, Request};

impl Engine {
    /// Hands the recorded keyspace events to whoever listens.
    pub(crate) fn publish_events(&mut self) {
        let count = self.keyspace.events.get_mut().len();
        self.publish_first(count);
    }

    /// Hands those of a command's events on that do not come behind its reply; the reply, with events inside of it if that is
    /// where they belong.
    pub(crate) fn publish_around(&mut self, id: SessionId, reply: Reply) -> Reply {
        let placement = self.keyspace.take_placement();
        let count = self.keyspace.events.get_mut().len();
        if count == 0 {
            return reply;
        }
        let before = placement.before.unwrap_or(count);
        if placement.within.is_empty() {
            self.publish_first(before);
            return reply;
        }
        let outer = self.exec_pushes.replace((id, Vec::new()));
        self.publish_first(before);
        let pushes = std::mem::replace(&mut self.exec_pushes, outer);
        match pushes {
            Some((_, pushes)) if !pushes.is_empty() => reply.with_pushes(pushes, placement.within),
            _ => reply,
        }
    }

    /// Hands the first so many of the recorded events to whoever listens.
    fn publish_first(&mut self, count: usize) {
        let events = self.keyspace.events.get_mut();
        if events.is_empty() {
            return;
        }
        let notes: Vec<Note> = events.drain(..count.min(events.len())).collect();
        for note in notes {
            match note {
                Note::Event(event) => self.publish_event(&event),
                Note::Stale(id, stale) => self.send_stale(id, stale),
            }
        }
    }

    fn publish_event(&mut self, KeyEvent { db, key, event }: &KeyEvent) {
        let classes = self.keyspace.notify;
        let name = event.name().as_bytes();
        if classes.keyspace {
            let channel = [format!("__keyspace@{}__:", db.0).as_bytes(), key].concat();
            self.publish(&channel, name);
        }
        if classes.keyevent {
            let channel = [format!("__keyevent@{}__:", db.0).as_bytes(), name].concat();
            self.publish(&channel, key);
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
    pub(crate) fn feed_monitors(
        &mut self,
        id: SessionId,
        row: &Row,
        request: &Request,
        caller: Caller,
    ) {
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
        for word in row.shown(request).words() {
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
    pub(crate) fn log_slow(
        &mut self,
        id: SessionId,
        (row, request): (&Row, &Request),
        caller: Caller,
        micros: i64,
    ) {
        let (now, len_max) = (self.now, self.config.slowlog_max_len.max(0) as usize);
        if let Some(session) = self.sessions.get(&id) {
            // What scripts call comes from a client of the server's own.
            let client = match caller {
                Caller::Script => ("?:0", &Blob::default()),
                Caller::Client | Caller::Exec => (&*session.address, &session.name),
            };
            let request = row.shown(request);
            self.slowlog.push(&request, client, (now, micros), len_max);
        }
    }

    /// Whether a pause of any kind is under way.
    pub(crate) fn is_paused(&self) -> bool {
        self.pause.mode(self.now).is_some()
    }

    /// Whether `CLIENT PAUSE` holds back this command.
    pub(crate) fn holds_back(&self, id: SessionId, row: &Row, request: &Request) -> bool {
        let Some(mode) = self.pause.mode(self.now) else {
            return false;
        };
        let Some(session) = self.sessions.get(&id) else {
            return false;
        };
        let writes = |effects: &Effects| effects.writes || effects.replicates;
        mode == PauseMode::All || self.may(session, row, request, writes)
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
pub(crate) fn quote(bytes: &[u8]) -> String {
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

#[cfg(test)]
mod tests {
    use crate::clock::Timestamp;
    use crate::config::Config;
    use crate::engine::{Engine, Peer};

    /// Recorded from redis-server 7.0.15, which has written an array's head before it tells of the event.
    #[test]
    fn some_events_stand_inside_of_the_reply_of_their_command() {
        let event = "$7\r\nmessage\r\n$22\r\n__keyevent@0__:zpopmin\r\n$1\r\nz\r\n";
        let del = "$7\r\nmessage\r\n$18\r\n__keyevent@0__:del\r\n$1\r\nz\r\n";
        let cases = [
            ("ZPOPMIN z", format!("*2\r\n>3\r\n{event}$1\r\na\r\n,1\r\n")),
            (
                "BZPOPMIN z 0",
                format!("*3\r\n$1\r\nz\r\n>3\r\n{event}$1\r\nb\r\n,2\r\n"),
            ),
            (
                "ZMPOP 1 z MIN",
                format!("*2\r\n$1\r\nz\r\n*1\r\n>3\r\n{event}*2\r\n$1\r\nc\r\n,3\r\n"),
            ),
            (
                "ZPOPMIN z 9",
                format!("*1\r\n>3\r\n{event}*2\r\n$1\r\nd\r\n,4\r\n>3\r\n{del}"),
            ),
        ];
        let now = Timestamp::default();
        let mut engine = Engine::new(Config::default(), now);
        let id = engine.connect(Peer::default(), now);
        let setup = "HELLO 3\r\nCONFIG SET notify-keyspace-events Ezg\r\nZADD z 1 a 2 b 3 c 4 d\r\n\
            SUBSCRIBE __keyevent@0__:zpopmin __keyevent@0__:del\r\n";
        let mut out = Vec::new();
        engine.receive(id, setup.as_bytes(), now);
        engine.poll_transmit(id, &mut out);
        for (request, expected) in cases {
            out.clear();
            engine.receive(id, format!("{request}\r\n").as_bytes(), now);
            engine.poll_transmit(id, &mut out);
            assert_eq!(
                String::from_utf8(out.clone()).unwrap(),
                expected,
                "{request}"
            );
        }
    }
}
