//! [`ReplyBuffer`]: the buffer that redis-server keeps for a connection's replies. Here it is a figure that `CLIENT LIST` tells.

use crate::clock::Timestamp;

/// Bytes of the buffer at first, and at most (server.h, `PROTO_REPLY_CHUNK_BYTES`).
const LEN_MAX: usize = 16 * 1024;
/// Bytes of the buffer at least (server.h, `PROTO_REPLY_MIN_BYTES`).
const LEN_MIN: usize = 1024;
/// How often a timer adapts the buffer, and how often the peak is forgotten (server.c, `clientsCronResizeOutputBuffer`).
const TICK_MICROS: i64 = 100_000;
const PEAK_MICROS: i64 = 5_000_000;
/// After so many ticks without a reply nothing changes any more, but that a peak is forgotten.
const TICKS_MAX: i64 = 4;

/// Size and peak of the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyBuffer {
    len: usize,
    peak: usize,
    peak_since: Option<i64>,
    ticked_at: i64,
}

impl ReplyBuffer {
    /// That of a connection made at `now`.
    pub(crate) fn new(now: Timestamp) -> ReplyBuffer {
        ReplyBuffer {
            len: LEN_MAX,
            peak: LEN_MAX,
            peak_since: None,
            ticked_at: now.micros(),
        }
    }

    /// Bytes of the buffer.
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// The most bytes that were in it of late.
    pub(crate) fn peak(self) -> usize {
        self.peak
    }

    /// Puts replies of so many bytes into it, as far as they fit.
    pub(crate) fn fill(&mut self, bytes: usize, now: Timestamp) {
        self.pass(now);
        self.peak = self.peak.max(bytes.min(self.len));
    }

    /// Has the timer do what it has done until `now`.
    pub(crate) fn pass(&mut self, now: Timestamp) {
        let ticks = now.micros().div_euclid(TICK_MICROS) - self.ticked_at.div_euclid(TICK_MICROS);
        for left in (0..ticks.clamp(0, TICKS_MAX)).rev() {
            self.tick(now.micros() - left * TICK_MICROS);
        }
        if ticks > 0 {
            self.ticked_at = now.micros();
        }
    }

    fn tick(&mut self, at: i64) {
        let mut len = self.len;
        if self.len / 2 >= LEN_MIN && self.peak < self.len / 2 {
            len = LEN_MIN.max(self.peak + 1);
        }
        if self.len < LEN_MAX && self.peak == self.len {
            len = LEN_MAX.min(self.len * 2);
        }
        if self.peak_since.is_none_or(|since| at - since > PEAK_MICROS) {
            self.peak = 0;
            self.peak_since = Some(at);
        }
        self.len = len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_shrinks_when_little_is_sent_and_grows_when_it_was_full() {
        let at = |millis: i64| Timestamp::from_millis(1_000_000 + millis);
        let mut buffer = ReplyBuffer::new(at(0));
        assert_eq!((buffer.len(), buffer.peak()), (16384, 16384));
        buffer.pass(at(300));
        assert_eq!((buffer.len(), buffer.peak()), (1024, 0));
        buffer.fill(7, at(310));
        assert_eq!((buffer.len(), buffer.peak()), (1024, 7));
        buffer.fill(100_000, at(320));
        assert_eq!((buffer.len(), buffer.peak()), (1024, 1024));
        buffer.pass(at(450));
        assert_eq!((buffer.len(), buffer.peak()), (2048, 1024));
        // The peak is forgotten first, and the next tick finds the buffer too large.
        buffer.pass(at(9000));
        assert_eq!((buffer.len(), buffer.peak()), (1024, 0));
    }
}
