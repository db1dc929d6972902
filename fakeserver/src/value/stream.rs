//! [`Stream`]: the value of a stream key.

use std::collections::{BTreeMap, VecDeque};

use super::stream_node::Node;
use super::{Blob, Entry, Group, NodeLimits, StreamId};

/// The value of a stream key: entries in the order of their ids, and consumer groups.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    nodes: VecDeque<Node>,
    len: usize,
    last_id: StreamId,
    max_deleted_id: StreamId,
    entries_added: i64,
    groups: BTreeMap<Blob, Group>,
}

/// Which entries a trim removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimTo {
    /// The first ones, until so many are left.
    Len(usize),
    /// Those with a lower id.
    Id(StreamId),
}

/// A trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// What is to be removed.
    pub to: TrimTo,
    /// Whether only whole nodes are removed.
    pub is_approximate: bool,
    /// Most entries that are removed; 0 for no bound.
    pub limit: usize,
}

impl Stream {
    /// A stream of these nodes; none if they are not in order.
    pub(crate) fn from_nodes(nodes: Vec<Node>) -> Option<Stream> {
        let is_ordered = nodes.windows(2).all(|two| two[0].last < two[1].master);
        is_ordered.then(|| Stream {
            len: nodes.iter().map(|node| node.entries.len()).sum(),
            nodes: nodes.into(),
            ..Stream::default()
        })
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The highest id that was ever added, or what XSETID made of it.
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// The highest id that was ever deleted by XDEL.
    pub fn max_deleted_id(&self) -> StreamId {
        self.max_deleted_id
    }

    /// Number of entries that were ever added.
    pub fn entries_added(&self) -> i64 {
        self.entries_added
    }

    /// Sets the highest id; with `None` the other two stay as they are.
    pub fn set_last_id(
        &mut self,
        last_id: StreamId,
        entries_added: Option<i64>,
        max_deleted_id: Option<StreamId>,
    ) {
        self.last_id = last_id;
        self.entries_added = entries_added.unwrap_or(self.entries_added);
        self.max_deleted_id = max_deleted_id.unwrap_or(self.max_deleted_id);
    }

    /// The first entry.
    pub fn first(&self) -> Option<&Entry> {
        self.iter().next()
    }

    /// The last entry.
    pub fn last(&self) -> Option<&Entry> {
        self.iter().next_back()
    }

    /// The id of the first entry; zero if there is none.
    pub fn first_id(&self) -> StreamId {
        self.first().map_or(StreamId::ZERO, |entry| entry.id)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.nodes.iter().flat_map(|node| node.entries.iter())
    }

    /// The entries with ids from `start` to `end`, both included.
    pub fn range(&self, start: StreamId, end: StreamId) -> impl DoubleEndedIterator<Item = &Entry> {
        let first = self.nodes.partition_point(|node| node.last < start);
        let behind = self.nodes.partition_point(|node| node.master <= end);
        let nodes = self.nodes.range(first..behind.max(first));
        nodes.flat_map(move |node| {
            let first = node.entries.partition_point(|entry| entry.id < start);
            let behind = node.entries.partition_point(|entry| entry.id <= end);
            node.entries.range(first..behind.max(first))
        })
    }

    /// The entry of an id.
    pub fn get(&self, id: StreamId) -> Option<&Entry> {
        let (node, at) = self.place(id)?;
        self.nodes[node].entries.get(at)
    }

    /// The node of an id, and the entry's place in it.
    fn place(&self, id: StreamId) -> Option<(usize, usize)> {
        let node = self.nodes.partition_point(|node| node.master <= id);
        let node = node.checked_sub(1)?;
        let entries = &self.nodes[node].entries;
        let at = entries.binary_search_by_key(&id, |entry| entry.id).ok()?;
        Some((node, at))
    }

    /// Appends an entry, whose id must be higher than the last one.
    pub fn add(&mut self, entry: Entry, limits: NodeLimits) {
        debug_assert!(entry.id > self.last_id, "ids only grow");
        self.last_id = entry.id;
        self.entries_added = self.entries_added.wrapping_add(1);
        self.len += 1;
        match self.nodes.back_mut() {
            Some(node) if !node.is_full_for(&entry.words, limits) => node.push(entry),
            _ => self.nodes.push_back(Node::new(entry)),
        }
    }

    /// Removes an entry; whether it was there.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let Some((node, at)) = self.place(id) else {
            return false;
        };
        if self.nodes[node].entries.len() == 1 {
            self.nodes.remove(node);
        } else {
            self.nodes[node].remove(at);
        }
        self.len -= 1;
        self.max_deleted_id = self.max_deleted_id.max(id);
        true
    }

    /// Removes entries from the front; how many (`t_stream.c`, `streamTrim`).
    pub fn trim(&mut self, trim: Trim) -> usize {
        let mut removed = 0;
        while let Some(node) = self.nodes.front_mut() {
            let len = node.entries.len();
            if matches!(trim.to, TrimTo::Len(keep) if self.len <= keep)
                || (trim.limit > 0 && removed + len > trim.limit)
            {
                break;
            }
            let is_whole = match trim.to {
                TrimTo::Len(keep) => self.len - len >= keep,
                TrimTo::Id(id) => node.last < id,
            };
            if is_whole {
                self.nodes.pop_front();
                self.len -= len;
                removed += len;
                continue;
            }
            if trim.is_approximate {
                break;
            }
            let is_superfluous = |entry: &Entry, len: usize| match trim.to {
                TrimTo::Len(keep) => len > keep,
                TrimTo::Id(id) => entry.id < id,
            };
            while let Some(entry) = node.entries.front()
                && is_superfluous(entry, self.len)
            {
                node.pop_front();
                self.len -= 1;
                removed += 1;
            }
            break;
        }
        removed
    }

    /// Number of nodes.
    pub fn nodes_len(&self) -> usize {
        self.nodes.len()
    }

    /// The entries node by node, for a payload.
    pub fn nodes(&self) -> impl Iterator<Item = (StreamId, &VecDeque<Entry>)> {
        self.nodes.iter().map(|node| (node.master, &node.entries))
    }

    /// Number of nodes that the radix tree over the nodes' ids has.
    pub fn radix_nodes_len(&self) -> usize {
        let key = |node: &Node| {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&node.master.ms.to_be_bytes());
            key[8..].copy_from_slice(&node.master.seq.to_be_bytes());
            key
        };
        let keys: Vec<[u8; 16]> = self.nodes.iter().map(key).collect();
        radix_nodes_len(&keys, 0)
    }

    /// The consumer groups by name.
    pub fn groups(&self) -> &BTreeMap<Blob, Group> {
        &self.groups
    }

    /// The consumer groups by name, to change.
    pub fn groups_mut(&mut self) -> &mut BTreeMap<Blob, Group> {
        &mut self.groups
    }

    /// Whether an entry from `start` on may have been deleted, so that counting from there on could be wrong. What was deleted
    /// in front of all that is left does no harm.
    pub fn has_tombstones_from(&self, start: StreamId) -> bool {
        self.len > 0
            && self.max_deleted_id != StreamId::ZERO
            && self.first_id() <= self.max_deleted_id
            && start <= self.max_deleted_id
    }

    /// How many entries were ever added up to an id, where that can be told (`t_stream.c`,
    /// `streamEstimateDistanceFromFirstEverEntry`).
    pub fn entries_up_to(&self, id: StreamId) -> Option<i64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if (self.len == 0 && id <= self.last_id) || id == self.last_id {
            return Some(self.entries_added);
        }
        if id > self.last_id {
            return None;
        }
        let first_id = self.first_id();
        let is_whole = self.max_deleted_id == StreamId::ZERO || self.max_deleted_id < first_id;
        let before = self.entries_added.wrapping_sub(self.len as i64);
        match id.cmp(&first_id) {
            std::cmp::Ordering::Less if is_whole => Some(before),
            std::cmp::Ordering::Equal if is_whole => Some(before.wrapping_add(1)),
            _ => None,
        }
    }

    /// How many entries a group has yet to read, where that can be told.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        let read = match group.entries_read {
            Some(read) if !self.has_tombstones_from(group.last_id) => Some(read),
            _ => self.entries_up_to(group.last_id),
        };
        read.map(|read| self.entries_added.wrapping_sub(read))
    }
}

/// Nodes of a compressed radix tree over sorted keys of one length that agree in their first `depth` bytes.
fn radix_nodes_len(keys: &[[u8; 16]], depth: usize) -> usize {
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
        return 1;
    };
    let common = (depth..first.len())
        .take_while(|at| first[*at] == last[*at])
        .count();
    let fork = depth + common;
    let chain = usize::from(common > 0);
    if fork == first.len() {
        return chain + 1;
    }
    let children = keys.chunk_by(|one, other| one[fork] == other[fork]);
    let below: usize = children.map(|keys| radix_nodes_len(keys, fork + 1)).sum();
    chain + 1 + below
}
