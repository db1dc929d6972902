//! [`rows()`]: local commands folded; of a long run, what is far from all that matters left out.

use std::ops::Range;

use super::picture::{Access, Picture, Step};

/// Commands that clients send to set a connection up, or to see whether it lives. Their arguments tell a reader nothing.
const HANDSHAKE: [&str; 10] = [
    "ASKING", "AUTH", "CLIENT", "COMMAND", "ECHO", "HELLO", "INFO", "PING", "READONLY", "SELECT",
];

/// A row of the diagram.
#[derive(Debug)]
pub(crate) enum Row<'a> {
    /// One step.
    Step(usize, &'a Step),
    /// Steps of one connection in a row that nobody else can see, with what they were.
    Local(Range<usize>, &'a Step, Vec<String>),
    /// Steps that are left out.
    Left(Range<usize>),
}

impl Row<'_> {
    fn steps(&self) -> Range<usize> {
        match self {
            Row::Step(at, _) => *at..at + 1,
            Row::Local(range, ..) | Row::Left(range) => range.clone(),
        }
    }
}

/// The picture's steps as rows.
pub(crate) fn rows(picture: &Picture) -> Vec<Row<'_>> {
    let folded = folded(picture);
    if folded.len() <= picture.row_count_max {
        return folded;
    }
    let needed = needed(picture);
    let near: Vec<bool> = (0..folded.len())
        .map(|at| {
            let from = at.saturating_sub(picture.rows_around);
            let to = (at + picture.rows_around + 1).min(folded.len());
            (from..to).any(|other| matters(&needed, &folded, other))
        })
        .collect();
    // A single row takes no more room than the word that it is left out.
    let between = |at: usize| {
        let is_near = |at: Option<usize>| at.and_then(|at| near.get(at)) == Some(&true);
        is_near(at.checked_sub(1)) && is_near(Some(at + 1))
    };
    let kept: Vec<bool> = (0..near.len()).map(|at| near[at] || between(at)).collect();
    let mut shown: Vec<Row<'_>> = Vec::new();
    for (row, near) in folded.into_iter().zip(kept) {
        match (shown.last_mut(), near) {
            (_, true) => shown.push(row),
            (Some(Row::Left(left)), false) => left.end = row.steps().end,
            (_, false) => shown.push(Row::Left(row.steps())),
        }
    }
    shown
}

/// How many steps are left out, and whose, if they are all of one.
pub(crate) fn told_left(steps: &[Step]) -> String {
    let who = steps.first().map(|step| step.who.as_str());
    let who = who.filter(|who| steps.iter().all(|step| step.who == *who));
    let count = match steps.len() {
        1 => "1 more command".to_owned(),
        count => format!("{count} more commands"),
    };
    who.map_or(count.clone(), |who| format!("{who}: {count}"))
}

/// Which steps others wait for, or wait for others.
fn needed(picture: &Picture) -> Vec<bool> {
    let mut needed: Vec<bool> = picture
        .steps
        .iter()
        .map(|step| !step.after.is_empty())
        .collect();
    for at in picture.steps.iter().flat_map(|step| &step.after) {
        if let Some(needed) = needed.get_mut(*at) {
            *needed = true;
        }
    }
    needed
}

/// Whether a row is named by the cause, is an event or has a note, or is where another role goes on.
fn matters(needed: &[bool], rows: &[Row<'_>], at: usize) -> bool {
    let who = |at: usize| match rows.get(at) {
        Some(Row::Step(_, step) | Row::Local(_, step, _)) => Some(step.who.as_str()),
        _ => None,
    };
    match rows.get(at) {
        Some(Row::Step(index, step)) => {
            step.mark.is_some()
                || step.access == Access::Event
                || step.note.is_some()
                || needed.get(*index) == Some(&true)
                || at == 0
                || who(at - 1) != who(at)
        }
        _ => false,
    }
}

fn folded(picture: &Picture) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for (at, step) in picture.steps.iter().enumerate() {
        let shown = step.access != Access::Local || step.note.is_some() || step.mark.is_some();
        if shown {
            rows.push(Row::Step(at, step));
            continue;
        }
        match rows.last_mut() {
            Some(Row::Local(range, first, words))
                if first.who == step.who && first.whose == step.whose =>
            {
                range.end = at + 1;
                words.push(local_word(step));
            }
            _ => rows.push(Row::Local(at..at + 1, step, vec![local_word(step)])),
        }
    }
    for row in &mut rows {
        if let Row::Local(_, _, words) = row {
            *words = counted(words);
        }
    }
    rows
}

/// A local command for readers: a handshake by its name alone, anything else in full.
fn local_word(step: &Step) -> String {
    let name = step.command.split(' ').next().unwrap_or_default();
    if HANDSHAKE.contains(&name.to_ascii_uppercase().as_str()) {
        name.to_ascii_uppercase()
    } else {
        step.command.clone()
    }
}

/// The words, those in a row that are the same once and counted.
fn counted(words: &[String]) -> Vec<String> {
    words
        .chunk_by(|one, other| one == other)
        .filter_map(|same| match same {
            [word] => Some(word.clone()),
            [word, ..] => Some(format!("{word} x{}", same.len())),
            [] => None,
        })
        .collect()
}
