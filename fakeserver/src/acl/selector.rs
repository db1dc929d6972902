//! [`Selector`]: one set of permissions, of which a user has at least one.

use std::collections::BTreeMap;

use super::error::RuleError;
use crate::command::{Categories, CommandId, all_commands, command_named, known};
use crate::value::Blob;

/// Numbers of commands there is room for; the last one is never given to a command.
const COMMANDS_MAX: u16 = 512;
const WORDS: usize = COMMANDS_MAX as usize / 64;

/// Set by `+@all` only, and not taken away by rules about single commands: the user may run commands that are yet to come.
const FUTURE: CommandId = CommandId(COMMANDS_MAX - 1);

/// A set of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandSet([u64; WORDS]);

impl CommandSet {
    const ALL: CommandSet = CommandSet([u64::MAX; WORDS]);

    pub(super) fn contains(&self, id: CommandId) -> bool {
        let word = self.0.get(usize::from(id.0 / 64));
        word.is_some_and(|word| word & (1 << (id.0 % 64)) != 0)
    }

    fn set(&mut self, id: CommandId, allowed: bool) {
        if let Some(word) = self.0.get_mut(usize::from(id.0 / 64)) {
            let bit = 1 << (id.0 % 64);
            *word = if allowed { *word | bit } else { *word & !bit };
        }
    }

    /// Allows or denies a command and its subcommands.
    pub(super) fn change(&mut self, id: CommandId, allowed: bool) {
        self.set(id, allowed);
        let subcommands = known(id).map(|known| known.subcommands.as_slice());
        for id in subcommands.unwrap_or_default() {
            self.set(*id, allowed);
        }
    }
}

/// What a key pattern allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPattern {
    pub pattern: Blob,
    pub reads: bool,
    pub writes: bool,
}

impl KeyPattern {
    /// The rule that makes this pattern.
    pub(super) fn rule(&self) -> Vec<u8> {
        let sign: &[u8] = match (self.reads, self.writes) {
            (true, false) => b"%R~",
            (false, true) => b"%W~",
            _ => b"~",
        };
        [sign, &self.pattern].concat()
    }
}

/// All there are, or those that one of the patterns fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach<T> {
    All,
    Only(Vec<T>),
}

impl<T> Reach<T> {
    const NONE: Reach<T> = Reach::Only(Vec::new());

    /// The patterns; none where all is allowed.
    pub(super) fn patterns(&self) -> &[T] {
        match self {
            Reach::All => &[],
            Reach::Only(patterns) => patterns,
        }
    }
}

/// One set of permissions: which commands, on which keys and channels.
#[derive(Clone, Debug)]
pub(super) struct Selector {
    /// Every command, be it known or not.
    pub all_commands: bool,
    pub commands: CommandSet,
    /// Commands that are allowed with some first arguments only.
    pub first_args: BTreeMap<CommandId, Vec<Blob>>,
    pub keys: Reach<KeyPattern>,
    pub channels: Reach<Blob>,
}

impl Selector {
    /// Permits nothing, but for all channels if `acl-pubsub-default` says so.
    pub(super) fn new(all_channels: bool) -> Selector {
        Selector {
            all_commands: false,
            commands: CommandSet::default(),
            first_args: BTreeMap::new(),
            keys: Reach::NONE,
            channels: if all_channels {
                Reach::All
            } else {
                Reach::NONE
            },
        }
    }

    /// Permits everything.
    pub(super) fn unrestricted() -> Selector {
        let mut selector = Selector::new(true);
        selector.keys = Reach::All;
        selector.allow_all(true);
        selector
    }

    pub(super) fn is_unrestricted(&self) -> bool {
        self.all_commands && self.keys == Reach::All && self.channels == Reach::All
    }

    /// Whether rules about it begin with `+@all`.
    pub(super) fn takes_future(&self) -> bool {
        self.commands.contains(FUTURE)
    }

