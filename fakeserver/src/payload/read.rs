//! Bytes to values (rdb.c, `rdbLoadObject`). Nothing is reserved for a length that the bytes only claim.

use super::{code, compact, listpack, lzf, stream};
use crate::config::Config;
use crate::keyspace::{Typed, Value};
use crate::value::ordered::Item;
use crate::value::sorted_set::Sizing;
use crate::value::{
    Blob, Hash, HashLimits, List, ListLimits, ListNode, Set, SetLimits, SortedSet, StringValue,
    number,
};

/// The value that the bytes start with; what follows it is not looked at, by Redis neither. None if it is malformed or empty.
pub(super) fn value(bytes: &[u8], config: &Config, seed: u64) -> Option<Value> {
    let (code, rest) = bytes.split_first()?;
    let mut reader = Reader(rest);
    let value = match *code {
        code::STRING => StringValue::from_blob(reader.string()?).into_value(),
        code::LIST => list(reader.strings(1)?, config),
        code::LIST_ZIPLIST => list(compact::read_ziplist(&reader.string()?)?, config),
        code::LIST_QUICKLIST => reader.nodes(config, Reader::ziplist_node)?,
        code::LIST_QUICKLIST_2 => reader.nodes(config, Reader::listpack_node)?,
        code::SET => set(&reader.strings(1)?, config, seed)?,
        code::SET_INTSET => {
            let integers = compact::read_intset(&reader.string()?)?;
            Set::from_integers(integers, SetLimits::of(config), seed)?.into_value()
        }
        code::SORTED_SET => scored(
            reader.scored(Reader::text_score)?,
            Sizing::new(config, seed),
        )?,
        code::SORTED_SET_2 => scored(
            reader.scored(Reader::binary_score)?,
            Sizing::new(config, seed),
        )?,
        code::SORTED_SET_ZIPLIST => {
            let words = compact::read_ziplist(&reader.string()?)?;
            packed_scored(&different(words)?, config, seed)?
        }
        code::SORTED_SET_LISTPACK => {
            packed_scored(&listpack::read(&reader.string()?)?, config, seed)?
        }
        code::HASH => hash(&reader.strings(2)?, HashLimits::of(config), seed)?,
        code::HASH_ZIPMAP => {
            let words = different(compact::read_zipmap(&reader.string()?)?)?;
            hash(&words, HashLimits::of(config), seed)?
        }
        code::HASH_ZIPLIST => {
            let words = compact::read_ziplist(&reader.string()?)?;
            packed_hash(&different(words)?, config, seed)?
        }
        code::HASH_LISTPACK => packed_hash(&listpack::read(&reader.string()?)?, config, seed)?,
        code::STREAM_LISTPACKS => stream::read(&mut reader, false)?.into_value(),
        code::STREAM_LISTPACKS_2 => stream::read(&mut reader, true)?.into_value(),
        _ => return None,
    };
    (!value.is_empty_container()).then_some(value)
}

fn list(elements: Vec<Blob>, config: &Config) -> Value {
    List::of(elements, ListLimits::of(config)).into_value()
}

/// None if a member comes twice.
fn set(members: &[Blob], config: &Config, seed: u64) -> Option<Value> {
    let set = Set::from_members(members, SetLimits::of(config), seed);
    (set.len() == members.len()).then(|| set.into_value())
}

/// The words, of which every other one is a name; none if a name comes twice, which in the forms of older servers is looked for.
fn different(words: Vec<Blob>) -> Option<Vec<Blob>> {
    let mut names: Vec<&Blob> = words.iter().step_by(2).collect();
    names.sort_unstable();
    let is_valid = names.is_sorted_by(|a, b| a < b);
    is_valid.then_some(words)
}

/// Redis keeps a packed sorted set packed whatever the length of its members, and in the order in which they come.
fn packed_scored(words: &[Blob], config: &Config, seed: u64) -> Option<Value> {
    let (pairs, []) = words.as_chunks::<2>() else {
        return None;
    };
    let items = pairs.iter().map(|[member, score]| {
        Some(Item {
            member: member.clone(),
            score: number::parse_float(score)?,
        })
    });
    let items: Vec<Item> = items.collect::<Option<_>>()?;
    let sizing = Sizing::new(config, seed);
    if items.len() <= sizing.entries_max && items.iter().all(|item| !item.score.is_nan()) {
        return Some(SortedSet::packed(items).into_value());
    }
    scored(items, sizing)
}

/// None if a member comes twice or a score is no number.
fn scored(items: Vec<Item>, sizing: Sizing) -> Option<Value> {
    let mut members: Vec<&[u8]> = items.iter().map(|item| &*item.member).collect();
    members.sort_unstable();
    let is_valid =
        members.is_sorted_by(|a, b| a < b) && items.iter().all(|item| !item.score.is_nan());
    is_valid.then(|| SortedSet::collect(items, sizing).into_value())
}

