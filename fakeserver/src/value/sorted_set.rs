//! [`SortedSet`]: the value of a sorted set key.

use std::fmt;
use std::ops::Range;

use super::ordered::{self, Item, Items, Ordered};
use super::{Blob, Dict};
use crate::config::Config;

/// What decides how a sorted set is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// Most members of a listpack (`zset-max-listpack-entries`).
    pub entries_max: usize,
    /// Longest member of a listpack (`zset-max-listpack-value`).
    pub member_len_max: usize,
    /// Seed of the hash table of a large sorted set.
    pub seed: u64,
}

impl Sizing {
    /// The limits of a configuration.
    pub fn new(config: &Config, seed: u64) -> Sizing {
        Sizing {
            entries_max: config.zset_max_listpack_entries.max(0) as usize,
            member_len_max: config.zset_max_listpack_value.max(0) as usize,
            seed,
        }
    }
}

/// The value of a sorted set key: members with scores, ordered by score, then by the member's bytes.
#[derive(Clone)]
pub struct SortedSet {
    form: Form,
}

impl fmt::Debug for SortedSet {
    /// SORT changes the form and nothing else, so the form is not told here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[derive(Clone, Debug)]
enum Form {
    /// Redis' listpack: sorted, searched from end to end.
    Small(Vec<Item>),
    /// Redis' skip list with its hash table.
    /// The table is in a box, so that a small sorted set is small.
    Large {
        scores: Box<Dict<f64>>,
        ordered: Ordered,
    },
}

impl Default for SortedSet {
    fn default() -> SortedSet {
        SortedSet::new()
    }
}

impl SortedSet {
    /// Drops at most so many members of a sorted set that nobody looks at any more; how many, none if it is best dropped as a whole.
    pub(crate) fn shed(&mut self, most: usize) -> usize {
        let Form::Large { scores, ordered } = &mut self.form else {
            return 0;
        };
        ordered.shed(most);
        scores.shed(most)
    }

    /// An empty sorted set.
    pub fn new() -> SortedSet {
        SortedSet {
            form: Form::Small(Vec::new()),
        }
    }

    /// An empty sorted set that is going to hold so many members, in the form for them from the start.
    pub fn for_len(len: usize, sizing: Sizing) -> SortedSet {
        let mut set = SortedSet::new();
        if len > sizing.entries_max {
            set.enlarge(sizing.seed);
        }
        set
    }

    /// A sorted set of members that are all different. Unlike one that grew member by member, it is a listpack whenever it
    /// fits into one, as the results of set operations are (`t_zset.c`, `zsetConvertToListpackIfNeeded`).
    pub fn collect(items: Vec<Item>, sizing: Sizing) -> SortedSet {
        let fits = items.len() <= sizing.entries_max
            && items
                .iter()
                .all(|item| item.member.len() <= sizing.member_len_max);
        let mut items = items;
        ordered::sort(&mut items);
        if fits {
            for item in &mut items {
                item.score = listpack_score(item.score);
            }
        }
        let mut set = SortedSet {
            form: Form::Small(items),
        };
        if !fits {
            set.enlarge(sizing.seed);
        }
        set
    }

