//! [`Trace`]: what ran, and its picture in space and time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::time::Duration;

use redis::Value;

use super::schedule::{Act, Choice, Lane};
use crate::footprint::Footprint;
use crate::wire::Request;

/// One command that ran, or was lost.
#[derive(Clone, Debug)]
pub struct Step {
    /// Whose command, and what happened to it.
    pub choice: Choice,
    /// Which of the lane's connections it was sent on, from 1: a lost one is followed by another. 0 for the server.
    pub connection: u32,
    /// Whether that one spoke RESP3 when the command was sent.
    pub resp3: bool,
    /// The command; none if something happened to the server.
    pub request: Request,
    /// Its reply, also if it was lost on the way; none if the command did not run, or still waits.
    pub reply: Option<Value>,
    /// The step with which the reply came: another one than this if the command had to wait.
    pub answered_by: Option<usize>,
    /// Virtual time when the reply came.
    pub answered_at: Option<Duration>,
    /// Whether it touched nothing that others see.
    pub local: bool,
    /// What it touched.
    pub footprint: Footprint,
    /// The step after which it was sent, if there was one.
    pub enabled_by: Option<usize>,
    /// Whether it is another one than the lane before would have gone on with.
    pub deviates: bool,
    /// Virtual time since the beginning.
    pub at: Duration,
    /// What it changed in the key space; only if that was asked for.
    pub changes: Vec<Change>,
}

/// How a command got its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// At once.
    AtOnce,
    /// By this later step.
    By(usize),
    /// By time, after so much of it.
    After(Duration),
    /// It did not.
    Never,
}

impl Trace {
    /// How the command of a step got its reply.
    pub(super) fn answered(&self, at: usize) -> Answered {
        let found = self.steps.get(at).and_then(|step| {
            let (by, time) = (step.answered_by?, step.answered_at?);
            let is_later = self.steps.get(by).is_some_and(|by| by.at < time);
            Some(match by {
                _ if is_later => Answered::After(time.saturating_sub(step.at)),
                _ if by == at => Answered::AtOnce,
                _ => Answered::By(by),
            })
        });
        found.unwrap_or(Answered::Never)
    }
}

/// A key that is not after a step what it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Index of the database.
    pub database: usize,
    /// The key as redis-cli quotes it.
    pub key: String,
    /// Its type, value and deadline before; none if there was no such key.
    pub before: Option<String>,
    /// The same after.
    pub after: Option<String>,
}

/// Commands in the order in which they ran.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The steps.
    pub steps: Vec<Step>,
    /// The keys before the first step, each with its type, value and deadline; only if changes were asked for.
    pub keys: Keys,
    /// Whose each lane is, by the lane's number.
    pub clients: Vec<usize>,
}

/// Keys as text, by database and name.
pub(crate) type Keys = BTreeMap<(usize, String), String>;

/// Keys that are not the same before and after.
pub(super) fn changes(before: &Keys, after: &Keys) -> Vec<Change> {
    let names: BTreeSet<&(usize, String)> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter_map(|name| {
        let (one, other) = (before.get(name), after.get(name));
        (one != other).then(|| Change {
            database: name.0,
            key: name.1.clone(),
            before: one.cloned(),
            after: other.cloned(),
        })
    });
    changed.collect()
}

/// Longest text of a command and of a reply in the picture.
const COMMAND_LEN_MAX: usize = 46;
const REPLY_LEN_MAX: usize = 24;

