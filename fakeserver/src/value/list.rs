//! [`List`]: the value of a list key.

use std::collections::VecDeque;

use super::Blob;
use super::list_nodes::{ListLimits, ListNode, Nodes, Side};

/// One of the two ends of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The head.
    Left,
    /// The tail.
    Right,
}

/// So many elements are removed one by one, each of which moves the nearer end of the list; more of them in one pass.
const SINGLY_REMOVED_MAX: usize = 2;

/// The value of a list key.
#[derive(Clone, Debug)]
pub struct List {
    elements: VecDeque<Blob>,
    nodes: Nodes,
    /// Those that were set when the list was made.
    limits: ListLimits,
}

impl List {
    /// Drops at most so many elements of a list that nobody looks at any more; how many, none if it is best dropped as a whole.
    pub(crate) fn shed(&mut self, most: usize) -> usize {
        let kept = self.elements.len().saturating_sub(most);
        self.elements.drain(kept..).len()
    }

    /// An empty list.
    pub fn new(limits: ListLimits) -> List {
        List {
            elements: VecDeque::new(),
            nodes: Nodes::default(),
            limits,
        }
    }

    /// A list of these elements.
    pub fn of(elements: impl IntoIterator<Item = Blob>, limits: ListLimits) -> List {
        let mut list = List::new(limits);
        for element in elements {
            list.push(End::Right, element);
        }
        list
    }

    /// Appends a node as a payload has it.
    pub(crate) fn append_node(&mut self, elements: Vec<Blob>, node: ListNode) {
        self.elements.extend(elements);
        self.nodes.append(node);
    }

