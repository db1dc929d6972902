//! Keyspace events: which command did what to which key, by class, as `notify-keyspace-events` selects them.

use super::DbIndex;
use super::caches::Stale;
use crate::session::SessionId;
use crate::value::Blob;

/// The class of an event, the letter of `notify-keyspace-events` in its comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// `g`: DEL, EXPIRE, RENAME and the like.
    Generic,
    /// `$`: string commands.
    String,
    /// `l`: list commands.
    List,
    /// `s`: set commands.
    Set,
    /// `h`: hash commands.
    Hash,
    /// `z`: sorted set commands.
    SortedSet,
    /// `x`: a key's deadline passed.
    Expired,
    /// `e`: a key was evicted.
    Evicted,
    /// `t`: stream commands.
    Stream,
    /// `m`: a read of a missing key.
    KeyMiss,
    /// `d`: module types.
    Module,
    /// `n`: a new key was made.
    New,
}

/// Letters of the classes, in the order in which Redis prints them.
const LETTERS: [(Class, char); 12] = [
    (Class::Generic, 'g'),
    (Class::String, '$'),
    (Class::List, 'l'),
    (Class::Set, 's'),
    (Class::Hash, 'h'),
    (Class::SortedSet, 'z'),
    (Class::Expired, 'x'),
    (Class::Evicted, 'e'),
    (Class::Stream, 't'),
    (Class::Module, 'd'),
    (Class::KeyMiss, 'm'),
    (Class::New, 'n'),
];

/// `A` stands for these: all but key misses and new keys.
const ALL: [Class; 10] = [
    Class::Generic,
    Class::String,
    Class::List,
    Class::Set,
    Class::Hash,
    Class::SortedSet,
    Class::Expired,
    Class::Evicted,
    Class::Stream,
    Class::Module,
];

/// What `notify-keyspace-events` says: which classes, and on which of the two kinds of channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    bits: u16,
    /// `K`: publish to `__keyspace@<db>__:<key>`.
    pub keyspace: bool,
    /// `E`: publish to `__keyevent@<db>__:<event>`.
    pub keyevent: bool,
}

impl Classes {
    /// Reads the setting's text; none if a letter is unknown.
    pub fn parse(text: &[u8]) -> Option<Classes> {
        let mut parsed = Classes::default();
        for letter in text {
            match letter {
                b'K' => parsed.keyspace = true,
                b'E' => parsed.keyevent = true,
                b'A' => ALL
                    .iter()
                    .for_each(|class| parsed.bits |= 1 << *class as u16),
                letter => {
                    let (class, _) = LETTERS
                        .iter()
                        .find(|(_, known)| *known == char::from(*letter))?;
                    parsed.bits |= 1 << *class as u16;
                }
            }
        }
        Some(parsed)
    }

    /// Whether events of this class are published anywhere.
    pub fn wants(self, class: Class) -> bool {
        (self.keyspace || self.keyevent) && self.has(class)
    }

    fn has(self, class: Class) -> bool {
        self.bits & 1 << class as u16 != 0
    }
}

impl std::fmt::Display for Classes {
    /// The setting's text as `CONFIG GET` prints it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = ALL.iter().all(|class| self.has(*class));
        if all {
            write!(f, "A")?;
        }
        for (class, letter) in LETTERS {
            if self.has(class) && !(all && ALL.contains(&class)) {
                write!(f, "{letter}")?;
            }
        }
        write!(
            f,
            "{}{}",
            if self.keyspace { "K" } else { "" },
            if self.keyevent { "E" } else { "" }
        )
    }
}

/// When clients that cache a key hear of its change; Redis has no rule for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Told {
    /// Before the event.
    #[default]
    First,
    /// Before the reply, which the event comes behind.
    BeforeReply,
    /// Behind the event, and before that of the removal of an emptied container.
    BeforeRemoval,
    /// Behind all events.
    Last,
}

/// What happened to a key, without the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    class: Class,
    name: &'static str,
    is_watched: bool,
    is_awaited: bool,
    changes: u64,
    told: Told,
}

impl Event {
    /// An event of any class.
    pub const fn new(class: Class, name: &'static str) -> Event {
        Event {
            class,
            name,
            is_watched: true,
            is_awaited: true,
            changes: 1,
            told: Told::First,
        }
    }

    /// An event of class `g`.
    pub const fn generic(name: &'static str) -> Event {
        Event::new(Class::Generic, name)
    }

    /// An event of class `$`.
    pub const fn string(name: &'static str) -> Event {
        Event::new(Class::String, name)
    }

    /// An event of class `l`.
    pub const fn list(name: &'static str) -> Event {
        Event::new(Class::List, name)
    }

    /// An event of class `s`.
    pub const fn set(name: &'static str) -> Event {
        Event::new(Class::Set, name)
    }

    /// An event of class `h`.
    pub const fn hash(name: &'static str) -> Event {
        Event::new(Class::Hash, name)
    }

    /// An event of class `z`.
    pub const fn sorted_set(name: &'static str) -> Event {
        Event::new(Class::SortedSet, name)
    }

    /// An event of class `t`.
    pub const fn stream(name: &'static str) -> Event {
        Event::new(Class::Stream, name)
    }

    /// A key's deadline passed.
    pub const fn expired() -> Event {
        Event::new(Class::Expired, "expired")
    }

    /// A key went since memory was short.
    pub const fn evicted() -> Event {
        Event::new(Class::Evicted, "evicted")
    }

    /// A read found no key.
    pub const fn key_miss() -> Event {
        Event::new(Class::KeyMiss, "keymiss")
    }

    /// A key was made that had not been there.
    pub const fn new_key() -> Event {
        Event::new(Class::New, "new")
    }

    /// The same for a change that marks no watcher, as Redis holds it with much that is done to consumer groups.
    #[must_use]
    pub const fn unwatched(self) -> Event {
        Event {
            is_watched: false,
            ..self
        }
    }

    /// The same for a change that wakes no client that waits for the key.
    #[must_use]
    pub const fn unawaited(self) -> Event {
        Event {
            is_awaited: false,
            ..self
        }
    }

    /// The same for so many changes, as `rdb_changes_since_last_save` counts them.
    #[must_use]
    pub const fn counting(self, changes: usize) -> Event {
        Event {
            changes: changes as u64,
            ..self
        }
    }

    /// The same for a change that clients which cache the key hear of at another time.
    #[must_use]
    pub(crate) const fn told(self, told: Told) -> Event {
        Event { told, ..self }
    }

    /// When clients that cache the key hear of it.
    pub(super) const fn when_told(self) -> Told {
        self.told
    }

    /// As how many changes it counts.
    pub const fn changes(self) -> u64 {
        self.changes
    }

    /// Whether the change marks who watches the key.
    pub const fn is_watched(self) -> bool {
        self.is_watched
    }

    /// Whether the change wakes who waits for the key.
    pub const fn is_awaited(self) -> bool {
        self.is_awaited
    }

    /// The event's class.
    pub const fn class(self) -> Class {
        self.class
    }

    /// The event's name as subscribers see it.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

/// An event with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEvent {
    /// The database of the key.
    pub db: DbIndex,
    /// The key.
    pub key: Blob,
    /// What happened.
    pub event: Event,
}

/// Something that others are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// An event, to whoever subscribes to it.
    Event(KeyEvent),
    /// To a client, that what it caches is out of date.
    Stale(SessionId, Stale),
}
