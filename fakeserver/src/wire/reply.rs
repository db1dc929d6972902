//! The reply as a value: what a handler returns, EXEC collects, Lua converts and [`super::encode()`] writes.

use std::borrow::Cow;

use crate::error::CommandError;
use crate::value::Blob;
use crate::wire::Protocol;

/// One reply of the server, independent of the protocol version that will carry it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// A simple string, `+OK`.
    Simple(Cow<'static, str>),
    /// A simple string that is not UTF-8, without line breaks: scripts may make one.
    Status(Blob),
    /// A simple error, `-ERR ...`.
    Error(CommandError),
    /// A 64-bit integer, `:1`.
    Integer(i64),
    /// A bulk string, `$3`.
    Bulk(Blob),
    /// A missing value: `$-1` in RESP2, `_` in RESP3.
    Null,
    /// A missing array: `*-1` in RESP2, `_` in RESP3.
    NullArray,
    /// An array.
    Array(Vec<Reply>),
    /// A map: a flat array in RESP2.
    Map(Vec<(Reply, Reply)>),
    /// Pairs in order: a flat array in RESP2, an array of arrays of two in RESP3 (`ZRANGE WITHSCORES`).
    Pairs(Vec<(Reply, Reply)>),
    /// A map whose pairs are arrays of two in RESP2 (`XREAD`).
    Streams(Vec<(Reply, Reply)>),
    /// A set: an array in RESP2.
    Set(Vec<Reply>),
    /// An out-of-band push: an array in RESP2.
    Push(Vec<Reply>),
    /// A double: a bulk string with 17 digits in RESP2, `,` in RESP3.
    Double(f64),
    /// A double without an exponent, with at most 17 decimals, as coordinates are told.
    PlainDouble(f64),
    /// A boolean: `:1` or `:0` in RESP2, `#t` or `#f` in RESP3.
    Boolean(bool),
    /// A big number, decimal digits: a bulk string in RESP2, `(` in RESP3.
    BigNumber(Blob),
    /// A verbatim string with its three-letter format: a plain bulk string in RESP2, `=` in RESP3.
    Verbatim([u8; 3], Blob),
    /// Attributes in front of a reply: left out in RESP2, `|` in RESP3.
    Attribute(Vec<(Reply, Reply)>, Box<Reply>),
    /// A reply in a protocol version that is no longer the session's: HELLO ran behind it in the same EXEC.
    Spoken(Protocol, Box<Reply>),
    /// Aggregates that are nested too deep for values that own each other: each part is followed by what is inside of it.
    Deep(Vec<Part>),
    /// Several replies to one command, one after the other, as `SUBSCRIBE a b` sends them.
    Several(Vec<Reply>),
    /// Nothing is sent now: the client waits (a blocking command), or asked for silence.
    Nothing,
}

/// A part of [`Reply::Deep`].
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// An array of so many parts, which follow.
    Array(usize),
    /// A map of so many pairs.
    Map(usize),
    /// A set of so many parts.
    Set(usize),
    /// A reply that is no aggregate.
    Reply(Reply),
}

impl Reply {
    /// `+OK`.
    pub const OK: Reply = Reply::Simple(Cow::Borrowed("OK"));

    /// A bulk string of these bytes.
    pub fn bulk(bytes: impl AsRef<[u8]>) -> Reply {
        Reply::Bulk(Blob::from(bytes.as_ref()))
    }

    /// A simple string of a constant text without line breaks.
    pub const fn simple(text: &'static str) -> Reply {
        Reply::Simple(Cow::Borrowed(text))
    }

    /// A simple string of any bytes without line breaks.
    pub fn status(text: Vec<u8>) -> Reply {
        match String::from_utf8(text) {
            Ok(text) => Reply::Simple(text.into()),
            Err(error) => Reply::Status(error.into_bytes().into()),
        }
    }

    /// A length or count as integer.
    pub fn count(n: usize) -> Reply {
        Reply::Integer(n as i64)
    }

    /// `:1` or `:0`, which is how most commands answer yes or no in both protocols.
    pub fn flag(yes: bool) -> Reply {
        Reply::Integer(i64::from(yes))
    }

    /// An array of bulk strings.
    pub fn bulks<T: AsRef<[u8]>>(items: impl IntoIterator<Item = T>) -> Reply {
        Reply::Array(items.into_iter().map(Reply::bulk).collect())
    }

    /// The reply with pushes inside, in front of the element that these indexes lead to, or behind it if there is none. As they
    /// are sent in RESP3 only, pairs become the arrays that they are there.
    pub(crate) fn with_pushes(self, mut pushes: Vec<Reply>, path: &[usize]) -> Reply {
        let Some((index, rest)) = path.split_first() else {
            pushes.push(self);
            return Reply::Several(pushes);
        };
        match self {
            Reply::Array(mut items) if *index < items.len() => {
                let item = std::mem::replace(&mut items[*index], Reply::Null);
                items[*index] = item.with_pushes(pushes, rest);
                Reply::Array(items)
            }
            Reply::Pairs(pairs) if *index < pairs.len() => {
                let pairs = pairs.into_iter();
                let items = pairs.map(|(first, second)| Reply::Array(vec![first, second]));
                Reply::Array(items.collect()).with_pushes(pushes, path)
            }
            Reply::Streams(mut streams) if *index < streams.len() => {
                let (_, entries) = &mut streams[*index];
                let item = std::mem::replace(entries, Reply::Null);
                *entries = item.with_pushes(pushes, rest);
                Reply::Streams(streams)
            }
            reply => {
                pushes.insert(0, reply);
                Reply::Several(pushes)
            }
        }
    }

    /// Whether this is an error reply.
    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }
}

impl From<CommandError> for Reply {
    fn from(error: CommandError) -> Reply {
        Reply::Error(error)
    }
}

impl From<Result<Reply, CommandError>> for Reply {
    fn from(result: Result<Reply, CommandError>) -> Reply {
        result.unwrap_or_else(Reply::Error)
    }
}
