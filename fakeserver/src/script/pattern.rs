//! Lua's patterns. Lua's own matcher can run for ever and as deep as the pattern is long; this one counts its steps against
//! the script's budget and limits its depth.

/// Most captures of a pattern.
const CAPTURES_MAX: usize = 32;
/// Nesting of pattern items beyond which a pattern is refused.
const DEPTH_MAX: usize = 1_000;

/// What a step of matching costs, in instructions of Lua.
const STEP_COST: u64 = 25;

/// Why matching ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatternError {
    /// The pattern is at fault; Lua's text.
    Malformed(&'static str),
    /// The script's budget is used up.
    Exhausted,
}

type Matched = Result<Option<usize>, PatternError>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Open,
    Position,
    Closed(usize),
}

/// What a capture caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capture<'a> {
    /// `()`: a position, counted from 1.
    Position(usize),
    Text(&'a [u8]),
}

/// A pattern at work on a text.
pub(super) struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    captures: Vec<(usize, Length)>,
    /// Steps that are left.
    pub steps: u64,
    depth: usize,
}

impl<'a> Matcher<'a> {
    /// Lua 5.1 reads a pattern up to its first zero byte.
    pub(super) fn new(text: &'a [u8], pattern: &'a [u8], steps: u64) -> Matcher<'a> {
        let end = memchr::memchr(0, pattern).unwrap_or(pattern.len());
        Matcher {
            text,
            pattern: pattern.get(..end).unwrap_or_default(),
            captures: Vec::new(),
            steps,
            depth: 0,
        }
    }

    /// Where a match that begins at `start` ends.
    pub(super) fn match_at(&mut self, start: usize) -> Matched {
        self.captures.clear();
        self.depth = 0;
        self.run(start, 0)
    }

    /// Number of values that a match yields: its captures, or the whole match.
    pub(super) fn values_len(&self) -> usize {
        self.captures.len()
    }

    /// Capture `index`, from 0; the whole match if the pattern has none.
    pub(super) fn capture(
        &self,
        index: usize,
        start: usize,
        end: usize,
    ) -> Result<Capture<'a>, PatternError> {
        match self.captures.get(index) {
            Some((from, Length::Closed(len))) => Ok(Capture::Text(
                self.text.get(*from..from + len).unwrap_or_default(),
            )),
            Some((from, Length::Position)) => Ok(Capture::Position(from + 1)),
            Some((_, Length::Open)) => Err(PatternError::Malformed("unfinished capture")),
            None if index == 0 => Ok(Capture::Text(self.text.get(start..end).unwrap_or_default())),
            None => Err(PatternError::Malformed("invalid capture index")),
        }
    }

    /// The text that is searched.
    pub(super) fn text(&self) -> &'a [u8] {
        self.text
    }

    fn at(&self, p: usize) -> u8 {
        self.pattern.get(p).copied().unwrap_or(0)
    }

    fn step(&mut self) -> Result<(), PatternError> {
        self.steps = self
            .steps
            .checked_sub(STEP_COST)
            .ok_or(PatternError::Exhausted)?;
        Ok(())
    }

    /// Matches the pattern from `p` on against the text from `s` on.
    fn run(&mut self, s: usize, p: usize) -> Matched {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(PatternError::Malformed("pattern too complex"));
        }
        let result = self.items(s, p);
        self.depth -= 1;
        result
    }

    fn items(&mut self, mut s: usize, mut p: usize) -> Matched {
        loop {
            self.step()?;
            match (self.at(p), self.at(p + 1)) {
                (0, _) => return Ok(Some(s)),
                (b'(', b')') => return self.open_capture(s, p + 2, Length::Position),
                (b'(', _) => return self.open_capture(s, p + 1, Length::Open),
                (b')', _) => return self.close_capture(s, p + 1),
                (b'%', b'b') => match self.balanced(s, p + 2)? {
                    Some(end) => (s, p) = (end, p + 4),
                    None => return Ok(None),
                },
                (b'%', b'f') => match self.frontier(s, p + 2)? {
                    Some(next) => p = next,
                    None => return Ok(None),
                },
                (b'%', digit) if digit.is_ascii_digit() => match self.back_reference(s, digit)? {
                    Some(end) => (s, p) = (end, p + 2),
                    None => return Ok(None),
                },
                (b'$', 0) => return Ok((s == self.text.len()).then_some(s)),
                _ => {
                    let end = self.class_end(p)?;
                    let hit = self.single(s, p, end);
                    match self.at(end) {
                        b'?' => {
                            if hit && let Some(found) = self.run(s + 1, end + 1)? {
                                return Ok(Some(found));
                            }
                            p = end + 1;
                        }
                        b'*' => return self.expand_most(s, p, end, 0),
                        b'+' => return self.expand_most(s, p, end, 1),
                        b'-' => return self.expand_least(s, p, end),
                        _ if hit => (s, p) = (s + 1, end),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    /// The end of the class that begins at `p`.
    fn class_end(&self, mut p: usize) -> Result<usize, PatternError> {
        let first = self.at(p);
        p += 1;
        match first {
            b'%' if self.at(p) == 0 => {
                Err(PatternError::Malformed("malformed pattern (ends with '%')"))
            }
            b'%' => Ok(p + 1),
            b'[' => {
                p += usize::from(self.at(p) == b'^');
                loop {
                    let byte = self.at(p);
                    if byte == 0 {
                        return Err(PatternError::Malformed("malformed pattern (missing ']')"));
                    }
                    p += 1;
                    if byte == b'%' && self.at(p) != 0 {
                        p += 1;
                    }
                    if self.at(p) == b']' {
                        return Ok(p + 1);
                    }
                }
            }
            _ => Ok(p),
        }
    }

    fn single(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&byte) = self.text.get(s) else {
            return false;
        };
        match self.at(p) {
            b'.' => true,
            b'%' => is_class(byte, self.at(p + 1)),
            b'[' => self.in_set(byte, p, end - 1),
            literal => literal == byte,
        }
    }

    /// Whether a byte is in the set from the `[` at `p` to the `]` at `last`.
    fn in_set(&self, byte: u8, mut p: usize, last: usize) -> bool {
        let negated = self.at(p + 1) == b'^';
        p += usize::from(negated);
        loop {
            p += 1;
            if p >= last {
                return negated;
            }
            let hit = if self.at(p) == b'%' {
                p += 1;
                is_class(byte, self.at(p))
            } else if self.at(p + 1) == b'-' && p + 2 < last {
                p += 2;
                (self.at(p - 2)..=self.at(p)).contains(&byte)
            } else {
                self.at(p) == byte
            };
            if hit {
                return !negated;
            }
        }
    }

    fn expand_most(&mut self, s: usize, p: usize, end: usize, least: usize) -> Matched {
        let mut count = 0;
        while self.single(s + count, p, end) {
            self.step()?;
            count += 1;
        }
        loop {
            if count < least {
                return Ok(None);
            }
            if let Some(found) = self.run(s + count, end + 1)? {
                return Ok(Some(found));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    fn expand_least(&mut self, mut s: usize, p: usize, end: usize) -> Matched {
        loop {
            if let Some(found) = self.run(s, end + 1)? {
                return Ok(Some(found));
            }
            if !self.single(s, p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn open_capture(&mut self, s: usize, p: usize, length: Length) -> Matched {
        if self.captures.len() >= CAPTURES_MAX {
            return Err(PatternError::Malformed("too many captures"));
        }
        self.captures.push((s, length));
        let result = self.run(s, p);
        if matches!(result, Ok(None)) {
            self.captures.pop();
        }
        result
    }

    fn close_capture(&mut self, s: usize, p: usize) -> Matched {
        let open = self
            .captures
            .iter()
            .rposition(|(_, length)| *length == Length::Open);
        let open = open.ok_or(PatternError::Malformed("invalid pattern capture"))?;
        if let Some((from, length)) = self.captures.get_mut(open) {
            *length = Length::Closed(s - *from);
        }
        let result = self.run(s, p);
        if matches!(result, Ok(None))
            && let Some((_, length)) = self.captures.get_mut(open)
        {
            *length = Length::Open;
        }
        result
    }

    fn balanced(&mut self, s: usize, p: usize) -> Matched {
        let (open, close) = (self.at(p), self.at(p + 1));
        if open == 0 || close == 0 {
            return Err(PatternError::Malformed("unbalanced pattern"));
        }
        if self.text.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1;
        let rest = self.text.get(s + 1..).unwrap_or_default();
        for (at, byte) in rest.iter().enumerate() {
            self.step()?;
            if *byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(s + at + 2));
                }
            } else if *byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%f[set]`: the border from outside of a set to inside; the pattern's position behind it.
    fn frontier(&mut self, s: usize, p: usize) -> Matched {
        if self.at(p) != b'[' {
            return Err(PatternError::Malformed("missing '[' after '%f' in pattern"));
        }
        let end = self.class_end(p)?;
        let before = s
            .checked_sub(1)
            .and_then(|at| self.text.get(at))
            .copied()
            .unwrap_or(0);
        let here = self.text.get(s).copied().unwrap_or(0);
        let border = !self.in_set(before, p, end - 1) && self.in_set(here, p, end - 1);
        Ok(border.then_some(end))
    }

    fn back_reference(&mut self, s: usize, digit: u8) -> Matched {
        let index = usize::from(digit).wrapping_sub(usize::from(b'1'));
        let Some((from, Length::Closed(len))) = self.captures.get(index).copied() else {
            // A position counts as caught, with no length that any text could have.
            return match self.captures.get(index) {
                Some((_, Length::Position)) => Ok(None),
                _ => Err(PatternError::Malformed("invalid capture index")),
            };
        };
        let caught = self.text.get(from..from + len).unwrap_or_default();
        let rest = self.text.get(s..).unwrap_or_default();
        Ok(rest.starts_with(caught).then_some(s + len))
    }
}

/// Whether a byte is in the class of a letter; an upper-case letter stands for the complement, another byte for itself.
fn is_class(byte: u8, letter: u8) -> bool {
    let hit = match letter.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return letter == byte,
    };
    hit != letter.is_ascii_uppercase()
}
