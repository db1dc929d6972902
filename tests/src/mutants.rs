//! [`Mutant`]: engines with one fault each, to show that the comparison of replies would notice.
//!
//! A mutant stands between a connection and the engine and makes the two together behave as an engine with that one fault: it
//! changes a request, a reply, or, through a connection of its own, the data. The engine itself stays free of test switches.

use fakeserver::command::lookup;

use std::time::Duration;

use crate::differential::{Trace, is_message};
use crate::frame::Frame;
use crate::program::{CLIENTS, Program, Step};
use crate::raw::{PATIENCE, Raw, Received};

/// An engine's single fault.
#[derive(Debug)]
pub struct Mutant {
    /// What is wrong with it.
    pub name: &'static str,
    fault: fn(&mut Exchange<'_>) -> Received,
    /// What it does to all that the connections saw.
    distortion: fn(&Program, &mut Trace),
    keeps_the_dead: bool,
}

/// What a mutant keeps in mind.
#[derive(Debug)]
pub struct Memory {
    control: Raw,
    in_transaction: [bool; CLIENTS],
    replies: [Vec<Frame>; CLIENTS],
    pushes: Vec<Frame>,
    dead: Vec<Raw>,
}

impl Memory {
    /// With a connection of the mutant's own.
    pub fn new(control: Raw) -> Memory {
        Memory {
            control,
            in_transaction: [false; CLIENTS],
            replies: Default::default(),
            pushes: Vec::new(),
            dead: Vec::new(),
        }
    }

    /// The messages that came in front of the last reply.
    pub fn pushes(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.pushes)
    }

    /// A connection begins anew.
    pub fn forget(&mut self, client: usize) {
        self.in_transaction[client] = false;
    }

    /// Keeps a connection open that its client has left.
    pub fn keep(&mut self, raw: Raw) {
        self.dead.push(raw);
    }
}

impl Mutant {
    /// Sends a command of these words to the faulty engine and returns what that replies within `patience`.
    pub fn call(
        &self,
        raw: &mut Raw,
        memory: &mut Memory,
        step: &Step,
        words: Vec<Vec<u8>>,
        patience: Duration,
    ) -> Received {
        let mut exchange = Exchange {
            raw,
            memory,
            client: step.client,
            words,
            patience,
        };
        let reply = (self.fault)(&mut exchange);
        if step.command == "multi" && reply == ok() {
            memory.in_transaction[step.client] = true;
        } else if ["exec", "discard", "reset", "quit"].contains(&step.command.as_str()) {
            memory.in_transaction[step.client] = false;
        }
        reply
    }

    /// Changes what the connections saw as if the engine had sent it so.
    pub fn distort(&self, program: &Program, trace: &mut Trace) {
        (self.distortion)(program, trace);
    }

    /// Whether a client that left while it was blocked stays where it waits.
    pub fn keeps_the_dead(&self) -> bool {
        self.keeps_the_dead
    }
}

struct Exchange<'a> {
    raw: &'a mut Raw,
    memory: &'a mut Memory,
    client: usize,
    words: Vec<Vec<u8>>,
    patience: Duration,
}

impl Exchange<'_> {
    fn send(&mut self) -> Received {
        let words = std::mem::take(&mut self.words);
        let received = self.ask(&words);
        self.words = words;
        received
    }

    fn ask<T: AsRef<[u8]>>(&mut self, words: &[T]) -> Received {
        self.raw.request(words);
        loop {
            match self.raw.receive(self.patience) {
                Received::Frame(frame) if is_message(&frame) => self.memory.pushes.push(frame),
                other => return other,
            }
        }
    }

    fn is(&self, name: &str) -> bool {
        self.words[0].eq_ignore_ascii_case(name.as_bytes())
    }

    fn is_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.is(name))
    }

    fn rename(&mut self, from: &str, to: &str) {
        if self.is(from) {
            self.words[0] = to.as_bytes().to_vec();
        }
    }

    fn in_transaction(&self) -> bool {
        self.memory.in_transaction[self.client]
    }

    /// Sends the command and has a reply that is no error changed.
    fn change(&mut self, names: &[&str], change: fn(&[Vec<u8>], Frame) -> Frame) -> Received {
        match self.send() {
            Received::Frame(frame) if self.is_any(names) && !frame.is_error() => {
                Received::Frame(change(&self.words, frame))
            }
            reply => reply,
        }
    }
}

