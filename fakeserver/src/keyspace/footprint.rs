//! How much memory values take in redis-server 7.0.15 on a 64-bit machine, with jemalloc (object.c, `objectComputeSize`).
//!
//! The sizes of its structures, and the rounding of its allocator. Only where it allocates in advance, or at random, the figures
//! differ.

use super::Value;
use crate::value::packed_len::{LISTPACK_LEN_MIN, integer_len, text_len};
use crate::value::stream::radix_nodes_of;
use crate::value::{Hash, List, Set, SortedSet, Stream, StreamId, StringValue, number};

/// Sizes of structures.
const OBJECT: usize = 16;
const DICT: usize = 56;
const DICT_ENTRY: usize = 24;
const QUICKLIST: usize = 40;
const QUICKLIST_NODE: usize = 40;
const SORTED_SET: usize = 16;
const SKIP_LIST: usize = 32;
const SKIP_LIST_HEADER: usize = 640;
/// A node of a skip list has one level at least; this is one, and the mean of all.
const SKIP_LIST_NODE: usize = 53;
const STREAM: usize = 80;
const GROUP: usize = 40;
const CONSUMER: usize = 24;
const PENDING: usize = 24;
/// Bytes that a stream's newest listpack is born with.
const STREAM_LISTPACK_RESERVED: usize = 4096;
/// Keys of a radix tree that an estimate looks at.
const RADIX_SAMPLES: usize = 512;
/// Longest string that is kept with its object.
const EMBEDDED_LEN_MAX: usize = 44;

/// Bytes that jemalloc hands out for so many: multiples of 16 up to 128, and then four sizes to each power of two.
pub(crate) fn allocated(len: usize) -> usize {
    match len {
        ..=8 => 8,
        9..=128 => len.next_multiple_of(16),
        _ => len.next_multiple_of(1 << (len - 1).ilog2().saturating_sub(2)),
    }
}

/// Bytes of a string with its head.
pub(crate) fn text_size(len: usize) -> usize {
    let head = match len {
        0 => 3,
        1..32 => 1,
        32..256 => 3,
        256..65536 => 5,
        _ => 9,
    };
    allocated(head + len + 1)
}

/// Bytes of a key and of its place in the table.
pub(crate) fn key_size(key: &[u8]) -> usize {
    DICT_ENTRY + text_size(key.len())
}

impl Value {
    /// Estimated bytes of the value, from the first `samples` elements of a large container.
    pub(crate) fn footprint(&self, samples: usize) -> usize {
        match self {
            Value::String(value) => string(value),
            Value::List(list) => OBJECT + self::list(list, samples),
            Value::Hash(hash) => OBJECT + self::hash(hash, samples),
            Value::Set(set) => OBJECT + self::set(set, samples),
            Value::SortedSet(set) => OBJECT + sorted_set(set, samples),
            Value::Stream(stream) => OBJECT + self::stream(stream, samples),
        }
    }
}

fn string(value: &StringValue) -> usize {
    match value {
        StringValue::Integer(_) => OBJECT,
        StringValue::Text(text) if text.len() <= EMBEDDED_LEN_MAX => {
            allocated(OBJECT + 4 + text.len())
        }
        value => OBJECT + text_size(value.len().max(1)),
    }
}

/// The mean of the first sizes, times the number of all.
fn sampled(sizes: impl Iterator<Item = usize>, samples: usize, len: usize) -> usize {
    let (mut bytes, mut seen) = (0, 0);
    for size in sizes.take(samples.max(1)) {
        bytes += size;
        seen += 1;
    }
    if seen == 0 {
        return 0;
    }
    (bytes as f64 / f64::from(seen) * len as f64) as usize
}

/// Bytes of a hash table without its entries.
fn table(len: usize) -> usize {
    DICT + len.next_power_of_two().max(4) * 8
}

fn list(list: &List, samples: usize) -> usize {
    let nodes = list
        .nodes()
        .map(|(node, _)| QUICKLIST_NODE + allocated(node.bytes));
    QUICKLIST + sampled(nodes, samples, list.nodes_len())
}

fn hash(hash: &Hash, samples: usize) -> usize {
    if hash.table().is_none() {
        let words = hash.iter().flat_map(|(field, value)| [field, value]);
        let bytes: usize = words.map(|word| text_len(word)).sum();
        return allocated(LISTPACK_LEN_MIN + bytes);
    }
    let entries = hash
        .iter()
        .map(|(field, value)| DICT_ENTRY + text_size(field.len()) + text_size(value.len()));
    table(hash.len()) + sampled(entries, samples, hash.len())
}

fn set(set: &Set, samples: usize) -> usize {
    if let Some(integers) = set.integers() {
        let (first, last) = (integers.first(), integers.last());
        let fits = |max: i64| {
            let range = -max - 1..=max;
            first.into_iter().chain(last).all(|end| range.contains(end))
        };
        let width = match () {
            () if fits(i64::from(i16::MAX)) => 2,
            () if fits(i64::from(i32::MAX)) => 4,
            () => 8,
        };
        return allocated(8 + width * integers.len());
    }
    let entries = set
        .iter()
        .map(|member| DICT_ENTRY + text_size(member.to_blob().len()));
    table(set.len()) + sampled(entries, samples, set.len())
}

fn sorted_set(set: &SortedSet, samples: usize) -> usize {
    if set.is_listpack() {
        let bytes: usize = set
            .iter()
            .map(|item| text_len(&item.member) + score_len(item.score))
            .sum();
        return allocated(LISTPACK_LEN_MIN + bytes);
    }
    let entries = set
        .iter()
        .map(|item| DICT_ENTRY + SKIP_LIST_NODE + text_size(item.member.len()));
    SORTED_SET
        + SKIP_LIST
        + SKIP_LIST_HEADER
        + table(set.len())
        + sampled(entries, samples, set.len())
}

fn score_len(score: f64) -> usize {
    if score.fract() == 0.0 && score.abs() < 2_f64.powi(62) {
        return integer_len(score as i64);
    }
    text_len(number::format_double(score).as_bytes())
}

/// Bytes of a radix tree (`streamRadixTreeMemoryUsage`), of a large one from its first keys.
fn radix_tree(ids: impl ExactSizeIterator<Item = StreamId>) -> usize {
    let len = ids.len();
    let nodes = radix_nodes_of(ids.take(RADIX_SAMPLES));
    let nodes = if len > RADIX_SAMPLES {
        nodes * len / RADIX_SAMPLES
    } else {
        nodes
    };
    len * 16 + nodes * 4 + nodes * 8 * 30
}

fn stream(stream: &Stream, samples: usize) -> usize {
    let nodes = stream.nodes_len();
    let mut bytes = STREAM
        + radix_tree(
            stream
                .nodes()
                .map(super::super::value::stream_node::Node::master),
        );
    // Only the last listpack keeps what it was born with.
    let sizes = stream.nodes().enumerate().map(|(at, node)| {
        let is_last = at + 1 == nodes;
        let reserved = if is_last { STREAM_LISTPACK_RESERVED } else { 0 };
        allocated(node.bytes().max(reserved))
    });
    bytes += sampled(sizes, samples, nodes);
    for group in stream.groups().values() {
        let pending = group.pending();
        bytes += GROUP + radix_tree(pending.keys().copied()) + PENDING * pending.len();
        for (name, consumer) in group.consumers() {
            bytes += CONSUMER + name.len() + radix_tree(consumer.pending.iter().copied());
        }
    }
    bytes
}
