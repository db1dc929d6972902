//! [`Blob`]: the binary-safe string that keys, fields, members and replies are made of.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use smallvec::SmallVec;

/// A binary string; up to 16 bytes live in the value itself, so a small key or member needs no allocation.
#[derive(Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Blob(SmallVec<[u8; 16]>);

impl Clone for Blob {
    /// Copies all bytes at once, which the derived one does not.
    fn clone(&self) -> Blob {
        Blob::from(self.as_bytes())
    }
}

impl Blob {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The bytes as a vector.
    pub fn into_vec(self) -> Vec<u8> {
        self.0.into_vec()
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Blob {
        Blob(SmallVec::from_slice(bytes))
    }
}

impl<const N: usize> From<&[u8; N]> for Blob {
    fn from(bytes: &[u8; N]) -> Blob {
        Blob(SmallVec::from_slice(bytes))
    }
}

impl From<&str> for Blob {
    fn from(text: &str) -> Blob {
        Blob::from(text.as_bytes())
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Blob {
        if bytes.len() <= 16 {
            Blob::from(bytes.as_slice())
        } else {
            Blob(SmallVec::from_vec(bytes))
        }
    }
}

impl From<String> for Blob {
    fn from(text: String) -> Blob {
        Blob::from(text.into_bytes())
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Blob {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}
