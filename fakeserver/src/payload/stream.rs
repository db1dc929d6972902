//! Streams to bytes and back (rdb.c and `t_stream.c`): nodes as listpacks, counters, consumer groups.
//!
//! A node's listpack begins with the number of its entries, the number of deleted ones, the fields of its first entry and a 0.
//! An entry is flags, its id's distance from the node's, fields and values, and the number of elements that this took.

use super::listpack::{self, Writer};
use super::read::Reader;
use super::write::{Out, length, string};
use crate::value::stream_node::Node;
use crate::value::{Blob, Entry, Group, Stream, StreamId, number};

/// The entry was deleted; the entry has the fields of the node's first one and does not repeat them.
const DELETED: i64 = 1;
const SAME_FIELDS: i64 = 2;

/// Appends a stream.
pub(super) fn write(out: &mut Out, stream: &Stream) {
    length(out, stream.nodes_len() as u64);
    for node in stream.nodes() {
        string(out, &id_bytes(node.master()));
        string(out, &node_pack(node));
    }
    length(out, stream.len() as u64);
    for id in [stream.last_id(), stream.first_id(), stream.max_deleted_id()] {
        length(out, id.ms);
        length(out, id.seq);
    }
    length(out, stream.entries_added() as u64);
    length(out, stream.groups().len() as u64);
    for (name, group) in stream.groups() {
        string(out, name);
        write_group(out, group);
    }
}

fn write_group(out: &mut Out, group: &Group) {
    length(out, group.last_id.ms);
    length(out, group.last_id.seq);
    length(out, group.entries_read.unwrap_or(-1) as u64);
    length(out, group.pending().len() as u64);
    for (id, pending) in group.pending() {
        out.extend_from_slice(&id_bytes(*id));
        out.extend_from_slice(&pending.delivered_at.to_le_bytes());
        length(out, pending.deliveries as u64);
    }
    length(out, group.consumers().len() as u64);
    for (name, consumer) in group.consumers() {
        string(out, name);
        out.extend_from_slice(&consumer.seen_at.to_le_bytes());
        length(out, consumer.pending.len() as u64);
        for id in &consumer.pending {
            out.extend_from_slice(&id_bytes(*id));
        }
    }
}

/// A node's listpack.
fn node_pack(node: &Node) -> Vec<u8> {
    let mut pack = Writer::new();
    let fields = node.fields();
    pack.push_integer(node.entries.len() as i64);
    pack.push_integer(node.deleted() as i64);
    pack.push_integer(fields.len() as i64);
    for field in fields {
        pack.push(field);
    }
    pack.push_integer(0);
    for (entry, is_deleted) in node.with_tombstones() {
        let names = entry.words.iter().step_by(2);
        let is_same = names.eq(fields);
        let deleted = if is_deleted { DELETED } else { 0 };
        pack.push_integer(if is_same { SAME_FIELDS } else { 0 } | deleted);
        let master = node.master();
        pack.push_integer(entry.id.ms.wrapping_sub(master.ms) as i64);
        pack.push_integer(entry.id.seq.wrapping_sub(master.seq) as i64);
        let len = entry.words.len() as i64 / 2;
        if is_same {
            let values = entry.words.iter().skip(1).step_by(2);
            values.for_each(|value| pack.push(value));
            pack.push_integer(len + 3);
        } else {
            pack.push_integer(len);
            entry.words.iter().for_each(|word| pack.push(word));
            pack.push_integer(2 * len + 4);
        }
    }
    pack.finish()
}

fn id_bytes(id: StreamId) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&id.ms.to_be_bytes());
    bytes[8..].copy_from_slice(&id.seq.to_be_bytes());
    bytes
}

fn id_of(bytes: &[u8]) -> Option<StreamId> {
    let (ms, seq) = bytes.split_first_chunk::<8>()?;
    Some(StreamId {
        ms: u64::from_be_bytes(*ms),
        seq: u64::from_be_bytes(seq.try_into().ok()?),
    })
}

