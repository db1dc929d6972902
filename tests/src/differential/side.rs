//! [`Side`]: a program run on one server.
//!
//! Nothing here waits for a time that was guessed. Commands of one connection go out in batches and are answered one by one; a
//! connection that may be blocked is asked about through another one (`CLIENT LIST`); a subscriber is made to answer a mark, in
//! front of which everything has come that was sent to it.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::trace::{Trace, What};
use crate::frame::{Frame, printable};
use crate::mutants::{Memory, Mutant};
use crate::program::{CLIENTS, Effect, ID_OF_CLIENT, Program, Step};
use crate::raw::{PATIENCE, Raw, Received, request};
use crate::server::{Backend, Kind};

/// A key that falls due within a millisecond is due for certain after this.
const PAUSE: Duration = Duration::from_millis(3);

/// A batch is never longer than what a server reads at once.
const BATCH_LEN_MAX: usize = 8 * 1024;

/// What a subscriber is made to answer.
const MARK: &[u8] = b"a mark that no program draws";

/// A connection is looked at so long before its state is asked for again.
const GLANCE: Duration = Duration::from_millis(1);

/// A server with a program's connections to it.
#[derive(Debug)]
pub struct Side<'a> {
    backend: &'a Backend,
    control: Raw,
    clients: [Option<Client>; CLIENTS],
    mutant: Option<(&'static Mutant, Memory)>,
}

#[derive(Debug)]
struct Client {
    raw: Raw,
    id: Vec<u8>,
    /// It has been in use by this program.
    greeted: bool,
    /// It has sent a subscription: how many frames answer a command is not certain any more.
    subscriber: bool,
    in_transaction: bool,
    /// The step whose reply is due.
    blocked: Option<usize>,
}

impl<'a> Side<'a> {
    /// A server as it is. It is to be empty.
    pub fn new(backend: &'a Backend) -> Side<'a> {
        Side {
            backend,
            control: backend.raw(),
            clients: Default::default(),
            mutant: None,
        }
    }

    /// A server in memory with one fault.
    pub fn mutated(backend: &'a Backend, mutant: &'static Mutant) -> Side<'a> {
        Side {
            mutant: Some((mutant, Memory::new(backend.raw()))),
            ..Side::new(backend)
        }
    }

    /// Makes the server empty, with the first settings, for one program after another.
    pub fn empty(&mut self) {
        let mut settings = vec!["CONFIG", "SET"];
        for (name, value) in Program::settings() {
            settings.extend([*name, *value]);
        }
        let requests = [
            &["FLUSHALL"][..],
            &["SCRIPT", "FLUSH"],
            &["FUNCTION", "FLUSH"],
            &["ACL", "DELUSER", "ALICE", "BOB"],
            &["CONFIG", "RESETSTAT"],
            &settings,
        ];
        let bytes: Vec<u8> = requests.iter().flat_map(|words| request(words)).collect();
        self.control.send(&bytes);
        for words in requests {
            let reply = self.control.receive(PATIENCE);
            let fine = matches!(&reply, Received::Frame(frame) if !frame.is_error());
            // A fake may have no functions yet.
            assert!(fine || words[0] == "FUNCTION", "{words:?}: {reply:?}");
        }
    }

    /// Asks the server things that are no part of the program.
    pub fn ask(&mut self, requests: &[Vec<Vec<u8>>]) -> Vec<Frame> {
        let mutant = self.mutant.as_ref().map(|(mutant, _)| *mutant);
        let asked = |words: &Vec<Vec<u8>>| match mutant {
            Some(mutant) => request(&mutant.question(words)),
            None => request(words),
        };
        let bytes: Vec<u8> = requests.iter().flat_map(asked).collect();
        self.control.send(&bytes);
        requests
            .iter()
            .map(|words| match self.control.receive(PATIENCE) {
                Received::Frame(frame) => frame,
                other => panic!("no reply to {}: {other:?}", printable(&request(words))),
            })
            .collect()
    }

