//! [`Maker`]: draws to commands.

use super::data::{CLASSES, LARGE, LAST, SMALL, SUBSCRIPTIONS};
use super::draw::{self, DRAWN, DWELT, READY, Ready};
use super::entropy::Entropy;
use super::form::{self, Form, Part};
use super::lua::{self, Library, library};
use super::payload::payload;
use super::script::SCRIPTS;
use super::{CLIENTS, Effect, ID_OF_CLIENT, Program, Stage, Start, Step, row_name, slot};
use crate::compare::Order;

/// A transaction of so many commands is ended.
const QUEUE_MAX: usize = 6;

/// Deeper commands inside of commands are not drawn.
const DEPTH_MAX: usize = 1;

/// Seconds since the epoch, far ahead.
const FUTURE: usize = 4_102_444_800;

/// Makes a program command by command.
pub(super) struct Maker {
    program: Program,
    /// Commands queued by each connection that is in a transaction.
    queued: [Option<usize>; CLIENTS],
    /// Where the stretches of the grammar begin on which the program dwells.
    stretches: [usize; 2],
    /// Which key it dwells on.
    key: usize,
    stage: Stage,
    tells_of_misses: bool,
}

/// A command while its words are drawn.
#[derive(Default)]
struct Drawing {
    words: Vec<Vec<u8>>,
    options: Vec<&'static str>,
    /// Number of keys of the last list of keys.
    key_count: usize,
    /// How to compare the reply of a command inside, and whether it leaves something random behind.
    inner: Option<(Order, Option<Vec<u8>>)>,
    pause: bool,
    /// The command that loads a script or library that is to be there before.
    loads: Option<Vec<Vec<u8>>>,
    /// Keys may fall due at once: nobody is in a transaction.
    may_pause: bool,
    serial: usize,
    depth: usize,
    key: usize,
    blocks: bool,
}

impl Maker {
    pub(super) fn new(start: Start) -> Maker {
        let [style, first, second, key, _] = start;
        let stage = Stage::of(start);
        let (even, odd) = if style.is_multiple_of(2) {
            ("2", "3")
        } else {
            ("3", "2")
        };
        let protocols = match stage {
            Stage::Notified => [even, odd, "2", "3"],
            _ => [even, odd, even, odd],
        };
        let mut maker = Maker {
            program: Program {
                protocols,
                steps: Vec::new(),
            },
            queued: [None; CLIENTS],
            stretches: [first, second].map(|at| usize::from(at) * DWELT.len() / 256),
            key: usize::from(key),
            stage,
            tells_of_misses: false,
        };
        if stage == Stage::Notified {
            let classes = CLASSES[usize::from(style) % CLASSES.len()];
            maker.tells_of_misses = classes.contains('m');
            maker.line(0, &format!("CONFIG SET notify-keyspace-events {classes}"));
            maker.line(2, "PSUBSCRIBE __key*__:*");
            maker.line(3, SUBSCRIPTIONS[usize::from(key) % SUBSCRIPTIONS.len()]);
        }
        let lines = match style / 64 {
            0 => return maker,
            1 | 2 => SMALL,
            _ => LARGE,
        };
        for line in lines {
            maker.line(0, line);
        }
        maker
    }

    fn line(&mut self, client: usize, line: &str) {
        let words = line.split(' ').map(|word| match word {
            "L" => vec![b'L'; 70],
            word => word.as_bytes().to_vec(),
        });
        self.plain(client, words.collect());
    }

