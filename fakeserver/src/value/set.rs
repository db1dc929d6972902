//! [`Set`]: the value of a set key.

/// The value of a set key.
#[derive(Clone, Debug)]
pub struct Set {
    len: usize,
}

impl Set {
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
