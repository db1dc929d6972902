//! CLIENT TRACKING and its kin: messages about keys that a client caches.

use std::collections::BTreeSet;

use super::{Args, CommandResult, ControlCall, Words};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::keyspace::{Cache, Choice};
use crate::resolve::printable;
use crate::session::SessionId;
use crate::value::{Blob, number};
use crate::wire::Reply;

/// Where a client's messages go: 0 is to itself, -1 that it wants none.
pub(super) fn redirection(engine: &Engine, id: SessionId) -> i64 {
    cache(engine, id).map_or(-1, |cache| cache.redirect.map_or(0, |id| id.0 as i64))
}

fn cache(engine: &Engine, id: SessionId) -> Option<&Cache> {
    engine.keyspace.caches.as_ref()?.of(id)
}

/// `CLIENT CACHING YES|NO`: chooses or leaves out what the next command reads; replies with `OK`.
///
/// Errors: no tracking; YES without OPTIN; NO without OPTOUT; syntax.
pub(super) fn caching(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, _, mode] = call.words()?;
    let caches = call.engine.keyspace.caches.as_mut();
    let Some(cache) = caches.and_then(|caches| caches.of_mut(call.session)) else {
        return Err(CommandError::custom(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    let (wanted, refused) = match mode.to_ascii_lowercase().as_slice() {
        b"yes" => (
            Choice::OptIn,
            "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
        ),
        b"no" => (
            Choice::OptOut,
            "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
        ),
        _ => return Err(CommandError::Syntax),
    };
    if cache.choice != wanted {
        return Err(CommandError::custom(refused));
    }
    cache.caching = true;
    Ok(Reply::OK)
}

/// `CLIENT GETREDIR`: replies with the number of the connection that messages go to, 0 for this one, or -1 if there are none.
pub(super) fn getredir(call: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::Integer(redirection(call.engine, call.session)))
}

/// What `CLIENT TRACKING` is called with.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
#[derive(Debug, Default)]
struct Options<'a> {
    redirect: Option<SessionId>,
    is_broadcast: bool,
    opt_in: bool,
    opt_out: bool,
    no_loop: bool,
    prefixes: Vec<&'a [u8]>,
}

