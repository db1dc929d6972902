//! ACL: users and what they may do (acl.c).

use super::introspect::{help, subcommand_syntax};
use super::{Categories, Command, CommandResult, ControlCall, Flag, KeySpec, Words, all_commands};
use crate::acl::{Denial, Entry, Permissions, User, has_blanks};
use crate::error::CommandError;
use crate::resolve::{ECHO_LEN_MAX, find, printable, printable_at_end};
use crate::value::number;
use crate::wire::{Reply, Request};
use Flag::*;

#[rustfmt::skip]
pub(super) const SUBCOMMANDS: &[Command] = &[
    //               name      arity  flags                                keys           handler
    Command::control("CAT",     -2,   &[NoScript, Loading, Stale],         KeySpec::None, cat).since("6.0.0"),
    Command::control("DELUSER", -3,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, deluser).since("6.0.0"),
    Command::control("DRYRUN",  -4,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, dryrun).since("7.0.0"),
    Command::control("GENPASS", -2,   &[NoScript, Loading, Stale],         KeySpec::None, genpass).since("6.0.0"),
    Command::control("GETUSER",  3,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, getuser).since("6.0.0"),
    Command::control("HELP",     2,   &[Loading, Stale],                   KeySpec::None, help).since("6.0.0"),
    Command::control("LIST",     2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, list).since("6.0.0"),
    Command::control("LOAD",     2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, without_file).since("6.0.0"),
    Command::control("LOG",     -2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, log).since("6.0.0"),
    Command::control("SAVE",     2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, without_file).since("6.0.0"),
    Command::control("SETUSER", -3,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, setuser).with_secrets(setuser_secrets).since("6.0.0"),
    Command::control("USERS",    2,   &[Admin, NoScript, Loading, Stale],  KeySpec::None, users).since("6.0.0"),
    Command::control("WHOAMI",   2,   &[NoScript, Loading, Stale],         KeySpec::None, whoami).since("6.0.0"),
];

/// Bits of a password that GENPASS makes at most.
const GENPASS_BITS_MAX: i64 = 4096;

/// Entries that LOG shows unless told otherwise.
const LOG_SHOWN: i64 = 10;

/// `ACL CAT [category]`: replies with the categories, or with the commands of one. Errors: unknown category.
fn cat(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let category = args.next_if_any();
    if !args.is_empty() {
        return Err(subcommand_syntax(call));
    }
    let Some(name) = category else {
        return Ok(Reply::bulks(Categories::all().map(|(name, _)| name)));
    };
    let category = Categories::named(name).ok_or_else(|| {
        let parts: [&[u8]; 3] = [
            b"ERR Unknown category '",
            printable(name, ECHO_LEN_MAX),
            b"'",
        ];
        CommandError::custom(parts.concat())
    })?;
    let members = all_commands().filter(|(_, known)| known.is_in(category));
    Ok(Reply::bulks(members.map(|(_, known)| known.name)))
}

/// `ACL DELUSER name [name ...]`: forgets users and closes their connections; replies with how many there were.
///
/// Errors: the default user.
fn deluser(call: &mut ControlCall<'_>) -> CommandResult {
    if call.args().rest().any(|name| name == b"default") {
        return Err(CommandError::custom(
            "ERR The 'default' user cannot be removed",
        ));
    }
    let mut deleted = 0;
    for name in call.args().rest() {
        deleted += usize::from(call.engine.delete_user(name, call.session));
    }
    Ok(Reply::count(deleted))
}

/// `ACL DRYRUN name command [arg ...]`: replies with `OK` if the user may run the command, else with a text that says what it
/// lacks.
///
/// Errors: unknown user; unknown command; wrong number of arguments.
fn dryrun(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let name = args.next()?;
    let not_found = |what: &str, name| {
        let parts: [&[u8]; 4] = [
            b"ERR ",
            what.as_bytes(),
            printable_at_end(name),
            b"' not found",
        ];
        CommandError::custom(parts.concat())
    };
    let user = call.engine.acl.named(name);
    let user = user.ok_or_else(|| not_found("User '", name))?;
    let request = Request::new(args.rest());
    let row = find(&request).ok_or_else(|| not_found("Command '", request.name()))?;
    if !row.accepts(request.len()) {
        return Err(CommandError::WrongArity(row.full_name().into()));
    }
    let word = |at| printable(request.get(at).unwrap_or_default(), usize::MAX);
    let (what, name, kind): (&[u8], &[u8], &[u8]) = match user.check(row, &request) {
        Ok(()) => return Ok(Reply::OK),
        Err(Denial::Command) => (b"run", row.full_name().as_bytes(), b"command"),
        Err(Denial::Key(at)) => (b"access", word(at), b"key"),
        Err(Denial::Channel(at)) => (b"access", word(at), b"channel"),
    };
    let parts: [&[u8]; 6] = [
        b"This user has no permissions to ",
        what,
        b" the '",
        name,
        b"' ",
        kind,
    ];
    Ok(Reply::bulk(parts.concat()))
}