    /// Runs the program to its end; the connections are clean afterwards.
    pub fn run(&mut self, program: &Program) -> Trace {
        let mut trace = Trace::default();
        let mut at = 0;
        while at < program.steps.len() {
            let end = self.batch_end(&program.steps, at);
            self.batch(program, at..end, &mut trace);
            at = end;
        }
        for client in 0..CLIENTS {
            self.leave(client, at, &mut trace);
        }
        trace.sort_patterns();
        if let Some((mutant, _)) = &self.mutant {
            mutant.distort(program, &mut trace);
        }
        trace
    }

    /// Where the commands end that can be sent together with the one at `at`.
    fn batch_end(&self, steps: &[Step], at: usize) -> usize {
        let first = &steps[at];
        let client = self.clients[first.client].as_ref();
        if self.mutant.is_some() || alone(first) || client.is_some_and(|it| it.subscriber) {
            return at + 1;
        }
        let mut len = 0;
        let mut end = at;
        while let Some(step) = steps.get(end) {
            len += step.words.iter().map(|word| word.len() + 16).sum::<usize>();
            let apart = step.client != first.client || alone(step);
            if end > at && (apart || len > BATCH_LEN_MAX) {
                break;
            }
            end += 1;
            if step.effect == Effect::Pauses || step.command == "quit" {
                break;
            }
        }
        end
    }

    fn batch(&mut self, program: &Program, range: Range<usize>, trace: &mut Trace) {
        let client = program.steps[range.start].client;
        if self.is_blocked(client, range.start, trace) {
            if program.steps[range.start].effect == Effect::Leaves {
                self.leave(client, range.start, trace);
                return;
            }
            for at in range {
                trace.note(client, at, What::Skipped);
            }
            return;
        }
        if program.steps[range.start].effect == Effect::Leaves {
            self.leave(client, range.start, trace);
            self.clients[client] = None;
            return;
        }
        self.greet(client, program.protocols[client]);
        if self.mutant.is_some() || range.len() == 1 {
            self.single(program, range.start, trace);
        } else {
            let steps = &program.steps[range.clone()];
            let bytes: Vec<u8> = steps.iter().flat_map(|step| request(&step.words)).collect();
            self.raw(client).send(&bytes);
            for at in range.clone() {
                self.reply(program, at, trace);
                // Who finds that it was thrown out begins anew with what is left.
                if self.clients[client].is_none() && at + 1 < range.end {
                    self.batch(program, at + 1..range.end, trace);
                    return;
                }
            }
        }
        if program.steps[range.end - 1].effect == Effect::Pauses {
            std::thread::sleep(PAUSE);
        }
    }

    /// Sends one command, which may be of any kind.
    fn single(&mut self, program: &Program, at: usize, trace: &mut Trace) {
        let step = &program.steps[at];
        let words = self.filled_in(&step.words);
        self.open(step.client).subscriber |= is_subscription(step);
        if let (Some((mutant, memory)), Some(client)) =
            (&mut self.mutant, &mut self.clients[step.client])
        {
            let raw = &mut client.raw;
            let patience = if step.effect == Effect::Blocks {
                Duration::ZERO
            } else {
                PATIENCE
            };
            let received = mutant.call(raw, memory, step, words, patience);
            for push in memory.pushes() {
                trace.note(step.client, at, What::Received(Received::Frame(push)));
            }
            self.received(program, at, received, trace);
        } else {
            self.raw(step.client).request(&words);
            if step.effect == Effect::Blocks {
                self.resolve(program, at, trace);
            } else {
                self.reply(program, at, trace);
            }
        }
        self.mark(step.client, at, trace);
    }

    /// Takes in the reply of a command that certainly gets one.
    fn reply(&mut self, program: &Program, at: usize, trace: &mut Trace) {
        let client = program.steps[at].client;
        let received = self.next_reply(client, at, PATIENCE, trace);
        self.received(program, at, received, trace);
    }

