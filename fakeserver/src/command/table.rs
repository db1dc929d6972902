//! Rows of the command table and how they are found.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::{CommandResult, ControlCall, KeySpec, ReadCall, TABLE, WriteCall};
use crate::engine::Engine;
use crate::wire::Request;

/// The family that a command belongs to, as `COMMAND DOCS` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are Redis' own group names")]
pub enum Group {
    Bitmap,
    Cluster,
    Connection,
    Generic,
    Geo,
    Hash,
    HyperLogLog,
    List,
    PubSub,
    Scripting,
    Server,
    Set,
    SortedSet,
    Stream,
    String,
    Transactions,
}

/// A property of a command, as `COMMAND INFO` names it; the last ones are our own and are not printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are Redis' own flag names")]
pub enum Flag {
    Admin,
    AllowBusy,
    Asking,
    Blocking,
    DenyOom,
    Fast,
    Loading,
    MayReplicate,
    MovableKeys,
    NoAsyncLoading,
    NoAuth,
    NoMandatoryKeys,
    NoMulti,
    NoScript,
    PubSub,
    SkipMonitor,
    SkipSlowlog,
    Stale,
    /// `readonly`, on a row whose handler is not a `read` one.
    ReadOnly,
    /// `write`, on a row whose handler is not a `write` one.
    Write,
    /// Runs at once inside of MULTI (EXEC, DISCARD, MULTI, WATCH, QUIT, RESET).
    NoQueue,
    /// An error before its execution discards the transaction (EXEC).
    EndsTransaction,
    /// Refused unless its `enable-*-command` setting allows it (DEBUG, MODULE LOAD).
    Protected,
    /// Allowed to a RESP2 client that subscribes.
    Subscriber,
    /// The first argument is a channel that it speaks to.
    TakesChannel,
    /// All arguments are channels that it listens to.
    TakesChannels,
    /// All arguments are patterns of channels that it listens to.
    TakesPatterns,
}

/// The function behind a row, by what it may touch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Handler {
    /// Sees the keyspace and cannot change it.
    Read(fn(&mut ReadCall<'_>) -> CommandResult),
    /// Changes the keyspace, and nothing else.
    Write(fn(&mut WriteCall<'_>) -> CommandResult),
    /// Reaches the engine and its sessions.
    Control(fn(&mut ControlCall<'_>) -> CommandResult),
    /// Has subcommands and does nothing itself.
    Container,
}

/// What a command may do that is held back or refused at times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effects {
    pub writes: bool,
    /// It may need more memory.
    pub needs_memory: bool,
    /// Others than the caller may notice it, though it does not write (PUBLISH).
    pub replicates: bool,
}

/// What a request declares about its own effects, other than its row does: the script that it names.
type Declared = fn(&Engine, &Request) -> Option<Effects>;

/// Places of words that whoever looks on must not see: passwords.
type Secrets = fn(&Request) -> Vec<usize>;

/// One row of the command table, as its family's file writes it.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    name: &'static str,
    arity: i32,
    flags: &'static [Flag],
    keys: KeySpec,
    handler: Handler,
    since: &'static str,
    subcommands: &'static [Command],
    declared: Option<Declared>,
    secrets: Option<Secrets>,
}

impl Command {
    const fn new(
        name: &'static str,
        arity: i32,
        flags: &'static [Flag],
        keys: KeySpec,
        handler: Handler,
    ) -> Command {
        Command {
            name,
            arity,
            flags,
            keys,
            handler,
            since: "1.0.0",
            subcommands: &[],
            declared: None,
            secrets: None,
        }
    }

    /// A command that looks at keys.
    pub(crate) const fn read(
        name: &'static str,
        arity: i32,
        flags: &'static [Flag],
        keys: KeySpec,
        handler: fn(&mut ReadCall<'_>) -> CommandResult,
    ) -> Command {
        Command::new(name, arity, flags, keys, Handler::Read(handler))
    }

    /// A command that changes keys.
    pub(crate) const fn write(
        name: &'static str,
        arity: i32,
        flags: &'static [Flag],
        keys: KeySpec,
        handler: fn(&mut WriteCall<'_>) -> CommandResult,
    ) -> Command {
        Command::new(name, arity, flags, keys, Handler::Write(handler))
    }

    /// A command of the engine itself.
    pub(crate) const fn control(
        name: &'static str,
        arity: i32,
        flags: &'static [Flag],
        keys: KeySpec,
        handler: fn(&mut ControlCall<'_>) -> CommandResult,
    ) -> Command {
        Command::new(name, arity, flags, keys, Handler::Control(handler))
    }

    /// A command with subcommands.
    pub(crate) const fn container(
        name: &'static str,
        arity: i32,
        flags: &'static [Flag],
        subcommands: &'static [Command],
    ) -> Command {
        Command {
            subcommands,
            ..Command::new(name, arity, flags, KeySpec::None, Handler::Container)
        }
    }

    /// A command of the engine itself that also has subcommands (COMMAND).
    pub(crate) const fn with_subcommands(mut self, subcommands: &'static [Command]) -> Command {
        self.subcommands = subcommands;
        self
    }

    /// What the command does depends on the script that it names.
    #[cfg(feature = "lua")]
    pub(crate) const fn declared_by(mut self, declared: Declared) -> Command {
        self.declared = Some(declared);
        self
    }

    /// Some words of a request are secrets.
    pub(crate) const fn with_secrets(mut self, secrets: Secrets) -> Command {
        self.secrets = Some(secrets);
        self
    }

    /// The version of Redis that brought the command.
    pub(crate) const fn since(mut self, version: &'static str) -> Command {
        self.since = version;
        self
    }
}

/// The commands of one group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    group: Group,
    commands: &'static [Command],
}

impl Family {
    pub(crate) const fn new(group: Group, commands: &'static [Command]) -> Family {
        Family { group, commands }
    }
}

/// A command as the server knows it: its row, its full name and its place.
#[derive(Debug)]
pub struct Row {
    command: &'static Command,
    group: Group,
    full_name: String,
    index: usize,
    is_subcommand: bool,
    subcommands: Vec<&'static Row>,
}

impl Row {
    /// The full name in lower case: `get`, `config|set`.
    pub fn full_name(&self) -> &str {
        &self.full_name
    }

    /// The name in upper case, without its container's.
    pub fn name(&self) -> &'static str {
        self.command.name
    }

    /// How many words of a request are the name: 2 for a subcommand.
    pub fn name_words(&self) -> usize {
        if self.is_subcommand { 2 } else { 1 }
    }

    /// Number of words, the name included; negative means at least so many.
    pub fn arity(&self) -> i32 {
        self.command.arity
    }

    /// Whether so many words fit the arity.
    pub fn accepts(&self, words: usize) -> bool {
        let arity = self.command.arity;
        if arity < 0 {
            words >= arity.unsigned_abs() as usize
        } else {
            words == arity as usize
        }
    }

    /// The flags that the row names; `write` and `readonly` also follow from the handler's kind.
    pub fn flags(&self) -> &'static [Flag] {
        self.command.flags
    }

    /// Whether the row has a flag, be it named or implied by its kind.
    pub fn has(&self, flag: Flag) -> bool {
        match flag {
            Flag::Write if matches!(self.command.handler, Handler::Write(_)) => true,
            Flag::ReadOnly if matches!(self.command.handler, Handler::Read(_)) => true,
            flag => self.command.flags.contains(&flag),
        }
    }

    /// What a request for this command may do.
    pub(crate) fn effects(&self, engine: &Engine, request: &Request) -> Effects {
        let declared = self.command.declared;
        let declared = declared.and_then(|declared| declared(engine, request));
        declared.unwrap_or_else(|| Effects {
            writes: self.has(Flag::Write),
            needs_memory: self.has(Flag::DenyOom),
            replicates: self.has(Flag::MayReplicate),
        })
    }

    /// The request as it may be shown to others than the caller.
    pub(crate) fn shown<'a>(&self, request: &'a Request) -> Cow<'a, Request> {
        let secrets = self.command.secrets.map(|secrets| secrets(request));
        let secrets = secrets.unwrap_or_default();
        if secrets.is_empty() {
            return Cow::Borrowed(request);
        }
        let words = request.words().enumerate().map(|(at, word)| {
            if secrets.contains(&at) {
                b"(redacted)"
            } else {
                word
            }
        });
        Cow::Owned(Request::new(words))
    }

    /// Where the keys are.
    pub fn keys(&self) -> &'static KeySpec {
        &self.command.keys
    }

    /// The family's group.
    pub fn group(&self) -> Group {
        self.group
    }

    /// The version of Redis that brought the command.
    pub fn since(&self) -> &'static str {
        self.command.since
    }

    /// A number of the row's own, from 0 on without gaps, subcommands included.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The rows of the subcommands.
    pub fn subcommands(&self) -> &[&'static Row] {
        &self.subcommands
    }

    /// Whether the command has subcommands and does nothing itself.
    pub fn is_container(&self) -> bool {
        matches!(self.command.handler, Handler::Container)
    }

    pub(crate) fn handler(&self) -> Handler {
        self.command.handler
    }

    /// The subcommand of this name, in any case.
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Row> {
        self.subcommands
            .iter()
            .find(|row| row.name().as_bytes().eq_ignore_ascii_case(name))
            .copied()
    }
}

