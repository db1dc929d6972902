//! Listing goes over all partitions, one after the other.

use std::{fmt, str::FromStr};

use super::Partition;
use super::layout::Partitions;
use crate::{Cursor, ExecutionPage, Rejection, StoreError};

/// A part of a listing of a sharded store: of one partition.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ShardedPage {
    /// What was found there; its own cursor is part of [`ShardedPage::next_cursor`].
    pub page: ExecutionPage,
    /// Where to go on; none at the end. A page may be empty and have a successor.
    pub next_cursor: Option<ShardedCursor>,
}

/// Where a listing of a sharded store goes on. Opaque; spelled as text to travel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShardedCursor {
    pub(super) partition: u16,
    pub(super) inner: Option<Cursor>,
}

impl ShardedCursor {
    /// Where a listing is: the start if nothing was said.
    pub(super) fn place(
        cursor: Option<Self>,
        partitions: Partitions,
    ) -> Result<(Partition, Option<Cursor>), StoreError> {
        let (number, inner) = cursor.map_or((0, None), |cursor| (cursor.partition, cursor.inner));
        let partition = partitions.get(number).ok_or_else(malformed)?;
        Ok((partition, inner))
    }
}

impl ShardedPage {
    pub(super) fn new(
        mut page: ExecutionPage,
        partition: Partition,
        partitions: Partitions,
    ) -> Self {
        let next = partitions.get(partition.number() + 1);
        let next_cursor = match page.next_cursor.take() {
            Some(inner) => Some((partition, Some(inner))),
            None => next.map(|next| (next, None)),
        };
        let next_cursor = next_cursor.map(|(partition, inner)| ShardedCursor {
            partition: partition.number(),
            inner,
        });
        Self { page, next_cursor }
    }
}

impl fmt::Display for ShardedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.partition)?;
        self.inner.as_ref().map_or(Ok(()), |inner| inner.fmt(f))
    }
}

impl FromStr for ShardedCursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let (partition, inner) = text.split_once(':').ok_or_else(malformed)?;
        let inner = if inner.is_empty() {
            None
        } else {
            Some(inner.parse()?)
        };
        Ok(Self {
            partition: partition.parse().map_err(|_| malformed())?,
            inner,
        })
    }
}

fn malformed() -> StoreError {
    StoreError::Invalid {
        what: "cursor",
        reason: Rejection::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_spelled() {
        for text in ["0:", "3:18446744073709551615"] {
            assert_eq!(text.parse::<ShardedCursor>().unwrap().to_string(), text);
        }
        for text in ["", "3", ":", "x:", "3:x", "-1:", "65536:", "3:-1"] {
            assert!(text.parse::<ShardedCursor>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_cursor_of_a_partition_that_is_not_there_is_refused() {
        let partitions = Partitions::new(2).unwrap();
        let place = |text: &str| ShardedCursor::place(Some(text.parse().unwrap()), partitions);
        assert_eq!(place("1:7").unwrap().0.number(), 1);
        assert!(place("2:").is_err());
        assert_eq!(
            ShardedCursor::place(None, partitions).unwrap().0.number(),
            0
        );
    }
}
