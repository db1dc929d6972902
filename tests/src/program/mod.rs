//! [`Program`]: random programs of commands, drawn from the command table and a grammar of arguments.
//!
//! A program is made of bytes ([`Draw`]), so proptest shrinks it by shrinking bytes and a fuzzer can make one too. Keys are named
//! by type, so that most commands meet what they work on, and every argument is now and then one that does not fit.

mod data;
mod draw;
mod entropy;
mod form;
mod grammar;
mod lua;
mod maker;
mod payload;
mod script;
mod single;
mod slot;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use fakeserver::command::{Row, lookup, rows};
use proptest::strategy::Strategy;

use crate::compare::Order;
use crate::frame::printable;
use maker::Maker;
pub use single::{Single, singles, states};

/// Connections that a program's commands come from.
pub const CLIENTS: usize = 4;

/// A word that begins like this and ends with a digit stands for the number that the server gave to that connection.
pub const ID_OF_CLIENT: &[u8] = b"id-of-client-";

/// Draws of a program at most.
const DRAWS_MAX: usize = 40;

/// Bytes of a draw: enough for all choices of most commands.
const DRAW_LEN: usize = 40;

/// What one command of a program is made from.
pub type Draw = (u16, Vec<u8>);

/// What a program as a whole is made from: protocols and first data; two stretches of the grammar and a key, on which half of
/// its commands keep, so that they have to do with each other; its stage.
pub type Start = [u8; 5];

/// What a program is about besides commands and their replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Two connections.
    Plain,
    /// Keyspace events are on, and two further connections, one of either protocol, hear them and what is published.
    Notified,
    /// Three of four connections block, and everything that can wake them happens.
    Blocking,
}

impl Stage {
    fn of(start: Start) -> Stage {
        match start[4] / 64 {
            0 | 1 => Stage::Plain,
            2 => Stage::Notified,
            _ => Stage::Blocking,
        }
    }

    fn start(self) -> u8 {
        match self {
            Stage::Plain => 0,
            Stage::Notified => 128,
            Stage::Blocking => 192,
        }
    }
}

/// Commands, one after the other, from several connections.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// The protocol that each connection speaks at first, as HELLO names it.
    pub protocols: [&'static str; CLIENTS],
    /// The commands.
    pub steps: Vec<Step>,
}

/// A command of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The connection that sends it.
    pub client: usize,
    /// Its words.
    pub words: Vec<Vec<u8>>,
    /// How its reply is compared.
    pub order: Order,
    /// The name of its row, in lower case.
    pub command: String,
    /// The literal words of the grammar that were drawn.
    pub options: Vec<&'static str>,
    /// What it does to time or to its connection.
    pub effect: Effect,
    /// It clears up after the command before it, and cannot be left out without that.
    pub follows: bool,
}

/// What a step does besides being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// A key falls due now: wait until it has.
    Pauses,
    /// It may block the connection for good.
    Blocks,
    /// No command: the connection is closed, and another one takes its place.
    Leaves,
}

impl Step {
    /// A command without options, compared byte by byte.
    pub fn plain(client: usize, words: Vec<Vec<u8>>) -> Step {
        let mut names = words.iter().map(|word| String::from_utf8_lossy(word));
        let mut command = names.next().unwrap_or_default().into_owned();
        if ["OBJECT", "SCRIPT", "XGROUP", "CONFIG", "FUNCTION"].contains(&command.as_str()) {
            command = format!("{command} {}", names.next().unwrap_or_default());
        }
        Step {
            client,
            command: row_name(&command),
            words,
            order: Order::Exact,
            options: Vec::new(),
            effect: Effect::None,
            follows: false,
        }
    }
}

/// A strategy for programs over all rows of the table.
pub fn programs() -> impl Strategy<Value = Program> {
    let draw = (
        proptest::num::u16::ANY,
        proptest::collection::vec(proptest::num::u8::ANY, DRAW_LEN),
    );
    (
        proptest::array::uniform5(proptest::num::u8::ANY),
        proptest::collection::vec(draw, 1..=DRAWS_MAX),
    )
        .prop_map(|(start, draws)| Program::from_draws(start, &draws))
}