    /// A listpack of these items as it was written, which is taken to be in order.
    pub(crate) fn packed(items: Vec<Item>) -> SortedSet {
        SortedSet {
            form: Form::Small(items),
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Small(items) => items.len(),
            Form::Large { ordered, .. } => ordered.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name that `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        if self.is_listpack() {
            "listpack"
        } else {
            "skiplist"
        }
    }

    /// Whether the sorted set is stored in the form for small ones.
    pub fn is_listpack(&self) -> bool {
        matches!(self.form, Form::Small(_))
    }

    /// The score of a member.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match &self.form {
            Form::Small(items) => find(items, member).map(|at| items[at].score),
            Form::Large { scores, .. } => scores.get(member).copied(),
        }
    }

    /// Number of members before this one.
    pub fn rank(&self, member: &[u8]) -> Option<usize> {
        match &self.form {
            Form::Small(items) => find(items, member),
            Form::Large { scores, ordered } => {
                let score = scores.get(member)?;
                Some(ordered.rank(*score, member))
            }
        }
    }

    /// Gives a member a score, which must not be NaN; the score that it had.
    pub fn insert(&mut self, member: &[u8], score: f64, sizing: Sizing) -> Option<f64> {
        debug_assert!(
            !score.is_nan(),
            "a score that is NaN has no place in the order"
        );
        if let Form::Small(items) = &mut self.form {
            if let Some(at) = find(items, member) {
                let mut item = items.remove(at);
                let old = std::mem::replace(&mut item.score, score);
                insert_sorted(items, item);
                return Some(old);
            }
            if items.len() < sizing.entries_max && member.len() <= sizing.member_len_max {
                let member = Blob::from(member);
                insert_sorted(items, Item { score, member });
                return None;
            }
            self.enlarge(sizing.seed);
        }
        let Form::Large { scores, ordered } = &mut self.form else {
            return None;
        };
        let old = scores.insert(member, score);
        if old == Some(score) {
            return old;
        }
        if let Some(old) = old {
            ordered.remove(old, member);
        }
        let member = Blob::from(member);
        ordered.insert(Item { score, member });
        old
    }

    /// Removes a member; its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match &mut self.form {
            Form::Small(items) => find(items, member).map(|at| items.remove(at).score),
            Form::Large { scores, ordered } => {
                let score = scores.remove(member)?;
                ordered.remove(score, member);
                Some(score)
            }
        }
    }

    /// Removes a range of ranks; what was removed, in order.
    pub fn drain(&mut self, ranks: Range<usize>) -> Vec<Item> {
        let end = ranks.end.min(self.len());
        let ranks = ranks.start.min(end)..end;
        match &mut self.form {
            Form::Small(items) => items.drain(ranks).collect(),
            Form::Large { scores, ordered } => {
                let items: Vec<_> = Items::of_ordered(ordered, ranks).cloned().collect();
                if items.len() == ordered.len() {
                    scores.clear();
                    *ordered = Ordered::default();
                    return items;
                }
                for item in &items {
                    scores.remove(&item.member);
                    ordered.remove(item.score, &item.member);
                }
                items
            }
        }
    }

    /// Number of members in front for which `precedes` holds; it must not hold again behind one for which it does not.
    pub fn partition_point(&self, precedes: impl Fn(&Item) -> bool) -> usize {
        match &self.form {
            Form::Small(items) => items.partition_point(precedes),
            Form::Large { ordered, .. } => ordered.partition_point(precedes),
        }
    }

    /// The members of a range of ranks, in order.
    pub fn range(&self, ranks: Range<usize>) -> Items<'_> {
        match &self.form {
            Form::Small(items) => Items::of_slice(items, ranks),
            Form::Large { ordered, .. } => Items::of_ordered(ordered, ranks),
        }
    }

    /// All members, in order.
    pub fn iter(&self) -> Items<'_> {
        self.range(0..self.len())
    }

    /// The member at an index below [`SortedSet::len`], in constant time and in no particular order; with a random index, a
    /// random member.
    pub fn at(&self, index: usize) -> Option<(&Blob, f64)> {
        match &self.form {
            Form::Small(items) => items.get(index).map(|item| (&item.member, item.score)),
            Form::Large { scores, .. } => scores.at(index).map(|(member, score)| (member, *score)),
        }
    }

    /// The hash table of a large sorted set, for scans; the members of a listpack otherwise.
    pub fn table(&self) -> Result<&Dict<f64>, Items<'_>> {
        match &self.form {
            Form::Small(items) => Err(Items::of_slice(items, 0..items.len())),
            Form::Large { scores, .. } => Ok(scores),
        }
    }

    /// Makes it a skip list, whatever its size.
    pub(crate) fn enlarge(&mut self, seed: u64) {
        let Form::Small(items) = &mut self.form else {
            return;
        };
        let (mut scores, mut ordered) = (Dict::new(seed), Ordered::default());
        for item in std::mem::take(items) {
            scores.insert(&item.member, item.score);
            ordered.insert(item);
        }
        let scores = Box::new(scores);
        self.form = Form::Large { scores, ordered };
    }
}

impl<'a> IntoIterator for &'a SortedSet {
    type Item = &'a Item;
    type IntoIter = Items<'a>;

    fn into_iter(self) -> Items<'a> {
        self.iter()
    }
}

fn find(items: &[Item], member: &[u8]) -> Option<usize> {
    items
        .iter()
        .position(|item| item.member.as_bytes() == member)
}

/// A score as a listpack keeps it: there -0 is spelled as the integer 0.
fn listpack_score(score: f64) -> f64 {
    score + 0.0
}

fn insert_sorted(items: &mut Vec<Item>, mut item: Item) {
    item.score = listpack_score(item.score);
    let at = items.partition_point(|other| other.precedes(item.score, &item.member));
    items.insert(at, item);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZING: Sizing = Sizing {
        entries_max: 8,
        member_len_max: 64,
        seed: 1,
    };

    #[test]
    fn both_forms_hold_the_same_members_in_the_same_order() {
        for (members, encoding) in [(8, "listpack"), (2_000, "skiplist")] {
            let (mut set, mut model) = (SortedSet::new(), std::collections::BTreeMap::new());
            let mut rng = fastrand::Rng::with_seed(members);
            for _ in 0..6_000 {
                let member = rng.u64(0..members).to_string().into_bytes();
                let score = rng.i32(-3..3).into();
                if rng.u8(0..4) == 0 {
                    assert_eq!(set.remove(&member), model.remove(&member));
                } else {
                    assert_eq!(
                        set.insert(&member, score, SIZING),
                        model.insert(member, score)
                    );
                }
            }
            assert_eq!(set.encoding(), encoding);
            let mut expected: Vec<_> = model
                .iter()
                .map(|(member, score)| (*score, member))
                .collect();
            expected.sort_by(|one, other| one.partial_cmp(other).unwrap());
            let found: Vec<_> = set
                .iter()
                .map(|item| (item.score, item.member.to_vec()))
                .collect();
            assert!(
                found
                    .iter()
                    .map(|(score, member)| (*score, member))
                    .eq(expected)
            );
            for (rank, (score, member)) in found.iter().enumerate() {
                assert_eq!(
                    (set.rank(member), set.score(member)),
                    (Some(rank), Some(*score))
                );
            }
            let drained: Vec<_> = set
                .drain(1..3)
                .into_iter()
                .map(|item| item.member.to_vec())
                .collect();
            assert!(
                drained
                    .iter()
                    .eq(found[1..3].iter().map(|(_, member)| member))
            );
            assert_eq!(set.len(), found.len() - 2);
            assert_eq!(set.drain(0..usize::MAX).len(), found.len() - 2);
            assert!(set.is_empty());
        }
    }

    #[test]
    fn a_collected_set_is_small_if_it_fits() {
        let items = |len: u32, member_len: usize| {
            let member = |n: u32| Blob::from(format!("{n:0member_len$}"));
            (0..len)
                .map(|n| Item {
                    score: 0.0,
                    member: member(n),
                })
                .collect()
        };
        assert_eq!(
            SortedSet::collect(items(8, 64), SIZING).encoding(),
            "listpack"
        );
        assert_eq!(
            SortedSet::collect(items(9, 1), SIZING).encoding(),
            "skiplist"
        );
        assert_eq!(
            SortedSet::collect(items(1, 65), SIZING).encoding(),
            "skiplist"
        );
    }
}
