//! The request decoder: multibulk and inline requests, Redis' limits and protocol error texts (networking.c,
//! `processMultibulkBuffer` and `processInlineBuffer`).
//!
//! The decoder keeps its place inside a half-received frame: every byte is looked at once, however small the pieces are in
//! which a request arrives.

use smallvec::SmallVec;
use thiserror::Error;

use crate::value::number;

/// Longest line of an inline request, and of a length in a multibulk request (`PROTO_INLINE_MAX_SIZE`).
const LINE_LEN_MAX: usize = 64 * 1024;
/// Limits of a client that has yet to authenticate.
const UNAUTHENTICATED_ARGS_MAX: i64 = 10;
const UNAUTHENTICATED_BULK_MAX: i64 = 16_384;

/// One request: its words, the command's name first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    data: Vec<u8>,
    ends: SmallVec<[usize; 8]>,
}

impl Request {
    /// A request of these words.
    pub fn new<T: AsRef<[u8]>>(words: impl IntoIterator<Item = T>) -> Request {
        let mut request = Request::default();
        words
            .into_iter()
            .for_each(|word| request.push(word.as_ref()));
        request
    }

    /// A request of these words, which are gone through twice so that there is room for all at once.
    #[cfg(feature = "explore")]
    pub(crate) fn sized<'w>(words: impl Iterator<Item = &'w [u8]> + Clone) -> Request {
        let len = words.clone().map(<[u8]>::len).sum();
        let mut request = Request {
            data: Vec::with_capacity(len),
            ends: SmallVec::new(),
        };
        words.for_each(|word| request.push(word));
        request
    }

    /// Appends a word.
    pub fn push(&mut self, word: &[u8]) {
        self.data.extend_from_slice(word);
        self.ends.push(self.data.len());
    }

    /// Number of words, the command's name included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no word at all.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The word at `index`; 0 is the command's name.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = if index == 0 {
            0
        } else {
            *self.ends.get(index - 1)?
        };
        self.data.get(start..end)
    }

    /// The command's name as it was sent; empty if there is no word.
    pub fn name(&self) -> &[u8] {
        self.get(0).unwrap_or_default()
    }

    /// All words in order.
    pub fn words(&self) -> impl ExactSizeIterator<Item = &[u8]> + DoubleEndedIterator {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// Bytes of all words together.
    pub fn bytes_len(&self) -> usize {
        self.data.len()
    }

    /// Forgets all words.
    pub(crate) fn clear(&mut self) {
        // A buffer that one large request left behind is given back, as Redis does with its query buffer.
        if self.data.capacity() > LINE_LEN_MAX {
            self.data = Vec::new();
        }
        self.data.clear();
        self.ends.clear();
    }
}

/// What a decoder accepts; the values follow the configuration and the session's state.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest bulk string (`proto-max-bulk-len`).
    pub bulk_len_max: i64,
    /// Longest unfinished request (`client-query-buffer-limit`).
    pub query_buffer_max: usize,
    /// Whether the client may send large requests: it is authenticated, or need not be.
    pub authenticated: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bulk_len_max: 512 * 1024 * 1024,
            query_buffer_max: 1024 * 1024 * 1024,
            authenticated: true,
        }
    }
}

/// A request that cannot be read; the server answers the text behind `ERR Protocol error: ` and closes the connection.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// An argument does not start with `$`.
    #[error("expected '$', got '{}'", char::from(*.0))]
    ExpectedBulk(u8),
    /// A bulk length that is not a number or out of range.
    #[error("invalid bulk length")]
    InvalidBulkLength,
    /// An argument count that is not a number or out of range.
    #[error("invalid multibulk length")]
    InvalidMultibulkLength,
    /// More pending input than `client-query-buffer-limit`: Redis closes without a reply.
    #[error("query buffer limit reached")]
    QueryBufferLimit,
    /// A bulk length line without an end.
    #[error("too big bulk count string")]
    TooBigBulkCount,
    /// An inline request without an end.
    #[error("too big inline request")]
    TooBigInline,
    /// An argument count line without an end.
    #[error("too big mbulk count string")]
    TooBigMultibulkCount,
    /// A large argument before authentication.
    #[error("unauthenticated bulk length")]
    UnauthenticatedBulk,
    /// Many arguments before authentication.
    #[error("unauthenticated multibulk length")]
    UnauthenticatedMultibulk,
    /// An inline request with an open quote.
    #[error("unbalanced quotes in request")]
    UnbalancedQuotes,
}