/// Commands of a program of [`sweep`].
const SWEEP_LEN: usize = 16;

/// So often is each option met in a sweep.
const SWEEP_TIMES: usize = 12;

/// Draws for one form in search of its rarest option.
const SWEEP_DRAWS_MAX: usize = 4000;

/// Programs that meet every row and option several times: random ones would take long to reach the rare.
pub fn sweep(seed: u64) -> Vec<Program> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut draws: BTreeMap<Stage, Vec<Draw>> = BTreeMap::new();
    for (stage, which) in draw::first_draws() {
        let start = [0, 0, 0, 0, stage.start()];
        let mut missing: BTreeMap<&str, usize> = draw::options(stage, which)
            .into_iter()
            .map(|option| (option, SWEEP_TIMES))
            .collect();
        for _ in 0..SWEEP_DRAWS_MAX {
            let bytes: Vec<u8> = (0..DRAW_LEN).map(|_| random.u8(..)).collect();
            let program = Program::from_draws(start, &[(which, bytes.clone())]);
            let met = program.steps.iter().find(|step| !step.options.is_empty());
            let met = met.map_or(&[][..], |step| &step.options);
            let mut useful = false;
            for option in met.iter().chain([&""]) {
                if let Some(left) = missing.get_mut(option) {
                    *left -= 1;
                    useful = true;
                    if *left == 0 {
                        missing.remove(option);
                    }
                }
            }
            if useful {
                draws.entry(stage).or_default().push((which, bytes));
            }
            if missing.is_empty() {
                break;
            }
        }
    }
    // What an option notifies of is to be compared too.
    let plain = draws.get(&Stage::Plain).cloned().unwrap_or_default();
    draws.entry(Stage::Notified).or_default().extend(plain);
    let mut programs = Vec::new();
    for (stage, draws) in draws {
        for (at, draws) in draws.chunks(SWEEP_LEN).enumerate() {
            let style = SWEEP_STYLES[at % SWEEP_STYLES.len()];
            let start = [style, 0, 0, 0, stage.start()];
            programs.push(Program::from_draws(start, draws));
        }
    }
    programs
}

/// Small data in either protocol, and large.
const SWEEP_STYLES: [u8; 4] = [64, 65, 128, 255];

impl Program {
    /// The program that these bytes stand for.
    pub fn from_draws(start: Start, draws: &[Draw]) -> Program {
        let mut maker = Maker::new(start);
        for (which, bytes) in draws {
            maker.add(*which, bytes);
        }
        maker.finish()
    }

    /// The settings that a program may change, with the values that they have at first.
    pub fn settings() -> &'static [(&'static str, &'static str)] {
        slot::LIMITS
    }

    /// The shortest program that still fails, as far as leaving out commands one by one finds it.
    #[must_use]
    pub fn shrink(&self, mut fails: impl FnMut(&Program) -> bool) -> Program {
        let mut shrunk = self.clone();
        let mut end = shrunk.steps.len();
        while end > 0 {
            let followers = shrunk.steps[..end]
                .iter()
                .rev()
                .take_while(|step| step.follows);
            let start = end.saturating_sub(followers.count() + 1);
            let mut shorter = shrunk.clone();
            shorter.steps.drain(start..end);
            if fails(&shorter) {
                shrunk = shorter;
            }
            end = start;
        }
        shrunk.shrink_scripts(&mut fails);
        shrunk
    }

    /// Leaves out lines of scripts.
    fn shrink_scripts(&mut self, fails: &mut impl FnMut(&Program) -> bool) {
        for at in 0..self.steps.len() {
            let Some(place) = place_of_source(&self.steps[at]) else {
                continue;
            };
            let mut line = 0;
            loop {
                let mut shorter = self.clone();
                let Some(source) = shorter.steps[at].words.get_mut(place) else {
                    break;
                };
                let mut lines: Vec<&[u8]> = source.split(|byte| *byte == b'\n').collect();
                if line >= lines.len() || lines.len() == 1 {
                    break;
                }
                lines.remove(line);
                *source = lines.join(&b'\n');
                if fails(&shorter) {
                    *self = shorter;
                } else {
                    line += 1;
                }
            }
        }
    }

    /// The program as the requests of a transcript, without replies.
    pub fn to_transcript(&self) -> String {
        let mut text = String::new();
        let mut current = None;
        let mut greeted = [false; CLIENTS];
        for step in &self.steps {
            if current != Some(step.client) {
                let _ = writeln!(text, "@{}", (b'a' + step.client as u8) as char);
                current = Some(step.client);
            }
            if !std::mem::replace(&mut greeted[step.client], true) {
                let _ = writeln!(text, "! resp{}", self.protocols[step.client]);
            }
            if step.effect == Effect::Leaves {
                text.push_str("# the connection is closed\n\n");
                continue;
            }
            let words: Vec<String> = step.words.iter().map(|word| quoted(word)).collect();
            let _ = writeln!(text, "> {}", words.join(" "));
            match step.order {
                Order::Exact => {}
                Order::Set => text.push_str("~ set\n"),
                Order::Map => text.push_str("~ map\n"),
                Order::Near(_) | Order::Aged | Order::Kind | Order::Listed | Order::Silence => {
                    text.push_str("~ any\n");
                }
            }
            text.push('\n');
        }
        text
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_transcript())
    }
}

