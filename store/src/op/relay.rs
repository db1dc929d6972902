//! What the relay does with a hash of entries, be they events to deliver or executions to start.

use redis::{Value, cmd};

use super::{Batch, Replies, Step, reply};
use crate::{Seq, StoreError};

/// `HGETALL`: all entries of the hash at `key`, each made by `decode` from its field and value, in the order of `seq`.
pub(super) fn pending<E>(
    key: &str,
    replies: Replies,
    decode: impl Fn(&[u8], &[u8]) -> Result<E, StoreError>,
    seq: impl Fn(&E) -> Seq,
) -> Step<Vec<E>> {
    if let Replies::Start = replies {
        return Step::Send(Batch::shared([cmd("HGETALL").arg(key).take()]));
    }
    let entry = |(field, value): (Value, Value)| {
        let (Some(field), Some(value)) = (reply::bytes(field), reply::bytes(value)) else {
            return Err(reply::unexpected("HGETALL"));
        };
        decode(&field, &value)
    };
    Step::Done(replies.harmless().and_then(|[fields]| {
        let fields = reply::accepted(fields, "HGETALL", key)?;
        let fields = reply::pairs(fields).ok_or_else(|| reply::unexpected("HGETALL"))?;
        let mut entries = fields
            .into_iter()
            .map(entry)
            .collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(seq);
        Ok(entries)
    }))
}

/// `HDEL`: takes one entry out of the hash at `key`; whether it was there.
pub(super) fn acknowledge(key: &str, seq: Seq, replies: Replies) -> Step<bool> {
    if let Replies::Start = replies {
        return Step::Send(Batch::shared([cmd("HDEL").arg(key).arg(seq.get()).take()]));
    }
    // Sequence numbers are not used twice, so that a repetition removes nothing else.
    Step::Done(replies.harmless().and_then(|[removed]| {
        let removed = reply::accepted(removed, "HDEL", key)?;
        reply::integer(&removed)
            .map(|removed| removed != 0)
            .ok_or_else(|| reply::unexpected("HDEL"))
    }))
}
