//! What DEBUG shows of values and of how they lie in memory, and DEBUG RELOAD, which has them as if read from a file.

use super::introspect::subcommand_syntax;
use super::object::references;
use super::{Args, CommandResult, ControlCall};
use crate::error::CommandError;
use crate::keyspace::{DbIndex, Entry, Value, key_size, text_size};
use crate::payload::{self, Check};
use crate::value::dict::TableStats;
use crate::value::{Blob, Dict, List, StringValue, number};
use crate::wire::Reply;

/// Longest string that is kept with its object, and the bytes of the object.
const EMBEDDED_LEN_MAX: usize = 44;
const OBJECT_LEN: usize = 16;
/// Bytes of a place in the main table.
const DICT_ENTRY_LEN: usize = 24;

/// The entry of a key. Errors: no such key.
fn entry<'a>(call: &'a ControlCall<'_>, key: &[u8]) -> Result<&'a Entry, CommandError> {
    let entry = call.engine.keyspace.entry(key);
    entry.ok_or(CommandError::NoSuchKey)
}

/// The entry of a key that may be due: DEBUG looks past deadlines where it reads the table itself (debug.c).
fn raw_entry<'a>(call: &'a ControlCall<'_>, key: &[u8]) -> Result<&'a Entry, CommandError> {
    let entry = call.engine.keyspace.raw_entry(key);
    entry.ok_or(CommandError::NoSuchKey)
}

fn refused(text: &'static str) -> CommandResult {
    Err(CommandError::custom(text))
}

/// `DEBUG OBJECT key`: replies with a line about the value. Errors: no such key.
pub(super) fn object(call: &mut ControlCall<'_>, key: &[u8]) -> CommandResult {
    let entry = raw_entry(call, key)?;
    let (lru, idle) = call.engine.keyspace.access_note(entry);
    let encoding = entry.value().encoding();
    let references = references(entry.value(), &call.engine.config);
    let compression = call.engine.config.payload_compression();
    let size = payload::value_len(entry.value(), compression);
    let line = format!(
        "Value at:0x7f0000000000 refcount:{references} encoding:{encoding} serializedlength:{size} lru:{lru} lru_seconds_idle:{idle}"
    );
    let nodes = match entry.value() {
        Value::List(list) => describe_nodes(list),
        _ => String::new(),
    };
    Ok(Reply::Simple((line + &nodes).into()))
}

fn describe_nodes(list: &List) -> String {
    let nodes = list.nodes_len();
    let bytes: usize = list.nodes().map(|(node, _)| node.bytes).sum();
    let average = list.len() as f64 / nodes.max(1) as f64;
    let fill = list.fill();
    format!(
        " ql_nodes:{nodes} ql_avg_node:{average:.2} ql_listpack_max:{fill} ql_compressed:0 ql_uncompressed_size:{bytes}"
    )
}

/// `DEBUG SDSLEN key`: replies with a line about the key and its string. Errors: no such key; not a string, or an integer.
pub(super) fn sdslen(call: &mut ControlCall<'_>, key: &[u8]) -> CommandResult {
    let text = match raw_entry(call, key)?.value() {
        Value::String(StringValue::Integer(_)) => None,
        Value::String(text) => Some(text),
        _ => None,
    };
    let Some(text) = text else {
        return refused("ERR Not an sds encoded string.");
    };
    let (len, bytes) = (text.len(), text_size(text.len().max(1)));
    let is_embedded = matches!(text, StringValue::Text(_)) && len <= EMBEDDED_LEN_MAX;
    let (available, allocated) = if is_embedded {
        (0, Value::String(text.clone()).footprint(1) - OBJECT_LEN)
    } else {
        (available(len, bytes), bytes)
    };
    let key_bytes = key_size(key) - DICT_ENTRY_LEN;
    Ok(Reply::Simple(
        format!(
            "key_sds_len:{}, key_sds_avail:{}, key_zmalloc: {key_bytes}, val_sds_len:{len}, val_sds_avail:{available}, \
             val_zmalloc: {allocated}",
            key.len(),
            available_of_key(key.len(), key_bytes),
        )
        .into(),
    ))
}

