//! The slow log: the last commands that took at least `slowlog-log-slower-than` microseconds.
//!
//! Time stands still while a command runs here, so every duration but that of a sleep is 0.

use std::collections::VecDeque;

use crate::clock::Timestamp;
use crate::value::Blob;
use crate::wire::Request;

/// Arguments kept of one request, and bytes of one argument, as Redis cuts them.
const ARGUMENTS_MAX: usize = 32;
const ARGUMENT_LEN_MAX: usize = 128;

/// A logged command.
#[derive(Clone, Debug)]
pub(crate) struct SlowEntry {
    pub id: i64,
    pub at: Timestamp,
    /// How long it took, in microseconds.
    pub micros: i64,
    pub words: Vec<Blob>,
    pub address: Box<str>,
    pub name: Blob,
}

/// Logged commands, the latest first.
#[derive(Debug, Default)]
pub(crate) struct SlowLog {
    entries: VecDeque<SlowEntry>,
    next_id: i64,
}

impl SlowLog {
    /// Logs a request, and forgets the oldest beyond `len_max`.
    pub(crate) fn push(
        &mut self,
        request: &Request,
        client: (&str, &Blob),
        (at, micros): (Timestamp, i64),
        len_max: usize,
    ) {
        let (address, name) = client;
        self.entries.push_front(SlowEntry {
            id: self.next_id,
            at,
            micros,
            words: shorten(request),
            address: address.into(),
            name: name.clone(),
        });
        self.next_id += 1;
        self.entries.truncate(len_max);
    }

    /// The latest entries first.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = &SlowEntry> {
        self.entries.iter()
    }

    /// Forgets all entries; the numbering goes on.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

fn shorten(request: &Request) -> Vec<Blob> {
    let len = request.len();
    let kept = if len > ARGUMENTS_MAX {
        ARGUMENTS_MAX - 1
    } else {
        len
    };
    let mut words: Vec<_> = request.words().take(kept).map(shorten_word).collect();
    if kept < len {
        words.push(Blob::from(format!("... ({} more arguments)", len - kept)));
    }
    words
}

fn shorten_word(word: &[u8]) -> Blob {
    let Some(more) = word
        .len()
        .checked_sub(ARGUMENT_LEN_MAX)
        .filter(|more| *more > 0)
    else {
        return Blob::from(word);
    };
    let mut cut = word.get(..ARGUMENT_LEN_MAX).unwrap_or(word).to_vec();
    cut.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
    Blob::from(cut)
}
