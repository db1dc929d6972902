//! What a command does with its keys: looking at them, changing them, or both, as Redis' key specs and option parsers say it.

use serde_json::Value;

use super::{Access, Flag, Group, KeySpec, Row, recorded};
use crate::wire::Request;

/// A key of a request and what is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyUse {
    /// The key's place among the words.
    pub at: usize,
    /// The value itself is looked at, not only whether or what there is.
    pub reads: bool,
    pub writes: bool,
}

/// The keys of a request as access control sees them; none if the places of some cannot be told, since the command will refuse.
pub(crate) fn key_uses(row: &Row, request: &Request) -> Vec<KeyUse> {
    if !has_keys(row) {
        return Vec::new();
    }
    let positions = key_positions(row, request).unwrap_or_default();
    let uses = positions.into_iter().map(|(at, access)| {
        let flags = key_flags(row, request, at, access);
        let has = |wanted: &[&str]| flags.iter().any(|flag| wanted.contains(flag));
        KeyUse {
            at,
            reads: has(&["access"]),
            writes: has(&["insert", "delete", "update"]),
        }
    });
    uses.collect()
}

/// Where the keys of a request are. None if some cannot be told.
pub(super) fn key_positions(row: &Row, request: &Request) -> Option<Vec<(usize, Access)>> {
    let kind = if row.has(Flag::ReadOnly) {
        Access::Read
    } else {
        Access::Write
    };
    let keys = row.keys().positions(request, kind);
    // A destination alone is what is left of a count that cannot be read.
    let half = matches!(row.keys(), KeySpec::DestinationAndCount) && keys.len() < 2;
    (!half && !lacks_keys(row, request)).then_some(keys)
}

/// Whether keys that a spec places at an index are missing, though the command does without (PFMERGE of no source).
fn lacks_keys(row: &Row, request: &Request) -> bool {
    key_specs(row)
        .filter_map(|spec| {
            spec.get("begin_search")?
                .get("spec")?
                .get("index")?
                .as_u64()
        })
        .any(|index| index >= request.len() as u64)
}

/// Whether a command (or one of its subcommands) has keys; shard channels stand where keys stand, but are none.
pub(super) fn has_keys(row: &Row) -> bool {
    let names_channels = key_specs(row)
        .filter_map(|spec| spec.get("flags")?.as_array())
        .flatten()
        .any(|flag| flag == "+not_key");
    !matches!(row.keys(), KeySpec::None) && !names_channels
        || row.subcommands().iter().any(|row| has_keys(row))
}

fn key_specs(row: &Row) -> impl Iterator<Item = &'static Value> {
    recorded::info(row.full_name(), "key_specs")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// What a command does to the key at `at`, as its key specs name it.
pub(super) fn key_flags(
    row: &Row,
    request: &Request,
    at: usize,
    access: Access,
) -> Vec<&'static str> {
    let spec = key_specs(row).find(|spec| covers(spec, request, at));
    let flags = spec.and_then(|spec| spec.get("flags")?.as_array());
    let names: Vec<&'static str> = flags
        .into_iter()
        .flatten()
        .filter_map(|flag| flag.as_str()?.strip_prefix('+'))
        // That is said of the spec; the keys come from the command's own function then, which tells the rest.
        .filter(|flag| *flag != "incomplete")
        .collect();
    if names.contains(&"variable_flags") {
        return variable_flags(row, request).to_vec();
    }
    if !names.is_empty() {
        return names;
    }
    match access {
        Access::Read => vec!["RO", "access"],
        Access::Write => vec!["OW", "update"],
    }
}

/// Whether a recorded key spec places a key at `at`.
fn covers(spec: &Value, request: &Request, at: usize) -> bool {
    let number = |value: Option<&Value>| value.and_then(Value::as_i64);
    let search = spec
        .get("begin_search")
        .and_then(|search| search.get("spec"));
    let Some(search) = search else { return false };
    let begin = match search.get("keyword").and_then(Value::as_str) {
        Some(keyword) => {
            let found = request
                .words()
                .position(|word| word.eq_ignore_ascii_case(keyword.as_bytes()));
            found.map(|found| found as i64 + 1)
        }
        None => number(search.get("index")),
    };
    let find = spec.get("find_keys").and_then(|find| find.get("spec"));
    let (Some(begin), Some(find)) = (begin, find) else {
        return false;
    };
    let at = at as i64;
    if let Some(count_at) = number(find.get("keynumidx")) {
        return at > begin + count_at;
    }
    let last = match number(find.get("lastkey")) {
        Some(last) if last >= 0 => begin + last,
        _ => request.len() as i64,
    };
    (begin..=last).contains(&at)
}

/// Commands whose effect on the key depends on an option (SET with GET, BITFIELD with anything but GET).
fn variable_flags(row: &Row, request: &Request) -> &'static [&'static str] {
    const BOTH: &[&str] = &["RW", "access", "update"];
    let is_bitmap = row.group() == Group::Bitmap;
    let mut words = request.words().skip(if is_bitmap { 2 } else { 3 });
    while let Some(word) = words.next() {
        let is = |option: &[u8]| word.eq_ignore_ascii_case(option);
        if is_bitmap {
            let values = if is(b"GET") {
                2
            } else if is(b"OVERFLOW") {
                1
            } else {
                return BOTH;
            };
            // What is cut short might become anything.
            if words.by_ref().take(values).count() < values {
                return BOTH;
            }
        } else if is(b"GET") {
            return BOTH;
        }
    }
    if is_bitmap {
        &["RO", "access"]
    } else {
        &["OW", "update"]
    }
}
