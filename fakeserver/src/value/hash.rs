//! [`struct@Hash`]: the value of a hash key.

use super::either::Either;
use super::{Blob, Dict};
use crate::config::Config;

/// The value of a hash key: a short list of pairs (`listpack`) until it grows beyond its [`HashLimits`], a hash table from then
/// on and for good.
#[derive(Clone, Debug)]
pub struct Hash {
    seed: u64,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// In order of insertion.
    Pairs(Vec<(Blob, Blob)>),
    /// In a box, so that a small hash is small.
    Table(Box<Dict<Blob>>),
}

/// How far a hash stays a `listpack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashLimits {
    /// Most fields (`hash-max-listpack-entries`).
    pub entries_max: usize,
    /// Longest field or value, in bytes (`hash-max-listpack-value`).
    pub value_len_max: usize,
}

impl HashLimits {
    /// The limits that are set now.
    pub fn of(config: &Config) -> HashLimits {
        HashLimits {
            entries_max: config.hash_max_listpack_entries.max(0) as usize,
            value_len_max: config.hash_max_listpack_value.max(0) as usize,
        }
    }

    fn allow(self, field: &[u8], value: &[u8]) -> bool {
        field.len() <= self.value_len_max && value.len() <= self.value_len_max
    }
}

impl Hash {
    /// Drops at most so many fields of a hash that nobody looks at any more; how many, none if it is best dropped as a whole.
    pub(crate) fn shed(&mut self, most: usize) -> usize {
        match &mut self.form {
            Form::Pairs(_) => 0,
            Form::Table(table) => table.shed(most),
        }
    }

    /// An empty hash; `seed` keys the hash table that it may become.
    pub fn new(seed: u64) -> Hash {
        Hash {
            seed,
            form: Form::Pairs(Vec::new()),
        }
    }

    /// A hash of these fields and values; the last value of a field that comes twice stands.
    pub fn from_pairs<F: AsRef<[u8]>, V: Into<Blob>>(
        pairs: impl IntoIterator<Item = (F, V)>,
        limits: HashLimits,
        seed: u64,
    ) -> Hash {
        let mut hash = Hash::new(seed);
        for (field, value) in pairs {
            hash.set(field.as_ref(), value, limits);
        }
        hash
    }

