//! What both drivers share: the bookkeeping of the pinned connection, and what a connection's answer means.

use redis::{RedisResult, ServerError, Value};

use crate::op::{self, Replies};

/// Where an operation stands with the pinned connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pinning {
    None,
    Held,
    Lost,
}

pub(crate) enum Entry {
    Clean,
    Tainted,
    Lost,
}

impl Pinning {
    /// Before a pinned batch. The mark stays until the operation is done, also if it is abandoned.
    pub(crate) fn enter(&mut self, tainted: &mut bool) -> Entry {
        match self {
            Self::Lost => Entry::Lost,
            Self::Held => Entry::Clean,
            Self::None => {
                *self = Self::Held;
                if std::mem::replace(tainted, true) {
                    Entry::Tainted
                } else {
                    Entry::Clean
                }
            }
        }
    }

    pub(crate) fn lost(&mut self) {
        if *self == Self::Held {
            *self = Self::Lost;
        }
    }

    pub(crate) fn leave(self, tainted: &mut bool) {
        if self == Self::Held {
            *tainted = false;
        }
    }
}

/// What a connection's answer to a batch of `count` commands means.
pub(crate) fn replies_of(sent: RedisResult<Vec<Value>>, count: usize) -> Replies {
    match sent {
        Ok(values) if values.len() == count => Replies::Received(values),
        Ok(_) => Replies::Lost(op::protocol_error("wrong number of replies")),
        // Refused connections have carried nothing.
        Err(error) if error.is_connection_refusal() => Replies::Unsent(error),
        Err(error) => match ServerError::try_from(error) {
            // Some connections hand the server's only answer out as their own error.
            Ok(error) if count == 1 => Replies::Received(vec![Value::ServerError(error)]),
            Ok(error) => Replies::Lost(error.into()),
            Err(error) => Replies::Lost(error),
        },
    }
}
