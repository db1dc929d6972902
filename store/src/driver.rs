//! What both drivers share: the bookkeeping of the pinned connection, and what a connection's answer means.

use std::time::Duration;

use redis::{RedisResult, ServerError, Value};

use crate::{
    Rejection, StoreError,
    error::UNTAGGED,
    keys::Keys,
    op::{self, Channel, Replies},
};

/// How long a connection that a store opens by itself waits for a reply unless told otherwise. Whoever waits for ever never
/// learns that a reply was lost; whoever waits too short gets [`StoreError::Indeterminate`] from a server that is only busy.
pub(crate) const RESPONSE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// Where an operation stands with the pinned connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pinning {
    None,
    Held,
    /// Its last batch ended in a refusal (of `UNWATCH`, of `EXEC`): it may go on, but the watch may still be there.
    Doubted,
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
            Self::Held | Self::Doubted => Entry::Clean,
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

    /// After a batch. Without a reply to a pinned one nobody knows what the connection carries; and whatever was lost may
    /// have taken the pinned connection with it.
    pub(crate) fn after(&mut self, channel: Channel, replies: &Replies) {
        let known = match replies {
            Replies::Received(_) => true,
            Replies::Lost(_) => false,
            _ => channel == Channel::Shared,
        };
        if !matches!(self, Self::Held | Self::Doubted) {
            return;
        }
        if !known {
            *self = Self::Lost;
        } else if let (Channel::Pinned, Replies::Received(values)) = (channel, replies) {
            *self = if ends_in_refusal(values) {
                Self::Doubted
            } else {
                Self::Held
            };
        }
    }

    /// At the end of an operation: whether the pinned connection is known to carry no watch.
    pub(crate) fn leave(self, tainted: &mut bool) -> bool {
        if self == Self::Held {
            *tainted = false;
        }
        !*tainted
    }
}

/// Whether the last command did not run. A transaction that is refused for what was queued has ended all the same.
fn ends_in_refusal(values: &[Value]) -> bool {
    matches!(values.last(), Some(Value::ServerError(error)) if error.code() != "EXECABORT")
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

/// Whether a connection of this type may become another one between two requests, without a word: then it forgets a
/// watch, and a transaction that relies on it overwrites what it should not.
///
/// The type's name is all that one can go by; a wrapper's name contains that of what it wraps.
pub(crate) fn forgets_watches<C>() -> bool {
    const CHANGING: [&str; 3] = [
        "redis::client::Client",
        "::ConnectionManager",
        "::ClusterConnection",
    ];
    let name = std::any::type_name::<C>();
    CHANGING.iter().any(|changing| name.contains(changing))
}

/// The refusal of such a connection.
pub(crate) const NOT_ONE_CONNECTION: StoreError = StoreError::Invalid {
    what: "connection",
    reason: Rejection::NotOneConnection,
};

/// Refuses redis-rs' own cluster connections for keys that would lie on several nodes. The type's name is all that one can go by
/// before something is sent; the server refuses what slips through.
pub(crate) fn one_slot<C>(keys: &Keys) -> Result<(), StoreError> {
    if std::any::type_name::<C>().contains("::ClusterConnection") && !keys.is_tagged() {
        return Err(UNTAGGED);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_refused_to_unwatch_stays_suspected() {
        let refusal = |code: &str| {
            let parsed = redis::parse_redis_value(format!("-{code} no\r\n").as_bytes());
            Replies::Received(vec![parsed.unwrap()])
        };
        for (replies, stays) in [
            (Replies::Received(vec![Value::Okay]), false),
            (refusal("EXECABORT"), false),
            (refusal("NOPERM"), true),
        ] {
            let (mut tainted, mut pinning) = (false, Pinning::None);
            assert!(matches!(pinning.enter(&mut tainted), Entry::Clean));
            pinning.after(Channel::Pinned, &replies);
            assert_eq!(pinning.leave(&mut tainted), !stays);
            assert_eq!(tainted, stays);
        }
        // The next operation that only reads does not make it any better.
        let mut tainted = true;
        assert!(!Pinning::None.leave(&mut tainted) && tainted);
    }

    #[test]
    fn connections_that_change_are_known_by_name() {
        assert!(forgets_watches::<redis::Client>());
        assert!(forgets_watches::<&mut Box<redis::Client>>());
        assert!(!forgets_watches::<redis::Connection>());
    }

    #[test]
    fn a_clusters_connection_is_known_by_its_name() {
        mod cluster {
            pub(super) struct ClusterConnection;
        }

        let tagged = Keys::new("{stm}").unwrap();
        let untagged = Keys::new("stm").unwrap();
        assert!(one_slot::<cluster::ClusterConnection>(&tagged).is_ok());
        assert!(one_slot::<cluster::ClusterConnection>(&untagged).is_err());
        assert!(one_slot::<redis::Connection>(&untagged).is_ok());
    }
}
