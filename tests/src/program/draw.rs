//! Which command a draw stands for, stage by stage.

use std::sync::LazyLock;

use super::form::{self, Form, Part, RARE};
use super::{Stage, find, grammar};

/// Draws from here on keep to the program's stretches of the grammar, of so many forms each.
const DWELL: usize = 1 << 15;
const STRETCH_LEN: usize = 8;

/// A form with its grammar taken apart.
pub(super) struct Ready {
    pub form: &'static Form,
    pub parts: Vec<Part>,
    /// It holds another command.
    pub nests: bool,
}

/// The forms of the rows that there are.
pub(super) static READY: LazyLock<Vec<Ready>> = LazyLock::new(|| {
    let there = |form: &&Form| form.silent.is_none() && find(form.name).is_some();
    let ready = |form: &'static Form| Ready {
        form,
        parts: form::parse(form.grammar),
        nests: ["script", "sha", "command", "call"].contains(&form.grammar),
    };
    grammar::FORMS.iter().filter(there).map(ready).collect()
});

/// Indices of [`READY`] of a stage, each as often as its weight says.
fn weighted(stage: Stage) -> Vec<usize> {
    let weighted = |(at, ready): (usize, &Ready)| vec![at; ready.form.weight as usize];
    let here = READY.iter().enumerate();
    here.filter(|(_, ready)| ready.form.stage == stage)
        .flat_map(weighted)
        .collect()
}

/// What is drawn on every stage.
pub(super) static DRAWN: LazyLock<Vec<usize>> = LazyLock::new(|| weighted(Stage::Plain));

/// What is drawn on one stage only; on the blocking one with what wakes the blocked.
static SUBSCRIBING: LazyLock<Vec<usize>> = LazyLock::new(|| weighted(Stage::Notified));
static BLOCKING: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let mut drawn = weighted(Stage::Blocking);
    let wakes = |(at, ready): (usize, &Ready)| WAKERS.contains(&ready.form.name).then_some(at);
    let wakers: Vec<usize> = READY.iter().enumerate().filter_map(wakes).collect();
    for _ in 0..WAKER_WEIGHT {
        drawn.extend(&wakers);
    }
    drawn
});

/// What can give a blocked connection something to be served with, or take it away again.
const WAKERS: &[&str] = &[
    "COPY",
    "DEL",
    "EVAL",
    "EXEC",
    "FLUSHALL",
    "LINSERT",
    "LMOVE",
    "LPUSH",
    "LSET",
    "MOVE",
    "MULTI",
    "RENAME",
    "RENAMENX",
    "RPOPLPUSH",
    "RPUSH",
    "SELECT",
    "SET",
    "SORT",
    "SWAPDB",
    "XADD",
    "XDEL",
    "XGROUP CREATE",
    "XGROUP DESTROY",
    "XREADGROUP",
    "ZADD",
    "ZINCRBY",
    "ZRANGESTORE",
    "ZUNIONSTORE",
];
const WAKER_WEIGHT: usize = 3;

/// Forms that a program can dwell on: none that waits, or that spoils all other data.
pub(super) static DWELT: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let common = |at: &usize| {
        let form = READY[*at].form;
        form.weight > RARE && form.stage == Stage::Plain
    };
    (0..READY.len()).filter(common).collect()
});

/// For each form a stage and a number that draw it.
pub(super) fn first_draws() -> Vec<(Stage, u16)> {
    let first = |at: usize| {
        let own = |list: &[usize]| list.iter().position(|drawn| *drawn == at);
        let (stage, number) = match READY[at].form.stage {
            Stage::Plain => (Stage::Plain, own(&DRAWN)?),
            Stage::Notified => (Stage::Notified, DWELL + 4 * own(&SUBSCRIBING)?),
            Stage::Blocking => (Stage::Blocking, DWELL + own(&BLOCKING)?),
        };
        Some((stage, number as u16))
    };
    (0..READY.len()).filter_map(first).collect()
}

/// The options of the form that a number draws, and the empty one.
pub(super) fn options(stage: Stage, which: u16) -> Vec<&'static str> {
    let mut options = vec![""];
    let form = form(stage, [0; 2], usize::from(which));
    form::literals(&READY[form].parts, &mut options);
    options
}

/// The form that a number stands for: any, or, in the upper half, one of the stage's or of the program's stretches.
pub(super) fn form(stage: Stage, stretches: [usize; 2], which: usize) -> usize {
    if which < DWELL {
        return DRAWN[which % DRAWN.len()];
    }
    match stage {
        Stage::Blocking => return BLOCKING[(which - DWELL) % BLOCKING.len()],
        Stage::Notified if which.is_multiple_of(4) => {
            return SUBSCRIBING[(which - DWELL) / 4 % SUBSCRIBING.len()];
        }
        _ => {}
    }
    let stretch = stretches[which % 2];
    DWELT[(stretch + which / 2 % STRETCH_LEN) % DWELT.len()]
}
