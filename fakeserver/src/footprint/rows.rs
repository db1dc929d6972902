//! What a command touches by its row and its words.

#[cfg(feature = "explore")]
use smallvec::SmallVec;

use super::{CHANCE, CHANNELS, CLOCK, FUNCTIONS, Footprint, Part, SCRIPT_CACHE, elements, hashed};
use crate::command::{Access, Flag, Group, Row, lookup};
use crate::wire::Request;

/// Where the first option of a geo command may stand.
const GEO_OPTIONS_AT: usize = 5;

/// Subcommands of CLIENT that are about the own connection only, unlike INFO, which tells whether a watched key was changed.
const OWN_CLIENT: &[&str] = &[
    "GETNAME",
    "GETREDIR",
    "HELP",
    "ID",
    "NO-EVICT",
    "REPLY",
    "SETNAME",
    "TRACKINGINFO",
];

/// Commands that tell or set times to live, or tell the time.
const CLOCKED: &[&str] = &[
    "expire",
    "getex",
    "object|idletime",
    "pexpire",
    "psetex",
    "pttl",
    "restore",
    "restore-asking",
    "setex",
    "time",
    "ttl",
];

/// Commands that draw random numbers.
const DRAWING: &[&str] = &["hrandfield", "spop", "srandmember", "zrandmember"];

/// Commands that touch everything, but for what only its own connection can see.
#[cfg(feature = "explore")]
const BLIND_TO_CONNECTIONS: &[&str] = &[
    "config|get",
    "config|help",
    "config|set",
    "dbsize",
    "flushall",
    "flushdb",
    "lastsave",
    "save",
    "swapdb",
    "client|unblock",
];

/// What a command shows of orders that footprints do not keep.
#[cfg(feature = "explore")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Reveals {
    /// Keys whose elements' order or encoding it may depend on.
    pub(crate) keys: SmallVec<[u64; 2]>,
    /// It may depend on the order of the table of keys.
    pub(crate) order_of_keys: bool,
    /// It looks at other connections, or ends them.
    pub(crate) connections: bool,
    /// It may depend on all that there is.
    pub(crate) all: bool,
}

/// The row of a request, a subcommand's if there is one.
pub(super) fn row_of(request: &Request) -> Option<&'static Row> {
    let row = lookup(request.name())?;
    let subcommand = request.get(1).and_then(|name| row.subcommand(name));
    Some(subcommand.unwrap_or(row))
}

/// Where a command's keys are, and what it does with each.
pub(crate) fn key_positions(row: &Row, request: &Request) -> Vec<(usize, Access)> {
    row.keys().positions(request, kind(row))
}

fn kind(row: &Row) -> Access {
    if row.has(Flag::ReadOnly) || row.full_name() == "watch" {
        Access::Read
    } else {
        Access::Write
    }
}

/// What a command touches, to the single element.
pub(super) fn footprint(row: &Row, request: &Request) -> Footprint {
    let mut footprint = Footprint::default();
    if !element_touches(row, request, &mut footprint) {
        row.keys().visit(request, kind(row), |at, access| {
            if let Some(key) = request.get(at) {
                footprint.add(hashed(key), access);
            }
        });
    }
    match (row.group(), row.full_name()) {
        (Group::Geo, _) if row.has(Flag::MovableKeys) => {
            repeated_stores(request).for_each(|key| footprint.add(key, Access::Write));
        }
        (Group::Generic, "sort" | "sort_ro") if follows_pattern(request) => {
            return Footprint::everything();
        }
        // What another server does with the keys is not known, nor which server that is.
        (Group::Generic, "migrate") => return Footprint::everything(),
        // Each access changes what these tell, and some change the encoding.
        (_, name) if name.starts_with("object|") => {
            for touch in &mut footprint.touches {
                touch.part = Part::Write;
            }
        }
        (Group::Server, name) if name.starts_with("command") => return footprint,
        (Group::Scripting, name) => script(name, &mut footprint),
        (Group::PubSub, name) if name.starts_with("pubsub|") => {
            footprint.add(CHANNELS, Access::Read);
        }
        (Group::PubSub, _) if !hears_of_keys(row, request) => {
            footprint.add(CHANNELS, Access::Write);
        }
        // They end what the connection listens to.
        (Group::Connection, "reset" | "quit") => footprint.add(CHANNELS, Access::Write),
        // Other subcommands of CLIENT see and close other connections.
        (Group::Connection, name)
            if !name.starts_with("client") || OWN_CLIENT.contains(&row.name()) =>
        {
            return footprint;
        }
        (Group::Transactions, "multi" | "discard" | "unwatch" | "exec") => return footprint,
        _ => {}
    }
    if reads_clock(row, request) {
        footprint.add(CLOCK, Access::Read);
    }
    if footprint.is_empty() {
        return Footprint::everything();
    }
    if DRAWING.contains(&row.full_name()) {
        footprint.add(CHANCE, Access::Write);
    }
    footprint
}