/// What is left of the bytes of a string; the shortest kind of string does not know.
fn available_of_key(len: usize, bytes: usize) -> usize {
    if len < 32 { 0 } else { available(len, bytes) }
}

fn available(len: usize, bytes: usize) -> usize {
    let head = match len {
        ..256 => 3,
        256..65536 => 5,
        _ => 9,
    };
    bytes.saturating_sub(head + len + 1)
}

/// `DEBUG LISTPACK key`: replies with a line that says where the structure is printed, which here is nowhere. Errors: no such
/// key; no listpack.
pub(super) fn listpack(call: &mut ControlCall<'_>, key: &[u8]) -> CommandResult {
    if entry(call, key)?.value().encoding() != "listpack" {
        return refused("ERR Not a listpack encoded object.");
    }
    Ok(Reply::simple("Listpack structure printed on stdout"))
}

/// `DEBUG QUICKLIST key [0 | 1]`: as [`listpack`], for a list.
pub(super) fn quicklist(call: &mut ControlCall<'_>, key: &[u8]) -> CommandResult {
    if entry(call, key)?.value().encoding() != "quicklist" {
        return refused("ERR Not a quicklist encoded object.");
    }
    Ok(Reply::simple("Quicklist structure printed on stdout"))
}

/// `DEBUG HTSTATS-KEY key`: replies with a text about the value's hash table. Errors: no such key; the value has none.
pub(super) fn htstats_key(call: &mut ControlCall<'_>, key: &[u8]) -> CommandResult {
    let stats = match entry(call, key)?.value() {
        Value::Set(set) => set.table().map(Dict::stats),
        Value::Hash(hash) => hash.table().map(Dict::stats),
        Value::SortedSet(set) => set.table().ok().map(Dict::stats),
        _ => None,
    };
    let Some(stats) = stats else {
        return refused(
            "ERR The value stored at the specified key is not represented using an hash table",
        );
    };
    Ok(Reply::Verbatim(*b"txt", describe(&stats).into()))
}

/// `DEBUG HTSTATS dbid`: replies with a text about the tables of a database. Errors: not an integer; no such database.
pub(super) fn htstats(call: &mut ControlCall<'_>, db: &[u8]) -> CommandResult {
    let db = number::parse_integer(db).ok_or(CommandError::NotAnInteger)?;
    let db = usize::try_from(db).ok().map(DbIndex);
    let stats = db.and_then(|db| call.engine.keyspace.table_stats(db));
    let Some((keys, deadlines)) = stats else {
        return refused("ERR Out of range database");
    };
    let text = format!(
        "[Dictionary HT]\n{}[Expires HT]\n{}",
        describe(&keys),
        describe(&deadlines)
    );
    Ok(Reply::Verbatim(*b"txt", text.into()))
}

/// One table, or two while the second is taking the first one's place.
fn describe(tables: &[TableStats]) -> String {
    let names = ["main hash table", "rehashing target"];
    let tables = tables.iter().zip(names).enumerate();
    let texts = tables.map(|(at, (stats, name))| describe_table(at, name, stats));
    texts.collect()
}

fn describe_table(at: usize, name: &str, stats: &TableStats) -> String {
    let mut text = format!("Hash table {at} stats ({name}):\n");
    if stats.len == 0 {
        return text + "No stats available for empty dictionaries\n";
    }
    let used: usize = stats.chains.iter().skip(1).sum();
    let average = stats.len as f64 / used.max(1) as f64;
    let head = format!(
        " table size: {}\n number of elements: {}\n different slots: {used}\n max chain length: {}\n avg chain length \
         (counted): {average:.2}\n avg chain length (computed): {average:.2}\n Chain length distribution:\n",
        stats.buckets,
        stats.len,
        stats.chains.len().saturating_sub(1),
    );
    let chains = stats.chains.iter().enumerate();
    let lines = chains.filter(|(_, count)| **count > 0).map(|(len, count)| {
        let share = *count as f64 * 100.0 / stats.buckets as f64;
        format!("   {len}: {count} ({share:.2}%)\n")
    });
    text.push_str(&head);
    text.extend(lines);
    text
}

