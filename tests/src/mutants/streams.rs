//! Faults that show in what connections are sent unasked, or late: events, messages, replies to the blocked.

use super::{Mutant, distorted, faultless, mutant};
use crate::differential::{Seen, Trace, What};
use crate::frame::Frame;
use crate::program::{Effect, Program};
use crate::raw::Received;

#[rustfmt::skip]
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant { keeps_the_dead: true, ..mutant("a dead client is served", faultless) },
    distorted("a deadline that passed is not told of", |_, trace| lose(trace, |_, event| event == b"expired")),
    distorted("an emptied container is not told of", |_, trace| lose(trace, |before, event| event == b"del" && TAKES.contains(&before))),
    distorted("events of the key come behind those of the event", |_, trace| turn(trace, is_of_keyspace, |other| !is_of_keyspace(other))),
    distorted("rename_to comes in front of rename_from", |_, trace| turn(trace, |one| tells(one, b"rename_from"), |other| tells(other, b"rename_to"))),
    distorted("a message reaches RESP3 as an array", |_, trace| each_message(trace, |frame| match frame { Frame::Items(_, items) => Frame::Items(b'*', items), other => other })),
    distorted("a new key is told of behind what made it", |_, trace| turn(trace, |one| tells(one, b"new"), |other| !tells(other, b"new"))),
    distorted("who came last is served first", serve_the_last_first),
    distorted("a client that waits is forgotten", forget_the_waiting),
    mutant("PUBLISH does not count patterns", |x| x.change(&["PUBLISH"], |_, reply| if reply == Frame::Line(b":2".to_vec()) { Frame::Line(b":1".to_vec()) } else { reply })),
    mutant("CLIENT UNBLOCK ERROR ends the wait as time does", |x| { if x.is("CLIENT") && x.words.last().is_some_and(|word| word == b"ERROR") { x.words.pop(); } x.send() }),
    mutant("UNSUBSCRIBE leaves all subscriptions", |x| { if x.is("UNSUBSCRIBE") { x.words.truncate(1); } x.send() }),
    mutant("BLMOVE takes from the other end", |x| { if x.is("BLMOVE") && let Some(end) = x.words.get_mut(3) { *end = if end == b"LEFT" { b"RIGHT".to_vec() } else { b"LEFT".to_vec() }; } x.send() }),
    mutant("a woken BLMPOP takes one element", |x| { if x.is("BLMPOP") && x.words.len() > 2 && x.words[x.words.len() - 2] == b"COUNT" { x.words.truncate(x.words.len() - 2); } x.send() }),
];

/// Events after which a container may be empty.
const TAKES: [&[u8]; 8] = [
    b"hdel", b"lpop", b"lrem", b"ltrim", b"rpop", b"srem", b"zrem", b"zpopmin",
];

/// A message's words: kind, pattern if any, channel, payload.
fn message(seen: &Seen) -> Option<Vec<&[u8]>> {
    match &seen.what {
        What::Received(Received::Frame(frame)) if frame.is_message() => {
            let Frame::Items(_, items) = frame else {
                return None;
            };
            let words = items.iter().map(|item| match item {
                Frame::Blob(_, bytes) => bytes.as_slice(),
                _ => &[],
            });
            Some(words.collect())
        }
        _ => None,
    }
}

/// The event that a message tells of; nothing if it is another one.
fn event(seen: &Seen) -> Option<&[u8]> {
    let words = message(seen)?;
    let [.., channel, payload] = words.as_slice() else {
        return None;
    };
    if channel.starts_with(b"__keyspace@") {
        return Some(payload);
    }
    let channel = channel.strip_prefix(b"__keyevent@")?;
    let at = channel.windows(3).position(|part| part == b"__:")?;
    Some(&channel[at + 3..])
}

fn tells(seen: &Seen, name: &[u8]) -> bool {
    event(seen).is_some_and(|event| event == name)
}

fn is_of_keyspace(seen: &Seen) -> bool {
    let words = message(seen).unwrap_or_default();
    words
        .iter()
        .rev()
        .nth(1)
        .is_some_and(|channel| channel.starts_with(b"__keyspace@"))
}

/// Leaves out the messages of which this holds, given the event before them.
fn lose(trace: &mut Trace, is_lost: fn(&[u8], &[u8]) -> bool) {
    for stream in &mut trace.streams {
        let mut before = Vec::new();
        stream.retain(|seen| {
            let Some(event) = event(seen) else {
                return true;
            };
            let lost = is_lost(&before, event);
            if !lost {
                before = event.to_vec();
            }
            !lost
        });
    }
}

/// Swaps neighbours among the events.
fn turn(trace: &mut Trace, first: fn(&Seen) -> bool, second: fn(&Seen) -> bool) {
    for stream in &mut trace.streams {
        for at in 1..stream.len() {
            let (one, other) = (&stream[at - 1], &stream[at]);
            if event(one).is_some() && event(other).is_some() && first(one) && second(other) {
                stream.swap(at - 1, at);
            }
        }
    }
}

fn each_message(trace: &mut Trace, change: fn(Frame) -> Frame) {
    for seen in trace.streams.iter_mut().flatten() {
        if let What::Received(Received::Frame(frame)) = &mut seen.what
            && frame.is_message()
        {
            *frame = change(frame.clone());
        }
    }
}

/// Where a connection was given the reply to a command that may block: connection, place, and the command's words.
fn served<'p>(program: &'p Program, trace: &Trace) -> Vec<(usize, usize, &'p [Vec<u8>])> {
    let mut served = Vec::new();
    for (client, stream) in trace.streams.iter().enumerate() {
        for (at, seen) in stream.iter().enumerate() {
            let step = program
                .steps
                .get(seen.step)
                .filter(|step| step.effect == Effect::Blocks);
            if let (Some(step), What::Received(_)) = (step, &seen.what) {
                served.push((client, at, step.words.as_slice()));
            }
        }
    }
    served
}

/// Two connections that wait for the same get each other's replies.
fn serve_the_last_first(program: &Program, trace: &mut Trace) {
    let served = served(program, trace);
    for (index, (client, at, words)) in served.iter().enumerate() {
        for (other, other_at, other_words) in &served[index + 1..] {
            if client != other && words == other_words {
                let one = trace.streams[*client][*at].what.clone();
                let two = std::mem::replace(&mut trace.streams[*other][*other_at].what, one);
                trace.streams[*client][*at].what = two;
                return;
            }
        }
    }
}

/// The last connection that was served is not.
fn forget_the_waiting(program: &Program, trace: &mut Trace) {
    if let Some((client, at, _)) = served(program, trace).pop() {
        trace.streams[client][at].what = What::Waits;
    }
}
