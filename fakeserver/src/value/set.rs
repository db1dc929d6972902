//! [`Set`]: the value of a set key.

use super::either::Either;
use super::string::Decimal;
use super::{Blob, Dict, number};
use crate::config::Config;

/// Redis keeps no `intset` larger than this, whatever the setting says (`t_set.c`, `setTypeAdd`).
const INTEGERS_LEN_MAX: usize = 1 << 30;

/// The value of a set key: sorted integers (`intset`) while all members are integers and few enough, a hash table from then on
/// and for good.
#[derive(Clone, Debug)]
pub struct Set {
    seed: u64,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// In ascending order.
    Integers(Vec<i64>),
    /// In a box, so that a small set is small.
    Table(Box<Dict<()>>),
}

/// How far a set stays an `intset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetLimits {
    /// Most members (`set-max-intset-entries`).
    pub integers_max: usize,
}

impl SetLimits {
    /// The limit that is set now.
    pub fn of(config: &Config) -> SetLimits {
        SetLimits {
            integers_max: config.set_max_intset_entries.max(0) as usize,
        }
    }
}

/// A member of a set, as it lies there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member<'a> {
    /// Of an `intset`.
    Integer(i64),
    /// Of a hash table.
    Text(&'a Blob),
}

impl Member<'_> {
    /// The member's bytes.
    pub fn to_blob(self) -> Blob {
        match self {
            Member::Integer(value) => Blob::from(Decimal::new(value).as_bytes()),
            Member::Text(text) => text.clone(),
        }
    }
}

impl Set {
    /// Drops at most so many members of a set that nobody looks at any more; how many, none if it is best dropped as a whole.
    pub(crate) fn shed(&mut self, most: usize) -> usize {
        match &mut self.form {
            Form::Integers(_) => 0,
            Form::Table(table) => table.shed(most),
        }
    }

    /// An empty set; `seed` keys the hash table that it may become.
    pub fn new(seed: u64) -> Set {
        Set {
            seed,
            form: Form::Integers(Vec::new()),
        }
    }

    /// A set of these members.
    pub fn from_members<T: AsRef<[u8]>>(
        members: impl IntoIterator<Item = T>,
        limits: SetLimits,
        seed: u64,
    ) -> Set {
        let mut set = Set::new(seed);
        for member in members {
            set.add(member.as_ref(), limits);
        }
        set
    }

