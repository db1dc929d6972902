//! The command table: one row and one function per command, families listed in `TABLE`.
//!
//! A row's kind, arity, flags, key spec and group drive everything that is not the command's own meaning: arity errors,
//! queueing, what scripts may call, what a subscriber may send, `COMMAND`, the explorer's footprints, random programs.

mod args;
mod call;
mod keys;
mod table;
mod timeout;

mod acl;
mod bitfield;
mod bitmap;
mod client;
mod client_kill;
mod client_memory;
mod client_tracking;
mod client_view;
mod cluster;
mod config_command;
mod connection;
mod debug;
mod debug_value;
mod digest;
mod dump;
mod expire;
mod fake;
#[cfg(feature = "lua")]
mod function;
mod generic;
mod geo;
mod geo_options;
mod geo_search;
mod hash;
mod hello;
mod hyperloglog;
mod hyperloglog_debug;
mod info;
mod introspect;
mod key_use;
mod known;
mod latency;
mod lcs;
mod list;
mod list_blocking;
mod list_pop;
mod memory;
mod migrate;
mod object;
mod parameter;
mod parameter_value;
mod pubsub;
mod recorded;
mod replconf;
mod sample;
mod scan;
#[cfg(feature = "lua")]
mod script;
mod server_admin;
mod set;
mod set_algebra;
mod sort;
mod sorted_set;
mod stream;
mod stream_group;
mod stream_info;
mod stream_pending;
mod stream_read;
mod string;
mod string_range;
mod transaction;
mod zrange;
mod zset_algebra;
mod zset_pop;

pub(crate) use args::Args;
pub(crate) use call::{Caller, ControlCall, ReadCall, Words, WriteCall};
pub(crate) use client_view::View;
pub(crate) use fake::error_text;
pub(crate) use key_use::{KeyUse, key_uses};
pub use keys::{Access, KeySpec};
pub(crate) use known::{Categories, CommandId, all_commands, command_named, id_of, known};
pub(crate) use parameter::setting;
pub use table::{Command, Flag, Group, Row, lookup, rows};
pub(crate) use table::{Effects, Family, Handler, row_count};

use crate::error::CommandError;
use crate::wire::Reply;

/// What a handler returns.
pub(crate) type CommandResult = Result<Reply, CommandError>;

/// All families, in the order in which `COMMAND` lists them.
const TABLE: &[Family] = &[
    bitfield::FAMILY,
    bitmap::FAMILY,
    cluster::FAMILY,
    connection::FAMILY,
    dump::FAMILY,
    dump::SERVER_FAMILY,
    expire::FAMILY,
    #[cfg(feature = "lua")]
    function::FAMILY,
    generic::FAMILY,
    geo::FAMILY,
    geo_search::FAMILY,
    hash::FAMILY,
    hyperloglog::FAMILY,
    hyperloglog_debug::FAMILY,
    lcs::FAMILY,
    list::FAMILY,
    list_blocking::FAMILY,
    list_pop::FAMILY,
    migrate::FAMILY,
    object::FAMILY,
    pubsub::FAMILY,
    scan::FAMILY,
    #[cfg(feature = "lua")]
    script::FAMILY,
    server_admin::FAMILY,
    set::FAMILY,
    set_algebra::FAMILY,
    sort::FAMILY,
    sorted_set::FAMILY,
    stream::FAMILY,
    stream_group::FAMILY,
    stream_info::FAMILY,
    stream_pending::FAMILY,
    stream_read::FAMILY,
    string::FAMILY,
    string_range::FAMILY,
    transaction::FAMILY,
    zrange::FAMILY,
    zset_algebra::FAMILY,
    zset_pop::FAMILY,
];
