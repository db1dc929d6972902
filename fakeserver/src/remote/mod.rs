//! A real server, on which what was found here is run again: its address, a connection that waits for one reply at a time, and its
//! key space as data.

mod frame;
mod line;
pub(crate) mod snapshot;

pub(crate) use frame::Frame;
pub(crate) use line::{Address, Line};

use std::io;
use std::thread;
use std::time::Duration;

use self::snapshot::{Ask, flat, used_databases};
use crate::wire::Reply;

/// Milliseconds of real time that a run may take: by so much a key may seem to have a shorter or a longer time to live.
pub(crate) const TOGETHER: i64 = 500;

/// Which server this is. Errors: it does not say, or holds keys.
pub(crate) fn version_if_empty(line: &mut Line) -> io::Result<String> {
    let Reply::Bulk(info) = line.ask(&[b"INFO"])? else {
        return Err(io::Error::other("it does not answer INFO"));
    };
    let info = String::from_utf8_lossy(&info).into_owned();
    if info.lines().any(|line| line.starts_with("db")) {
        let what = "it holds keys: give a server that may be emptied";
        return Err(io::Error::other(what));
    }
    let mut lines = info.lines();
    let version = lines.find_map(|line| line.strip_prefix("redis_version:"));
    let version = version.unwrap_or("of unknown version").trim();
    Ok(format!("redis-server {version}"))
}

/// Leaves nothing behind: no keys, scripts or functions.
pub(crate) fn empty(ask: &mut Ask<'_>) {
    for words in [
        &[&b"FLUSHALL"[..]][..],
        &[b"SCRIPT", b"FLUSH"],
        &[b"FUNCTION", b"FLUSH"],
    ] {
        ask(words);
    }
}

/// Keys with a time to live: database, key, milliseconds.
pub(crate) fn mortals(ask: &mut Ask<'_>) -> Vec<(usize, Vec<u8>, i64)> {
    let mut found = Vec::new();
    for db in used_databases(ask) {
        ask(&[b"SELECT", db.to_string().as_bytes()]);
        for key in flat(ask(&[b"KEYS", b"*"])) {
            if let Reply::Integer(ttl @ 0..) = ask(&[b"PTTL", &key]) {
                found.push((db, key, ttl));
            }
        }
    }
    ask(&[b"SELECT", b"0"]);
    found
}

/// Has the time of some keys be up.
pub(crate) fn expire(ask: &mut Ask<'_>, is_due: impl Fn(&[u8]) -> bool) {
    for (db, key, _) in mortals(ask) {
        if is_due(&key) {
            ask(&[b"SELECT", db.to_string().as_bytes()]);
            end(ask, &key);
        }
    }
    ask(&[b"SELECT", b"0"]);
}

/// Has a key's time be up, and waits until it is.
fn end(ask: &mut Ask<'_>, key: &[u8]) {
    ask(&[b"PEXPIRE", key, b"1"]);
    while ask(&[b"EXISTS", key]) == Reply::Integer(1) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Has keys live by so many milliseconds less, as if so much time had passed; those that are gone.
pub(crate) fn shorten_lives(ask: &mut Ask<'_>, by: i64) -> Vec<Vec<u8>> {
    let mut gone = Vec::new();
    for (db, key, ttl) in mortals(ask) {
        ask(&[b"SELECT", db.to_string().as_bytes()]);
        let is_due = ttl <= by.saturating_add(TOGETHER);
        if is_due {
            end(ask, &key);
            gone.push(key);
        } else {
            ask(&[b"PEXPIRE", &key, (ttl - by).to_string().as_bytes()]);
        }
    }
    ask(&[b"SELECT", b"0"]);
    gone
}
