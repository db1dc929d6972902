//! Transactions (multi.c): commands are queued by dispatch, EXEC runs them in one go and nothing is rolled back.

use super::{Caller, Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, Words};
use crate::acl::{Context, Denial, Denied};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::session::{Queued, SessionId, Transaction};
use crate::wire::Reply;
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Transactions, &[
    //               name       arity  flags                                                    keys           handler
    Command::control("DISCARD",  1,    &[NoScript, Loading, Stale, Fast, AllowBusy, NoQueue],   KeySpec::None, discard).since("2.0.0"),
    Command::control("EXEC",     1,    &[NoScript, Loading, Stale, SkipSlowlog, NoQueue, EndsTransaction], KeySpec::None, exec).since("1.2.0"),
    Command::control("MULTI",    1,    &[NoScript, Loading, Stale, Fast, AllowBusy, NoQueue],   KeySpec::None, multi).since("1.2.0"),
    Command::control("UNWATCH",  1,    &[NoScript, Loading, Stale, Fast, AllowBusy],            KeySpec::None, unwatch).since("2.2.0"),
    Command::control("WATCH",   -2,    &[NoScript, Loading, Stale, Fast, AllowBusy, NoQueue],   KeySpec::ALL,  watch).since("2.2.0"),
]);

/// `MULTI`: starts a transaction. Errors: already in one.
fn multi(call: &mut ControlCall<'_>) -> CommandResult {
    let Some(session) = call.engine.sessions.get_mut(&call.session) else {
        return Ok(Reply::Nothing);
    };
    if session.transaction.is_some() {
        return Err(CommandError::MultiNested);
    }
    session.transaction = Some(Transaction::default());
    Ok(Reply::OK)
}

/// `DISCARD`: forgets the queued commands and the watched keys. Errors: not in a transaction.
fn discard(call: &mut ControlCall<'_>) -> CommandResult {
    take_transaction(call).ok_or(CommandError::DiscardWithoutMulti)?;
    call.engine.keyspace.watch.unwatch(call.session);
    Ok(Reply::OK)
}

/// `EXEC`: runs the queued commands; replies with their replies in order, or null if a watched key was changed.
///
/// Errors: not in a transaction; `EXECABORT` if a command could not be queued. A command that fails while it runs leaves its
/// error in the reply and the others are run all the same.
fn exec(call: &mut ControlCall<'_>) -> CommandResult {
    let transaction = take_transaction(call).ok_or(CommandError::ExecWithoutMulti)?;
    let (id, engine) = (call.session, &mut *call.engine);
    // A watched key whose time has come has changed, though nobody has removed it yet (multi.c, `isWatchedKeyExpired`).
    let expired = |engine: &Engine| {
        let keyspace = &engine.keyspace;
        keyspace
            .watch
            .watched(id)
            .iter()
            .any(|watched| !watched.was_due && keyspace.stands_due(watched.db, &watched.key))
    };
    let dirty_cas = engine.keyspace.watch.is_dirty(id) || expired(engine);
    engine.keyspace.watch.unwatch(id);
    if transaction.dirty_exec {
        return Err(CommandError::ExecAbort);
    }
    if dirty_cas {
        return Ok(Reply::NullArray);
    }
    let silenced_before = is_silenced(engine, id);
    let mut has_silence = silenced_before;
    let mut replies = Vec::with_capacity(transaction.queue.len());
    let mut is_denied = false;
    for queued in &transaction.queue {
        let denial = engine.check_permission(id, queued.row, &queued.request);
        is_denied = denial.is_err();
        if let Err(denial) = denial {
            let reply = deny(engine, id, denial, queued, &transaction);
            replies.push((engine.protocol(id), reply));
            continue;
        }
        let (reply, pushes_in_front) = run_queued(engine, id, queued);
        let is_silent = is_silenced(engine, id);
        has_silence |= is_silent;
        let reply = if is_silent { Reply::Nothing } else { reply };
        // What a subscriber publishes to itself comes around the command's reply, inside of the array.
        let pushes = engine.exec_pushes.take().map(|(_, pushes)| pushes);
        let reply = match pushes {
            Some(mut pushes) if !pushes.is_empty() => {
                pushes.insert(pushes_in_front, reply);
                Reply::Several(pushes)
            }
            _ => reply,
        };
        replies.push((engine.protocol(id), reply));
    }
    if is_denied {
        // What was denied before another command is not counted against EXEC.
        engine.stats.interrupted(call.row);
    }
    // Redis writes each reply as soon as its command has run, so a HELLO changes only those behind it.
    let protocol = engine.protocol(id);
    let replies = replies.into_iter().map(|(spoken, reply)| {
        if spoken == protocol {
            reply
        } else {
            Reply::Spoken(spoken, Box::new(reply))
        }
    });
    let replies = replies.collect();
    if !has_silence {
        return Ok(Reply::Array(replies));
    }
    // CLIENT REPLY takes effect between the replies: what has been written stays, be it only the array's head.
    if let Some(session) = engine.sessions.get_mut(&id) {
        session.deliver(if silenced_before {
            Reply::Several(replies)
        } else {
            Reply::Array(replies)
        });
    }
    Ok(Reply::Nothing)
}