/// Whether what the command does depends on the time of day. Identifiers and idle times of streams do.
fn reads_clock(row: &Row, request: &Request) -> bool {
    match row.full_name() {
        "set" => request.len() > 3,
        name => row.group() == Group::Stream || CLOCKED.contains(&name),
    }
}

/// The elements that a command touches, if that is all it does.
fn element_touches(row: &Row, request: &Request, footprint: &mut Footprint) -> bool {
    elements::visit(row, request, |at, part| {
        if let Some(key) = request.get(at) {
            footprint.push(hashed(key), part);
        }
    }) && !footprint.is_empty()
}

/// Adds what scripts touch besides their keys.
fn script(name: &str, footprint: &mut Footprint) {
    match name {
        "evalsha" | "evalsha_ro" | "script|exists" => footprint.add(SCRIPT_CACHE, Access::Read),
        "eval" | "eval_ro" | "script|load" => footprint.add(SCRIPT_CACHE, Access::Write),
        "fcall" | "fcall_ro" => footprint.add(FUNCTIONS, Access::Write),
        _ => return,
    }
    if !name.starts_with("script") {
        footprint.add(CLOCK, Access::Read);
    }
}

/// What a command shows besides.
#[cfg(feature = "explore")]
pub(super) fn reveals(row: Option<&Row>, request: &Request, footprint: &Footprint) -> Reveals {
    let mut reveals = Reveals::default();
    let Some(row) = row else {
        reveals.all = true;
        return reveals;
    };
    match row.group() {
        Group::Server if row.full_name().starts_with("debug") => reveals.all = true,
        Group::Generic | Group::Cluster
            if footprint.everything && !row.full_name().starts_with("sort") =>
        {
            reveals.order_of_keys = true;
        }
        Group::Server | Group::Connection if footprint.everything => {
            reveals.connections = !BLIND_TO_CONNECTIONS.contains(&row.full_name());
        }
        // What scripts call is seen when they have run; the other groups' values are in an order that all can see.
        Group::Scripting
        | Group::String
        | Group::Bitmap
        | Group::HyperLogLog
        | Group::List
        | Group::Stream => {}
        _ => {
            let mut fine = Footprint::default();
            if elements::sees_order(row) && !element_touches(row, request, &mut fine) {
                let positions = key_positions(row, request).into_iter();
                let keys = positions.filter_map(|(at, _)| request.get(at)).map(hashed);
                reveals.keys.extend(keys);
            }
        }
    }
    reveals
}

/// Whether a subscription may be to keyspace events, which any write can send.
pub(super) fn hears_of_keys(row: &Row, request: &Request) -> bool {
    match row.full_name() {
        "psubscribe" => true,
        "subscribe" => request
            .words()
            .skip(1)
            .any(|channel| channel.starts_with(b"__key")),
        _ => false,
    }
}

/// Whether SORT looks at keys that it makes up from the elements.
fn follows_pattern(request: &Request) -> bool {
    let is_pattern = |word: &[u8]| word.contains(&b'*');
    request.words().skip(2).any(is_pattern)
}

/// Keys behind STORE and STOREDIST that the row does not name: of several the last one is written, but key specs see the first.
fn repeated_stores(request: &Request) -> impl Iterator<Item = u64> {
    let is_store = |word: &[u8]| {
        word.eq_ignore_ascii_case(b"STORE") || word.eq_ignore_ascii_case(b"STOREDIST")
    };
    let stores = move |at: &usize| request.get(*at).is_some_and(is_store);
    let options = (GEO_OPTIONS_AT..request.len()).filter(stores);
    options.filter_map(|at| request.get(at + 1)).map(hashed)
}