    /// Changes the permissions by one rule. Errors: the rule is none.
    pub(super) fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match until_nul(rule).to_ascii_lowercase().as_slice() {
            b"allkeys" | b"~*" => self.keys = Reach::All,
            b"resetkeys" => self.keys = Reach::NONE,
            b"allchannels" | b"&*" => self.channels = Reach::All,
            b"resetchannels" => self.channels = Reach::NONE,
            b"allcommands" | b"+@all" => self.allow_all(true),
            b"nocommands" | b"-@all" => self.allow_all(false),
            _ => return self.apply_special(rule),
        }
        Ok(())
    }

    fn apply_special(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        let word = until_nul(rule);
        match rule {
            [b'~', pattern @ ..] => self.add_keys(pattern, true, true),
            [b'%', rest @ ..] => self.add_keys_by_use(rest),
            [b'&', pattern @ ..] => self.add_channels(pattern),
            [sign @ (b'+' | b'-'), b'@', ..] => {
                let name = word.get(2..).unwrap_or_default();
                let category = Categories::named(name).ok_or(RuleError::Unknown)?;
                self.change_category(category, *sign == b'+');
                Ok(())
            }
            [b'+', ..] if word.contains(&b'|') => self.allow_part(&word[1..]),
            [sign @ (b'+' | b'-'), ..] => {
                let name = word.get(1..).unwrap_or_default();
                let id = command_named(name).ok_or(RuleError::Unknown)?;
                self.change(id, *sign == b'+');
                Ok(())
            }
            _ => Err(RuleError::Syntax),
        }
    }

    /// Allows or denies all commands, those included that are yet to come.
    pub(super) fn allow_all(&mut self, allowed: bool) {
        self.all_commands = allowed;
        self.commands = if allowed {
            CommandSet::ALL
        } else {
            CommandSet::default()
        };
        self.first_args.clear();
    }

    /// Allows or denies a command with its subcommands; what it was allowed with is forgotten.
    fn change(&mut self, id: CommandId, allowed: bool) {
        self.all_commands &= allowed;
        self.commands.change(id, allowed);
        self.first_args.remove(&id);
    }

    fn change_category(&mut self, category: Categories, allowed: bool) {
        let members = all_commands().filter(|(_, known)| known.is_in(category));
        for (id, _) in members {
            self.change(id, allowed);
        }
    }

    /// `command|word`: a subcommand, or a command with a first argument.
    fn allow_part(&mut self, name: &[u8]) -> Result<(), RuleError> {
        let bar = memchr::memrchr(b'|', name).ok_or(RuleError::Syntax)?;
        let (command, part) = (&name[..bar], &name[bar + 1..]);
        let id = command_named(command).ok_or(RuleError::Unknown)?;
        let command = known(id).ok_or(RuleError::Unknown)?;
        if command.is_subcommand {
            return Err(RuleError::FirstArgOfSubcommand);
        }
        if part.is_empty() {
            return Err(RuleError::Syntax);
        }
        if !command.subcommands.is_empty() {
            let id = command_named(name).ok_or(RuleError::Unknown)?;
            self.change(id, true);
            return Ok(());
        }
        let allowed = self.first_args.entry(id).or_default();
        if !allowed.iter().any(|known| known.eq_ignore_ascii_case(part)) {
            allowed.push(Blob::from(part));
        }
        Ok(())
    }

    /// `R~pattern`, `W~pattern`, `RW~pattern`.
    fn add_keys_by_use(&mut self, rest: &[u8]) -> Result<(), RuleError> {
        if self.keys == Reach::All {
            return Err(RuleError::PatternBehindAllKeys);
        }
        let tilde = memchr::memchr(b'~', rest);
        let (letters, pattern) = match tilde {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, &b""[..]),
        };
        let (mut reads, mut writes) = (false, false);
        for letter in letters {
            let use_ = match letter.to_ascii_uppercase() {
                b'R' => &mut reads,
                b'W' => &mut writes,
                _ => return Err(RuleError::Syntax),
            };
            if std::mem::replace(use_, true) {
                return Err(RuleError::Syntax);
            }
        }
        if !reads && !writes {
            return Err(RuleError::Syntax);
        }
        self.add_keys(pattern, reads, writes)
    }

    fn add_keys(&mut self, pattern: &[u8], reads: bool, writes: bool) -> Result<(), RuleError> {
        let Reach::Only(patterns) = &mut self.keys else {
            return Err(RuleError::PatternBehindAllKeys);
        };
        if has_blanks(pattern) {
            return Err(RuleError::Syntax);
        }
        match patterns.iter_mut().find(|known| *known.pattern == *pattern) {
            Some(known) => {
                known.reads |= reads;
                known.writes |= writes;
            }
            None => patterns.push(KeyPattern {
                pattern: Blob::from(pattern),
                reads,
                writes,
            }),
        }
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        let Reach::Only(patterns) = &mut self.channels else {
            return Err(RuleError::PatternBehindAllChannels);
        };
        if has_blanks(pattern) {
            return Err(RuleError::Syntax);
        }
        if !patterns.iter().any(|known| **known == *pattern) {
            patterns.push(Blob::from(pattern));
        }
        Ok(())
    }
}

/// Redis reads rules as C strings where it compares them.
pub(super) fn until_nul(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}

/// Whether a name or pattern holds what would make it two in the text of a rule.
pub(crate) fn has_blanks(text: &[u8]) -> bool {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0x0b | 0);
    text.iter().any(is_blank)
}
