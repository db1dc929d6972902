//! RESP, the Redis serialisation protocol: requests are read by [`request`], replies are values ([`reply`]) written by [`encode()`].
//!
//! A request is always a flat array of bulk strings (or an inline line), so the decoder reads just that and cannot recurse.

pub mod encode;
pub mod reply;
pub mod request;

pub(crate) use encode::encode_request;
pub use encode::{Protocol, encode};
pub use reply::{Part, Reply};
pub use request::{Buffered, Limits, ProtocolError, Request, RequestDecoder};