struct Index {
    rows: Vec<&'static Row>,
    by_name: HashMap<&'static [u8], &'static Row, foldhash::fast::FixedState>,
}

/// Rows live for the whole process: they are made once, from the constant table.
static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index {
        rows: Vec::new(),
        by_name: HashMap::default(),
    };
    let mut count = 0;
    for family in TABLE {
        for command in family.commands {
            let mut row =
                |command: &'static Command, full_name: String, subcommands| -> &'static Row {
                    count += 1;
                    let is_subcommand = full_name.contains('|');
                    let (group, index) = (family.group, count - 1);
                    Box::leak(Box::new(Row {
                        command,
                        group,
                        full_name,
                        index,
                        is_subcommand,
                        subcommands,
                    }))
                };
            let name = command.name.to_ascii_lowercase();
            let sub_name = |sub: &Command| format!("{name}|{}", sub.name.to_ascii_lowercase());
            let subcommands = command
                .subcommands
                .iter()
                .map(|sub| row(sub, sub_name(sub), Vec::new()))
                .collect();
            let row = row(command, name.clone(), subcommands);
            index.rows.push(row);
            index.by_name.insert(command.name.as_bytes(), row);
        }
    }
    index
});

/// Longest name in the table, with room to spare.
const NAME_LEN_MAX: usize = 32;

/// The row of a command, by its name in any case; containers' subcommands are found with [`Row::subcommand`].
pub fn lookup(name: &[u8]) -> Option<&'static Row> {
    let mut upper = [0; NAME_LEN_MAX];
    let upper = upper.get_mut(..name.len())?;
    upper.copy_from_slice(name);
    upper.make_ascii_uppercase();
    INDEX.by_name.get(&*upper).copied()
}

/// All rows but subcommands, in the order of the table.
pub fn rows() -> &'static [&'static Row] {
    &INDEX.rows
}

/// Number of rows, subcommands included; every [`Row::index`] is below it.
pub(crate) fn row_count() -> usize {
    rows().iter().map(|row| 1 + row.subcommands().len()).sum()
}
