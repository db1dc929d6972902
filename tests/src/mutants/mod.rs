//! [`Mutant`]: engines with one fault each, to show that the comparison of replies would notice.
//!
//! A mutant stands between a connection and the engine and makes the two together behave as an engine with that one fault: it
//! changes a request, a reply, all that a connection saw, or, through a connection of its own, the data. The engine itself stays
//! free of test switches.

mod commands;
mod scripts;
mod streams;

use std::time::Duration;

use crate::differential::Trace;
use crate::frame::Frame;
use crate::program::{CLIENTS, Program, Step};
use crate::raw::{Raw, Received};

/// An engine's single fault.
#[derive(Debug)]
pub struct Mutant {
    /// What is wrong with it.
    pub name: &'static str,
    fault: fn(&mut Exchange<'_>) -> Received,
    /// What it does to all that the connections saw.
    distortion: fn(&Program, &mut Trace),
    keeps_the_dead: bool,
    /// What it makes of a question that is asked when the program is over.
    question: fn(&mut Vec<Vec<u8>>),
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

    /// The question that has the engine answer as if it had the fault, for one that is asked when the program is over.
    pub fn question(&self, words: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut words = words.to_vec();
        (self.question)(&mut words);
        words
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
                Received::Frame(frame) if frame.is_message() => self.memory.pushes.push(frame),
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

/// The control: a mutant without a fault, which is not to be noticed.
pub const SOUND: &Mutant = &mutant("no fault", faultless);

/// All mutants.
pub fn mutants() -> impl Iterator<Item = &'static Mutant> {
    let families = [commands::MUTANTS, streams::MUTANTS, scripts::MUTANTS];
    families.into_iter().flatten()
}

/// An engine that answers wrongly.
const fn mutant(name: &'static str, fault: fn(&mut Exchange<'_>) -> Received) -> Mutant {
    Mutant {
        name,
        fault,
        distortion: |_, _| (),
        keeps_the_dead: false,
        question: |_| (),
    }
}

/// An engine whose connections see what they should not, or not what they should.
const fn distorted(name: &'static str, distortion: fn(&Program, &mut Trace)) -> Mutant {
    Mutant {
        distortion,
        ..mutant(name, faultless)
    }
}

fn faultless(x: &mut Exchange<'_>) -> Received {
    x.send()
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
