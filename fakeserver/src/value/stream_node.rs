//! `Node`: a run of a stream's entries that Redis keeps in one listpack.
//!
//! Where a node ends can be seen from outside: an approximate trim removes whole nodes, and `XINFO STREAM` counts them. So each
//! node knows how many bytes its listpack would have, tombstones of deleted entries included.

use std::collections::VecDeque;

use super::packed_len::{LISTPACK_LEN_MIN, integer_len, text_len};
use super::{Blob, StreamId};

/// Most bytes of a node where `stream-node-max-bytes` sets no bound.
const NODE_BYTES_MAX: usize = 1 << 30;

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the stream.
    pub id: StreamId,
    /// Fields and values in turn.
    pub words: Box<[Blob]>,
}

/// How large a node may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLimits {
    /// `stream-node-max-bytes`; 0 for the most there can be.
    pub bytes_max: usize,
    /// `stream-node-max-entries`; 0 for no bound.
    pub entries_max: usize,
}

/// A run of entries.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Id of the first entry that the node ever had.
    pub(super) master: StreamId,
    /// Id of the last entry that the node ever had.
    pub(super) last: StreamId,
    pub(crate) entries: VecDeque<Entry>,
    /// Fields of the node's first entry; others with the same ones do not repeat them.
    fields: Box<[Blob]>,
    /// Deleted entries, which stay in the listpack, in the order of their ids.
    tombstones: VecDeque<Entry>,
    bytes: usize,
}

impl Node {
    pub(super) fn new(entry: Entry) -> Node {
        let fields: Box<[Blob]> = entry.words.iter().step_by(2).cloned().collect();
        let mut node = Node {
            master: entry.id,
            last: entry.id,
            entries: VecDeque::new(),
            bytes: LISTPACK_LEN_MIN
                + integer_len(0) * 3
                + integer_len(fields.len() as i64)
                + fields.iter().map(|text| text_len(text)).sum::<usize>(),
            fields,
            tombstones: VecDeque::new(),
        };
        node.push(entry);
        node
    }

    /// A node without entries, of a listpack of so many bytes, to be filled with [`Node::restore`].
    pub(crate) fn restored(master: StreamId, fields: Box<[Blob]>, bytes: usize) -> Node {
        Node {
            master,
            last: master,
            entries: VecDeque::new(),
            fields,
            tombstones: VecDeque::new(),
            bytes,
        }
    }

    /// Puts the next entry back, or its tombstone; none if it is out of order.
    pub(crate) fn restore(&mut self, entry: Entry, is_deleted: bool) -> Option<()> {
        let is_first = self.entries.is_empty() && self.tombstones.is_empty();
        if entry.id < self.last || (entry.id == self.last && !is_first) {
            return None;
        }
        self.last = entry.id;
        if is_deleted {
            self.tombstones.push_back(entry);
        } else {
            self.entries.push_back(entry);
        }
        Some(())
    }

    /// Id of the first entry that the node ever had.
    pub(crate) fn master(&self) -> StreamId {
        self.master
    }

    /// All that the listpack holds in the order of ids, and whether it is a tombstone.
    pub(crate) fn with_tombstones(&self) -> impl Iterator<Item = (&Entry, bool)> {
        let (mut entries, mut tombstones) = (
            self.entries.iter().peekable(),
            self.tombstones.iter().peekable(),
        );
        std::iter::from_fn(move || {
            let is_deleted = match (entries.peek(), tombstones.peek()) {
                (Some(entry), Some(tombstone)) => tombstone.id < entry.id,
                (entry, _) => entry.is_none(),
            };
            let next = if is_deleted {
                tombstones.next()
            } else {
                entries.next()
            };
            next.map(|entry| (entry, is_deleted))
        })
    }

    /// The fields of the node's first entry.
    pub(crate) fn fields(&self) -> &[Blob] {
        &self.fields
    }

    /// Bytes of the listpack.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of tombstones.
    pub(crate) fn deleted(&self) -> usize {
        self.tombstones.len()
    }

    /// Whether an entry with these words is to open a new node.
    pub(super) fn is_full_for(&self, words: &[Blob], limits: NodeLimits) -> bool {
        let bytes_max = match limits.bytes_max {
            1..NODE_BYTES_MAX => limits.bytes_max,
            _ => NODE_BYTES_MAX,
        };
        let len: usize = words.iter().map(|word| word.len()).sum();
        self.bytes + len >= bytes_max
            || (limits.entries_max > 0
                && self.entries.len() + self.tombstones.len() >= limits.entries_max)
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.bytes += self.entry_len(&entry);
        self.last = entry.id;
        self.set_counts(|node| node.entries.push_back(entry));
    }

    /// Removes the first entry, which leaves a tombstone; whether there was one.
    pub(super) fn pop_front(&mut self) -> bool {
        !self.entries.is_empty() && self.remove(0)
    }

    /// Removes the entry at a place, which leaves a tombstone; whether there was one.
    pub(super) fn remove(&mut self, at: usize) -> bool {
        let mut is_removed = false;
        self.set_counts(|node| {
            if let Some(entry) = node.entries.remove(at) {
                let place = node.tombstones.partition_point(|other| other.id < entry.id);
                node.tombstones.insert(place, entry);
                is_removed = true;
            }
        });
        is_removed
    }

    /// Changes the entries, and with them the two counts at the listpack's head, whose length depends on their value.
    fn set_counts(&mut self, change: impl FnOnce(&mut Node)) {
        let counts_len = |node: &Node| {
            integer_len(node.entries.len() as i64) + integer_len(node.tombstones.len() as i64)
        };
        let before = counts_len(self);
        change(self);
        self.bytes = self.bytes + counts_len(self) - before;
    }

    fn entry_len(&self, entry: &Entry) -> usize {
        let names = entry.words.iter().step_by(2);
        let count = entry.words.len() as i64 / 2;
        let is_same = names.clone().eq(self.fields.iter());
        let own_fields = if is_same {
            integer_len(count + 3)
        } else {
            let names: usize = names.map(|text| text_len(text)).sum();
            names + integer_len(count) + integer_len(2 * count + 4)
        };
        let values: usize = entry
            .words
            .iter()
            .skip(1)
            .step_by(2)
            .map(|text| text_len(text))
            .sum();
        let ms = entry.id.ms.wrapping_sub(self.master.ms) as i64;
        let seq = entry.id.seq.wrapping_sub(self.master.seq) as i64;
        // The flags are a small integer whatever they say.
        integer_len(0) + integer_len(ms) + integer_len(seq) + own_fields + values
    }
}