    /// A hash as a payload has it: as long as it is packed a field may come twice. None if one comes twice in a hash table.
    pub(crate) fn restored(
        pairs: Vec<(Blob, Blob)>,
        limits: HashLimits,
        seed: u64,
    ) -> Option<Hash> {
        let is_packed = pairs.len() <= limits.entries_max
            && pairs
                .iter()
                .all(|(field, value)| limits.allow(field, value));
        if is_packed {
            let form = Form::Pairs(pairs);
            return Some(Hash { seed, form });
        }
        let mut table = Dict::new(seed);
        for (field, value) in pairs {
            if table.insert(&field, value).is_some() {
                return None;
            }
        }
        let form = Form::Table(Box::new(table));
        Some(Hash { seed, form })
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Pairs(pairs) => pairs.len(),
            Form::Table(table) => table.len(),
        }
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name that `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        match &self.form {
            Form::Pairs(_) => "listpack",
            Form::Table(_) => "hashtable",
        }
    }

    /// The value of a field.
    pub fn get(&self, field: &[u8]) -> Option<&Blob> {
        match &self.form {
            Form::Pairs(pairs) => place(pairs, field)
                .and_then(|at| pairs.get(at))
                .map(|(_, value)| value),
            Form::Table(table) => table.get(field),
        }
    }

    /// Whether there is such a field.
    pub fn contains(&self, field: &[u8]) -> bool {
        self.get(field).is_some()
    }

    /// Sets a field; whether it is new.
    pub fn set(&mut self, field: &[u8], value: impl Into<Blob>, limits: HashLimits) -> bool {
        let value = value.into();
        if let Form::Pairs(_) = self.form
            && !limits.allow(field, &value)
        {
            self.become_table();
        }
        match &mut self.form {
            Form::Table(table) => table.insert(field, value).is_none(),
            Form::Pairs(pairs) => {
                let slot = place(pairs, field).and_then(|at| pairs.get_mut(at));
                let is_new = slot.is_none();
                match slot {
                    Some((_, old)) => *old = value,
                    None => pairs.push((Blob::from(field), value)),
                }
                // Redis looks at the number of fields after an overwrite too, so a lowered limit takes effect then.
                if pairs.len() > limits.entries_max {
                    self.become_table();
                }
                is_new
            }
        }
    }

    /// Removes a field; its value if it was there.
    pub fn remove(&mut self, field: &[u8]) -> Option<Blob> {
        match &mut self.form {
            Form::Pairs(pairs) => place(pairs, field).map(|at| pairs.remove(at).1),
            Form::Table(table) => table.remove(field),
        }
    }

    /// All fields with their values; a `listpack` in order of insertion.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Blob, &Blob)> {
        match &self.form {
            Form::Pairs(pairs) => Either::Left(pairs.iter().map(|(field, value)| (field, value))),
            Form::Table(table) => Either::Right(table.iter()),
        }
    }

    /// The pair at an index below [`Hash::len`]; with a random index, a random pair.
    pub fn at(&self, index: usize) -> Option<(&Blob, &Blob)> {
        match &self.form {
            Form::Pairs(pairs) => pairs.get(index).map(|(field, value)| (field, value)),
            Form::Table(table) => table.at(index),
        }
    }

    /// The hash table, if the hash is one; for scan cursors.
    pub fn table(&self) -> Option<&Dict<Blob>> {
        match &self.form {
            Form::Pairs(_) => None,
            Form::Table(table) => Some(table),
        }
    }

    fn become_table(&mut self) {
        if let Form::Pairs(pairs) = &mut self.form {
            let mut table = Dict::new(self.seed);
            for (field, value) in pairs.drain(..) {
                table.insert(&field, value);
            }
            self.form = Form::Table(Box::new(table));
        }
    }
}

fn place(pairs: &[(Blob, Blob)], field: &[u8]) -> Option<usize> {
    pairs.iter().position(|(name, _)| name.as_bytes() == field)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HashLimits = HashLimits {
        entries_max: 3,
        value_len_max: 4,
    };

    fn hash(fields: &[&str]) -> Hash {
        Hash::from_pairs(fields.iter().map(|field| (field, *field)), LIMITS, 1)
    }

    #[test]
    fn a_hash_becomes_a_table_beyond_either_limit_and_stays_one() {
        assert_eq!(hash(&["a", "b", "c"]).encoding(), "listpack");
        assert_eq!(hash(&["a", "b", "c", "c"]).encoding(), "listpack");
        assert_eq!(hash(&["1234"]).encoding(), "listpack");
        assert_eq!(hash(&["12345"]).encoding(), "hashtable");
        let mut table = hash(&["a", "b", "c", "d"]);
        assert_eq!(table.encoding(), "hashtable");
        for field in ["a", "b", "c"] {
            assert_eq!(table.remove(field.as_bytes()), Some(Blob::from(field)));
        }
        assert_eq!((table.encoding(), table.len()), ("hashtable", 1));
    }

    #[test]
    fn an_overwrite_under_a_lowered_limit_converts() {
        let mut hash = hash(&["a", "b", "c"]);
        let lowered = HashLimits {
            entries_max: 2,
            ..LIMITS
        };
        assert!(!hash.set(b"a", "z", lowered));
        assert_eq!(hash.encoding(), "hashtable");
        assert_eq!(hash.get(b"a"), Some(&Blob::from("z")));
    }

    #[test]
    fn small_and_large_hashes_answer_alike() {
        for fields in [&["b", "a"][..], &["d", "c", "b", "a"][..]] {
            let hash = hash(fields);
            assert_eq!(hash.iter().len(), fields.len());
            assert!(
                hash.iter()
                    .map(|(field, _)| &**field)
                    .eq(fields.iter().map(|field| field.as_bytes()))
            );
            assert!((0..fields.len()).all(|at| hash.at(at).is_some()));
            assert!(hash.at(fields.len()).is_none());
            assert_eq!(hash.table().is_some(), fields.len() > LIMITS.entries_max);
        }
    }
}