/// Redis keeps a packed hash packed whatever the length of its values.
fn packed_hash(words: &[Blob], config: &Config, seed: u64) -> Option<Value> {
    let limits = HashLimits {
        value_len_max: usize::MAX,
        ..HashLimits::of(config)
    };
    hash(words, limits, seed)
}

/// Redis takes a field that comes twice for two as long as the hash is packed. None if one comes twice in a hash table, or a
/// field has no value.
fn hash(words: &[Blob], limits: HashLimits, seed: u64) -> Option<Value> {
    let (pairs, []) = words.as_chunks::<2>() else {
        return None;
    };
    let pairs = pairs.iter().cloned().map(|[field, value]| (field, value));
    Hash::restored(pairs.collect(), limits, seed).map(Typed::into_value)
}

/// What is still to be read.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

/// A length, or the form of a string that has none.
#[derive(Clone, Copy, Debug)]
enum Length {
    Plain(usize),
    Integer(usize),
    Compressed,
}

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn length_or_form(&mut self) -> Option<Length> {
        let [first] = self.chunk()?;
        let low = usize::from(first & 0x3f);
        Some(match first {
            0..=0x3f => Length::Plain(low),
            0x40..=0x7f => {
                let [second] = self.chunk()?;
                Length::Plain(low << 8 | usize::from(second))
            }
            0x80 => Length::Plain(u32::from_be_bytes(self.chunk()?) as usize),
            0x81 => Length::Plain(usize::try_from(u64::from_be_bytes(self.chunk()?)).ok()?),
            0xc0 => Length::Integer(1),
            0xc1 => Length::Integer(2),
            0xc2 => Length::Integer(4),
            0xc3 => Length::Compressed,
            _ => return None,
        })
    }

    pub(super) fn length(&mut self) -> Option<usize> {
        match self.length_or_form()? {
            Length::Plain(len) => Some(len),
            Length::Integer(_) | Length::Compressed => None,
        }
    }

    pub(super) fn string(&mut self) -> Option<Blob> {
        match self.length_or_form()? {
            Length::Plain(len) => self.take(len).map(Blob::from),
            Length::Integer(width) => {
                let value = listpack::little_endian(self.take(width)?);
                Some(Blob::from(value.to_string()))
            }
            Length::Compressed => {
                let (compressed, len) = (self.length()?, self.length()?);
                lzf::decompress(self.take(compressed)?, len).map(Blob::from)
            }
        }
    }

    /// A number, and so many strings times `each`.
    fn strings(&mut self, each: usize) -> Option<Vec<Blob>> {
        let count = self.length()?.checked_mul(each)?;
        // Each takes at least a byte.
        if count > self.0.len() {
            return None;
        }
        (0..count).map(|_| self.string()).collect()
    }

    /// A number, and so many members with their scores, which `score` reads.
    fn scored(&mut self, score: impl Fn(&mut Self) -> Option<f64>) -> Option<Vec<Item>> {
        let mut items = Vec::new();
        for _ in 0..self.length()? {
            items.push(Item {
                member: self.string()?,
                score: score(self)?,
            });
        }
        Some(items)
    }

    fn binary_score(&mut self) -> Option<f64> {
        self.chunk().map(f64::from_le_bytes)
    }

    /// A length and so many digits; the largest three lengths are not a number and the infinities.
    fn text_score(&mut self) -> Option<f64> {
        let [len] = self.chunk()?;
        match len {
            253 => Some(f64::NAN),
            254 => Some(f64::INFINITY),
            255 => Some(f64::NEG_INFINITY),
            len => number::parse_float(self.take(usize::from(len))?),
        }
    }

    /// A quicklist, whose nodes `node` reads; they stay as they are. Empty ones are skipped.
    fn nodes(
        &mut self,
        config: &Config,
        node: impl Fn(&mut Self) -> Option<(ListNode, Vec<Blob>)>,
    ) -> Option<Value> {
        let mut list = List::new(ListLimits::of(config));
        for _ in 0..self.length()? {
            let (node, elements) = node(self)?;
            if node.len > 0 {
                list.append_node(elements, node);
            }
        }
        Some(list.into_value())
    }

    fn ziplist_node(&mut self) -> Option<(ListNode, Vec<Blob>)> {
        let elements = compact::read_ziplist(&self.string()?)?;
        Some((ListNode::packed(&elements), elements))
    }

    fn listpack_node(&mut self) -> Option<(ListNode, Vec<Blob>)> {
        let is_plain = match self.length()? {
            1 => true,
            2 => false,
            _ => return None,
        };
        let node = self.string()?;
        if is_plain {
            return (!node.is_empty()).then(|| (ListNode::plain(&node), vec![node]));
        }
        let elements = listpack::read(&node)?;
        Some((ListNode::packed(&elements), elements))
    }
}
