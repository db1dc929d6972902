//! [`Ordered`]: members in the order of their scores, with ranks: a B-tree whose branches count what is below each child.
//!
//! Leaves are short sorted vectors, so a range is read as slices, and a rank, an insertion and a removal are one descent.

use std::cmp::Ordering;
use std::ops::Range;

use super::Blob;

/// Most items of a leaf and most children of a branch.
const WIDTH_MAX: usize = 64;
/// A node narrower than this is joined with a neighbour if both fit into one node with room to spare.
const WIDTH_MIN: usize = WIDTH_MAX / 4;
const JOINED_WIDTH_MAX: usize = WIDTH_MAX * 3 / 4;

/// A member with its score, which is never NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The score.
    pub score: f64,
    /// The member.
    pub member: Blob,
}

impl Item {
    /// Whether this stands before a member with a score: the lower score first, equal scores by unsigned bytes.
    pub fn precedes(&self, score: f64, member: &[u8]) -> bool {
        self.score < score || (self.score == score && self.member.as_bytes() < member)
    }

    /// Whether this stands behind a member with a score.
    fn follows(&self, score: f64, member: &[u8]) -> bool {
        self.score > score || (self.score == score && self.member.as_bytes() > member)
    }
}

/// Puts items into their order.
pub fn sort(items: &mut [Item]) {
    items.sort_unstable_by(|one, other| {
        if one.precedes(other.score, &other.member) {
            Ordering::Less
        } else if one.follows(other.score, &other.member) {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    });
}

/// Items in order, each member with one score; who inserts makes sure that an item is not there yet.
#[derive(Clone, Debug)]
pub struct Ordered {
    root: Node,
    len: usize,
}

#[derive(Clone, Debug)]
enum Node {
    Leaf(Vec<Item>),
    Branch(Box<Branch>),
}

/// All items of `children[i]` stand before `separators[i]`, all of `children[i + 1]` at or behind it.
#[derive(Clone, Debug, Default)]
struct Branch {
    children: Vec<Node>,
    /// Number of items below each child.
    lens: Vec<usize>,
    separators: Vec<Item>,
}

impl Default for Ordered {
    fn default() -> Ordered {
        Ordered {
            root: Node::Leaf(Vec::new()),
            len: 0,
        }
    }
}

impl Ordered {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an item that is not there yet.
    pub fn insert(&mut self, item: Item) {
        if let Some((separator, right)) = self.root.insert(item) {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
            self.root = Node::Branch(Box::new(Branch {
                lens: vec![left.len(), right.len()],
                children: vec![left, right],
                separators: vec![separator],
            }));
        }
        self.len += 1;
    }

    /// Removes a member that has this score; whether it was there.
    pub fn remove(&mut self, score: f64, member: &[u8]) -> bool {
        if !self.root.remove(score, member) {
            return false;
        }
        self.len -= 1;
        while let Node::Branch(branch) = &mut self.root
            && branch.children.len() <= 1
        {
            self.root = branch.children.pop().unwrap_or(Node::Leaf(Vec::new()));
        }
        true
    }

    /// Drops leaves with about so many items of a tree that nobody looks into any more, for its branches' counts are no longer right.
    pub(super) fn shed(&mut self, most: usize) {
        let mut shed = 0;
        while shed < most {
            match self.root.shed_leaf() {
                0 => break,
                len => shed += len,
            }
        }
        self.len -= shed;
    }

    /// Number of items in front, from the first on, for which `precedes` holds; it must not hold again behind one for which
    /// it does not.
    pub fn partition_point(&self, precedes: impl Fn(&Item) -> bool) -> usize {
        let (mut node, mut rank) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(items) => return rank + items.partition_point(|item| precedes(item)),
                Node::Branch(branch) => {
                    let at = branch.separators.partition_point(|item| precedes(item));
                    rank += branch.lens[..at].iter().sum::<usize>();
                    node = &branch.children[at];
                }
            }
        }
    }

    /// Number of items that stand before a member with a score.
    pub fn rank(&self, score: f64, member: &[u8]) -> usize {
        self.partition_point(|item| item.precedes(score, member))
    }

    /// The items from a rank on that are stored together; empty behind the last rank.
    fn chunk_from(&self, rank: usize) -> &[Item] {
        let (leaf, at) = self.leaf(rank);
        leaf.get(at..).unwrap_or_default()
    }

    /// The items up to and including a rank that are stored together.
    fn chunk_to(&self, rank: usize) -> &[Item] {
        let (leaf, at) = self.leaf(rank);
        leaf.get(..=at).unwrap_or_default()
    }

    /// The leaf of a rank, and the rank's place in it.
    fn leaf(&self, mut rank: usize) -> (&[Item], usize) {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(items) => return (items, rank),
                Node::Branch(branch) => {
                    let last = branch.children.len() - 1;
                    let mut at = 0;
                    while at < last && rank >= branch.lens[at] {
                        rank -= branch.lens[at];
                        at += 1;
                    }
                    node = &branch.children[at];
                }
            }
        }
    }
}

