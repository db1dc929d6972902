//! Values to bytes (rdb.c, `rdbSaveObject`).

use super::listpack::Writer;
use super::lzf::Compressor;
use super::{code, compact, stream};
use crate::keyspace::Value;
use crate::value::{Hash, List, Set, SortedSet, StringValue, number};

/// Longest string that is looked at as the spelling of an integer.
const INTEGER_LEN_MAX: usize = 11;

/// Longer strings are compressed, if that saves at least so many bytes.
const UNCOMPRESSED_LEN_MAX: usize = 20;
const SAVING_MIN: usize = 4;

/// The containers of a quicklist's nodes.
const NODE_PLAIN: u64 = 1;
const NODE_PACKED: u64 = 2;

/// A payload that is written.
#[derive(Debug)]
pub(super) struct Out {
    pub(super) bytes: Vec<u8>,
    /// Unless strings are written as they are (`rdbcompression`).
    compressor: Option<Compressor>,
}

/// Whether long strings are compressed (`rdbcompression`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Where it saves something.
    On,
    /// They are written as they are.
    Off,
}

impl Out {
    pub(super) fn new(compression: Compression) -> Out {
        Out {
            bytes: Vec::new(),
            compressor: (compression == Compression::On).then(Compressor::default),
        }
    }

    pub(super) fn push(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(super) fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

/// Appends the type's code and the value.
pub(super) fn value(out: &mut Out, value: &Value) {
    match value {
        Value::String(value) => string_value(out, value),
        Value::List(value) => list(out, value),
        Value::Hash(value) => hash(out, value),
        Value::Set(value) => set(out, value),
        Value::SortedSet(value) => sorted_set(out, value),
        Value::Stream(value) => {
            out.push(code::STREAM_LISTPACKS_2);
            stream::write(out, value);
        }
    }
}

fn string_value(out: &mut Out, value: &StringValue) {
    out.push(code::STRING);
    string(out, &value.bytes());
}

fn list(out: &mut Out, list: &List) {
    out.push(code::LIST_QUICKLIST_2);
    length(out, list.nodes_len() as u64);
    for (node, mut elements) in list.nodes() {
        if node.is_plain {
            length(out, NODE_PLAIN);
            string(out, elements.next().map_or(&[], |element| element));
            continue;
        }
        let mut pack = Writer::new();
        elements.for_each(|element| pack.push(element));
        length(out, NODE_PACKED);
        string(out, &pack.finish());
    }
}

fn hash(out: &mut Out, hash: &Hash) {
    if hash.table().is_some() {
        out.push(code::HASH);
        length(out, hash.len() as u64);
        for (field, value) in hash.iter() {
            string(out, field);
            string(out, value);
        }
        return;
    }
    out.push(code::HASH_LISTPACK);
    let mut pack = Writer::new();
    for (field, value) in hash.iter() {
        pack.push(field);
        pack.push(value);
    }
    string(out, &pack.finish());
}

fn set(out: &mut Out, set: &Set) {
    if let Some(integers) = set.integers() {
        out.push(code::SET_INTSET);
        string(out, &compact::write_intset(integers));
        return;
    }
    out.push(code::SET);
    length(out, set.len() as u64);
    for member in set.iter() {
        string(out, &member.to_blob());
    }
}

fn sorted_set(out: &mut Out, set: &SortedSet) {
    if !set.is_listpack() {
        out.push(code::SORTED_SET_2);
        length(out, set.len() as u64);
        // The last one first: a reader that inserts at the front of its list is faster so.
        for item in set.iter().rev() {
            string(out, &item.member);
            out.extend_from_slice(&item.score.to_le_bytes());
        }
        return;
    }
    out.push(code::SORTED_SET_LISTPACK);
    let mut pack = Writer::new();
    for item in set {
        pack.push(&item.member);
        match integer_score(item.score) {
            Some(score) => pack.push_integer(score),
            None => pack.push(number::format_double(item.score).as_bytes()),
        }
    }
    string(out, &pack.finish());
}

/// The score, if it is an integer that is small enough to be stored as one.
fn integer_score(score: f64) -> Option<i64> {
    let bound = 2_f64.powi(62);
    ((-bound..=bound).contains(&score) && score.fract() == 0.0).then_some(score as i64)
}

/// A string; a short spelling of an integer of at most 32 bits as that integer, a long one compressed.
pub(super) fn string(out: &mut Out, bytes: &[u8]) {
    let integer = (bytes.len() <= INTEGER_LEN_MAX)
        .then(|| number::parse_integer(bytes))
        .flatten()
        .and_then(|value| i32::try_from(value).ok());
    let Some(value) = integer else {
        if !compressed(out, bytes) {
            length(out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
        return;
    };
    let (mark, width) = match value {
        -0x80..=0x7f => (0xc0, 1),
        -0x8000..=0x7fff => (0xc1, 2),
        _ => (0xc2, 4),
    };
    out.push(mark);
    out.bytes
        .extend(value.to_le_bytes().into_iter().take(width));
}

/// Writes a long string compressed, if that saves something; whether it did.
fn compressed(out: &mut Out, bytes: &[u8]) -> bool {
    let Some(compressor) = &mut out.compressor else {
        return false;
    };
    if bytes.len() <= UNCOMPRESSED_LEN_MAX {
        return false;
    }
    let Some(packed) = compressor.compress(bytes, bytes.len() - SAVING_MIN) else {
        return false;
    };
    out.push(0xc3);
    length(out, packed.len() as u64);
    length(out, bytes.len() as u64);
    out.extend_from_slice(&packed);
    true
}

/// A length, in one byte up to 6 bits, in two up to 14, else behind a mark in four or eight.
pub(super) fn length(out: &mut Out, len: u64) {
    if len < 0x40 {
        out.push(len as u8);
    } else if len < 0x4000 {
        out.extend_from_slice(&(0x4000 | len as u16).to_be_bytes());
    } else if let Ok(len) = u32::try_from(len) {
        out.push(0x80);
        out.extend_from_slice(&len.to_be_bytes());
    } else {
        out.push(0x81);
        out.extend_from_slice(&len.to_be_bytes());
    }
}