/// What a decoder has of a connection's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Buffered {
    /// Bytes that belong to no finished argument.
    pub unread: usize,
    /// Bytes that were there when the last piece had come, whatever has become of them.
    pub received: usize,
    /// Arguments of an unfinished request that are there.
    pub arguments: usize,
    /// Bytes of those.
    pub argument_bytes: usize,
    /// Length of the argument that is under way, its CRLF included; 0 if that is not known.
    pub expected: usize,
}

/// Reads requests from a byte stream that arrives in pieces.
#[derive(Debug, Default)]
pub struct RequestDecoder {
    buffer: Vec<u8>,
    /// Bytes of `buffer` already consumed.
    start: usize,
    /// Bytes behind `start` already searched for a line end.
    searched: usize,
    /// Arguments still to come of the multibulk request under way.
    args_left: i64,
    /// Bytes that were there when the last piece had come.
    received: usize,
    /// Bytes still to come of the argument under way, its CRLF included.
    bulk_left: Option<usize>,
    partial: Request,
    skipped: usize,
}

impl RequestDecoder {
    /// Takes in bytes from the connection.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        self.received = self.buffered().unread;
    }

    /// What the buffer holds.
    pub fn buffered(&self) -> Buffered {
        let argument_bytes = self.partial.ends.last().copied().unwrap_or_default();
        let begun = self.partial.data.len() - argument_bytes;
        let unread = self.buffer.len() - self.start + begun;
        Buffered {
            unread,
            received: self.received,
            arguments: self.partial.len(),
            argument_bytes,
            expected: begun + self.bulk_left.unwrap_or_default(),
        }
    }

    /// Requests without a word that were skipped since this was last asked.
    pub fn take_skipped(&mut self) -> usize {
        std::mem::take(&mut self.skipped)
    }

    /// Lends room for a request's words; a decoder that is between two requests gives it back with
    /// [`RequestDecoder::give_back`], so that idle connections hold none.
    pub(crate) fn lend(&mut self, room: Request) {
        // Words without a byte need no room and are a request under way all the same.
        if self.partial.is_empty() && self.partial.data.capacity() == 0 {
            self.partial = room;
        }
    }

    /// The room for a request's words, if no request is under way.
    pub(crate) fn give_back(&mut self) -> Option<Request> {
        let is_idle = self.partial.is_empty() && self.partial.data.is_empty();
        is_idle.then(|| std::mem::take(&mut self.partial))
    }

    /// Bytes that were taken in and belong to no finished request.
    pub fn pending_len(&self) -> usize {
        self.buffer.len() - self.start + self.partial.data.len()
    }

    /// Puts the next complete request into `request`; false if more bytes are needed.
    pub fn next(&mut self, request: &mut Request, limits: &Limits) -> Result<bool, ProtocolError> {
        let done = self.decode(limits);
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            if self.buffer.capacity() > LINE_LEN_MAX {
                self.buffer = Vec::new();
            }
        } else if self.start > LINE_LEN_MAX && self.start * 2 > self.buffer.len() {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if done? {
            request.clear();
            std::mem::swap(request, &mut self.partial);
            return Ok(true);
        }
        if self.pending_len() > limits.query_buffer_max {
            return Err(ProtocolError::QueryBufferLimit);
        }
        Ok(false)
    }

    fn decode(&mut self, limits: &Limits) -> Result<bool, ProtocolError> {
        loop {
            if self.args_left > 0 {
                if !self.argument(limits)? {
                    return Ok(false);
                }
                if self.args_left == 0 {
                    return Ok(true);
                }
                continue;
            }
            match self.buffer.get(self.start) {
                None => return Ok(false),
                Some(b'*') => {
                    if !self.multibulk_header(limits)? {
                        return Ok(false);
                    }
                    self.skipped += usize::from(self.args_left == 0);
                }
                Some(_) => match self.inline()? {
                    None => return Ok(false),
                    // An empty line is no request; Redis skips it silently.
                    Some(0) => self.skipped += 1,
                    Some(_) => return Ok(true),
                },
            }
        }
    }

    fn multibulk_header(&mut self, limits: &Limits) -> Result<bool, ProtocolError> {
        let count = if let Some(count) = self.short_length(b'*') {
            count
        } else {
            let Some(line) = self.line(ProtocolError::TooBigMultibulkCount)? else {
                return Ok(false);
            };
            number::parse_integer(&self.buffer[line.start + 1..line.end])
                .filter(|count| *count <= i64::from(i32::MAX))
                .ok_or(ProtocolError::InvalidMultibulkLength)?
        };
        if count > UNAUTHENTICATED_ARGS_MAX && !limits.authenticated {
            return Err(ProtocolError::UnauthenticatedMultibulk);
        }
        self.args_left = count.max(0);
        Ok(true)
    }

    fn argument(&mut self, limits: &Limits) -> Result<bool, ProtocolError> {
        let left = match self.bulk_left {
            Some(left) => left,
            None => match self.bulk_len(limits)? {
                Some(len) => len + 2,
                None => return Ok(false),
            },
        };
        let available = &self.buffer[self.start..];
        let taken = available.len().min(left);
        // The last two bytes of `left` are the line end, which Redis skips unseen.
        let content = taken.min(left.saturating_sub(2));
        self.partial.data.extend_from_slice(&available[..content]);
        self.start += taken;
        if taken < left {
            self.bulk_left = Some(left - taken);
            return Ok(false);
        }
        self.bulk_left = None;
        self.partial.ends.push(self.partial.data.len());
        self.args_left -= 1;
        Ok(true)
    }

    /// Consumes the length of an argument.
    fn bulk_len(&mut self, limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let len = if let Some(len) = self.short_length(b'$') {
            Some(len)
        } else {
            let Some(line) = self.line(ProtocolError::TooBigBulkCount)? else {
                return Ok(None);
            };
            let text = &self.buffer[line];
            match text.first() {
                Some(b'$') => {}
                // Redis prints the byte it found, which is the carriage return of an empty line.
                other => return Err(ProtocolError::ExpectedBulk(other.copied().unwrap_or(b'\r'))),
            }
            number::parse_integer(&text[1..])
        };
        let len = len
            .filter(|len| (0..=limits.bulk_len_max).contains(len))
            .ok_or(ProtocolError::InvalidBulkLength)?;
        if len > UNAUTHENTICATED_BULK_MAX && !limits.authenticated {
            return Err(ProtocolError::UnauthenticatedBulk);
        }
        Ok(Some(len as usize))
    }

    /// Consumes a length line of up to four digits that is there whole, which is what almost all are; the others are read as
    /// any other line.
    fn short_length(&mut self, mark: u8) -> Option<i64> {
        let line = self.buffer.get(self.start..)?;
        let (first, digits) = line.split_first()?;
        if *first != mark {
            return None;
        }
        let mut value = 0;
        for (at, byte) in digits.iter().take(5).enumerate() {
            match byte {
                b'0'..=b'9' => value = value * 10 + i64::from(byte - b'0'),
                // Redis' numbers have no leading zeros; the byte behind the CR is skipped unseen.
                b'\r' if at == 1 || (at > 1 && digits[0] != b'0') => {
                    digits.get(at + 1)?;
                    self.start += at + 3;
                    self.searched = 0;
                    return Some(value);
                }
                _ => return None,
            }
        }
        None
    }

    /// Consumes a line that ends in CR and one more byte; the range of its text.
    fn line(
        &mut self,
        too_big: ProtocolError,
    ) -> Result<Option<std::ops::Range<usize>>, ProtocolError> {
        let from = self.start + self.searched;
        let found = memchr::memchr(b'\r', &self.buffer[from..]).map(|at| from + at);
        match found {
            Some(end) if end + 1 < self.buffer.len() => {
                let line = self.start..end;
                self.start = end + 2;
                self.searched = 0;
                Ok(Some(line))
            }
            Some(end) => {
                self.searched = end - self.start;
                Ok(None)
            }
            None => {
                self.searched = self.buffer.len() - self.start;
                if self.searched > LINE_LEN_MAX {
                    Err(too_big)
                } else {
                    Ok(None)
                }
            }
        }
    }

    /// Reads an inline request into `partial`; its number of words.
    fn inline(&mut self) -> Result<Option<usize>, ProtocolError> {
        let from = self.start + self.searched;
        let Some(end) = memchr::memchr(b'\n', &self.buffer[from..]).map(|at| from + at) else {
            self.searched = self.buffer.len() - self.start;
            return if self.searched > LINE_LEN_MAX {
                Err(ProtocolError::TooBigInline)
            } else {
                Ok(None)
            };
        };
        let line = &self.buffer[self.start..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let words = split_words(line).ok_or(ProtocolError::UnbalancedQuotes);
        self.start = end + 1;
        self.searched = 0;
        let words = words?;
        for word in &words {
            self.partial.push(word);
        }
        Ok(Some(words.len()))
    }
}