    /// Adds the command that a draw stands for, and what has to follow it.
    pub(super) fn add(&mut self, which: u16, bytes: &[u8]) {
        let mut entropy = Entropy::new(bytes);
        let ready = &READY[draw::form(self.stage, self.stretches, usize::from(which))];
        let client = self.client(ready.form, &mut entropy);
        let leaves = match self.stage {
            Stage::Plain => false,
            Stage::Notified => entropy.seldom(),
            Stage::Blocking => entropy.below(12) == 11,
        };
        if leaves && client > 0 {
            self.leave(client);
            return;
        }
        if self.queued[client].is_some_and(|queued| queued >= QUEUE_MAX) {
            let end: &[u8] = if entropy.below(8) == 7 {
                b"DISCARD"
            } else {
                b"EXEC"
            };
            self.plain(client, vec![end.to_vec()]);
            return;
        }
        let mut drawing = Drawing {
            serial: self.program.steps.len(),
            key: self.key,
            may_pause: self.queued.iter().all(Option::is_none),
            ..Drawing::default()
        };
        drawing.command(ready, &mut entropy);
        let mut order = ready.form.order;
        let mut random = ready
            .form
            .then_delete
            .then(|| drawing.words.get(1).cloned())
            .flatten();
        if let Some((inner_order, inner_random)) = drawing.inner.take()
            && ready.form.runs
        {
            order = inner_order;
            random = inner_random;
        }
        if let Some(words) = drawing.loads.take() {
            self.plain(client, words);
        }
        let pause = drawing.pause.then(|| due_key(&drawing.words)).flatten();
        drawing.spoil(ready.form.name.split(' ').count(), &mut entropy);
        self.push(Step {
            client,
            words: drawing.words,
            order,
            command: row_name(ready.form.name),
            options: drawing.options,
            effect: match (&pause, drawing.blocks) {
                (Some(_), _) => Effect::Pauses,
                (None, true) => Effect::Blocks,
                (None, false) => Effect::None,
            },
            ..Step::plain(client, Vec::new())
        });
        // Looking at a due key removes it, on both servers at the same place of the program.
        if let Some(key) = pause {
            self.follow(client, vec![b"EXISTS".to_vec(), key]);
        }
        if let Some(key) = random {
            self.follow(client, vec![b"DEL".to_vec(), key]);
        }
    }

    /// The connection that sends a command. The first one sends most; the others get between.
    fn client(&self, form: &Form, entropy: &mut Entropy<'_>) -> usize {
        let listens = form.stage == Stage::Notified && form.name.ends_with("SUBSCRIBE");
        match self.stage {
            Stage::Notified if listens => 2 + entropy.below(2),
            // Whoever speaks RESP3 can do anything and still hears, what it causes itself included.
            // Among the events that tell of misses XREAD's come in the middle of its reply.
            Stage::Notified if entropy.below(6) == 5 => {
                2 + usize::from(!self.tells_of_misses && entropy.below(8) > 0)
            }
            Stage::Blocking if form.grammar.contains("forever") => 1 + entropy.below(3),
            Stage::Blocking => [0, 0, 0, 1, 2, 3][entropy.below(6)],
            _ => usize::from(entropy.below(4) == 3),
        }
    }

    fn leave(&mut self, client: usize) {
        self.queued[client] = None;
        self.program.steps.push(Step {
            effect: Effect::Leaves,
            ..Step::plain(client, Vec::new())
        });
    }

    /// The program, with its transactions ended.
    pub(super) fn finish(mut self) -> Program {
        for client in 0..CLIENTS {
            if self.queued[client].is_some() {
                self.plain(client, vec![b"EXEC".to_vec()]);
            }
        }
        for (line, order) in LAST {
            self.line(0, line);
            if let Some(step) = self.program.steps.last_mut() {
                step.order = *order;
            }
        }
        self.program
    }

    fn follow(&mut self, client: usize, words: Vec<Vec<u8>>) {
        self.plain(client, words);
        if let Some(step) = self.program.steps.last_mut() {
            step.follows = true;
        }
    }

    fn plain(&mut self, client: usize, words: Vec<Vec<u8>>) {
        self.push(Step::plain(client, words));
    }

    /// Adds a step and keeps count of the transaction as far as its words tell; a wrong guess costs nothing but a stray EXEC.
    fn push(&mut self, step: Step) {
        let queued = &mut self.queued[step.client];
        match (step.command.as_str(), &queued) {
            ("multi", None) if step.words.len() == 1 => *queued = Some(0),
            ("exec" | "discard" | "reset" | "quit", _) if step.words.len() == 1 => *queued = None,
            (_, Some(count)) => *queued = Some(count + 1),
            _ => {}
        }
        self.program.steps.push(step);
    }
}

/// One command, and the command that loads what it runs, if it does.
pub(super) fn single(
    ready: &'static Ready,
    key: usize,
    serial: usize,
    bytes: &[u8],
) -> (Option<Vec<Vec<u8>>>, Vec<Vec<u8>>) {
    let mut drawing = Drawing {
        serial,
        key,
        may_pause: true,
        ..Drawing::default()
    };
    drawing.command(ready, &mut Entropy::new(bytes));
    (drawing.loads, drawing.words)
}