fn ok() -> Received {
    line("+OK")
}

fn line(text: &str) -> Received {
    Received::Frame(Frame::Line(text.as_bytes().to_vec()))
}

/// The list in a reply, be it the reply itself or what a cursor comes with.
fn edit_items(frame: Frame, edit: fn(&mut Vec<Frame>)) -> Frame {
    match frame {
        Frame::Items(kind, mut items) => {
            match items.as_mut_slice() {
                [Frame::Blob(..), Frame::Items(_, inner)] => edit(inner),
                _ => edit(&mut items),
            }
            Frame::Items(kind, items)
        }
        other => other,
    }
}

const fn mutant(name: &'static str, fault: fn(&mut Exchange<'_>) -> Received) -> Mutant {
    Mutant {
        name,
        fault,
        distortion: |_, _| (),
        keeps_the_dead: false,
    }
}

/// All mutants.
#[rustfmt::skip]
pub const MUTANTS: &[Mutant] = &[
    mutant("APPEND loses the last byte", append_loses_a_byte),
    mutant("DEL counts missing keys", del_counts_missing),
    mutant("DISCARD runs what was queued", discard_runs),
    mutant("EXEC runs in spite of an error while queueing", queue_error_ignored),
    mutant("EXPIRE GT sets a deadline where there is none", expire_gt_on_persistent),
    mutant("EXPIRE in the past leaves the key", expire_in_the_past_ignored),
    mutant("GETRANGE leaves out its end", getrange_end_exclusive),
    mutant("HSET counts fields that were there", hset_counts_all),
    mutant("INCR wraps around", incr_wraps),
    mutant("LPUSH pushes at the tail", |x| { x.rename("LPUSH", "RPUSH"); x.send() }),
    mutant("LRANGE leaves out its end", |x| x.change(&["LRANGE"], |_, reply| edit_items(reply, |items| { items.pop(); }))),
    mutant("LREM ignores the sign of its count", lrem_ignores_sign),
    mutant("PERSIST leaves the deadline", persist_does_nothing),
    mutant("RENAME leaves the old key", rename_copies),
    mutant("RESP3 null as in RESP2", |x| map_frames(x, |frame| if frame == Frame::Line(b"_".to_vec()) { Frame::Line(b"$-1".to_vec()) } else { frame })),
    mutant("RESP3 maps as arrays", |x| map_frames(x, |frame| match frame { Frame::Items(b'%', items) => Frame::Items(b'*', items), other => other })),
    mutant("SCAN skips a key", |x| x.change(&["SCAN"], |_, reply| edit_items(reply, |items| { items.pop(); }))),
    mutant("SELECT is forgotten", |x| match x.words.as_slice() { [name, db] if name.eq_ignore_ascii_case(b"SELECT") && db == b"1" && !x.in_transaction() => ok(), _ => x.send() }),
    mutant("SET keeps the deadline", set_keeps_ttl),
    mutant("SETNX overwrites", setnx_overwrites),
    mutant("SINTER leaves out missing keys", sinter_skips_missing),
    mutant("TTL in milliseconds", |x| { x.rename("TTL", "PTTL"); x.send() }),
    mutant("WATCH is forgotten", |x| if x.is("WATCH") && x.words.len() > 1 && !x.in_transaction() { ok() } else { x.send() }),
    mutant("ZADD ignores NX", |x| { if x.is("ZADD") { x.words.retain(|word| word != b"NX"); } x.send() }),
    mutant("ZCOUNT counts an exclusive bound", zcount_inclusive),
    mutant("ZPOPMIN pops the greatest", |x| { x.rename("ZPOPMIN", "ZPOPMAX"); x.send() }),
    mutant("a due key is still seen", due_key_lives),
    mutant("a key of another type counts as missing", wrong_type_is_null),
    mutant("a script's false is an empty string", script_false_is_empty),
    mutant("members of equal score come backwards", |x| x.change(&["ZRANGEBYLEX"], |_, reply| edit_items(reply, |items| items.reverse()))),
    mutant("queued commands run at once", queued_commands_run_at_once),
];