/// `ACL GENPASS [bits]`: replies with random hexadecimal digits, of 256 bits by default. Errors: not from 1 to 4096.
fn genpass(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let bits = args.next_if_any();
    if !args.is_empty() {
        return Err(subcommand_syntax(call));
    }
    let bits = match bits {
        None => 256,
        Some(bits) => number::parse_integer(bits).ok_or(CommandError::NotAnInteger)?,
    };
    if !(1..=GENPASS_BITS_MAX).contains(&bits) {
        return Err(CommandError::custom(format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to {GENPASS_BITS_MAX}"
        )));
    }
    let rng = &mut call.engine.rng;
    let digits = (0..(bits + 3) / 4).filter_map(|_| char::from_digit(rng.u32(0..16), 16));
    Ok(Reply::bulk(digits.collect::<String>()))
}

/// `ACL GETUSER name`: replies with a map of the user's flags, passwords, rules and further sets of rules, or null.
fn getuser(call: &mut ControlCall<'_>) -> CommandResult {
    let [_, _, name] = call.words()?;
    let Some(user) = call.engine.acl.named(name) else {
        return Ok(Reply::Null);
    };
    let mut permissions = user.permissions().map(describe);
    let root = permissions.next().unwrap_or_default();
    let selectors = permissions.map(Reply::Map).collect();
    let flags = user.flags().map(Reply::bulk).collect();
    let passwords = user.passwords().iter().map(Reply::bulk).collect();
    let mut fields = vec![
        (Reply::bulk("flags"), Reply::Set(flags)),
        (Reply::bulk("passwords"), Reply::Array(passwords)),
    ];
    fields.extend(root);
    fields.push((Reply::bulk("selectors"), Reply::Array(selectors)));
    Ok(Reply::Map(fields))
}

fn describe(permissions: Permissions) -> Vec<(Reply, Reply)> {
    vec![
        (Reply::bulk("commands"), Reply::Bulk(permissions.commands)),
        (Reply::bulk("keys"), Reply::Bulk(permissions.keys)),
        (Reply::bulk("channels"), Reply::Bulk(permissions.channels)),
    ]
}

/// `ACL LIST`: replies with a line of rules for each user, by name.
fn list(call: &mut ControlCall<'_>) -> CommandResult {
    let lines = call.engine.acl.users().map(|(name, user)| {
        let rules = user.map(User::rules).unwrap_or_default();
        let parts: [&[u8]; 4] = [b"user ", name, b" ", &rules];
        parts.concat()
    });
    Ok(Reply::bulks(lines))
}

/// `ACL LOAD` and `ACL SAVE`: always an error, since there is no file of users.
fn without_file(_: &mut ControlCall<'_>) -> CommandResult {
    Err(CommandError::AclFileMissing)
}

/// `ACL LOG [count | RESET]`: replies with maps of what was denied, the latest first, or forgets it all. Errors: not an integer.
fn log(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let reset = args.len() == 1 && args.keyword("RESET");
    let count = args.next_if_any();
    if !args.is_empty() {
        return Err(subcommand_syntax(call));
    }
    if reset {
        call.engine.acl.log.clear();
        return Ok(Reply::OK);
    }
    let count = match count {
        None => LOG_SHOWN,
        Some(count) => number::parse_integer(count).ok_or(CommandError::NotAnInteger)?,
    };
    let now = call.engine.now.millis();
    let entries = call.engine.acl.log.entries().take(count.max(0) as usize);
    Ok(Reply::Array(
        entries.map(|entry| log_entry(entry, now)).collect(),
    ))
}

fn log_entry(entry: &Entry, now_ms: i64) -> Reply {
    let age = (now_ms - entry.at.millis()) as f64 / 1000.0;
    let fields = [
        ("count", Reply::Integer(entry.count as i64)),
        ("reason", Reply::bulk(entry.reason.name())),
        ("context", Reply::bulk(entry.context.name())),
        ("object", Reply::bulk(&entry.object)),
        ("username", Reply::bulk(&entry.user)),
        ("age-seconds", Reply::Double(age)),
        ("client-info", Reply::bulk(&entry.client)),
    ];
    Reply::Map(
        fields
            .map(|(name, value)| (Reply::bulk(name), value))
            .into(),
    )
}

/// `ACL SETUSER name [rule ...]`: changes a user, or makes one, by all of the rules or by none; replies with `OK`.
///
/// Errors: a name with blanks; a bracket that is not closed; a rule that is none, with its reason.
fn setuser(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let name = args.next()?;
    if has_blanks(name) {
        return Err(CommandError::custom(
            "ERR Usernames can't contain spaces or null characters",
        ));
    }
    let rules: Vec<&[u8]> = args.rest().collect();
    call.engine.set_user(name, &rules)?;
    Ok(Reply::OK)
}

fn setuser_secrets(request: &Request) -> Vec<usize> {
    (2..request.len()).collect()
}

/// `ACL USERS`: replies with the names of all users, in order.
fn users(call: &mut ControlCall<'_>) -> CommandResult {
    Ok(Reply::bulks(call.engine.acl.users().map(|(name, _)| name)))
}

/// `ACL WHOAMI`: replies with the name of the connection's user.
fn whoami(call: &mut ControlCall<'_>) -> CommandResult {
    let session = call.engine.sessions.get(&call.session);
    Ok(session.map_or(Reply::Null, |session| {
        Reply::bulk(call.engine.acl.name(session.user))
    }))
}
