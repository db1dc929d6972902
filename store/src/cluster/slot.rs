//! Which slot a key lies in.

use crc16::{State, XMODEM};

/// How many slots a Redis Cluster has.
const SLOTS: u16 = 16_384;

/// One of the 16,384 slots of a Redis Cluster; all keys of a slot live on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u16);

impl Slot {
    /// The slot of a key: CRC16 (XMODEM) of its tag, or of the whole key if it has none, modulo 16,384.
    ///
    /// ```
    /// use store::cluster::Slot;
    ///
    /// assert_eq!(Slot::of("{orders}:exe:17"), Slot::of("orders"));
    /// assert_eq!(Slot::of("123456789").number(), 12739);
    /// ```
    pub fn of(key: &str) -> Self {
        let hashed = tag_of(key).unwrap_or(key);
        Self(State::<XMODEM>::calculate(hashed.as_bytes()) % SLOTS)
    }

    /// By number; none if there is no such slot.
    pub fn new(number: u16) -> Option<Self> {
        (number < SLOTS).then_some(Self(number))
    }

    /// The number.
    pub fn number(self) -> u16 {
        self.0
    }
}

/// What stands between the first `{` of a key and the first `}` behind it; none if that is nothing. Keys with the same tag share
/// a slot.
pub fn tag_of(key: &str) -> Option<&str> {
    let (_, rest) = key.split_once('{')?;
    let (tag, _) = rest.split_once('}')?;
    (!tag.is_empty()).then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_that_the_server_names() {
        // Answers of CLUSTER KEYSLOT.
        for (key, slot) in [
            ("{t}", 15891),
            ("stm:outbox", 5547),
            ("stm:timers", 11000),
            ("foo{}{bar}", 8363),
            ("foo{{bar}}zap", 4015),
            ("foo{bar}{zap}", 5061),
            ("", 0),
        ] {
            assert_eq!(Slot::of(key).number(), slot, "{key}");
        }
    }

    #[test]
    fn a_tag_is_not_empty_and_is_the_first() {
        assert_eq!(tag_of("a:{b}:c"), Some("b"));
        assert_eq!(tag_of("{{b}}"), Some("{b"));
        for none in ["a", "{a", "a}", "}a{", "{}a", "{}{a}"] {
            assert_eq!(tag_of(none), None, "{none}");
        }
    }

    #[test]
    fn there_are_as_many_slots_as_the_server_has() {
        assert_eq!(Slot::new(16_383).map(Slot::number), Some(16_383));
        assert_eq!(Slot::new(16_384), None);
    }
}