fn append_loses_a_byte(x: &mut Exchange<'_>) -> Received {
    if x.is("APPEND")
        && let [_, _, value] = x.words.as_mut_slice()
    {
        value.pop();
    }
    x.send()
}

fn del_counts_missing(x: &mut Exchange<'_>) -> Received {
    x.change(&["DEL"], |words, reply| match reply {
        Frame::Line(line) if line.starts_with(b":") => {
            Frame::Line(format!(":{}", words.len() - 1).into_bytes())
        }
        other => other,
    })
}

fn discard_runs(x: &mut Exchange<'_>) -> Received {
    if !x.is("DISCARD") || !x.in_transaction() || x.words.len() > 1 {
        return x.send();
    }
    x.rename("DISCARD", "EXEC");
    x.send();
    ok()
}

fn queue_error_ignored(x: &mut Exchange<'_>) -> Received {
    let known = lookup(&x.words[0]).is_some_and(|row| row.accepts(x.words.len()));
    if x.in_transaction() && !known {
        let words: Vec<&[u8]> = x.words.iter().map(Vec::as_slice).collect();
        x.memory.control.request(&words);
        return x.memory.control.receive(PATIENCE);
    }
    x.send()
}

fn expire_gt_on_persistent(x: &mut Exchange<'_>) -> Received {
    if x.is_any(&["EXPIRE", "PEXPIRE"])
        && x.words.last().is_some_and(|word| word == b"GT")
        && !x.in_transaction()
    {
        let key = x.words[1].clone();
        if x.ask(&[&b"TTL"[..], &key]) == line(":-1") {
            x.words.pop();
        }
    }
    x.send()
}

fn expire_in_the_past_ignored(x: &mut Exchange<'_>) -> Received {
    if x.is_any(&["EXPIRE", "PEXPIRE"])
        && x.words.len() == 3
        && x.words[2].starts_with(b"-")
        && !x.in_transaction()
    {
        let key = x.words[1].clone();
        return x.ask(&[&b"EXISTS"[..], &key]);
    }
    x.send()
}

fn getrange_end_exclusive(x: &mut Exchange<'_>) -> Received {
    x.change(&["GETRANGE"], |_, reply| match reply {
        Frame::Blob(kind, mut bytes) => {
            bytes.pop();
            Frame::Blob(kind, bytes)
        }
        other => other,
    })
}

fn hset_counts_all(x: &mut Exchange<'_>) -> Received {
    x.change(&["HSET"], |words, reply| match reply {
        Frame::Line(line) if line.starts_with(b":") => {
            Frame::Line(format!(":{}", (words.len() - 2) / 2).into_bytes())
        }
        other => other,
    })
}

fn incr_wraps(x: &mut Exchange<'_>) -> Received {
    match x.send() {
        Received::Frame(Frame::Line(text))
            if x.is_any(&["INCR", "INCRBY"]) && text.ends_with(b"would overflow") =>
        {
            line(":-9223372036854775808")
        }
        reply => reply,
    }
}

fn lrem_ignores_sign(x: &mut Exchange<'_>) -> Received {
    if x.is("LREM")
        && let [_, _, count, _] = x.words.as_mut_slice()
        && count.starts_with(b"-")
    {
        count.remove(0);
    }
    x.send()
}

fn persist_does_nothing(x: &mut Exchange<'_>) -> Received {
    if let [_, key] = x.words.as_slice()
        && x.is("PERSIST")
    {
        x.words = vec![
            b"EXPIRE".to_vec(),
            key.clone(),
            b"100000".to_vec(),
            b"XX".to_vec(),
        ];
    }
    x.send()
}