impl Node {
    /// Drops the last leaf below, and every branch that has none left; its number of items.
    fn shed_leaf(&mut self) -> usize {
        match self {
            Node::Leaf(items) => std::mem::take(items).len(),
            Node::Branch(branch) => {
                let len = branch.children.last_mut().map_or(0, Node::shed_leaf);
                if branch.children.last().is_some_and(|it| it.width() == 0) {
                    branch.children.pop();
                }
                len
            }
        }
    }

    /// Number of items below.
    fn len(&self) -> usize {
        match self {
            Node::Leaf(items) => items.len(),
            Node::Branch(branch) => branch.lens.iter().sum(),
        }
    }

    /// Number of items of a leaf, of children of a branch.
    fn width(&self) -> usize {
        match self {
            Node::Leaf(items) => items.len(),
            Node::Branch(branch) => branch.children.len(),
        }
    }

    /// Adds an item; a node that got too wide is split, and its right part and the separator before it are returned.
    fn insert(&mut self, item: Item) -> Option<(Item, Node)> {
        match self {
            Node::Leaf(items) => {
                let at = items.partition_point(|other| other.precedes(item.score, &item.member));
                if items.len() < WIDTH_MAX {
                    items.insert(at, item);
                    return None;
                }
                // Rising scores are common (times): what is appended leaves full leaves behind.
                let middle = if at == items.len() { at } else { WIDTH_MAX / 2 };
                let mut right = items.split_off(middle);
                if at >= middle {
                    right.insert(at - middle, item);
                } else {
                    items.insert(at, item);
                }
                Some((right[0].clone(), Node::Leaf(right)))
            }
            Node::Branch(branch) => branch.insert(item),
        }
    }

    fn remove(&mut self, score: f64, member: &[u8]) -> bool {
        match self {
            Node::Leaf(items) => {
                let at = items.partition_point(|item| item.precedes(score, member));
                let found = items
                    .get(at)
                    .is_some_and(|item| !item.follows(score, member));
                if found {
                    items.remove(at);
                }
                found
            }
            Node::Branch(branch) => branch.remove(score, member),
        }
    }
}

impl Branch {
    /// The child in whose part of the order a member with a score belongs.
    fn child_of(&self, score: f64, member: &[u8]) -> usize {
        self.separators
            .partition_point(|separator| !separator.follows(score, member))
    }

    fn insert(&mut self, item: Item) -> Option<(Item, Node)> {
        let at = self.child_of(item.score, &item.member);
        self.lens[at] += 1;
        let (separator, right) = self.children[at].insert(item)?;
        self.lens[at] -= right.len();
        self.lens.insert(at + 1, right.len());
        self.children.insert(at + 1, right);
        self.separators.insert(at, separator);
        let width = self.children.len();
        if width <= WIDTH_MAX {
            return None;
        }
        let middle = if at + 2 == width {
            width - 1
        } else {
            width / 2
        };
        let right = Branch {
            children: self.children.split_off(middle),
            lens: self.lens.split_off(middle),
            separators: self.separators.split_off(middle),
        };
        let separator = self.separators.pop()?;
        Some((separator, Node::Branch(Box::new(right))))
    }

