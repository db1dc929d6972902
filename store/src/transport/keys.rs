//! Names of the transport's keys.

use super::Priority;
use crate::keys::Keys;

impl Keys {
    /// List: the events of a group, oldest first.
    pub fn queue(&self, group: &str) -> String {
        self.under("q:", group)
    }

    /// String: the token of a group's lease; it ends with the lease.
    pub fn lock(&self, group: &str) -> String {
        self.under("lock:", group)
    }

    /// Sorted set: groups of a priority by the time, in milliseconds, at which they are next claimable.
    pub fn ready(&self, priority: Priority) -> String {
        self.under("ready:", &priority.get().to_string())
    }

    /// Hash: the priority of each group that has events.
    pub fn priorities(&self) -> String {
        self.under("prio", "")
    }

    /// List: what was in a group's queue and is not an event, oldest first.
    pub fn dead(&self, group: &str) -> String {
        self.under("dead:", group)
    }

    /// String: how often the event at the head of a group's queue was delivered, and which one that is.
    pub fn tries(&self, group: &str) -> String {
        self.under("tries:", group)
    }

    /// Whether all keys lie in one slot of a cluster.
    pub fn is_tagged(&self) -> bool {
        self.prefix()
            .split_once('{')
            .and_then(|(_, rest)| rest.split_once('}'))
            .is_some_and(|(tag, _)| !tag.is_empty())
    }

    pub(super) fn tiers(&self, from: Priority) -> impl Iterator<Item = String> {
        Priority::all()
            .filter(move |priority| *priority >= from)
            .map(|priority| self.ready(priority))
    }

    fn under(&self, kind: &str, rest: &str) -> String {
        format!("{}:{kind}{rest}", self.prefix())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_python_transport() {
        let keys = Keys::new("stm").unwrap();
        assert_eq!(keys.queue("g"), "stm:q:g");
        assert_eq!(keys.lock("g"), "stm:lock:g");
        assert_eq!(keys.ready(Priority::MAX), "stm:ready:4");
        assert_eq!(keys.priorities(), "stm:prio");
        assert_eq!(keys.dead("g"), "stm:dead:g");
        assert_eq!(keys.tries("g"), "stm:tries:g");
    }

    #[test]
    fn a_tag_is_the_first_pair_of_braces_with_something_in_it() {
        let tagged = |prefix: &str| Keys::new(prefix).unwrap().is_tagged();
        for prefix in ["{stm}", "app:{a}:b", "a{b{c}"] {
            assert!(tagged(prefix), "{prefix}");
        }
        for prefix in ["stm", "{}", "{}{a}", "a}b{", "a{"] {
            assert!(!tagged(prefix), "{prefix}");
        }
    }
}