fn rename_copies(x: &mut Exchange<'_>) -> Received {
    if let [_, from, to] = x.words.as_slice()
        && x.is("RENAME")
        && from != to
        && !x.in_transaction()
    {
        let (from, to) = (from.clone(), to.clone());
        if x.ask(&[&b"COPY"[..], &from, &to, b"REPLACE"]) == line(":1") {
            return ok();
        }
    }
    x.send()
}

fn set_keeps_ttl(x: &mut Exchange<'_>) -> Received {
    if x.is("SET") && x.words.len() == 3 {
        x.words.push(b"KEEPTTL".to_vec());
    }
    x.send()
}

fn setnx_overwrites(x: &mut Exchange<'_>) -> Received {
    if !x.is("SETNX") || x.words.len() != 3 || x.in_transaction() {
        return x.send();
    }
    x.rename("SETNX", "SET");
    x.send();
    line(":1")
}

fn sinter_skips_missing(x: &mut Exchange<'_>) -> Received {
    if x.is("SINTER") && x.words.len() > 1 && !x.in_transaction() {
        let keys = x.words.split_off(1);
        for key in keys {
            if x.ask(&[&b"EXISTS"[..], &key]) == line(":1") {
                x.words.push(key);
            }
        }
        if x.words.len() == 1 {
            x.words.push(b"missing".to_vec());
        }
    }
    x.send()
}

fn zcount_inclusive(x: &mut Exchange<'_>) -> Received {
    if x.is("ZCOUNT") && x.words.len() == 4 {
        for bound in &mut x.words[2..] {
            if bound.starts_with(b"(") {
                bound.remove(0);
            }
        }
    }
    x.send()
}

fn due_key_lives(x: &mut Exchange<'_>) -> Received {
    if x.is_any(&["SET", "PEXPIRE", "PSETEX", "GETEX"]) {
        let at = if x.is_any(&["PEXPIRE", "PSETEX"]) {
            Some(2)
        } else {
            x.words
                .iter()
                .position(|word| word == b"PX")
                .map(|at| at + 1)
        };
        if let Some(time) = at.and_then(|at| x.words.get_mut(at))
            && time == b"1"
        {
            *time = b"100000".to_vec();
        }
    }
    x.send()
}

fn wrong_type_is_null(x: &mut Exchange<'_>) -> Received {
    match x.send() {
        Received::Frame(Frame::Line(text)) if text.starts_with(b"-WRONGTYPE") => line("$-1"),
        reply => reply,
    }
}

fn script_false_is_empty(x: &mut Exchange<'_>) -> Received {
    match x.send() {
        reply if x.is_any(&["EVAL", "EVALSHA"]) && (reply == line("$-1") || reply == line("_")) => {
            Received::Frame(Frame::Blob(b'$', Vec::new()))
        }
        reply => reply,
    }
}

/// Changes a reply and everything inside of it.
fn map_frames(x: &mut Exchange<'_>, change: fn(Frame) -> Frame) -> Received {
    fn each(frame: Frame, change: fn(Frame) -> Frame) -> Frame {
        change(match frame {
            Frame::Items(kind, items) => Frame::Items(
                kind,
                items.into_iter().map(|item| each(item, change)).collect(),
            ),
            other => other,
        })
    }
    match x.send() {
        Received::Frame(frame) => Received::Frame(each(frame, change)),
        other => other,
    }
}

/// Other connections see a transaction's writes before its EXEC.
fn queued_commands_run_at_once(x: &mut Exchange<'_>) -> Received {
    if x.is("MULTI") && x.words.len() == 1 && !x.in_transaction() {
        x.memory.replies[x.client].clear();
        return ok();
    }
    if !x.in_transaction() || x.is_any(&["MULTI", "WATCH", "RESET", "QUIT"]) {
        return x.send();
    }
    if x.is("DISCARD") && x.words.len() == 1 {
        return ok();
    }
    if x.is("EXEC") && x.words.len() == 1 {
        let replies = std::mem::take(&mut x.memory.replies[x.client]);
        return Received::Frame(Frame::Items(b'*', replies));
    }
    match x.send() {
        Received::Frame(frame) => {
            x.memory.replies[x.client].push(frame);
            line("+QUEUED")
        }
        other => other,
    }
}