/// A word as redis-cli would read it back.
fn quoted(word: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\".contains(byte);
    if !word.is_empty() && word.iter().all(plain) {
        return printable(word);
    }
    format!("\"{}\"", printable(word).replace('"', "\\\""))
}

/// Which word of a step is Lua.
fn place_of_source(step: &Step) -> Option<usize> {
    match step.command.as_str() {
        "eval" => Some(1),
        "function|load" => step.words.len().checked_sub(1),
        _ => None,
    }
}

/// All rows that can run: those without subcommands, and subcommands.
pub fn runnable_rows() -> Vec<&'static Row> {
    let all = rows().iter().copied();
    all.flat_map(|row| match row.subcommands() {
        [] => vec![row],
        subcommands => subcommands.to_vec(),
    })
    .collect()
}

/// The rows for which there is no grammar and no reason to leave them out. It must be empty.
pub fn rows_without_grammar() -> Vec<&'static str> {
    let known: BTreeSet<String> = grammar::FORMS
        .iter()
        .map(|form| row_name(form.name))
        .collect();
    runnable_rows()
        .into_iter()
        .map(Row::full_name)
        .filter(|name| {
            let container = name.split('|').next().unwrap_or_default();
            !known.contains(*name) && !known.contains(container)
        })
        .collect()
}

/// The rows that are left out, each with the reason.
pub fn rows_left_out() -> Vec<(&'static str, &'static str)> {
    let silent = grammar::FORMS
        .iter()
        .filter_map(|form| Some((form.name, form.silent?)));
    silent.filter(|(name, _)| find(name).is_some()).collect()
}

/// What is to be covered: rows and options, and whether one can only be reached with an error.
pub fn targets() -> BTreeSet<Target> {
    let mut targets = BTreeSet::new();
    for form in grammar::FORMS {
        if form.silent.is_some() || find(form.name).is_none() {
            continue;
        }
        let mut options = vec![""];
        form::literals(&form::parse(form.grammar), &mut options);
        if form.grammar.contains("weights") {
            options.push("WEIGHTS");
        }
        for option in options {
            targets.insert(Target {
                command: row_name(form.name),
                option,
                fails: form.fails,
            });
        }
    }
    targets
}

/// A row and an option of it; the empty option stands for the row as such.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The row's full name.
    pub command: String,
    /// A literal word of its grammar.
    pub option: &'static str,
    /// It can only fail here.
    pub fails: bool,
}

/// `CONFIG GET` to `config|get`.
fn row_name(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "|")
}

/// The row of a form, if the table has it.
fn find(name: &str) -> Option<&'static Row> {
    match name.split_once(' ') {
        None => lookup(name.as_bytes()),
        Some((container, name)) => lookup(container.as_bytes())?.subcommand(name.as_bytes()),
    }
}
