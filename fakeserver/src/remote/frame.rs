//! [`read_frame`]: a reply read from the wire, RESP2 or RESP3, as a real server sends it.

use thiserror::Error;

use crate::error::CommandError;
use crate::value::Blob;
use crate::wire::Reply;

/// Deepest nesting that is read.
const DEPTH_MAX: usize = 128;

/// A reply as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) reply: Reply,
    pub(crate) bytes: Vec<u8>,
    pub(crate) len: usize,
}

/// What no server sends.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the reply cannot be read")]
pub(crate) struct FrameError;

/// The first whole reply of some bytes. None if it is not whole yet.
pub(crate) fn read_frame(bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
    let mut reader = Reader { bytes, at: 0 };
    let Some(reply) = reader.reply(DEPTH_MAX)? else {
        return Ok(None);
    };
    let len = reader.at;
    let bytes = bytes.get(..len).unwrap_or_default().to_vec();
    Ok(Some(Frame { reply, bytes, len }))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// What was read, none if bytes are missing.
type Part<T> = Result<Option<T>, FrameError>;

impl<'a> Reader<'a> {
    fn line(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let end = memchr::memmem::find(rest, b"\r\n")?;
        self.at += end + 2;
        rest.get(..end)
    }

    fn blob(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let blob = self.bytes.get(self.at..end)?;
        self.bytes.get(end..end + 2)?;
        self.at = end + 2;
        Some(blob)
    }

    fn reply(&mut self, depth: usize) -> Part<Reply> {
        let depth = depth.checked_sub(1).ok_or(FrameError)?;
        let Some(line) = self.line() else {
            return Ok(None);
        };
        let (kind, text) = line.split_first().ok_or(FrameError)?;
        let length = || number(text);
        Ok(Some(match kind {
            b'+' => Reply::status(text.to_vec()),
            b'-' => Reply::Error(CommandError::custom(text)),
            b':' => Reply::Integer(number(text)?),
            b'_' => Reply::Null,
            b'#' => Reply::Boolean(text == b"t"),
            b',' => Reply::Double(float(text)?),
            b'(' => Reply::BigNumber(Blob::from(text)),
            b'$' | b'=' | b'!' => {
                let Ok(len) = usize::try_from(length()?) else {
                    return Ok(Some(Reply::Null));
                };
                let Some(blob) = self.blob(len) else {
                    return Ok(None);
                };
                match (kind, blob) {
                    (b'!', blob) => Reply::Error(CommandError::custom(blob)),
                    (b'=', [a, b, c, b':', text @ ..]) => {
                        Reply::Verbatim([*a, *b, *c], Blob::from(text))
                    }
                    (_, blob) => Reply::bulk(blob),
                }
            }
            b'*' | b'~' | b'>' => {
                let Ok(len) = usize::try_from(length()?) else {
                    return Ok(Some(Reply::NullArray));
                };
                let Some(items) = self.items(len, depth)? else {
                    return Ok(None);
                };
                match kind {
                    b'~' => Reply::Set(items),
                    b'>' => Reply::Push(items),
                    _ => Reply::Array(items),
                }
            }
            b'%' | b'|' => {
                let len = usize::try_from(length()?).map_err(|_| FrameError)?;
                let Some(items) = self.items(len.saturating_mul(2), depth)? else {
                    return Ok(None);
                };
                let pairs = paired(items);
                if *kind == b'%' {
                    return Ok(Some(Reply::Map(pairs)));
                }
                let Some(reply) = self.reply(depth)? else {
                    return Ok(None);
                };
                Reply::Attribute(pairs, Box::new(reply))
            }
            _ => return Err(FrameError),
        }))
    }

    fn items(&mut self, len: usize, depth: usize) -> Part<Vec<Reply>> {
        // The length is not trusted with memory before the items are there.
        let mut items = Vec::new();
        for _ in 0..len {
            match self.reply(depth)? {
                Some(item) => items.push(item),
                None => return Ok(None),
            }
        }
        Ok(Some(items))
    }
}

fn paired(items: Vec<Reply>) -> Vec<(Reply, Reply)> {
    let mut items = items.into_iter();
    let pair = || Some((items.next()?, items.next().unwrap_or(Reply::Null)));
    std::iter::from_fn(pair).collect()
}

fn number(text: &[u8]) -> Result<i64, FrameError> {
    let text = std::str::from_utf8(text).map_err(|_| FrameError)?;
    text.parse().map_err(|_| FrameError)
}

fn float(text: &[u8]) -> Result<f64, FrameError> {
    let text = std::str::from_utf8(text).map_err(|_| FrameError)?;
    text.parse().map_err(|_| FrameError)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Protocol, encode};

    #[test]
    fn what_the_encoder_writes_is_read() {
        let replies = [
            Reply::Integer(-5),
            Reply::bulk("a\r\nb"),
            Reply::Array(vec![
                Reply::bulk(""),
                Reply::Array(vec![]),
                Reply::Boolean(true),
            ]),
            Reply::Map(vec![(Reply::bulk("k"), Reply::Double(1.5))]),
            Reply::Push(vec![Reply::bulk("message")]),
            Reply::Set(vec![Reply::Null]),
            Reply::Verbatim(*b"txt", Blob::from("x")),
        ];
        for reply in replies {
            let mut bytes = Vec::new();
            encode(&reply, Protocol::Resp3, &mut bytes);
            for len in 0..bytes.len() {
                assert_eq!(read_frame(&bytes[..len]), Ok(None), "{reply:?} {len}");
            }
            let len = bytes.len();
            bytes.extend_from_slice(b"+next");
            let frame = read_frame(&bytes).unwrap().unwrap();
            assert_eq!((frame.reply, frame.len), (reply, len));
        }
    }

    #[test]
    fn nonsense_is_refused_and_depth_is_limited() {
        for bytes in [&b"?\r\n"[..], b":x\r\n", b"$x\r\n", b"\r\n", b"%-1\r\n"] {
            assert_eq!(read_frame(bytes), Err(FrameError), "{bytes:?}");
        }
        assert_eq!(read_frame(&b"*1\r\n".repeat(200)), Err(FrameError));
        assert_eq!(read_frame(b"*1000000000\r\n"), Ok(None));
    }
}
