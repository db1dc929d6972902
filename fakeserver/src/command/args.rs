//! [`Args`]: a cursor over a request's arguments.

use crate::error::CommandError;
use crate::value::number;
use crate::wire::Request;

/// The arguments that are still to be read, in order.
#[derive(Clone, Debug)]
pub(crate) struct Args<'a> {
    request: &'a Request,
    at: usize,
}

impl<'a> Args<'a> {
    pub(crate) fn new(request: &'a Request, at: usize) -> Args<'a> {
        Args { request, at }
    }

    /// The next argument; a missing one is a syntax error, since the arity was checked before.
    pub(crate) fn next(&mut self) -> Result<&'a [u8], CommandError> {
        let word = self.request.get(self.at).ok_or(CommandError::Syntax)?;
        self.at += 1;
        Ok(word)
    }

    /// The next argument, if there is one.
    pub(crate) fn next_if_any(&mut self) -> Option<&'a [u8]> {
        self.next().ok()
    }

    /// The next argument, not consumed.
    pub(crate) fn peek(&self) -> Option<&'a [u8]> {
        self.request.get(self.at)
    }

    /// The next argument as an integer.
    pub(crate) fn integer(&mut self) -> Result<i64, CommandError> {
        number::parse_integer(self.next()?).ok_or(CommandError::NotAnInteger)
    }

    /// The next argument as a double, as scores and increments are read.
    pub(crate) fn float(&mut self) -> Result<f64, CommandError> {
        number::parse_float(self.next()?).ok_or(CommandError::NotAFloat)
    }

    /// Consumes the next argument if it is this word, in any case.
    pub(crate) fn keyword(&mut self, word: &str) -> bool {
        let hit = self
            .peek()
            .is_some_and(|next| next.eq_ignore_ascii_case(word.as_bytes()));
        self.at += usize::from(hit);
        hit
    }

    /// Number of arguments still to be read.
    pub(crate) fn len(&self) -> usize {
        self.request.len().saturating_sub(self.at)
    }

    /// Whether all arguments have been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All arguments still to be read, in order.
    pub(crate) fn rest(self) -> impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator {
        let request = self.request;
        (self.at.min(request.len())..request.len())
            .map(move |at| request.get(at).unwrap_or_default())
    }

    /// Arguments left over are a syntax error.
    pub(crate) fn finish(self) -> Result<(), CommandError> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(CommandError::Syntax)
        }
    }
}