/// Splits a line into words as Redis does for inline requests and its configuration file (sds.c, `sdssplitargs`): blanks
/// separate, double quotes with escapes, single quotes with `\'`. None if a quote is not closed or not followed by a blank.
pub fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        while let Some((first, tail)) = rest.split_first() {
            if !is_space(*first) {
                break;
            }
            rest = tail;
        }
        if rest.is_empty() || rest[0] == 0 {
            return Some(words);
        }
        let mut word = Vec::new();
        rest = take_word(rest, &mut word)?;
        words.push(word);
    }
}

fn take_word<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] | [0, ..] => return Some(rest),
            [byte, ..] if is_space(*byte) => return Some(rest),
            [b'"', tail @ ..] => return closed(double_quoted(tail, word)?),
            [b'\'', tail @ ..] => return closed(single_quoted(tail, word)?),
            [byte, tail @ ..] => {
                word.push(*byte);
                rest = tail;
            }
        }
    }
}

/// A closing quote must be followed by a blank or the end.
fn closed(rest: &[u8]) -> Option<&[u8]> {
    match rest.first() {
        None | Some(0) => Some(rest),
        Some(byte) if is_space(*byte) => Some(rest),
        Some(_) => None,
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] | [0, ..] => return None,
            [b'\\', b'x', high, low, tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex(*high) * 16 + hex(*low));
                rest = tail;
            }
            [b'\\', escaped, tail @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest = tail;
            }
            [b'"', tail @ ..] => return Some(tail),
            [byte, tail @ ..] => {
                word.push(*byte);
                rest = tail;
            }
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] | [0, ..] => return None,
            [b'\\', b'\'', tail @ ..] => {
                word.push(b'\'');
                rest = tail;
            }
            [b'\'', tail @ ..] => return Some(tail),
            [byte, tail @ ..] => {
                word.push(*byte);
                rest = tail;
            }
        }
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    }
}