impl Trace {
    /// Lanes that occur, in order.
    fn lanes(&self) -> Vec<Lane> {
        let mut lanes: Vec<Lane> = self.steps.iter().map(|step| step.choice.lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    }
}

/// A column for each lane, a row for each step. A run of commands that others do not see takes one row.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes = self.lanes();
        let rows = rows(&self.steps);
        let widths: Vec<usize> = lanes
            .iter()
            .map(|lane| {
                let texts = rows.iter().filter(|row| row.lane == *lane);
                texts
                    .map(|row| row.text.chars().count())
                    .max()
                    .unwrap_or(0)
                    .max(6)
                    + 2
            })
            .collect();
        let mut title = "step".to_owned();
        for (lane, width) in lanes.iter().zip(&widths) {
            let name = match *lane {
                Lane::WORLD => "server".to_owned(),
                lane => format!("conn {lane}"),
            };
            write!(title, "  {name:<width$}")?;
        }
        f.write_str(title.trim_end())?;
        for row in &rows {
            let mut line = format!("\n{:>4}", row.step);
            for (lane, width) in lanes.iter().zip(&widths) {
                let cell = if row.lane == *lane {
                    format!("* {}", row.text)
                } else {
                    "|".to_owned()
                };
                write!(line, "  {cell:<width$}")?;
            }
            f.write_str(line.trim_end())?;
        }
        Ok(())
    }
}

struct Row {
    step: usize,
    lane: Lane,
    text: String,
}

fn rows(steps: &[Step]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut folding = false;
    for (at, step) in steps.iter().enumerate() {
        let lane = step.choice.lane;
        let fold = step.local && !step.choice.is_fault();
        match rows.last_mut() {
            Some(row) if fold && folding && row.lane == lane => {
                let _ = write!(
                    row.text,
                    ", {}",
                    short(step.request.name(), COMMAND_LEN_MAX)
                );
            }
            _ if fold => rows.push(Row {
                step: at,
                lane,
                text: short(step.request.name(), COMMAND_LEN_MAX),
            }),
            _ => rows.push(Row {
                step: at,
                lane,
                text: describe(step),
            }),
        }
        folding = fold;
    }
    rows
}

/// A command in one line.
pub(super) fn told_command(request: &Request) -> String {
    let words = request.words().map(|word| short(word, COMMAND_LEN_MAX));
    cut(&words.collect::<Vec<_>>().join(" "), COMMAND_LEN_MAX)
}

fn describe(step: &Step) -> String {
    if step.choice.lane == Lane::WORLD {
        return step.choice.to_string();
    }
    let mut text = told_command(&step.request);
    match step.choice.act {
        Act::DropBefore => text.push_str("  !! connection lost before"),
        act => {
            let reply = step.reply.as_ref().map_or("(waits)".to_owned(), spell);
            let _ = write!(text, " -> {}", cut(&reply, REPLY_LEN_MAX));
            if act == Act::LoseReply {
                text.push_str("  ~~ reply lost");
            }
        }
    }
    text
}

/// A reply in one line.
pub(super) fn spell(reply: &Value) -> String {
    match reply {
        Value::Nil => "nil".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::BulkString(bytes) => short(bytes, REPLY_LEN_MAX),
        Value::SimpleString(text) => text.clone(),
        Value::Okay => "OK".to_owned(),
        Value::Double(number) => number.to_string(),
        Value::Array(items) | Value::Set(items) => {
            let items: Vec<String> = items.iter().map(spell).collect();
            format!("[{}]", items.join(" "))
        }
        Value::ServerError(error) => match error.details() {
            Some(details) => format!("-{} {details}", error.code()),
            None => format!("-{}", error.code()),
        },
        other => format!("{other:?}"),
    }
}

/// A command's words, as they can be printed.
pub(super) fn in_words(request: &Request) -> String {
    let words = request.words().map(|word| word.escape_ascii().to_string());
    words.collect::<Vec<_>>().join(" ")
}

fn short(bytes: &[u8], len_max: usize) -> String {
    // A cut before the escapes keeps a large value cheap.
    let shown = &bytes[..bytes.len().min(len_max + 1)];
    cut(&shown.escape_ascii().to_string(), len_max)
}

fn cut(text: &str, len_max: usize) -> String {
    if text.chars().count() <= len_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(len_max.saturating_sub(2)).collect();
    format!("{kept}..")
}