    /// The nodes of the quicklist, each with its elements.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&ListNode, impl Iterator<Item = &Blob>)> {
        let mut start = 0;
        self.nodes.iter().map(move |node| {
            let end = (start + node.len).min(self.elements.len());
            let elements = self.elements.range(start.min(end)..end);
            start = end;
            (node, elements)
        })
    }

    /// Number of nodes of the quicklist.
    pub fn nodes_len(&self) -> usize {
        self.nodes.iter().len()
    }

    /// What bounded the nodes when the list was made (`list-max-listpack-size`).
    pub(crate) fn fill(&self) -> i64 {
        self.limits.fill
    }

    /// From so many bytes on an element has a node of its own from now on.
    pub(crate) fn set_plain_len_min(&mut self, plain_len_min: usize) {
        self.limits.plain_len_min = plain_len_min;
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The name that `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        "quicklist"
    }

    /// Whether any element equals these bytes.
    pub fn contains(&self, element: &[u8]) -> bool {
        self.elements.iter().any(|each| each.as_bytes() == element)
    }

    /// The element at an index from the head.
    pub fn get(&self, index: usize) -> Option<&Blob> {
        self.elements.get(index)
    }

    /// Replaces the element at an index from the head; whether there is one.
    pub fn set(&mut self, index: usize, element: &[u8]) -> bool {
        if index < self.elements.len() {
            self.nodes
                .replace(&self.elements, index, element, self.limits);
        }
        match self.elements.get_mut(index) {
            Some(slot) => {
                *slot = Blob::from(element);
                true
            }
            None => false,
        }
    }

    /// Adds an element at one end.
    pub fn push(&mut self, end: End, element: Blob) {
        self.nodes.push(end, &element, self.limits);
        match end {
            End::Left => self.elements.push_front(element),
            End::Right => self.elements.push_back(element),
        }
    }

    /// Removes an element from one end.
    pub fn pop(&mut self, end: End) -> Option<Blob> {
        let element = match end {
            End::Left => self.elements.pop_front(),
            End::Right => self.elements.pop_back(),
        }?;
        self.nodes.pop(end, &element);
        Some(element)
    }

    /// Puts an element beside the one at an index from the head, which must be there.
    pub fn insert(&mut self, index: usize, side: Side, element: &[u8]) {
        self.nodes
            .insert(&self.elements, index, side, element, self.limits);
        let place = match side {
            Side::Before => index,
            Side::After => index + 1,
        };
        self.elements
            .insert(place.min(self.elements.len()), Blob::from(element));
    }

    /// Removes the elements equal to these bytes, from one end on and at most `count`; how many there were.
    pub fn remove_equal(&mut self, element: &[u8], end: End, count: usize) -> usize {
        let places = self.elements.iter().enumerate();
        let hit = |(place, each): (usize, &Blob)| (each.as_bytes() == element).then_some(place);
        let mut places: Vec<usize> = match end {
            End::Left => places.filter_map(hit).take(count).collect(),
            End::Right => places.rev().filter_map(hit).take(count).collect(),
        };
        places.sort_unstable();
        if !places.is_empty() {
            self.nodes.remove_all(&self.elements, &places);
        }
        if places.len() <= SINGLY_REMOVED_MAX {
            for place in places.iter().rev() {
                self.elements.remove(*place);
            }
            return places.len();
        }
        let (mut place, mut next) = (0, places.iter().peekable());
        self.elements.retain(|_| {
            let stays = next.next_if(|removed| **removed == place).is_none();
            place += 1;
            stays
        });
        places.len()
    }

    /// Keeps the elements of a range of indexes, which must not go beyond the end.
    pub fn trim(&mut self, range: std::ops::Range<usize>) {
        let end = range.end.min(self.elements.len());
        self.nodes.trim(&self.elements, range.start.min(end)..end);
        self.elements.truncate(range.end);
        self.elements.drain(..range.start.min(self.elements.len()));
    }

    /// All elements from head to tail.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Blob> + DoubleEndedIterator {
        self.elements.iter()
    }

    /// The elements of a range of indexes, which must not go beyond the end.
    pub fn range(
        &self,
        range: std::ops::Range<usize>,
    ) -> impl ExactSizeIterator<Item = &Blob> + DoubleEndedIterator {
        let end = range.end.min(self.elements.len());
        self.elements.range(range.start.min(end)..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ListLimits = ListLimits {
        fill: 2,
        plain_len_min: 1 << 30,
    };

    fn list(text: &str) -> List {
        List::of(text.bytes().map(|byte| Blob::from(&[byte])), LIMITS)
    }

    fn text(list: &List) -> String {
        list.iter()
            .map(|element| String::from_utf8_lossy(element).into_owned())
            .collect()
    }

    #[test]
    fn elements_are_removed_from_either_end() {
        let cases = [
            ("abcabca", End::Left, 2, 2, "bcbca"),
            ("abcabca", End::Right, 2, 2, "abcbc"),
            ("abcabca", End::Left, usize::MAX, 3, "bcbc"),
            ("abcabca", End::Right, usize::MAX, 3, "bcbc"),
            ("bcd", End::Left, 1, 0, "bcd"),
            ("", End::Right, 1, 0, ""),
        ];
        for (before, end, count, removed, after) in cases {
            let mut list = list(before);
            assert_eq!(list.remove_equal(b"a", end, count), removed, "{before}");
            assert_eq!(text(&list), after, "{before}");
        }
    }

    #[test]
    fn a_trim_keeps_the_range_whatever_its_bounds() {
        for (range, after) in [
            (0..5, "abcde"),
            (1..3, "bc"),
            (4..9, "e"),
            (5..5, ""),
            (0..0, ""),
        ] {
            let mut list = list("abcde");
            list.trim(range.clone());
            assert_eq!(text(&list), after, "{range:?}");
        }
    }

    #[test]
    fn both_ends_push_pop_and_insert() {
        let mut list = list("bc");
        list.push(End::Left, Blob::from("a"));
        list.push(End::Right, Blob::from("d"));
        list.insert(0, Side::After, b"x");
        list.insert(4, Side::After, b"y");
        assert_eq!(text(&list), "axbcdy");
        assert_eq!(list.pop(End::Left), Some(Blob::from("a")));
        assert_eq!(list.pop(End::Right), Some(Blob::from("y")));
        assert!(list.set(0, b"z") && !list.set(4, b"z"));
        assert_eq!(
            (text(&list), list.contains(b"z")),
            ("zbcd".to_owned(), true)
        );
        assert!(list.range(1..9).map(|each| &**each).eq([b"b", b"c", b"d"]));
    }

    #[test]
    fn nodes_know_what_they_hold_whatever_is_done_to_the_list() {
        for seed in 0..30 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let limits = ListLimits {
                fill: [-1, 0, 1, 3, 8][seed as usize % 5],
                plain_len_min: if seed % 2 == 0 { 1 << 30 } else { 40 },
            };
            let mut list = List::new(limits);
            for _ in 0..400 {
                let element = Blob::from(vec![b'1' + rng.u8(0..3); rng.usize(0..60)]);
                let (len, end) = (list.len(), if rng.bool() { End::Left } else { End::Right });
                match rng.u8(0..9) {
                    0..4 => list.push(end, element),
                    4 => drop(list.pop(end)),
                    5 if len > 0 => {
                        let side = if rng.bool() {
                            Side::Before
                        } else {
                            Side::After
                        };
                        list.insert(rng.usize(..len), side, &element);
                    }
                    6 if len > 0 => assert!(list.set(rng.usize(..len), &element)),
                    7 => drop(list.remove_equal(&element, end, rng.usize(1..4))),
                    _ => list.trim(rng.usize(0..2)..len.saturating_sub(rng.usize(0..2))),
                }
                let mut held = 0;
                for (node, elements) in list.nodes() {
                    let elements: Vec<_> = elements.collect();
                    held += elements.len();
                    let counted = match (node.is_plain, &*elements) {
                        (true, [element]) => ListNode::plain(element),
                        _ => ListNode::packed(elements.iter().copied()),
                    };
                    assert_eq!(*node, counted, "seed {seed}");
                }
                assert_eq!(held, list.len(), "seed {seed}");
            }
        }
    }
}
