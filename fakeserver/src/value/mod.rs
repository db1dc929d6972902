//! What a key can hold. These types know nothing of keys, sessions or commands.

pub mod blob;
mod chunked;
pub mod dict;
mod either;
pub mod geo;
pub mod glob;
pub mod hash;
pub mod hyperloglog;
pub mod list;
mod list_nodes;
pub mod long_double;
pub mod number;
pub mod ordered;
pub(crate) mod packed_len;
pub mod set;
pub mod sorted_set;
pub mod sorting;
pub mod stream;
pub mod stream_group;
pub mod stream_id;
pub mod stream_node;
pub mod string;

pub use blob::Blob;
pub use dict::Dict;
pub use hash::{Hash, HashLimits};
pub use list::{End, List};
pub(crate) use list_nodes::ListNode;
pub use list_nodes::{ListLimits, Side};
pub use long_double::LongDouble;
pub use set::{Member, Set, SetLimits};
pub use sorted_set::SortedSet;
pub use stream::{Stream, Trim, TrimTo};
pub use stream_group::{Consumer, Group, Pending};
pub use stream_id::StreamId;
pub use stream_node::{Entry, NodeLimits};
pub use string::StringValue;
