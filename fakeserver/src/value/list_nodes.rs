//! `Nodes`: where a list is cut into the nodes of a quicklist.
//!
//! Where a node ends can be seen from outside: in a payload, in `DEBUG OBJECT` and by its memory. So a list knows of each of its
//! nodes how many elements it has and how many bytes its listpack would have, and cuts and merges them as Redis does
//! (quicklist.c).

use std::collections::VecDeque;
use std::ops::Range;

use super::packed_len::{LISTPACK_LEN_MIN, text_len};
use super::{Blob, End};
use crate::config::Config;

/// Most bytes of a node by the number that `list-max-listpack-size` gives, from -1 down.
const NODE_LEN_MAX: [usize; 5] = [4096, 8192, 16384, 32768, 65536];
/// Most bytes of a node whose number of elements is bounded.
const COUNTED_NODE_LEN_MAX: usize = 8192;
/// What an element is held to cost besides its own bytes.
const ELEMENT_OVERHEAD: usize = 8;
/// What two nodes are held to save by becoming one, and what they do save.
const MERGED_OVERHEAD: usize = 11;

/// How large a list's nodes may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimits {
    /// `list-max-listpack-size`: a number of elements, or from -1 to -5 one of five lengths.
    pub fill: i64,
    /// From so many bytes on an element has a node of its own that is no listpack.
    pub plain_len_min: usize,
}

impl ListLimits {
    /// The limits that are set now.
    pub fn of(config: &Config) -> ListLimits {
        ListLimits {
            fill: config.list_max_listpack_size.clamp(-5, 0x7fff),
            plain_len_min: config.list_packed_threshold,
        }
    }

    fn allow(self, bytes: usize, count: usize) -> bool {
        if self.fill < 0 {
            let level = usize::try_from(-1 - self.fill).unwrap_or(usize::MAX);
            return NODE_LEN_MAX.get(level).is_some_and(|max| bytes <= *max);
        }
        bytes <= COUNTED_NODE_LEN_MAX && count as i64 <= self.fill
    }
}

/// One node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListNode {
    /// Number of elements.
    pub len: usize,
    /// Bytes of the listpack, or of the one element.
    pub bytes: usize,
    /// One element that is no listpack.
    pub is_plain: bool,
}

impl ListNode {
    const EMPTY: ListNode = ListNode {
        len: 0,
        bytes: LISTPACK_LEN_MIN,
        is_plain: false,
    };

    /// A listpack of these elements.
    pub(crate) fn packed<'a>(elements: impl IntoIterator<Item = &'a Blob>) -> ListNode {
        let mut node = ListNode::EMPTY;
        elements.into_iter().for_each(|element| node.add(element));
        node
    }

    /// An element that has a node of its own.
    pub(crate) fn plain(element: &[u8]) -> ListNode {
        ListNode {
            len: 1,
            bytes: element.len(),
            is_plain: true,
        }
    }

    fn add(&mut self, element: &[u8]) {
        self.len += 1;
        self.bytes += text_len(element);
    }

    fn allows(&self, element: &[u8], limits: ListLimits) -> bool {
        let bytes = self.bytes + element.len() + ELEMENT_OVERHEAD;
        !self.is_plain && element.len() < limits.plain_len_min && limits.allow(bytes, self.len + 1)
    }

    fn allows_merge(&self, other: &ListNode, limits: ListLimits) -> bool {
        let bytes = (self.bytes + other.bytes).saturating_sub(MERGED_OVERHEAD);
        !self.is_plain && !other.is_plain && limits.allow(bytes, self.len + other.len)
    }
}

/// On which side of an element another is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// In front of it.
    Before,
    /// Behind it.
    After,
}

/// The nodes of a list, from head to tail.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes(VecDeque<ListNode>);

impl Nodes {
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &ListNode> {
        self.0.iter()
    }

    /// Appends a node as it was written.
    pub(super) fn append(&mut self, node: ListNode) {
        self.0.push_back(node);
    }

