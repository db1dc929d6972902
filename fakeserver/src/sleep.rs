//! DEBUG SLEEP: the server does nothing for a while.
//!
//! Nobody sleeps here, since that would keep the driver from everything else it does. Requests stay where they are, and what is
//! to be sent waits, until the time has come; so the server is as deaf and as mute as one whose thread sleeps.

use crate::clock::Timestamp;
use crate::command::{Flag, Row};
use crate::engine::Engine;
use crate::latency_events::Sample;

/// A sleep and how long the running command has slept.
#[derive(Debug, Default)]
pub(crate) struct Sleep {
    until: Option<Timestamp>,
    /// Microseconds.
    pub taken: i64,
}

impl Sleep {
    /// Whether the server sleeps.
    pub(crate) fn is_on(&self) -> bool {
        self.until.is_some()
    }
}

impl Engine {
    /// Sleeps for so many microseconds from the running command on.
    pub(crate) fn sleep(&mut self, micros: i64) {
        if micros <= 0 {
            return;
        }
        let from = self.sleep.until.unwrap_or(self.now);
        let until = Timestamp::from_micros(from.micros().saturating_add(micros));
        self.sleep.until = Some(until);
        self.sleep.taken = self.sleep.taken.saturating_add(micros);
    }

    /// Lets the time pass that the command has slept: for what follows from it is later.
    pub(crate) fn pass_slept_time(&mut self) {
        let taken = std::mem::take(&mut self.sleep.taken);
        if taken > 0 {
            self.now = Timestamp::from_micros(self.now.micros().saturating_add(taken));
            self.keyspace.set_now(self.now);
        }
    }

    /// Until when the server sleeps.
    pub(crate) fn wakes_at(&self) -> Option<Timestamp> {
        self.sleep.until
    }

    /// Whether the server sleeps; it is told the time before it is asked.
    pub(crate) fn is_asleep(&self) -> bool {
        self.sleep.is_on()
    }

    /// Ends the sleep if its time has come: everyone's requests go on, in order of connection.
    pub(crate) fn wake_up(&mut self) {
        if self.sleep.until.is_none_or(|until| self.now < until) {
            return;
        }
        self.sleep.until = None;
        let mut ids: Vec<_> = self.sessions.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.resumed.push_back(id);
            if self
                .sessions
                .get(&id)
                .is_some_and(|session| session.has_output())
            {
                self.ready.insert(id);
            }
        }
    }

    /// Notes that a command took long, if it did.
    pub(crate) fn note_latency(&mut self, row: &Row, micros: i64) {
        let event = if row.has(Flag::Fast) {
            "fast-command"
        } else {
            "command"
        };
        self.note_event(event, micros);
    }

    /// Notes that it took long to remove due keys in the background, if it did.
    pub(crate) fn note_expire_cycle(&mut self, micros: i64) {
        self.note_event("expire-cycle", micros);
    }

    /// Whether anybody wants to know what takes long.
    pub(crate) fn monitors_latency(&self) -> bool {
        self.config.latency_monitor_threshold > 0
    }

    fn note_event(&mut self, event: &'static str, micros: i64) {
        let millis = micros / 1000;
        if !self.monitors_latency() || millis < self.config.latency_monitor_threshold {
            return;
        }
        let at = self.now.seconds();
        self.latency_events.add(event, Sample { at, millis });
    }
}

#[cfg(test)]
mod tests {
    use crate::clock::Timestamp;
    use crate::config::{Config, Permission};
    use crate::engine::{Engine, Peer};
    use crate::session::SessionId;

    fn sent(engine: &mut Engine, id: SessionId) -> String {
        let mut out = Vec::new();
        engine.poll_transmit(id, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nobody_is_heard_or_answered_while_the_server_sleeps() {
        let at = |millis: i64| Timestamp::from_millis(1_000_000 + millis);
        let config = Config {
            enable_debug_command: Permission::Yes,
            latency_monitor_threshold: 100,
            ..Config::default()
        };
        let mut engine = Engine::new(config, at(0));
        let one = engine.connect(Peer::default(), at(0));
        let other = engine.connect(Peer::default(), at(0));
        engine.receive(other, b"BLPOP l 0\r\n", at(0));
        let script = "MULTI\r\nRPUSH l a\r\nPEXPIRE l 100\r\nDEBUG SLEEP 0.2\r\nEXEC\r\nPING\r\n";
        engine.receive(one, script.as_bytes(), at(0));
        assert_eq!(
            (sent(&mut engine, one), engine.poll_ready()),
            (String::new(), None)
        );
        assert_eq!(engine.poll_timeout(), Some(at(200)));
        engine.handle_timeout(at(199));
        assert_eq!(
            (sent(&mut engine, one), engine.poll_ready()),
            (String::new(), None)
        );
        engine.handle_timeout(at(200));
        let answer = sent(&mut engine, one);
        assert!(
            answer.ends_with("*3\r\n:1\r\n:1\r\n+OK\r\n+PONG\r\n"),
            "{answer}"
        );
        // The key was due before the sleep was over, so who waited for it got nothing.
        assert_eq!(sent(&mut engine, other), "");
        engine.receive(one, b"LATENCY LATEST\r\n", at(200));
        let latest = sent(&mut engine, one);
        assert!(
            latest.starts_with("*1\r\n*4\r\n$7\r\ncommand\r\n:1000\r\n:200\r\n:200\r\n"),
            "{latest}"
        );
    }

    #[test]
    fn who_does_nothing_for_longer_than_the_time_out_is_disconnected() {
        let at = |seconds: i64| Timestamp::from_millis(1_000_000 + seconds * 1000);
        let mut engine = Engine::new(Config::default(), at(0));
        let [idle, listens, waits, busy] = [(); 4].map(|()| engine.connect(Peer::default(), at(0)));
        engine.receive(listens, b"SUBSCRIBE c\r\n", at(0));
        engine.receive(waits, b"BLPOP l 0\r\n", at(0));
        engine.receive(busy, b"CONFIG SET timeout 2\r\n", at(0));
        for second in 1..=3_i64 {
            engine.receive(busy, b"PING\r\n", at(second));
            engine.handle_timeout(at(second));
            let is_there = engine.is_connected(idle);
            assert_eq!(is_there, second < 3, "after {second} seconds");
        }
        assert!(
            [listens, waits, busy]
                .iter()
                .all(|id| engine.is_connected(*id))
        );
    }
}