    /// Follows what a reply says of the connection, and notes it.
    fn received(&mut self, program: &Program, at: usize, received: Received, trace: &mut Trace) {
        let step = &program.steps[at];
        let client = self.open(step.client);
        client.blocked = None;
        match &received {
            Received::Silence if step.effect == Effect::Blocks => {
                client.blocked = Some(at);
                return;
            }
            Received::Frame(frame) => match step.command.as_str() {
                "multi" if !frame.is_error() => client.in_transaction = true,
                // A transaction goes on after what was no command.
                "exec" | "discard" if step.words.len() == 1 => client.in_transaction = false,
                "reset" | "quit" if !frame.is_error() => client.in_transaction = false,
                _ => {}
            },
            _ => {}
        }
        let closed = received == Received::Closed || step.command == "quit";
        trace.note(step.client, at, What::Received(received));
        if closed {
            self.clients[step.client] = None;
        }
    }

    /// The next frame that is no message; messages are noted.
    fn next_reply(
        &mut self,
        client: usize,
        at: usize,
        patience: Duration,
        trace: &mut Trace,
    ) -> Received {
        loop {
            match self.raw(client).receive(patience) {
                Received::Frame(frame) if frame.is_message() => {
                    trace.note(client, at, What::Received(Received::Frame(frame)));
                }
                other => return other,
            }
        }
    }