    pub(super) fn push(&mut self, end: End, element: &[u8], limits: ListLimits) {
        let node = match end {
            End::Left => self.0.front_mut(),
            End::Right => self.0.back_mut(),
        };
        if let Some(node) = node
            && node.allows(element, limits)
        {
            node.add(element);
            return;
        }
        let node = lone(element, limits);
        match end {
            End::Left => self.0.push_front(node),
            End::Right => self.0.push_back(node),
        }
    }

    pub(super) fn pop(&mut self, end: End, element: &[u8]) {
        let at = match end {
            End::Left => 0,
            End::Right => self.0.len().saturating_sub(1),
        };
        self.forget(at, element);
    }

    /// Counts an element of a node out.
    fn forget(&mut self, at: usize, element: &[u8]) {
        let Some(node) = self.0.get_mut(at) else {
            return;
        };
        if node.len <= 1 {
            self.0.remove(at);
            return;
        }
        node.len -= 1;
        node.bytes -= text_len(element);
    }

    /// The node of an element and the element's place in it, looked for from the nearer end.
    fn locate(&self, index: usize, len: usize) -> (usize, usize) {
        if index <= len / 2 {
            let mut left = index;
            for (at, node) in self.0.iter().enumerate() {
                if left < node.len {
                    return (at, left);
                }
                left -= node.len;
            }
            return (self.0.len(), 0);
        }
        let mut end = len;
        for (at, node) in self.0.iter().enumerate().rev() {
            end -= node.len;
            if index >= end {
                return (at, index - end);
            }
        }
        (0, 0)
    }

    /// Puts `element` beside the one at `index`; `elements` are those before it is there (`_quicklistInsert`).
    pub(super) fn insert(
        &mut self,
        elements: &VecDeque<Blob>,
        index: usize,
        side: Side,
        element: &[u8],
        limits: ListLimits,
    ) {
        let (at, offset) = self.locate(index, elements.len());
        let Some(node) = self.0.get_mut(at) else {
            self.0.push_back(lone(element, limits));
            return;
        };
        if node.allows(element, limits) {
            node.add(element);
            return;
        }
        let is_edge = match side {
            Side::Before => offset == 0,
            Side::After => offset + 1 == node.len,
        };
        let neighbour = match side {
            Side::Before => at.checked_sub(1),
            Side::After => Some(at + 1),
        };
        let behind = match side {
            Side::Before => at,
            Side::After => at + 1,
        };
        if is_edge {
            let neighbour = neighbour.and_then(|at| self.0.get_mut(at));
            match neighbour.filter(|node| node.allows(element, limits)) {
                Some(node) => node.add(element),
                None => self.0.insert(behind, lone(element, limits)),
            }
            return;
        }
        let first = index - offset;
        let cut = match side {
            Side::Before => offset,
            Side::After => offset + 1,
        };
        let (left, right) = self.split(elements, at, first, cut);
        self.0[at] = left;
        self.0.insert(at + 1, right);
        if element.len() >= limits.plain_len_min {
            self.0.insert(at + 1, lone(element, limits));
            return;
        }
        // The half that is split off takes the element, the other is what the merges are about.
        let (taker, center) = match side {
            Side::Before => (at, at + 1),
            Side::After => (at + 1, at),
        };
        self.0[taker].add(element);
        self.merge_around(center, limits);
    }

    /// The two parts of a node whose elements begin at `first`, the left one of `cut` elements.
    fn split(
        &self,
        elements: &VecDeque<Blob>,
        at: usize,
        first: usize,
        cut: usize,
    ) -> (ListNode, ListNode) {
        let node = self.0[at];
        let left = ListNode::packed(elements.range(first..first + cut));
        let right = ListNode {
            len: node.len - left.len,
            bytes: node.bytes - left.bytes + LISTPACK_LEN_MIN,
            is_plain: false,
        };
        (left, right)
    }

