//! [`SortedSet`]: the value of a sorted set key.

/// The value of a sorted set key.
#[derive(Clone, Debug)]
pub struct SortedSet {
    len: usize,
}

impl SortedSet {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The name that `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        "listpack"
    }
}
