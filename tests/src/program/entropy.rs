//! [`Entropy`]: bytes from which everything about a program is chosen.

/// Choices drawn from bytes. When they run out, every choice is the first one, the simplest: programs shrink with their bytes.
#[derive(Clone, Debug)]
pub(super) struct Entropy<'a> {
    bytes: &'a [u8],
}

impl<'a> Entropy<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Entropy<'a> {
        Entropy { bytes }
    }

    /// A number below `n`, which is at most 256; 0 for `n` of 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        usize::from(*first) * n.min(256) / 256
    }

    /// One of `items`, which are not empty.
    pub(super) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// What something else is drawn from.
    pub(super) fn seed(&mut self) -> u64 {
        (0..8).fold(0, |seed, _| seed << 8 | self.below(256) as u64)
    }

    /// True once in 24 times or so.
    pub(super) fn seldom(&mut self) -> bool {
        self.below(24) == 23
    }
}
