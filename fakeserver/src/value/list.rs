//! [`List`]: the value of a list key.

/// The value of a list key.
#[derive(Clone, Debug)]
pub struct List {
    len: usize,
}

impl List {
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
