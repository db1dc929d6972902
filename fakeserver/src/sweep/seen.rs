//! [`Seen`]: what the judges know of a step, before it becomes text.

pub(crate) use crate::report::told::shown;
use crate::value::Blob;
use crate::wire::Reply;

/// Whose step it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The first program.
    A,
    /// The second.
    B,
    /// The one that runs behind all others.
    After,
    /// The schedule: a key expires, a program dies, a reply is lost, the server starts anew.
    Server,
}

/// A command that the server saw, or something that happened to it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Whose it is.
    pub(crate) role: Role,
    /// Which of the program's connections.
    pub(crate) connection: usize,
    /// The command with its arguments; what the schedule did.
    pub(crate) words: Vec<Vec<u8>>,
    /// What it answered, if it did.
    pub(crate) reply: Option<Reply>,
    /// Keys that it read. For what a schedule did: none.
    pub(crate) reads: Vec<Vec<u8>>,
    /// Keys that it changed, or would have. For what a schedule did: those that expired or went with their server.
    pub(crate) writes: Vec<Vec<u8>>,
    /// The queued commands of an EXEC.
    pub(crate) transaction: Vec<Vec<Vec<u8>>>,
    /// Whether it did not happen: what a program that died would have done next, as its serial run shows.
    pub(crate) missing: bool,
}

impl Seen {
    /// The command's name in capitals.
    pub(crate) fn name(&self) -> String {
        name(&self.words)
    }

    /// Whether it was refused, or an EXEC that did nothing.
    pub(crate) fn failed(&self) -> bool {
        match &self.reply {
            Some(Reply::Error(_)) => true,
            Some(Reply::Null | Reply::NullArray) => self.name() == "EXEC",
            _ => false,
        }
    }

    /// Whether its reply says that it changed nothing.
    pub(crate) fn was_idle(&self) -> bool {
        match &self.reply {
            Some(Reply::Null | Reply::NullArray) => true,
            Some(Reply::Integer(0)) => TOLD_BY_COUNT.contains(&self.name().as_str()),
            _ => self.failed(),
        }
    }
}

/// Commands whose reply 0 says that nothing was changed.
const TOLD_BY_COUNT: [&str; 20] = [
    "COPY",
    "DEL",
    "EXPIRE",
    "EXPIREAT",
    "HDEL",
    "HSETNX",
    "LINSERT",
    "LREM",
    "MSETNX",
    "PERSIST",
    "PEXPIRE",
    "PEXPIREAT",
    "RENAMENX",
    "SADD",
    "SETNX",
    "SMOVE",
    "SREM",
    "UNLINK",
    "ZADD",
    "ZREM",
];

/// The name of a command in capitals.
pub(crate) fn name(words: &[Vec<u8>]) -> String {
    let name = words.first().map(Vec::as_slice).unwrap_or_default();
    String::from_utf8_lossy(name).to_ascii_uppercase()
}

/// The bytes of a reply that is a string.
pub(crate) fn bytes(reply: &Reply) -> Option<&[u8]> {
    match reply {
        Reply::Bulk(text) | Reply::Status(text) => Some(Blob::as_bytes(text)),
        Reply::Simple(text) => Some(text.as_bytes()),
        _ => None,
    }
}