    fn remove(&mut self, score: f64, member: &[u8]) -> bool {
        let at = self.child_of(score, member);
        if !self.children[at].remove(score, member) {
            return false;
        }
        self.lens[at] -= 1;
        let width = self.children[at].width();
        if width == 0 {
            self.children.remove(at);
            self.lens.remove(at);
            if !self.separators.is_empty() {
                self.separators.remove(at.saturating_sub(1));
            }
        } else if width < WIDTH_MIN {
            let fits = |left: usize| {
                let right = self.children.get(left + 1).map(Node::width);
                right.is_some_and(|right| self.children[left].width() + right <= JOINED_WIDTH_MAX)
            };
            if at > 0 && fits(at - 1) {
                self.join(at - 1);
            } else if fits(at) {
                self.join(at);
            }
        }
        true
    }

    /// Joins a child with the one to its right.
    fn join(&mut self, at: usize) {
        let right = self.children.remove(at + 1);
        let separator = self.separators.remove(at);
        self.lens[at] += self.lens.remove(at + 1);
        match (&mut self.children[at], right) {
            (Node::Leaf(left), Node::Leaf(right)) => left.extend(right),
            (Node::Branch(left), Node::Branch(right)) => {
                left.separators.push(separator);
                left.separators.extend(right.separators);
                left.children.extend(right.children);
                left.lens.extend(right.lens);
            }
            _ => unreachable!("all children of a branch have the same height"),
        }
    }
}