impl Drawing {
    fn command(&mut self, ready: &'static Ready, entropy: &mut Entropy<'_>) {
        let name = ready
            .form
            .name
            .split(' ')
            .map(|word| word.as_bytes().to_vec());
        self.words.extend(name);
        self.sequence(&ready.parts, entropy);
    }

    fn sequence(&mut self, parts: &[Part], entropy: &mut Entropy<'_>) {
        for part in parts {
            match part {
                Part::Literal(word) => {
                    self.options.push(word);
                    self.words.push(word.as_bytes().to_vec());
                }
                Part::Slot(slot) => self.slot(slot, entropy),
                Part::Choice(choices) => {
                    // What may be left out is left out every other time.
                    let leave_out = choices[0].is_empty() && entropy.below(2) == 0;
                    let choice = if leave_out {
                        0
                    } else {
                        entropy.below(choices.len())
                    };
                    self.sequence(&choices[choice], entropy);
                }
                Part::Repeat(parts) => {
                    // Once, mostly.
                    for _ in 0..=[0, 0, 1, 2][entropy.below(4)] {
                        self.sequence(parts, entropy);
                    }
                }
            }
        }
    }

    fn slot(&mut self, slot: &'static str, entropy: &mut Entropy<'_>) {
        if let Some(word) = slot::word(slot, self.key, entropy) {
            self.words.push(word);
            return;
        }
        match slot {
            "secs" | "millis" | "at" | "milliat" => {
                let word = self.time(slot, entropy);
                self.words.push(word);
            }
            "forever" => {
                self.blocks = true;
                self.words.push(b"0".to_vec());
            }
            "client-id" => {
                let mut word = ID_OF_CLIENT.to_vec();
                word.push(b'1' + entropy.below(CLIENTS - 1) as u8);
                self.words.push(word);
            }
            "lua" => self.words.push(lua::source(entropy.seed())),
            "library" => self.words.push(library(entropy.seed()).source),
            "one-library" => {
                let source = library(entropy.seed()).source;
                self.words.push(payload(&[source]));
            }
            // More than one are never to be the same as what is there: the server names whichever it comes to first.
            "libraries" => {
                let count = [2, 2, 3, 0][entropy.below(4)];
                let sources: Vec<_> = (0..count).map(|_| library(entropy.seed()).source).collect();
                self.words.push(payload(&sources));
            }
            "call" => self.call(entropy),
            "newid" => {
                let part = if entropy.below(4) == 3 { "*" } else { "1" };
                self.words
                    .push(format!("{}-{part}", self.serial + 1).into_bytes());
            }
            "zsets" | "sets" | "lists" => self.counted(slot, entropy),
            "sortable" => {
                let slot = ["list", "sorted", "set"][entropy.below(3)];
                self.slot(slot, entropy);
            }
            "weights" => {
                self.options.push("WEIGHTS");
                self.words.push(b"WEIGHTS".to_vec());
                let missing = usize::from(entropy.seldom());
                for _ in missing..self.key_count {
                    self.slot("weight", entropy);
                }
            }
            "command" => self.inner_command(entropy),
            "script" | "sha" | "source" | "digest" => self.script(slot, entropy),
            _ => panic!("a grammar names a slot that there is not: {slot}"),
        }
    }

    /// A deadline or remaining time. No two steps draw the same, so that GT and LT do not depend on milliseconds.
    fn time(&mut self, slot: &str, entropy: &mut Entropy<'_>) -> Vec<u8> {
        let base = 100 * (1 + entropy.below(4)) + self.serial;
        if entropy.below(8) == 7 {
            let odd: [&[u8]; 8] = [
                b"0",
                b"-1",
                b"abc",
                b"9223372036854775807",
                b"1",
                b"-9223372036854775808",
                b"9223372036854775",
                b"99999999999",
            ];
            let odd = entropy.pick(&odd);
            if slot != "millis" && odd == b"1" {
                return b"-5".to_vec();
            }
            if odd == b"1" {
                self.pause = self.may_pause;
                return if self.may_pause { b"1" } else { &b"abc"[..] }.to_vec();
            }
            // A key that is due as soon as it is set goes when the server has time.
            if slot == "milliat" && odd == b"99999999999" {
                return b"x".to_vec();
            }
            return odd.to_vec();
        }
        let value = match slot {
            "secs" => base,
            "millis" => base * 1000,
            "at" => FUTURE + base,
            _ => (FUTURE + base) * 1000,
        };
        value.to_string().into_bytes()
    }