    /// Waits until the server has either answered a blocking command or blocked the connection.
    fn resolve(&mut self, program: &Program, at: usize, trace: &mut Trace) {
        let client = program.steps[at].client;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if self.backend.kind() != Kind::Memory && self.server_blocks(client) {
                self.open(client).blocked = Some(at);
                return;
            }
            let received = self.next_reply(client, at, GLANCE, trace);
            if received != Received::Silence {
                self.received(program, at, received, trace);
                return;
            }
            if self.backend.kind() == Kind::Memory {
                self.open(client).blocked = Some(at);
                return;
            }
        }
        trace.note(client, at, What::Received(Received::Silence));
    }

    fn server_blocks(&mut self, client: usize) -> bool {
        self.flags(client).contains('b')
    }

    /// The flags of a connection as `CLIENT LIST` tells them; empty once it is gone.
    fn flags(&mut self, client: usize) -> String {
        let id = self.open(client).id.clone();
        let Frame::Blob(_, list) = self.control.call(&[&b"CLIENT"[..], b"LIST", b"ID", &id]) else {
            return String::new();
        };
        let list = String::from_utf8_lossy(&list).into_owned();
        let flags = list
            .split(' ')
            .find_map(|field| field.strip_prefix("flags="));
        flags.unwrap_or_default().to_owned()
    }

    /// Whether a connection still waits for the reply of an earlier step; takes the reply in if not.
    fn is_blocked(&mut self, client: usize, at: usize, trace: &mut Trace) -> bool {
        let Some(step) = self.clients[client].as_ref().and_then(|it| it.blocked) else {
            return false;
        };
        let patience = if self.backend.kind() == Kind::Memory {
            Duration::ZERO
        } else if self.server_blocks(client) {
            return true;
        } else {
            PATIENCE
        };
        let received = self.next_reply(client, at, patience, trace);
        if received == Received::Silence {
            return true;
        }
        let closed = received == Received::Closed;
        trace.note(client, step, What::Received(received));
        self.open(client).blocked = None;
        if closed {
            self.clients[client] = None;
        }
        false
    }

    /// Takes in everything that a subscriber was sent so far.
    fn mark(&mut self, client: usize, at: usize, trace: &mut Trace) {
        let Some(it) = self.clients[client].as_mut() else {
            return;
        };
        if !it.subscriber || it.in_transaction || it.blocked.is_some() {
            return;
        }
        it.raw.request(&[b"PING", MARK]);
        loop {
            let received = it.raw.receive(PATIENCE);
            match &received {
                Received::Frame(Frame::Blob(_, bytes)) if bytes == MARK => return,
                Received::Frame(Frame::Items(_, items)) if matches!(items.as_slice(), [_, Frame::Blob(_, bytes)] if bytes == MARK) =>
                {
                    return;
                }
                _ => {}
            }
            let ended = !matches!(received, Received::Frame(_));
            trace.note(client, at, What::Received(received));
            if ended {
                return;
            }
        }
    }

    /// Ends what a connection has to do with the program: what it was still sent is taken in, and it is clean or closed.
    fn leave(&mut self, client: usize, at: usize, trace: &mut Trace) {
        let blocked = self.is_blocked(client, at, trace);
        let Some(it) = self.clients[client].as_mut().filter(|it| it.greeted) else {
            return;
        };
        if blocked {
            trace.note(client, at, What::Waits);
            self.close(client);
            return;
        }
        it.raw.request(&["RESET"]);
        let reset = Received::Frame(Frame::Line(b"+RESET".to_vec()));
        loop {
            let received = it.raw.receive(PATIENCE);
            if received == reset {
                break;
            }
            let ended = !matches!(received, Received::Frame(_));
            trace.note(client, at, What::Received(received));
            if ended {
                self.clients[client] = None;
                return;
            }
        }
        it.greeted = false;
        it.subscriber = false;
        it.in_transaction = false;
        if let Some((_, memory)) = &mut self.mutant {
            memory.forget(client);
        }
    }

    /// Closes a blocked connection and waits until the server knows.
    fn close(&mut self, client: usize) {
        let Some(it) = self.clients[client].take() else {
            return;
        };
        if let Some((mutant, memory)) = &mut self.mutant
            && mutant.keeps_the_dead()
        {
            memory.keep(it.raw);
            return;
        }
        drop(it.raw);
        let until = Instant::now() + PATIENCE;
        let list = [&b"CLIENT"[..], b"LIST", b"ID", &it.id];
        while self.control.call(&list) != Frame::Blob(b'$', Vec::new()) {
            assert!(Instant::now() < until, "a closed connection lives on");
        }
    }

    fn greet(&mut self, client: usize, protocol: &str) {
        let it = self.open(client);
        if std::mem::replace(&mut it.greeted, true) {
            return;
        }
        let reply = it.raw.call(&["HELLO", protocol]);
        let Frame::Items(_, items) = &reply else {
            panic!("HELLO {protocol}: {reply:?}");
        };
        let mut numbers = items.iter().filter_map(|item| match item {
            Frame::Line(line) => line.strip_prefix(b":"),
            _ => None,
        });
        // The protocol's number comes first.
        it.id = numbers.nth(1).unwrap_or_default().to_vec();
    }

    fn open(&mut self, client: usize) -> &mut Client {
        let backend = self.backend;
        self.clients[client].get_or_insert_with(|| Client {
            raw: backend.raw(),
            id: Vec::new(),
            greeted: false,
            subscriber: false,
            in_transaction: false,
            blocked: None,
        })
    }

    fn raw(&mut self, client: usize) -> &mut Raw {
        &mut self.open(client).raw
    }

    /// The words with the numbers of connections, which every server gives on its own.
    fn filled_in(&self, words: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let number = |word: &Vec<u8>| {
            let client = word.strip_prefix(ID_OF_CLIENT)?.first()?;
            let client = self.clients.get(usize::from(client.checked_sub(b'0')?))?;
            let known = client.as_ref().filter(|it| it.greeted);
            Some(known.map_or(b"0".to_vec(), |it| it.id.clone()))
        };
        words
            .iter()
            .map(|word| number(word).unwrap_or_else(|| word.clone()))
            .collect()
    }
}

/// Whether a step cannot be sent together with others.
fn alone(step: &Step) -> bool {
    let names_client = step.words.iter().any(|word| word.starts_with(ID_OF_CLIENT));
    matches!(step.effect, Effect::Blocks | Effect::Leaves) || names_client || is_subscription(step)
}

fn is_subscription(step: &Step) -> bool {
    step.command.ends_with("subscribe")
}