/// Items of a range of ranks, from both ends.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    source: Source<'a>,
    /// Items at hand for the front and for the back; either may reach beyond the other end.
    front: &'a [Item],
    back: &'a [Item],
    ranks: Range<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Slice(&'a [Item]),
    Ordered(&'a Ordered),
}

impl<'a> Items<'a> {
    /// Items of a sorted slice; ranks beyond its end are left out.
    pub fn of_slice(items: &'a [Item], ranks: Range<usize>) -> Items<'a> {
        Items::new(Source::Slice(items), items.len(), &ranks)
    }

    /// Items of an ordered structure; ranks beyond its end are left out.
    pub fn of_ordered(items: &'a Ordered, ranks: Range<usize>) -> Items<'a> {
        Items::new(Source::Ordered(items), items.len(), &ranks)
    }

    fn new(source: Source<'a>, len: usize, ranks: &Range<usize>) -> Items<'a> {
        let end = ranks.end.min(len);
        Items {
            source,
            front: &[],
            back: &[],
            ranks: ranks.start.min(end)..end,
        }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a Item;

    fn next(&mut self) -> Option<&'a Item> {
        if self.ranks.is_empty() {
            return None;
        }
        if self.front.is_empty() {
            self.front = match self.source {
                Source::Slice(items) => &items[self.ranks.start..],
                Source::Ordered(items) => items.chunk_from(self.ranks.start),
            };
        }
        let (item, rest) = self.front.split_first()?;
        self.front = rest;
        self.ranks.start += 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.ranks.len(), Some(self.ranks.len()))
    }
}

impl<'a> DoubleEndedIterator for Items<'a> {
    fn next_back(&mut self) -> Option<&'a Item> {
        if self.ranks.is_empty() {
            return None;
        }
        if self.back.is_empty() {
            self.back = match self.source {
                Source::Slice(items) => &items[..self.ranks.end],
                Source::Ordered(items) => items.chunk_to(self.ranks.end - 1),
            };
        }
        let (item, rest) = self.back.split_last()?;
        self.back = rest;
        self.ranks.end -= 1;
        Some(item)
    }
}

impl ExactSizeIterator for Items<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(n: u32) -> Blob {
        Blob::from(n.to_string())
    }

    fn compare_all(ordered: &Ordered, model: &[Item], rng: &mut fastrand::Rng) {
        assert_eq!(ordered.len(), model.len());
        let items = |ranks| Items::of_ordered(ordered, ranks);
        assert!(items(0..usize::MAX).eq(model.iter()));
        assert!(items(0..usize::MAX).rev().eq(model.iter().rev()));
        for _ in 0..20 {
            let start = rng.usize(0..=model.len());
            let end = rng.usize(start..=model.len());
            assert!(items(start..end).eq(&model[start..end]));
            assert!(items(start..end).rev().eq(model[start..end].iter().rev()));
            let limit = rng.i32(-5..45);
            assert_eq!(
                ordered.partition_point(|item| item.score < f64::from(limit)),
                model.partition_point(|item| item.score < f64::from(limit))
            );
            if let Some(item) = model.get(start) {
                assert_eq!(ordered.rank(item.score, &item.member), start);
            }
        }
    }

    fn check_shape(node: &Node, depth: usize, depths: &mut Vec<usize>) {
        assert!(node.width() <= WIDTH_MAX);
        match node {
            Node::Leaf(_) => depths.push(depth),
            Node::Branch(branch) => {
                assert_eq!(branch.separators.len() + 1, branch.children.len());
                for (child, len) in branch.children.iter().zip(&branch.lens) {
                    assert_eq!(child.len(), *len);
                    check_shape(child, depth + 1, depths);
                }
            }
        }
    }

    #[test]
    fn it_agrees_with_a_sorted_vector_whatever_is_inserted_and_removed() {
        for seed in 0..12 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let (mut ordered, mut model) = (Ordered::default(), Vec::<Item>::new());
            let scores = [1, 3, 40][seed as usize % 3];
            for step in 0..12_000 {
                // Growth, then shrinkage to nothing: every split and every join is met.
                let grow = if step < 7_000 { 0.8 } else { 0.05 };
                if rng.f64() < grow {
                    let score = f64::from(rng.i32(0..scores));
                    let member = member(rng.u32(0..100_000));
                    let at = model.partition_point(|item| item.precedes(score, &member));
                    let item = Item { score, member };
                    if model.get(at) != Some(&item) {
                        model.insert(at, item.clone());
                        ordered.insert(item);
                    }
                } else if !model.is_empty() {
                    let item = model.remove(rng.usize(0..model.len()));
                    assert!(ordered.remove(item.score, &item.member));
                    assert!(!ordered.remove(item.score, &item.member));
                }
                if step % 1_500 == 0 {
                    compare_all(&ordered, &model, &mut rng);
                }
            }
            compare_all(&ordered, &model, &mut rng);
            let mut depths = Vec::new();
            check_shape(&ordered.root, 0, &mut depths);
            assert!(depths.iter().all(|depth| depth == &depths[0]));
        }
    }

    #[test]
    fn rising_scores_leave_full_leaves_and_falling_removal_leaves_nothing() {
        let mut ordered = Ordered::default();
        for n in 0..20_000 {
            let (score, member) = (f64::from(n), member(n));
            ordered.insert(Item { score, member });
        }
        let mut depths = Vec::new();
        check_shape(&ordered.root, 0, &mut depths);
        assert!(depths.len() <= 20_000 / WIDTH_MAX + 1);
        for n in (0..20_000).rev() {
            assert!(ordered.remove(f64::from(n), &member(n)));
        }
        assert!(ordered.is_empty());
        assert!(matches!(&ordered.root, Node::Leaf(items) if items.is_empty()));
    }

    #[test]
    fn zeros_of_both_signs_are_one_score() {
        let mut ordered = Ordered::default();
        for (score, name) in [
            (0.0, "b"),
            (-0.0, "a"),
            (f64::NEG_INFINITY, "z"),
            (f64::INFINITY, "a"),
        ] {
            ordered.insert(Item {
                score,
                member: Blob::from(name),
            });
        }
        let names: Vec<_> = Items::of_ordered(&ordered, 0..9)
            .map(|item| &item.member[..])
            .collect();
        assert_eq!(names, [b"z", b"a", b"b", b"a"]);
        assert!(ordered.remove(0.0, b"a"));
    }
}