impl<'a> Options<'a> {
    /// Errors: syntax; a second connection; one whose number is none or that is not there.
    fn parse(engine: &Engine, mut args: Args<'a>) -> Result<Options<'a>, CommandError> {
        let mut options = Options::default();
        while let Some(word) = args.next_if_any() {
            match word.to_ascii_lowercase().as_slice() {
                b"redirect" if !args.is_empty() => {
                    let id = args.next()?;
                    if options.redirect.is_some() {
                        return Err(CommandError::custom(
                            "ERR A client can only redirect to a single other client",
                        ));
                    }
                    let id = number::parse_integer(id).ok_or(CommandError::NotAnInteger)?;
                    options.redirect = Some(connected(engine, SessionId(id as u64))?);
                }
                b"bcast" => options.is_broadcast = true,
                b"optin" => options.opt_in = true,
                b"optout" => options.opt_out = true,
                b"noloop" => options.no_loop = true,
                b"prefix" if !args.is_empty() => options.prefixes.push(args.next()?),
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(options)
    }

    /// Errors: options that exclude each other or what the client has asked for before.
    fn check(&self, old: Option<&Cache>) -> Result<(), CommandError> {
        let text = if !self.is_broadcast && !self.prefixes.is_empty() {
            "ERR PREFIX option requires BCAST mode to be enabled"
        } else if old.is_some_and(|old| old.is_broadcast != self.is_broadcast) {
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
        } else if self.is_broadcast && (self.opt_in || self.opt_out) {
            "ERR OPTIN and OPTOUT are not compatible with BCAST"
        } else if self.opt_in && self.opt_out {
            "ERR You can't specify both OPTIN mode and OPTOUT mode"
        } else if old.is_some_and(|old| {
            self.opt_in && old.choice == Choice::OptOut
                || self.opt_out && old.choice == Choice::OptIn
        }) {
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
        } else {
            return Ok(());
        };
        Err(CommandError::custom(text))
    }

    fn into_cache(self) -> Cache {
        let mut prefixes: BTreeSet<Blob> = self.prefixes.into_iter().map(Blob::from).collect();
        if self.is_broadcast && prefixes.is_empty() {
            prefixes.insert(Blob::default());
        }
        Cache {
            redirect: self.redirect,
            is_broken: false,
            is_broadcast: self.is_broadcast,
            choice: match (self.opt_in, self.opt_out) {
                (true, _) => Choice::OptIn,
                (_, true) => Choice::OptOut,
                _ => Choice::All,
            },
            caching: false,
            no_loop: self.no_loop,
            prefixes,
        }
    }
}

fn connected(engine: &Engine, id: SessionId) -> Result<SessionId, CommandError> {
    let session = engine.sessions.get(&id);
    let session = session.filter(|session| !session.closing);
    session
        .map(|session| session.id)
        .ok_or(CommandError::custom(
            "ERR The client ID you want redirect to does not exist",
        ))
}

/// `CLIENT TRACKING ON|OFF [REDIRECT id] [BCAST] [PREFIX prefix ...] [OPTIN] [OPTOUT] [NOLOOP]`: begins or ceases to tell the
/// client of changes to keys that it has read, or of all keys; replies with `OK`.
///
/// Errors: syntax; see [`Options`]; prefixes of which one begins with another.
pub(super) fn tracking(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let mode = args.next()?;
    let options = Options::parse(call.engine, args)?;
    let id = call.session;
    if mode.eq_ignore_ascii_case(b"off") {
        call.engine.keyspace.forget_cache(id);
        return Ok(Reply::OK);
    }
    if !mode.eq_ignore_ascii_case(b"on") {
        return Err(CommandError::Syntax);
    }
    let old = cache(call.engine, id);
    options.check(old)?;
    let overlap = if options.is_broadcast {
        overlap(&options.prefixes, old)
    } else {
        None
    };
    match overlap {
        Some((0, error)) => Err(error),
        // Redis tells the error, and then does what it was asked for (tracking.c, `checkPrefixCollisionsOrReply`).
        Some((_, error)) => {
            call.engine.stats.failed(call.row, &error);
            call.engine.client_caches().insert(id, options.into_cache());
            Ok(Reply::Several(vec![Reply::Error(error), Reply::OK]))
        }
        None => {
            call.engine.client_caches().insert(id, options.into_cache());
            Ok(Reply::OK)
        }
    }
}

/// The first two prefixes that have a key in common, as an error, and a number: 0 if the error is all that there is to it.
fn overlap(prefixes: &[&[u8]], old: Option<&Cache>) -> Option<(usize, CommandError)> {
    let overlaps = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
    for (at, prefix) in prefixes.iter().enumerate() {
        let mut known = old.iter().flat_map(|old| &old.prefixes);
        if let Some(other) = known.find(|other| overlaps(other, prefix)) {
            return Some((0, overlapping(prefix, "an existing", other)));
        }
        let mut behind = prefixes.iter().skip(at + 1);
        if let Some(other) = behind.find(|other| overlaps(other, prefix)) {
            return Some((at, overlapping(prefix, "another provided", other)));
        }
    }
    None
}

fn overlapping(prefix: &[u8], which: &str, other: &[u8]) -> CommandError {
    let parts: [&[u8]; 7] = [
        b"ERR Prefix '",
        printable(prefix, usize::MAX),
        b"' overlaps with ",
        which.as_bytes(),
        b" prefix '",
        printable(other, usize::MAX),
        b"'. Prefixes for a single client must not overlap.",
    ];
    CommandError::custom(parts.concat())
}

/// `CLIENT TRACKINGINFO`: replies with a map of what the client asked for: flags, connection for messages, prefixes.
pub(super) fn trackinginfo(call: &mut ControlCall<'_>) -> CommandResult {
    let cache = cache(call.engine, call.session);
    let flags = cache.map_or_else(|| vec!["off"], flags);
    let prefixes = cache.map(|cache| &cache.prefixes);
    Ok(Reply::Map(vec![
        (
            Reply::bulk("flags"),
            Reply::Set(flags.into_iter().map(Reply::bulk).collect()),
        ),
        (
            Reply::bulk("redirect"),
            Reply::Integer(redirection(call.engine, call.session)),
        ),
        (
            Reply::bulk("prefixes"),
            Reply::bulks(prefixes.into_iter().flatten()),
        ),
    ]))
}

/// What a client asked for, in Redis' words and order.
fn flags(cache: &Cache) -> Vec<&'static str> {
    let (opt_in, opt_out) = (
        cache.choice == Choice::OptIn,
        cache.choice == Choice::OptOut,
    );
    let flags = [
        ("on", true),
        ("bcast", cache.is_broadcast),
        ("optin", opt_in),
        ("caching-yes", opt_in && cache.caching),
        ("optout", opt_out),
        ("caching-no", opt_out && cache.caching),
        ("noloop", cache.no_loop),
        ("broken_redirect", cache.is_broken),
    ];
    let set = flags.into_iter().filter(|(_, set)| *set);
    set.map(|(name, _)| name).collect()
}