/// Notes that a command has been denied since it was queued; its reply.
fn deny(
    engine: &mut Engine,
    id: SessionId,
    denial: Denial,
    queued: &Queued,
    transaction: &Transaction,
) -> Reply {
    let denied = Denied {
        context: Context::Multi,
        executing: Some(transaction),
        ..Denied::new(queued.row, &queued.request)
    };
    engine.log_denial(id, denial, &denied);
    let error = denial.error_in_exec();
    engine.stats.error(&error);
    if is_silenced(engine, id) {
        Reply::Nothing
    } else {
        Reply::Error(error)
    }
}

/// Runs a queued command; its reply, and how many pushes to the session itself are in front of it.
fn run_queued(engine: &mut Engine, id: SessionId, queued: &Queued) -> (Reply, usize) {
    engine.exec_pushes = Some((id, Vec::new()));
    let reply = engine.call(id, queued.row, &queued.request, Caller::Exec);
    let reply = engine.publish_around(id, reply);
    let pushes = engine.exec_pushes.as_ref();
    let pushes_in_front = pushes.map_or(0, |(_, pushes)| pushes.len());
    engine.publish_events();
    (reply, pushes_in_front)
}

fn is_silenced(engine: &Engine, id: SessionId) -> bool {
    let session = engine.sessions.get(&id);
    session.is_some_and(|session| session.is_silenced())
}

/// `WATCH key [key ...]`: EXEC will fail if one of the keys changes before it. Errors: in a transaction.
fn watch(call: &mut ControlCall<'_>) -> CommandResult {
    let Some(session) = call.engine.sessions.get(&call.session) else {
        return Ok(Reply::Nothing);
    };
    if session.transaction.is_some() {
        return Err(CommandError::WatchInsideMulti);
    }
    let db = session.db;
    for key in call.args().rest() {
        let was_due = call.engine.keyspace.stands_due(db, key);
        call.engine
            .keyspace
            .watch
            .watch(call.session, db, key, was_due);
    }
    Ok(Reply::OK)
}

/// `UNWATCH`: forgets all watched keys.
fn unwatch(call: &mut ControlCall<'_>) -> CommandResult {
    call.engine.keyspace.watch.unwatch(call.session);
    Ok(Reply::OK)
}

fn take_transaction(call: &mut ControlCall<'_>) -> Option<Transaction> {
    call.engine
        .sessions
        .get_mut(&call.session)?
        .transaction
        .take()
}

#[cfg(test)]
mod tests {
    use crate::clock::Timestamp;
    use crate::config::Config;
    use crate::engine::{Engine, Peer};

    /// A transcript cannot say this: HELLO's reply names the connection.
    #[test]
    fn hello_changes_the_protocol_of_the_replies_behind_it_only() {
        let now = Timestamp::default();
        let mut engine = Engine::new(Config::default(), now);
        let id = engine.connect(Peer::default(), now);
        engine.receive(
            id,
            b"MULTI\r\nGET none\r\nHELLO 3\r\nGET none\r\nEXEC\r\n",
            now,
        );
        let mut out = Vec::new();
        engine.poll_transmit(id, &mut out);
        let out = String::from_utf8(out).unwrap();
        let exec = out.split("+QUEUED\r\n").last().unwrap();
        assert!(exec.starts_with("*3\r\n$-1\r\n%7\r\n"), "{exec}");
        assert!(exec.ends_with("_\r\n"), "{exec}");
    }

    /// Recorded from redis-server 7.0.15: an array's head is no reply that could be taken back.
    #[test]
    fn silence_begins_and_ends_between_the_replies_of_a_transaction() {
        let cases = [
            ("SET k v|CLIENT REPLY OFF|GET k", "*3\r\n+OK\r\n"),
            (
                "CLIENT REPLY OFF|GET k|CLIENT REPLY ON|GET k",
                "*4\r\n+OK\r\n$-1\r\n",
            ),
            ("CLIENT REPLY SKIP|GET k", "*2\r\n$-1\r\n"),
            ("CLIENT REPLY OFF", "*1\r\n"),
        ];
        for (queue, expected) in cases {
            let now = Timestamp::default();
            let mut engine = Engine::new(Config::default(), now);
            let id = engine.connect(Peer::default(), now);
            let requests = format!("MULTI\r\n{}\r\n", queue.replace('|', "\r\n"));
            let mut out = Vec::new();
            engine.receive(id, requests.as_bytes(), now);
            engine.poll_transmit(id, &mut out);
            out.clear();
            engine.receive(id, b"EXEC\r\n", now);
            engine.poll_transmit(id, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{queue}");
        }
    }
}
