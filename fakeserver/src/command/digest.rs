//! DEBUG DIGEST and DEBUG DIGEST-VALUE: hashes of the data that do not depend on the order in which it lies (debug.c,
//! `computeDatasetDigest`), equal to redis-server's for equal data.

use sha1::{Digest as _, Sha1};

use super::{CommandResult, ControlCall, Words};
use crate::keyspace::{DbIndex, Entry, Value};
use crate::value::number;
use crate::wire::Reply;

/// A hash under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Digest([u8; 20]);

impl Digest {
    /// Takes in a part whose place among the other parts does not matter.
    fn add_unordered(&mut self, bytes: &[u8]) {
        let hash = Sha1::digest(bytes);
        self.0
            .iter_mut()
            .zip(hash)
            .for_each(|(own, other)| *own ^= other);
    }

    /// Takes in a part whose place matters.
    fn add(&mut self, bytes: &[u8]) {
        self.add_unordered(bytes);
        self.0 = Sha1::digest(self.0).into();
    }

    fn add_value(&mut self, entry: &Entry) {
        self.add(&type_code(entry.value()).to_be_bytes());
        match entry.value() {
            Value::String(value) => self.add(&value.to_blob()),
            Value::List(list) => list.iter().for_each(|element| self.add(element)),
            Value::Set(set) => set
                .iter()
                .for_each(|member| self.add_unordered(&member.to_blob())),
            Value::Hash(hash) => hash
                .iter()
                .for_each(|(field, value)| self.add_pair(field, value)),
            Value::SortedSet(set) => set.iter().for_each(|item| {
                self.add_pair(&item.member, number::format_double(item.score).as_bytes());
            }),
            Value::Stream(stream) => stream.iter().for_each(|entry| {
                // The id is spelled with a point here and nowhere else.
                self.add(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
                entry.words.iter().for_each(|word| self.add(word));
            }),
        }
        if entry.deadline().is_some() {
            self.add_unordered(b"!!expire!!");
        }
    }

    fn add_pair(&mut self, first: &[u8], second: &[u8]) {
        let mut pair = Digest::default();
        pair.add(first);
        pair.add(second);
        self.add_unordered(&pair.0);
    }

    fn reply(self) -> Reply {
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let text: String = digits
            .filter_map(|digit| char::from_digit(digit.into(), 16))
            .collect();
        Reply::Simple(text.into())
    }
}

/// Redis' number of a type.
fn type_code(value: &Value) -> u32 {
    match value {
        Value::String(_) => 0,
        Value::List(_) => 1,
        Value::Set(_) => 2,
        Value::SortedSet(_) => 3,
        Value::Hash(_) => 4,
        Value::Stream(_) => 6,
    }
}

/// `DEBUG DIGEST`: replies with the hash of all databases, zeros if there are no keys.
pub(super) fn digest(call: &mut ControlCall<'_>) -> CommandResult {
    let keyspace = &mut call.engine.keyspace;
    let selected = keyspace.selected();
    let mut total = Digest::default();
    for db in 0..keyspace.databases() {
        keyspace.select(DbIndex(db));
        if keyspace.is_empty() {
            continue;
        }
        total.add(&(db as u32).to_be_bytes());
        for (key, entry) in keyspace.iter() {
            let mut digest = Digest::default();
            digest.add(key);
            digest.add_value(entry);
            total.add_unordered(&digest.0);
        }
    }
    keyspace.select(selected);
    Ok(total.reply())
}

/// `DEBUG DIGEST-VALUE key [key ...]`: replies with the hash of each value, zeros for a key that is not there.
pub(super) fn digest_value(call: &mut ControlCall<'_>) -> CommandResult {
    let keys = call.args().rest().skip(1);
    let digests = keys.map(|key| {
        let mut digest = Digest::default();
        if let Some(entry) = call.engine.keyspace.raw_entry(key) {
            digest.add_value(entry);
        }
        digest.reply()
    });
    Ok(Reply::Array(digests.collect()))
}