    /// A number of keys and the keys.
    fn counted(&mut self, slot: &'static str, entropy: &mut Entropy<'_>) {
        let keys = slot.strip_suffix('s').unwrap_or(slot);
        self.key_count = 1 + entropy.below(3);
        let told = match (entropy.seldom(), entropy.below(2)) {
            (false, _) => self.key_count,
            (true, 0) => self.key_count + 3,
            (true, _) => 0,
        };
        self.words.push(told.to_string().into_bytes());
        for _ in 0..self.key_count {
            self.slot(keys, entropy);
        }
    }

    /// A whole command among the arguments.
    fn inner_command(&mut self, entropy: &mut Entropy<'_>) {
        let (high, low) = (entropy.below(256), entropy.below(256));
        let which = (high * 256 + low) % DRAWN.len();
        let flat = DRAWN.iter().cycle().skip(which).take(DRAWN.len());
        let Some(ready) = flat.map(|at| &READY[*at]).find(|ready| !ready.nests) else {
            return;
        };
        let mut inner = Drawing {
            serial: self.serial,
            depth: self.depth + 1,
            key: self.key,
            ..Drawing::default()
        };
        inner.command(ready, entropy);
        let random = ready
            .form
            .then_delete
            .then(|| inner.words.get(1).cloned())
            .flatten();
        self.words.append(&mut inner.words);
        self.inner = Some((ready.form.order, random));
    }

    /// A function and what it is called with, mostly of a library that is loaded before.
    fn call(&mut self, entropy: &mut Entropy<'_>) {
        if self.depth > DEPTH_MAX {
            return;
        }
        let Library { source, functions } = library(entropy.seed());
        if entropy.below(4) > 0 {
            let load: [&[u8]; 4] = [b"FUNCTION", b"LOAD", b"REPLACE", &source];
            self.loads = Some(load.map(<[u8]>::to_vec).to_vec());
        }
        let at = entropy.below(functions.len());
        let Some(function) = functions.get(at) else {
            return;
        };
        let known = !entropy.seldom();
        let name = if known { function.name } else { "nosuch" };
        self.words.push(name.into());
        let (literals, numkeys) = (self.options.len(), self.words.len());
        self.sequence(&form::parse(function.arguments), entropy);
        self.options.truncate(literals);
        if entropy.seldom() {
            let odd: [&[u8]; 4] = [b"abc", b"-1", b"9", b"9223372036854775808"];
            self.words[numkeys] = entropy.pick(&odd).to_vec();
        }
    }

    fn script(&mut self, slot: &str, entropy: &mut Entropy<'_>) {
        if self.depth > DEPTH_MAX {
            return;
        }
        let any = entropy.below(2) == 0;
        let script = &SCRIPTS[if any {
            entropy.below(3)
        } else {
            entropy.below(SCRIPTS.len())
        }];
        let digest = redis::Script::new(script.source).get_hash().to_owned();
        match slot {
            "source" => return self.words.push(script.source.into()),
            "digest" if entropy.seldom() => return self.words.push(vec![b'0'; 40]),
            "digest" => return self.words.push(digest.into()),
            "sha" => {
                let load: [&[u8]; 3] = [b"SCRIPT", b"LOAD", script.source.as_bytes()];
                self.loads = (entropy.below(4) > 0).then(|| load.map(<[u8]>::to_vec).to_vec());
                self.words.push(digest.into());
            }
            _ => self.words.push(script.source.into()),
        }
        let literals = self.options.len();
        self.sequence(&form::parse(script.arguments), entropy);
        // The numbers of keys are not options of EVAL.
        self.options.truncate(literals);
    }

    /// Now and then a command is not as its grammar wants it.
    fn spoil(&mut self, name_len: usize, entropy: &mut Entropy<'_>) {
        match entropy.below(64) {
            63 if self.words.len() > name_len => {
                // The list of all commands comes in any order.
                let last = self.words.pop();
                if self.words.last().is_some_and(|word| word == b"COMMAND") {
                    self.words.extend(last);
                }
                self.options.clear();
            }
            62 => self.words.push(b"EXTRA".to_vec()),
            58..=61 => self.words[0].make_ascii_lowercase(),
            _ => {}
        }
    }
}

/// The key that a command gives a time to.
fn due_key(words: &[Vec<u8>]) -> Option<Vec<u8>> {
    words.get(1).cloned()
}