    /// Joins neighbours that fit into one node (`_quicklistMergeNodes`).
    fn merge_around(&mut self, center: usize, limits: ListLimits) {
        let mut center = center;
        if center >= 2 && self.merge(center - 2, limits) {
            center -= 1;
        }
        self.merge(center + 1, limits);
        if center >= 1 && self.merge(center - 1, limits) {
            center -= 1;
        }
        self.merge(center, limits);
    }

    /// Joins a node with the next one if they fit; whether they did.
    fn merge(&mut self, at: usize, limits: ListLimits) -> bool {
        let (Some(node), Some(next)) = (self.0.get(at), self.0.get(at + 1)) else {
            return false;
        };
        if !node.allows_merge(next, limits) {
            return false;
        }
        self.0[at] = ListNode {
            len: node.len + next.len,
            bytes: node.bytes + next.bytes - LISTPACK_LEN_MIN,
            is_plain: false,
        };
        self.0.remove(at + 1);
        true
    }

    /// Puts `element` in the place of the one at `index`; `elements` are those before it is there (`quicklistReplaceEntry`).
    pub(super) fn replace(
        &mut self,
        elements: &VecDeque<Blob>,
        index: usize,
        element: &[u8],
        limits: ListLimits,
    ) {
        let (at, offset) = self.locate(index, elements.len());
        let (Some(node), Some(old)) = (self.0.get(at).copied(), elements.get(index)) else {
            return;
        };
        let is_large = element.len() >= limits.plain_len_min;
        if !node.is_plain && !is_large {
            self.0[at].bytes = node.bytes - text_len(old) + text_len(element);
        } else if node.is_plain && is_large {
            self.0[at].bytes = element.len();
        } else if node.is_plain {
            self.insert(elements, index, Side::After, element, limits);
            self.0.remove(at);
        } else if node.len == 1 {
            self.0[at] = lone(element, limits);
        } else {
            let (left, right) = self.split(elements, at, index - offset, offset + 1);
            self.0[at] = left;
            if right.len > 0 {
                self.0.insert(at + 1, right);
            }
            self.0.insert(at + 1, lone(element, limits));
            self.forget(at, old);
        }
    }

    /// Takes out the elements at these places, which ascend.
    pub(super) fn remove_all(&mut self, elements: &VecDeque<Blob>, places: &[usize]) {
        if let [place] = places {
            let (at, _) = self.locate(*place, elements.len());
            if let Some(element) = elements.get(*place) {
                self.forget(at, element);
            }
            return;
        }
        let (mut places, mut start) = (places.iter().peekable(), 0);
        self.0.retain_mut(|node| {
            let end = start + node.len;
            while let Some(place) = places.next_if(|place| **place < end) {
                node.len -= 1;
                if let Some(element) = elements.get(*place)
                    && node.len > 0
                {
                    node.bytes -= text_len(element);
                }
            }
            start = end;
            node.len > 0
        });
    }

    /// Keeps the elements of a range of indexes (`quicklistDelRange`).
    pub(super) fn trim(&mut self, elements: &VecDeque<Blob>, range: Range<usize>) {
        let mut left = range.start;
        while let Some(node) = self.0.front_mut()
            && left > 0
        {
            if node.len > left {
                node.len -= left;
                let gone = elements.range(range.start - left..range.start);
                node.bytes -= gone.map(|element| text_len(element)).sum::<usize>();
                break;
            }
            left -= node.len;
            self.0.pop_front();
        }
        let mut left = elements.len() - range.end;
        while let Some(node) = self.0.back_mut()
            && left > 0
        {
            if node.len > left {
                node.len -= left;
                let gone = elements.range(range.end..range.end + left);
                node.bytes -= gone.map(|element| text_len(element)).sum::<usize>();
                break;
            }
            left -= node.len;
            self.0.pop_back();
        }
    }
}

/// A node of one element.
fn lone(element: &[u8], limits: ListLimits) -> ListNode {
    if element.len() >= limits.plain_len_min {
        return ListNode::plain(element);
    }
    let mut node = ListNode::EMPTY;
    node.add(element);
    node
}