    /// A set of an `intset`'s integers, which are taken to ascend; none if there are none, or more than an `intset` may have and
    /// not all different.
    pub(crate) fn from_integers(integers: Vec<i64>, limits: SetLimits, seed: u64) -> Option<Set> {
        let len = integers.len();
        let mut set = Set {
            seed,
            form: Form::Integers(integers),
        };
        if len > limits.integers_max {
            set.become_table();
        }
        (len > 0 && set.len() == len).then_some(set)
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Integers(integers) => integers.len(),
            Form::Table(table) => table.len(),
        }
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name that `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        match &self.form {
            Form::Integers(_) => "intset",
            Form::Table(_) => "hashtable",
        }
    }

    /// The members of an `intset`, in ascending order.
    pub fn integers(&self) -> Option<&[i64]> {
        match &self.form {
            Form::Integers(integers) => Some(integers),
            Form::Table(_) => None,
        }
    }

    /// The hash table, if the set is one; for scan cursors.
    pub fn table(&self) -> Option<&Dict<()>> {
        match &self.form {
            Form::Integers(_) => None,
            Form::Table(table) => Some(table),
        }
    }

    /// Whether `member` is in the set.
    pub fn contains(&self, member: &[u8]) -> bool {
        match &self.form {
            Form::Integers(integers) => number::parse_integer(member)
                .is_some_and(|value| integers.binary_search(&value).is_ok()),
            Form::Table(table) => table.contains(member),
        }
    }

    /// Whether a member of another set is in this one.
    pub fn contains_member(&self, member: Member<'_>) -> bool {
        match (&self.form, member) {
            (Form::Integers(integers), Member::Integer(value)) => {
                integers.binary_search(&value).is_ok()
            }
            (_, Member::Text(text)) => self.contains(text),
            (_, Member::Integer(value)) => self.contains(Decimal::new(value).as_bytes()),
        }
    }

    /// Adds a member; whether it is new.
    pub fn add(&mut self, member: &[u8], limits: SetLimits) -> bool {
        match &mut self.form {
            Form::Table(table) => table.insert(member, ()).is_none(),
            Form::Integers(_) => match number::parse_integer(member) {
                Some(value) => self.add_integer(value, limits),
                None => self.become_table().insert(member, ()).is_none(),
            },
        }
    }

    /// Adds a member of another set; whether it is new.
    pub fn add_member(&mut self, member: Member<'_>, limits: SetLimits) -> bool {
        match member {
            Member::Integer(value) if self.integers().is_some() => self.add_integer(value, limits),
            Member::Integer(value) => self.add(Decimal::new(value).as_bytes(), limits),
            Member::Text(text) => self.add(text, limits),
        }
    }

    fn add_integer(&mut self, value: i64, limits: SetLimits) -> bool {
        let Form::Integers(integers) = &mut self.form else {
            return false;
        };
        // Members often come in ascending order; then there is nothing to search.
        let place = if integers.last().is_none_or(|last| *last < value) {
            integers.len()
        } else {
            match integers.binary_search(&value) {
                Ok(_) => return false,
                Err(place) => place,
            }
        };
        integers.insert(place, value);
        if integers.len() > limits.integers_max.min(INTEGERS_LEN_MAX) {
            self.become_table();
        }
        true
    }

    /// Removes a member; whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut self.form {
            Form::Table(table) => table.remove(member).is_some(),
            Form::Integers(integers) => number::parse_integer(member)
                .and_then(|value| integers.binary_search(&value).ok())
                .map(|place| integers.remove(place))
                .is_some(),
        }
    }

    /// All members; an `intset` in ascending order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Member<'_>> {
        match &self.form {
            Form::Integers(integers) => {
                Either::Left(integers.iter().map(|value| Member::Integer(*value)))
            }
            Form::Table(table) => Either::Right(table.keys().map(Member::Text)),
        }
    }

    /// The member at an index below [`Set::len`]; with a random index, a random member.
    pub fn at(&self, index: usize) -> Option<Member<'_>> {
        match &self.form {
            Form::Integers(integers) => integers.get(index).map(|value| Member::Integer(*value)),
            Form::Table(table) => table.at(index).map(|(member, ())| Member::Text(member)),
        }
    }

    /// Makes the set a hash table, if it is none yet.
    fn become_table(&mut self) -> &mut Dict<()> {
        if let Form::Integers(integers) = &self.form {
            let mut table = Dict::new(self.seed);
            for value in integers {
                table.insert(Decimal::new(*value).as_bytes(), ());
            }
            self.form = Form::Table(Box::new(table));
        }
        match &mut self.form {
            Form::Table(table) => table,
            Form::Integers(_) => unreachable!("it was made a table just above"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: SetLimits = SetLimits { integers_max: 3 };

    fn set(members: &[&str]) -> Set {
        Set::from_members(members, LIMITS, 1)
    }

    #[test]
    fn a_set_of_few_integers_is_sorted() {
        let set = set(&["3", "-9223372036854775808", "9223372036854775807", "3"]);
        assert_eq!(set.encoding(), "intset");
        assert_eq!(set.integers(), Some(&[i64::MIN, 3, i64::MAX][..]));
        assert!(set.contains(b"3") && !set.contains(b"03") && !set.contains(b"x"));
    }

    #[test]
    fn a_set_becomes_a_table_by_number_or_by_kind_of_members_and_stays_one() {
        for members in [&["1", "2", "3", "4"][..], &["1", "01"], &["1", "x"]] {
            let mut set = set(members);
            assert_eq!((set.encoding(), set.len()), ("hashtable", members.len()));
            assert!(members.iter().all(|member| set.contains(member.as_bytes())));
            for member in members.iter().skip(1) {
                assert!(set.remove(member.as_bytes()), "{member}");
            }
            assert_eq!((set.encoding(), set.len()), ("hashtable", 1));
            assert!(!set.remove(b"99"));
        }
    }

    #[test]
    fn members_are_found_across_the_two_forms() {
        let (integers, table) = (set(&["1", "2"]), set(&["1", "2", "x"]));
        assert!(integers.iter().all(|member| table.contains_member(member)));
        assert_eq!(
            table
                .iter()
                .filter(|member| integers.contains_member(*member))
                .count(),
            2
        );
        let mut sum = integers.clone();
        let added: Vec<_> = table
            .iter()
            .map(|member| sum.add_member(member, LIMITS))
            .collect();
        assert_eq!(added.iter().filter(|added| **added).count(), 1);
        assert_eq!((0..sum.len()).filter_map(|at| sum.at(at)).count(), 3);
    }
}