/// `DEBUG RELOAD [MERGE] [NOFLUSH] [NOSAVE]`: replies with `OK`. All values are as if they had been written and read again: due
/// keys are gone, and encodings are those that fit. There is no file that could say anything else.
pub(super) fn reload(call: &mut ControlCall<'_>, args: Args<'_>) -> CommandResult {
    let known = |word: &[u8]| {
        ["MERGE", "NOFLUSH", "NOSAVE"]
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
    };
    let options: Vec<_> = args.rest().collect();
    if !options.iter().copied().all(known) {
        return refused("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
    }
    let engine = &mut *call.engine;
    if !options
        .iter()
        .any(|word| word.eq_ignore_ascii_case(b"NOFLUSH"))
    {
        engine.keyspace.tell_caches_of_all();
    }
    let selected = engine.keyspace.selected();
    (engine.saving.loaded, engine.saving.left_out) = (0, 0);
    for db in (0..engine.keyspace.databases()).map(DbIndex) {
        engine.keyspace.select(db);
        let keep = |(key, entry): (&Blob, &Entry)| {
            let bytes = payload::dump(entry.value(), engine.config.payload_compression());
            let value = payload::verify(&bytes, Check::Version)?;
            let value = payload::restore(value, &engine.config, engine.keyspace.seed())?;
            let mut restored = engine.keyspace.new_entry(value);
            restored.set_deadline(entry.deadline());
            Some((key.clone(), restored))
        };
        let kept: Vec<_> = engine.keyspace.iter().filter_map(keep).collect();
        engine.saving.left_out += engine.keyspace.len() - kept.len();
        engine.saving.loaded += kept.len();
        engine.keyspace.empty(db, false);
        for (key, entry) in kept {
            engine.keyspace.put_silently(&key, entry);
        }
    }
    engine.keyspace.select(selected);
    engine.keyspace.stats.dirty = 0;
    engine.saving.at = call.now.seconds();
    Ok(Reply::OK)
}

/// `DEBUG REPLYBUFFER PEAK-RESET-TIME time`, `DEBUG REPLYBUFFER RESIZING 0|1`: replies with `OK`; reply buffers are not resized
/// by a timer here.
pub(super) fn replybuffer(call: &mut ControlCall<'_>, mut args: Args<'_>) -> CommandResult {
    if args.keyword("PEAK-RESET-TIME") {
        if !args.keyword("NEVER") && !args.keyword("RESET") {
            args.integer()?;
        }
        return Ok(Reply::OK);
    }
    if args.keyword("RESIZING") {
        return Ok(Reply::OK);
    }
    Err(subcommand_syntax(call))
}

#[cfg(test)]
mod tests {
    use crate::clock::Timestamp;
    use crate::config::{Config, Permission};
    use crate::engine::{Engine, Peer};

    /// Requests and the replies of redis-server 7.0.15 to them, on one connection from top to bottom.
    #[rustfmt::skip]
    const RECORDED: &[(&str, &[u8])] = &[
        ("CONFIG SET list-max-listpack-size 3", b"+OK\r\n"),
        ("RPUSH l a b c d e", b":5\r\n"),
        ("DEBUG QUICKLIST-PACKED-THRESHOLD 10", b"+OK\r\n"),
        ("RPUSH l elements-that-are-long", b":6\r\n"),
        ("LINSERT l AFTER b another-long-element", b":7\r\n"),
        ("LSET l 0 again-a-long-element", b"+OK\r\n"),
        ("DUMP l", b"$119\r\n\x12\x06\x01\x14again-a-long-element\x02\n\n\0\0\0\x01\0\x81b\x02\xff\x01\x14another-long-element\x02\n\n\0\0\0\x01\0\x81c\x02\xff\x02\r\r\0\0\0\x02\0\x81d\x02\x81e\x02\xff\x01\x16elements-that-are-long\n\0\x0c\xe1\x82\xe5&\xf2\x01k\r\n"),
        ("DEBUG RELOAD", b"+OK\r\n"),
        ("LSET l 0 short", b"+OK\r\n"),
        ("LSET l -1 short", b"+OK\r\n"),
        ("DUMP l", b"$96\r\n\x12\x05\x02\x11\x11\0\0\0\x02\0\x85short\x06\x81b\x02\xff\x01\x14another-long-element\x02\n\n\0\0\0\x01\0\x81c\x02\xff\x02\r\r\0\0\0\x02\0\x81d\x02\x81e\x02\xff\x02\x0e\x0e\0\0\0\x01\0\x85short\x06\xff\n\0x\x95\xd3\xf4\x1f\x1a\xe6\xf5\r\n"),
        ("DEBUG QUICKLIST-PACKED-THRESHOLD 1", b"+OK\r\n"),
        ("DEBUG QUICKLIST-PACKED-THRESHOLD 4293918721", b"-ERR argument must be a memory value bigger than 1 and smaller than 4gb\r\n"),
        ("DEBUG QUICKLIST-PACKED-THRESHOLD abc", b"-ERR argument must be a memory value bigger than 1 and smaller than 4gb\r\n"),
        ("DEBUG QUICKLIST-PACKED-THRESHOLD 0", b"+OK\r\n"),
        ("SET s hello", b"+OK\r\n"),
        ("DEBUG SDSLEN s", b"+key_sds_len:1, key_sds_avail:0, key_zmalloc: 8, val_sds_len:5, val_sds_avail:0, val_zmalloc: 16\r\n"),
        ("DEBUG SDSLEN l", b"-ERR Not an sds encoded string.\r\n"),
        ("DEBUG SDSLEN missing", b"-ERR no such key\r\n"),
        ("DEBUG LISTPACK l", b"-ERR Not a listpack encoded object.\r\n"),
        ("DEBUG QUICKLIST l", b"+Quicklist structure printed on stdout\r\n"),
        ("DEBUG QUICKLIST s", b"-ERR Not a quicklist encoded object.\r\n"),
        ("DEBUG HTSTATS-KEY s", b"-ERR The value stored at the specified key is not represented using an hash table\r\n"),
        ("DEBUG HTSTATS 1", b"$189\r\n[Dictionary HT]\nHash table 0 stats (main hash table):\nNo stats available for empty dictionaries\n[Expires HT]\nHash table 0 stats (main hash table):\nNo stats available for empty dictionaries\n\r\n"),
        ("DEBUG HTSTATS 16", b"-ERR Out of range database\r\n"),
        ("DEBUG HTSTATS x", b"-ERR value is not an integer or out of range\r\n"),
        ("DEBUG STRUCTSIZE", b"$83\r\nbits:64 robj:16 dictentry:24 sdshdr5:1 sdshdr8:3 sdshdr16:5 sdshdr32:9 sdshdr64:17 \r\n"),
        ("DEBUG SLEEP x", b"+OK\r\n"),
        ("DEBUG SLEEP", b"-ERR unknown subcommand or wrong number of arguments for 'SLEEP'. Try DEBUG HELP.\r\n"),
        ("DEBUG REPLYBUFFER FOO 1", b"-ERR unknown subcommand or wrong number of arguments for 'REPLYBUFFER'. Try DEBUG HELP.\r\n"),
        ("DEBUG CLIENT-EVICTION", b"-ERR maxmemory-clients is disabled.\r\n"),
        ("DEBUG SET-SKIP-CHECKSUM-VALIDATION 1", b"+OK\r\n"),
        (r#"RESTORE r 0 "\x00\x01v\n\x00xxxxxxxx""#, b"+OK\r\n"),
        ("DEBUG SET-SKIP-CHECKSUM-VALIDATION 0", b"+OK\r\n"),
        (r#"RESTORE r 0 "\x00\x01v\n\x00xxxxxxxx" REPLACE"#, b"-ERR DUMP payload version or checksum are wrong\r\n"),
    ];

    #[test]
    fn debug_answers_as_recorded() {
        let now = Timestamp::from_millis(1_000_000);
        let config = Config {
            enable_debug_command: Permission::Yes,
            ..Config::default()
        };
        let mut engine = Engine::new(config, now);
        let id = engine.connect(Peer::default(), now);
        for (request, reply) in RECORDED {
            engine.receive(id, format!("{request}\r\n").as_bytes(), now);
            let mut out = Vec::new();
            engine.poll_transmit(id, &mut out);
            assert_eq!(
                out.escape_ascii().to_string(),
                reply.escape_ascii().to_string(),
                "{request}"
            );
        }
    }
}