/// C's `isspace` in the C locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `input` in pieces of `piece` bytes, with room lent for each, as a connection does; the requests that came out and
    /// how it ended.
    fn decode(input: &[u8], piece: usize) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
        let mut decoder = RequestDecoder::default();
        let (mut request, mut requests) = (Request::default(), Vec::new());
        for bytes in input.chunks(piece) {
            decoder.lend(Request::default());
            decoder.feed(bytes);
            loop {
                match decoder.next(&mut request, &Limits::default()) {
                    Ok(true) => requests.push(request.words().map(<[u8]>::to_vec).collect()),
                    Ok(false) => break,
                    Err(error) => return (requests, Some(error)),
                }
            }
            decoder.give_back();
        }
        (requests, None)
    }

    #[test]
    fn requests_are_the_same_in_whatever_pieces_they_arrive() {
        let input = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING \"a b\\x41\"\r\n\r\n*0\r\n*1\r\n$4\r\nPI\r\n\r\nset k 'it\\'s'\n\
            *3\r\n$0\r\n\r\n$0\r\n\r\n$1\r\na\r\n";
        let expected = decode(input, input.len());
        assert_eq!(expected.0.len(), 5);
        assert_eq!(expected.0[1], [b"PING".to_vec(), b"a bA".to_vec()]);
        assert_eq!(expected.0[2], [b"PI\r\n".to_vec()]);
        assert_eq!(expected.0[3][2], b"it's");
        assert_eq!(expected.0[4], [&b""[..], b"", b"a"]);
        for piece in 1..input.len() {
            assert_eq!(decode(input, piece), expected, "pieces of {piece}");
        }
    }

    #[test]
    fn short_lengths_are_read_as_long_ones_are() {
        let numbers = (0..=10_001).map(|number| number.to_string());
        let odd = [
            "",
            "-0",
            "-1",
            "00",
            "01",
            "+1",
            " 1",
            "1 ",
            "1a",
            "0x1",
            "99999",
            "000000001",
        ];
        for length in numbers.chain(odd.map(str::to_owned)) {
            let mut decoder = RequestDecoder::default();
            decoder.feed(format!("${length}\r\n").as_bytes());
            let short = decoder.short_length(b'$');
            let long = number::parse_integer(length.as_bytes()).filter(|_| length.len() <= 4);
            assert_eq!(short, long.filter(|len| *len >= 0), "{length:?}");
            assert_eq!(
                decoder.start,
                if short.is_some() { length.len() + 3 } else { 0 }
            );
        }
    }

    #[test]
    fn a_decoder_between_requests_holds_no_room() {
        let mut decoder = RequestDecoder::default();
        let mut request = Request::default();
        decoder.lend(Request {
            data: Vec::with_capacity(64),
            ends: SmallVec::new(),
        });
        decoder.feed(b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nEC");
        assert!(
            decoder
                .next(&mut request, &Limits::default())
                .expect("well-formed")
        );
        assert!(
            !decoder
                .next(&mut request, &Limits::default())
                .expect("well-formed")
        );
        // Half of a request is not given away.
        assert_eq!(decoder.give_back(), None);
        decoder.feed(b"HO\r\n$1\r\na\r\n");
        assert!(
            decoder
                .next(&mut request, &Limits::default())
                .expect("well-formed")
        );
        assert_eq!(request, Request::new(["ECHO", "a"]));
        assert_eq!(decoder.give_back(), Some(Request::default()));
        assert_eq!(decoder.partial.data.capacity(), 0);
    }

    #[test]
    fn malformed_requests_are_refused_with_the_servers_words() {
        let cases: [(&[u8], &str); 8] = [
            (b"*1\r\n:1\r\n", "expected '$', got ':'"),
            (b"*x\r\n", "invalid multibulk length"),
            (b"*3000000000\r\n", "invalid multibulk length"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$600000000\r\n", "invalid bulk length"),
            (b"GET \"k\r\n", "unbalanced quotes in request"),
            (b"GET \"k\"x\r\n", "unbalanced quotes in request"),
            (b"*1\r\n\r\n", "expected '$', got '\r'"),
        ];
        for (input, text) in cases {
            let (_, error) = decode(input, input.len());
            assert_eq!(
                error.map(|error| error.to_string()).as_deref(),
                Some(text),
                "{}",
                input.escape_ascii()
            );
        }
        let (_, error) = decode(&vec![b'a'; 70_000], 4096);
        assert_eq!(error, Some(ProtocolError::TooBigInline));
    }
}
