//! [`Stream`]: the value of a stream key.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use super::stream_node::Node;
use super::{Blob, Entry, Group, NodeLimits, StreamId};

/// The value of a stream key: entries in the order of their ids, and consumer groups.
#[derive(Clone, Default)]
pub struct Stream {
    nodes: VecDeque<Node>,
    len: usize,
    last_id: StreamId,
    max_deleted_id: StreamId,
    entries_added: i64,
    groups: BTreeMap<Blob, Group>,
}

impl fmt::Debug for Stream {
    /// A trim may remove a node that has nothing but tombstones, which is no change of the key; so nodes are not told here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("entries", &self.iter().collect::<Vec<_>>())
            .field("last_id", &self.last_id)
            .field("max_deleted_id", &self.max_deleted_id)
            .field("entries_added", &self.entries_added)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
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
    /// Drops at most so many nodes of a stream that nobody looks at any more; how many, none if it is best dropped as a whole.
    pub(crate) fn shed(&mut self, most: usize) -> usize {
        let kept = self.nodes.len().saturating_sub(most);
        self.nodes.drain(kept..).len()
    }

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

    /// The nodes, for a payload.
    pub(crate) fn nodes(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.nodes.iter()
    }

    /// Number of nodes that the radix tree over the nodes' ids has.
    pub fn radix_nodes_len(&self) -> usize {
        radix_nodes_of(self.nodes.iter().map(|node| node.master))
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

/// Nodes of a compressed radix tree over ids in ascending order.
pub(crate) fn radix_nodes_of(ids: impl Iterator<Item = StreamId>) -> usize {
    let key = |id: StreamId| {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&id.ms.to_be_bytes());
        key[8..].copy_from_slice(&id.seq.to_be_bytes());
        key
    };
    let keys: Vec<[u8; 16]> = ids.map(key).collect();
    radix_nodes_len(&keys, 0)
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

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: NodeLimits = NodeLimits {
        bytes_max: 4096,
        entries_max: 5,
    };

    fn id(ms: u64) -> StreamId {
        StreamId { ms, seq: 1 }
    }

    fn entry(ms: u64) -> Entry {
        let words = [Blob::from("field"), Blob::from(ms.to_string())];
        Entry {
            id: id(ms),
            words: words.into(),
        }
    }

    fn stream(ids: impl IntoIterator<Item = u64>) -> Stream {
        let mut stream = Stream::default();
        ids.into_iter().for_each(|ms| stream.add(entry(ms), LIMITS));
        stream
    }

    #[test]
    fn it_agrees_with_a_sorted_map_whatever_is_added_deleted_and_trimmed() {
        for seed in 0..20 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let (mut stream, mut model) = (Stream::default(), BTreeMap::new());
            for ms in 1..600 {
                stream.add(entry(ms), LIMITS);
                model.insert(id(ms), entry(ms));
                if rng.u8(0..3) == 0 {
                    let gone = id(rng.u64(1..=ms));
                    assert_eq!(stream.delete(gone), model.remove(&gone).is_some());
                }
                if rng.u8(0..40) == 0 {
                    let keep = rng.usize(0..=model.len());
                    let to = if rng.bool() {
                        TrimTo::Len(keep)
                    } else {
                        TrimTo::Id(id(rng.u64(1..=ms)))
                    };
                    let before = model.len();
                    match to {
                        TrimTo::Len(keep) => {
                            while model.len() > keep {
                                model.pop_first();
                            }
                        }
                        TrimTo::Id(id) => model = model.split_off(&id),
                    }
                    let trim = Trim {
                        to,
                        is_approximate: false,
                        limit: 0,
                    };
                    assert_eq!(stream.trim(trim), before - model.len());
                }
                assert_eq!(stream.len(), model.len());
                let (start, end) = (id(rng.u64(0..=ms)), id(rng.u64(0..=ms)));
                let (start, end) = (start.min(end), start.max(end));
                assert!(
                    stream
                        .range(start, end)
                        .eq(model.range(start..=end).map(|(_, entry)| entry))
                );
                assert!(stream.iter().rev().eq(model.values().rev()));
                assert_eq!(stream.get(start), model.get(&start));
            }
        }
    }

    #[test]
    fn an_approximate_trim_removes_whole_nodes_within_its_limit() {
        let trim = |to, limit| Trim {
            to,
            is_approximate: true,
            limit,
        };
        let mut stream = stream(1..=18);
        assert_eq!(stream.nodes_len(), 4);
        assert_eq!(stream.trim(trim(TrimTo::Len(14), 0)), 0);
        assert_eq!(stream.trim(trim(TrimTo::Len(13), 0)), 5);
        assert_eq!(stream.trim(trim(TrimTo::Id(id(17)), 4)), 0);
        assert_eq!(stream.trim(trim(TrimTo::Id(id(17)), 9)), 5);
        assert_eq!(stream.trim(trim(TrimTo::Id(id(17)), 0)), 5);
        assert_eq!(stream.first_id(), id(16));
    }

    #[test]
    fn a_node_is_full_by_its_bytes_too() {
        // Recorded from redis-server 7.0.15 with `stream-node-max-bytes` at 100: nodes begin at these entries.
        let limits = NodeLimits {
            bytes_max: 100,
            entries_max: 100,
        };
        let mut stream = Stream::default();
        let long = "x".repeat(40);
        let entries = [
            (1, "a", &*long),
            (2, "a", &*long),
            (3, "a", "1"),
            (4, "a", "1"),
            (5, "b", "1234567890"),
            (256, "b", &*long),
        ];
        for (ms, field, value) in entries {
            let words = [Blob::from(field), Blob::from(value)].into();
            stream.add(Entry { id: id(ms), words }, limits);
        }
        let masters: Vec<_> = stream.nodes().map(|node| node.master.ms).collect();
        assert_eq!(masters, [1, 2, 256]);
        assert_eq!(stream.radix_nodes_len(), 9);
    }

    #[test]
    fn the_radix_tree_is_counted_as_redis_builds_it() {
        let of = |ids: &[u64]| {
            let limits = NodeLimits {
                bytes_max: 1,
                entries_max: 1,
            };
            let mut stream = Stream::default();
            for ms in ids {
                stream.add(entry(*ms), limits);
            }
            stream.radix_nodes_len()
        };
        assert_eq!(of(&[]), 1);
        assert_eq!(of(&[1]), 2);
        // A chain, a fork, two chains and two ends.
        assert_eq!(of(&[1, 2]), 6);
        assert_eq!(of(&[1, 2, 300]), 9);
    }

    #[test]
    fn a_groups_lag_is_unknown_behind_a_tombstone() {
        let mut stream = stream(1..=6);
        let mut group = Group::new(StreamId::ZERO, None);
        assert_eq!(stream.lag(&group), Some(6));
        group = Group::new(id(2), Some(2));
        assert_eq!(stream.lag(&group), Some(4));
        stream.delete(id(4));
        assert_eq!(stream.lag(&group), None);
        stream.delete(id(1));
        stream.delete(id(2));
        stream.delete(id(3));
        assert_eq!(stream.lag(&group), Some(4));
        assert_eq!(stream.entries_up_to(id(6)), Some(6));
        assert_eq!(stream.entries_up_to(id(7)), None);
    }
}
