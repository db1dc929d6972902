//! Whether a user may run a command (acl.c, `ACLCheckAllUserCommandPerm`).

use super::selector::{Reach, Selector};
use super::user::User;
use crate::command::{Flag, KeyUse, Row, id_of, key_uses, known};
use crate::pubsub::Topic;
use crate::value::{Blob, glob};
use crate::wire::Request;

/// What a user lacks; of several sets of permissions the one that comes closest decides, which is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Denial {
    /// The command.
    Command,
    /// The key at this place among the words.
    Key(usize),
    /// The channel at this place.
    Channel(usize),
}

/// A request with what is found out about it once for all sets of permissions.
struct Question<'a> {
    row: &'static Row,
    request: &'a Request,
    keys: Option<Vec<KeyUse>>,
}

impl User {
    /// Whether the user may run a command. Errors: what is lacking.
    pub(crate) fn check(&self, row: &'static Row, request: &Request) -> Result<(), Denial> {
        let mut question = Question {
            row,
            request,
            keys: None,
        };
        let mut denial = Denial::Command;
        for selector in self.all_selectors() {
            match selector.check(&mut question) {
                Ok(()) => return Ok(()),
                Err(lacking) => denial = denial.max(lacking),
            }
        }
        Err(denial)
    }

    /// Whether the user may run a command that looks at keys which its words do not name (SORT with BY or GET).
    pub(crate) fn may_read_any_key(&self, row: &'static Row, request: &Request) -> bool {
        let mut question = Question {
            row,
            request,
            keys: None,
        };
        self.all_selectors()
            .any(|selector| selector.check(&mut question).is_ok() && selector.reads_any_key())
    }

    /// Whether the user may listen to a channel.
    pub(super) fn may_hear(&self, topic: Topic, name: &[u8]) -> bool {
        self.all_selectors()
            .any(|selector| selector.reaches_channel(name, topic == Topic::Pattern))
    }

    /// Whether all channels of another user are this one's as well, so that nobody loses one.
    pub(super) fn hears_all_of(&self, other: &User) -> bool {
        let mine: Vec<&Blob> = self
            .all_selectors()
            .flat_map(|selector| selector.channels.patterns())
            .collect();
        let mut selectors = other.all_selectors();
        self.all_selectors()
            .any(|selector| selector.channels == Reach::All)
            || selectors.all(|selector| match &selector.channels {
                Reach::All => false,
                Reach::Only(patterns) => patterns.iter().all(|pattern| mine.contains(&pattern)),
            })
    }
}

impl Selector {
    fn check(&self, question: &mut Question<'_>) -> Result<(), Denial> {
        let (row, request) = (question.row, question.request);
        if !self.all_commands && !row.has(Flag::NoAuth) && !self.allows(row, request) {
            return Err(Denial::Command);
        }
        if let Reach::Only(_) = self.keys {
            let keys = question.keys.get_or_insert_with(|| key_uses(row, request));
            for key in keys {
                if !self.reaches_key(request.get(key.at).unwrap_or_default(), key) {
                    return Err(Denial::Key(key.at));
                }
            }
        }
        if let Reach::Only(_) = self.channels {
            for at in channel_positions(row, request) {
                let name = request.get(at).unwrap_or_default();
                if !self.reaches_channel(name, row.has(Flag::TakesPatterns)) {
                    return Err(Denial::Channel(at));
                }
            }
        }
        Ok(())
    }

    /// Whether the command itself is allowed, if only with the request's first argument.
    fn allows(&self, row: &Row, request: &Request) -> bool {
        let Some(id) = id_of(row) else { return false };
        if self.commands.contains(id) {
            return true;
        }
        let is_subcommand = known(id).is_some_and(|known| known.is_subcommand);
        let first = request.get(if is_subcommand { 2 } else { 1 });
        let allowed = self.first_args.get(&id);
        first.zip(allowed).is_some_and(|(first, allowed)| {
            allowed.iter().any(|word| word.eq_ignore_ascii_case(first))
        })
    }

    fn reaches_key(&self, name: &[u8], key: &KeyUse) -> bool {
        match &self.keys {
            Reach::All => true,
            Reach::Only(patterns) => patterns.iter().any(|pattern| {
                (pattern.reads || !key.reads)
                    && (pattern.writes || !key.writes)
                    && glob::matches(&pattern.pattern, name, false)
            }),
        }
    }

    fn reads_any_key(&self) -> bool {
        match &self.keys {
            Reach::All => true,
            Reach::Only(patterns) => patterns
                .iter()
                .any(|pattern| pattern.reads && *pattern.pattern == *b"*"),
        }
    }

    /// A pattern is allowed by the very same pattern only.
    fn reaches_channel(&self, name: &[u8], is_pattern: bool) -> bool {
        match &self.channels {
            Reach::All => true,
            Reach::Only(patterns) if is_pattern => patterns.iter().any(|known| **known == *name),
            Reach::Only(patterns) => patterns
                .iter()
                .any(|pattern| glob::matches(pattern, name, false)),
        }
    }
}

/// Where a request names channels that it listens or speaks to.
fn channel_positions(row: &Row, request: &Request) -> std::ops::Range<usize> {
    if row.has(Flag::TakesChannels) || row.has(Flag::TakesPatterns) {
        1..request.len()
    } else if row.has(Flag::TakesChannel) {
        1..request.len().min(2)
    } else {
        0..0
    }
}