/// Reads a stream; the older form has no counters. None if it is malformed.
pub(super) fn read(reader: &mut Reader<'_>, has_counters: bool) -> Option<Stream> {
    let mut nodes = Vec::new();
    for _ in 0..reader.length()? {
        let master = id_of(&reader.string()?)?;
        let pack = reader.string()?;
        nodes.push(read_node(master, &listpack::read(&pack)?, pack.len())?);
    }
    let len = reader.length()?;
    let last_id = read_id(reader)?;
    let (mut max_deleted_id, mut entries_added) = (StreamId::ZERO, len as i64);
    if has_counters {
        // The first id follows from the entries.
        read_id(reader)?;
        max_deleted_id = read_id(reader)?;
        entries_added = reader.length()? as i64;
    }
    let mut stream = Stream::from_nodes(nodes)?;
    if stream.len() != len {
        return None;
    }
    stream.set_last_id(last_id, Some(entries_added), Some(max_deleted_id));
    for _ in 0..reader.length()? {
        let name = reader.string()?;
        let mut group = read_group(reader, has_counters)?;
        if !has_counters {
            group.entries_read = stream.entries_up_to(group.last_id);
        }
        if stream.groups_mut().insert(name, group).is_some() {
            return None;
        }
    }
    Some(stream)
}

fn read_id(reader: &mut Reader<'_>) -> Option<StreamId> {
    Some(StreamId {
        ms: reader.length()? as u64,
        seq: reader.length()? as u64,
    })
}

fn read_group(reader: &mut Reader<'_>, has_counters: bool) -> Option<Group> {
    let last_id = read_id(reader)?;
    let entries_read = if has_counters {
        Some(reader.length()? as i64).filter(|read| *read >= 0)
    } else {
        None
    };
    let mut group = Group::new(last_id, entries_read);
    let mut delivered = std::collections::BTreeMap::new();
    for _ in 0..reader.length()? {
        let id = id_of(reader.take(16)?)?;
        let at = i64::from_le_bytes(reader.chunk()?);
        let deliveries = reader.length()? as i64;
        if delivered.insert(id, (at, deliveries)).is_some() {
            return None;
        }
    }
    for _ in 0..reader.length()? {
        let name = reader.string()?;
        if !group.see_consumer(&name, i64::from_le_bytes(reader.chunk()?)) {
            return None;
        }
        for _ in 0..reader.length()? {
            let id = id_of(reader.take(16)?)?;
            let (at, deliveries) = delivered.remove(&id)?;
            group.assign(id, &name, at, deliveries);
        }
    }
    // What was delivered was delivered to somebody.
    delivered.is_empty().then_some(group)
}

fn read_node(master: StreamId, words: &[Blob], bytes: usize) -> Option<Node> {
    let mut words = words.iter();
    let integer =
        move |words: &mut std::slice::Iter<'_, Blob>| number::parse_integer(words.next()?);
    let words = &mut words;
    let (count, deleted) = (integer(words)?, integer(words)?);
    let fields_len = usize::try_from(integer(words)?).ok()?;
    let fields: Box<[Blob]> = words.take(fields_len).cloned().collect();
    if fields.len() != fields_len || integer(words)? != 0 {
        return None;
    }
    let mut node = Node::restored(master, fields, bytes);
    while words.len() > 0 {
        let flags = integer(words)?;
        let id = StreamId {
            ms: master.ms.wrapping_add(integer(words)? as u64),
            seq: master.seq.wrapping_add(integer(words)? as u64),
        };
        let entry_words: Box<[Blob]> = if flags & SAME_FIELDS != 0 {
            let pairs = node.fields().iter().zip(&mut *words);
            pairs
                .flat_map(|(field, value)| [field.clone(), value.clone()])
                .collect()
        } else {
            let len = usize::try_from(integer(words)?).ok()?;
            words.take(len.checked_mul(2)?).cloned().collect()
        };
        integer(words)?;
        let entry = Entry {
            id,
            words: entry_words,
        };
        node.restore(entry, flags & DELETED != 0)?;
    }
    let is_right = node.entries.len() as i64 == count && node.deleted() as i64 == deleted;
    is_right.then_some(node)
}
