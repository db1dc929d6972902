//! Values that redis-server frees in a thread of its own. Here they are freed like all others, and counted as it counts them.

use super::{Entry, Keyspace, Value};
use crate::value::stream::radix_nodes_of;
use crate::value::stream_node::Node;

/// A value of no more parts than this is freed at once whatever the settings (lazyfree.c, `LAZYFREE_THRESHOLD`).
const PARTS_MAX: usize = 64;

/// The settings `lazyfree-lazy-*`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own"
)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LazyFree {
    pub eviction: bool,
    pub expire: bool,
    pub server_del: bool,
    pub user_del: bool,
    pub user_flush: bool,
}

/// Why a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its deadline has passed, or was set to the past.
    Expired,
    /// Memory was short.
    Evicted,
    /// Another value, or none, takes its place.
    Replaced,
    /// DEL.
    Deleted,
    /// UNLINK.
    Unlinked,
    /// It is empty, or goes elsewhere.
    NotFreed,
}

impl LazyFree {
    fn applies(self, reason: Reason) -> bool {
        match reason {
            Reason::Expired => self.expire,
            Reason::Evicted => self.eviction,
            Reason::Replaced => self.server_del,
            Reason::Deleted => self.user_del,
            Reason::Unlinked => true,
            Reason::NotFreed => false,
        }
    }
}

impl Keyspace {
    /// Counts a value that goes, if redis-server would free it in the background.
    pub(super) fn count_freed(&mut self, entry: &Entry, reason: Reason) {
        if self.lazy_free.applies(reason) && parts(entry.value()) > PARTS_MAX {
            self.stats.lazyfreed_objects += 1;
        }
    }
}

/// Allocations of a value, as far as they decide (lazyfree.c, `lazyfreeGetFreeEffort`).
fn parts(value: &Value) -> usize {
    match value {
        Value::String(_) => 1,
        Value::List(list) => list.nodes_len(),
        Value::Hash(hash) => hash.table().map_or(1, |_| hash.len()),
        Value::Set(set) => set.table().map_or(1, |_| set.len()),
        Value::SortedSet(set) => set.table().map_or(1, |_| set.len()),
        Value::Stream(stream) => {
            // Of the groups the first one stands for all.
            let groups = stream.groups();
            let pending = groups.values().next().map_or(0, |it| it.pending().len());
            radix_nodes_of(stream.nodes().map(Node::master)) + groups.len() * (1 + pending)
        }
    }
}
