//! [`Chunked`]: a vector whose growth never moves more than a bounded number of its elements.

use std::ops::{Index, IndexMut};

const SHIFT: u32 = 14;

/// Elements of a chunk, and so the most that one call moves.
const CHUNK_LEN: usize = 1 << SHIFT;

/// Elements by number, in chunks that stay where they are. The first one grows as a vector does, so a few elements take no more
/// room than in one.
#[derive(Clone, Debug)]
pub(super) struct Chunked<T> {
    first: Vec<T>,
    /// All are full but the last one and, in the end, an empty one in reserve.
    rest: Vec<Vec<T>>,
    len: usize,
}

impl<T> Chunked<T> {
    pub(super) fn new() -> Chunked<T> {
        Chunked {
            first: Vec::new(),
            rest: Vec::new(),
            len: 0,
        }
    }

    /// Without elements, with the memory of the first ones.
    #[cfg(feature = "explore")]
    pub(super) fn clear(&mut self) {
        self.first.clear();
        self.rest = Vec::new();
        self.len = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        match at.checked_sub(CHUNK_LEN) {
            None => self.first.get(at),
            Some(at) => self.rest.get(at >> SHIFT)?.get(at % CHUNK_LEN),
        }
    }

    pub(super) fn push(&mut self, value: T) {
        match self.len.checked_sub(CHUNK_LEN) {
            None => self.first.push(value),
            Some(at) => {
                if at >> SHIFT == self.rest.len() {
                    self.rest.push(Vec::with_capacity(CHUNK_LEN));
                }
                self.rest[at >> SHIFT].push(value);
            }
        }
        self.len += 1;
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        let Some(at) = self.len.checked_sub(CHUNK_LEN) else {
            return self.first.pop();
        };
        // One empty chunk is kept, or an element that comes and goes at a border would make and drop one each time.
        self.rest.truncate((at >> SHIFT) + 2);
        self.rest[at >> SHIFT].pop()
    }

    /// Takes out an element; the last one takes its place.
    pub(super) fn swap_remove(&mut self, at: usize) -> Option<T> {
        let last = self.pop()?;
        if at == self.len {
            return Some(last);
        }
        Some(std::mem::replace(&mut self[at], last))
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &T> + DoubleEndedIterator {
        (0..self.len).map(|at| &self[at])
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(self.rest.iter_mut().flatten())
    }
}

impl<T> Index<usize> for Chunked<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        match at.checked_sub(CHUNK_LEN) {
            None => &self.first[at],
            Some(at) => &self.rest[at >> SHIFT][at % CHUNK_LEN],
        }
    }
}

impl<T> IndexMut<usize> for Chunked<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        match at.checked_sub(CHUNK_LEN) {
            None => &mut self.first[at],
            Some(at) => &mut self.rest[at >> SHIFT][at % CHUNK_LEN],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_those_of_a_vector_at_every_border() {
        let (mut chunked, mut plain) = (Chunked::new(), Vec::new());
        let mut draw = fastrand::Rng::with_seed(1);
        for round in 0..8 {
            for _ in 0..CHUNK_LEN * 2 / 3 {
                let value = draw.u32(..);
                chunked.push(value);
                plain.push(value);
            }
            for _ in 0..CHUNK_LEN / 3 * (round % 3) {
                let at = draw.usize(..plain.len());
                assert_eq!(chunked.swap_remove(at), Some(plain.swap_remove(at)));
                assert_eq!(chunked.get(plain.len()), None);
            }
            assert_eq!(chunked.len(), plain.len());
            assert!(chunked.iter().eq(&plain));
            assert!(chunked.iter().rev().eq(plain.iter().rev()));
            assert!(chunked.iter_mut().eq(&mut plain));
        }
        while let Some(value) = plain.pop() {
            assert_eq!(chunked.pop(), Some(value));
        }
        assert_eq!((chunked.pop(), chunked.is_empty()), (None, true));
    }

    #[test]
    fn what_lies_in_a_full_chunk_is_moved_no_more() {
        let mut chunked = Chunked::new();
        (0..CHUNK_LEN).for_each(|n| chunked.push(n));
        let place = |chunked: &Chunked<usize>, at: usize| std::ptr::from_ref(&chunked[at]);
        let first = place(&chunked, 0);
        (0..CHUNK_LEN * 9).for_each(|n| chunked.push(n));
        assert_eq!(place(&chunked, 0), first);
        assert!(chunked.rest.iter().all(|it| it.capacity() == CHUNK_LEN));
    }

    #[test]
    fn chunks_that_are_no_longer_needed_go_but_for_one() {
        let mut chunked = Chunked::new();
        (0..CHUNK_LEN * 4).for_each(|n| chunked.push(n));
        assert_eq!(chunked.rest.len(), 3);
        (0..=CHUNK_LEN * 2).for_each(|_| assert!(chunked.pop().is_some()));
        assert_eq!(chunked.rest.len(), 2, "a part of the second, and a reserve");
    }
}
