//! All keys as text, for a reader: the same keyspace at the same time gives the same text.

use std::fmt::{self, Write};

#[cfg(feature = "explore")]
use crate::clock::Timestamp;
use crate::keyspace::{DbIndex, Entry, Keyspace, Value};
use crate::observe::quote;
use crate::value::Member;
use crate::value::{Blob, Stream, number};

/// The live keys of all databases, sorted by their bytes. Fields of hashes and members of sets are sorted as well, since their
/// order means nothing.
pub(crate) fn text_of(keyspace: &Keyspace) -> String {
    let mut text = String::new();
    for db in (0..keyspace.databases()).map(DbIndex) {
        let live = keyspace.sample(db, usize::MAX);
        let mut entries: Vec<_> = live
            .filter(|(key, _)| !keyspace.stands_due(db, key))
            .collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        if !entries.is_empty() {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(text, "db {}", db.0);
        }
        for (key, entry) in entries {
            let _ = write_entry(&mut text, key, entry, keyspace.now().millis());
        }
    }
    text
}

/// The live keys as one line each, by database and name as redis-cli quotes it. Deadlines count from `origin`, so that an entry
/// stays the same while time passes.
#[cfg(feature = "explore")]
pub(crate) fn lines_of(
    keyspace: &Keyspace,
    origin: Timestamp,
) -> std::collections::BTreeMap<(usize, String), String> {
    let databases = (0..keyspace.databases()).map(DbIndex);
    let live = databases.flat_map(|db| {
        let live = keyspace.sample(db, usize::MAX).map(move |one| (db, one));
        live.filter(move |(db, (key, _))| !keyspace.stands_due(*db, key))
    });
    let lines = live.map(|(db, (key, entry))| {
        let mut text = entry.value().type_name().to_owned();
        let mut content = String::new();
        let _ = write_value(&mut content, entry.value());
        for (at, line) in content.lines().enumerate() {
            let comma = if at == 0 { " " } else { ", " };
            let _ = write!(text, "{comma}{}", line.trim_start());
        }
        if let Some(deadline) = entry.deadline() {
            let at = deadline.saturating_sub(origin.millis());
            let _ = write!(text, " (expires at {at} ms)");
        }
        ((db.0, format!("\"{}\"", quote(key))), text)
    });
    lines.collect()
}

fn write_entry(text: &mut String, key: &[u8], entry: &Entry, now: i64) -> fmt::Result {
    let kind = entry.value().type_name();
    write!(text, "\"{}\" {kind}", quote(key))?;
    let is_string = matches!(entry.value(), Value::String(_));
    if is_string {
        text.push(' ');
        write_value(text, entry.value())?;
    }
    if let Some(deadline) = entry.deadline() {
        write!(text, " (expires in {} ms)", deadline.saturating_sub(now))?;
    }
    text.push('\n');
    if is_string {
        return Ok(());
    }
    write_value(text, entry.value())
}

/// A string in quotes; of anything else a line for each part.
fn write_value(text: &mut String, value: &Value) -> fmt::Result {
    match value {
        Value::String(string) => write!(text, "\"{}\"", quote(&string.to_blob())),
        Value::List(list) => list.iter().try_for_each(|element| line(text, &[element])),
        Value::Hash(hash) => {
            let mut pairs: Vec<_> = hash.iter().collect();
            pairs.sort_unstable_by_key(|(field, _)| *field);
            let mut pairs = pairs.into_iter();
            pairs.try_for_each(|(field, value)| line(text, &[field, value]))
        }
        Value::Set(set) => {
            let mut members: Vec<Blob> = set.iter().map(Member::to_blob).collect();
            members.sort_unstable();
            members.iter().try_for_each(|member| line(text, &[member]))
        }
        Value::SortedSet(set) => set.iter().try_for_each(|item| {
            let score = number::format_double(item.score);
            writeln!(text, "  {score} \"{}\"", quote(&item.member))
        }),
        Value::Stream(stream) => write_stream(text, stream),
    }
}

fn line(text: &mut String, words: &[&Blob]) -> fmt::Result {
    text.push(' ');
    for word in words {
        write!(text, " \"{}\"", quote(word))?;
    }
    text.push('\n');
    Ok(())
}

fn write_stream(text: &mut String, stream: &Stream) -> fmt::Result {
    for entry in stream.iter() {
        write!(text, "  {}", entry.id)?;
        for word in &entry.words {
            write!(text, " \"{}\"", quote(word))?;
        }
        text.push('\n');
    }
    writeln!(text, "  last id {}", stream.last_id())?;
    for (name, group) in stream.groups() {
        writeln!(text, "  group \"{}\" at {}", quote(name), group.last_id)?;
        for name in group.consumers().keys() {
            writeln!(text, "    consumer \"{}\"", quote(name))?;
        }
        for (id, pending) in group.pending() {
            let (consumer, times) = (quote(&pending.consumer), pending.deliveries);
            writeln!(
                text,
                "    pending {id} \"{consumer}\", delivered {times} times"
            )?;
        }
    }
    Ok(())
}
