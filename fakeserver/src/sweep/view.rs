//! What the text and the page show alike: the rows of the diagram, and where outcomes differ.

use std::ops::Range;

use crate::sweep::report::{Difference, Ending, Finding, Programs, Shown, ShownKey, ShownStep};

/// Diagrams of more rows than this leave out what is far from everything that matters.
const ROW_COUNT_MAX: usize = 48;

/// So many rows around one that matters are shown in any case.
const ROWS_AROUND: usize = 3;

/// Other schedules with the same outcome that are named.
const ALSO_COUNT_MAX: usize = 8;

/// Commands that clients send to set a connection up, or to see whether it lives. Their arguments tell a reader nothing.
const HANDSHAKE: [&str; 10] = [
    "ASKING", "AUTH", "CLIENT", "COMMAND", "ECHO", "HELLO", "INFO", "PING", "READONLY", "SELECT",
];

/// A row of the diagram.
#[derive(Debug, PartialEq)]
pub(crate) enum Row<'a> {
    /// One step.
    Step(usize, &'a ShownStep),
    /// Steps of one connection in a row that nobody else can see, with what they were.
    Local(Range<usize>, &'a ShownStep, Vec<String>),
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

/// What a step has to do with the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// What was read, and believed later.
    Read,
    /// What was done and believed to last, as a lock that was taken.
    Relied,
    /// What made it untrue.
    Written,
    /// What was done in the belief.
    Overwritten,
}

impl Mark {
    /// The word for readers.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Mark::Read => "read",
            Mark::Relied => "relied on",
            Mark::Written => "written",
            Mark::Overwritten => "overwritten",
        }
    }
}

/// The mark of a step, if the finding's cause names it.
pub(crate) fn mark(finding: &Finding, at: usize) -> Option<Mark> {
    let cause = finding.cause.as_ref()?;
    match at {
        _ if at == cause.read => match finding.steps.get(at) {
            Some(step) if step.access == "write" => Some(Mark::Relied),
            _ => Some(Mark::Read),
        },
        _ if at == cause.written => Some(Mark::Written),
        _ if cause.overwritten == Some(at) => Some(Mark::Overwritten),
        _ => None,
    }
}

/// Other schedules with the same outcome, the first of them named.
pub(crate) fn also(finding: &Finding) -> Option<String> {
    let (named, rest) = finding
        .also
        .split_at_checked(ALSO_COUNT_MAX)
        .unwrap_or((&finding.also, &[]));
    match (named, rest) {
        ([], _) => None,
        (_, []) => Some(named.join(", ")),
        _ => Some(format!("{} and {} more", named.join(", "), rest.len())),
    }
}

/// The cause in words: who read, who wrote between, who overwrote.
pub(crate) fn told_cause(finding: &Finding) -> Option<String> {
    let cause = finding.cause.as_ref()?;
    let who = |at: usize| {
        let step = finding.steps.get(at)?;
        let point = step.point.map(|point| format!(" ({}{point})", step.role));
        Some(format!(
            "{}{}",
            role_name(&step.role),
            point.unwrap_or_default()
        ))
    };
    let end = match cause.overwritten.and_then(who) {
        Some(who) => format!("{who} wrote as if it had not"),
        None => "nothing was done about it".to_owned(),
    };
    let read = who(cause.read)?;
    let written = who(cause.written)?;
    Some(format!(
        "{read} {} {}, {written} changed it, {end}",
        mark(finding, cause.read).map_or("read", Mark::word),
        cause.key
    ))
}

/// `A` for `a`; `the schedule` for the server.
pub(crate) fn role_name(role: &str) -> &str {
    match role {
        "a" => "A",
        "b" => "B",
        "server" => "the schedule",
        other => other,
    }
}

/// A column's head: the role and its program.
pub(crate) fn column_head(role: &str, programs: &Programs) -> String {
    let words = match role {
        "a" => Some(&programs.a),
        "b" => programs.b.as_ref(),
        _ => programs.after.as_ref(),
    };
    match words {
        Some(words) => format!("{}: {}", role_name(role), words.join(" ")),
        None => role_name(role).to_owned(),
    }
}

/// `#2 `, the connection's number, where the program has several.
pub(crate) fn connection(finding: &Finding, step: &ShownStep) -> String {
    let several = finding
        .steps
        .iter()
        .any(|other| other.role == step.role && other.connection != step.connection);
    if several {
        format!("#{} ", step.connection)
    } else {
        String::new()
    }
}

/// The finding's steps as rows: local commands folded; of a long run, what is far from all that matters left out.
pub(crate) fn rows(finding: &Finding) -> Vec<Row<'_>> {
    let folded = folded(finding);
    if folded.len() <= ROW_COUNT_MAX {
        return folded;
    }
    let near: Vec<bool> = (0..folded.len())
        .map(|at| {
            let from = at.saturating_sub(ROWS_AROUND);
            let to = (at + ROWS_AROUND + 1).min(folded.len());
            (from..to).any(|other| matters(finding, &folded, other))
        })
        .collect();
    let mut shown: Vec<Row<'_>> = Vec::new();
    for (row, near) in folded.into_iter().zip(near) {
        match (shown.last_mut(), near) {
            (_, true) => shown.push(row),
            (Some(Row::Left(left)), false) => left.end = row.steps().end,
            (_, false) => shown.push(Row::Left(row.steps())),
        }
    }
    shown
}

/// Whether a row is named by the cause, is an event or has a note, or is where another role goes on.
fn matters(finding: &Finding, rows: &[Row<'_>], at: usize) -> bool {
    let role = |at: usize| match rows.get(at) {
        Some(Row::Step(_, step) | Row::Local(_, step, _)) => Some(step.role.as_str()),
        _ => None,
    };
    match rows.get(at) {
        Some(Row::Step(index, step)) => {
            mark(finding, *index).is_some()
                || step.access == "event"
                || step.note.is_some()
                || at == 0
                || role(at - 1) != role(at)
        }
        _ => false,
    }
}

fn folded(finding: &Finding) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for (at, step) in finding.steps.iter().enumerate() {
        let shown = step.access != "local" || step.note.is_some() || mark(finding, at).is_some();
        if shown {
            rows.push(Row::Step(at, step));
            continue;
        }
        match rows.last_mut() {
            Some(Row::Local(range, first, words))
                if first.role == step.role && first.connection == step.connection =>
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
fn local_word(step: &ShownStep) -> String {
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

/// A place in which outcomes differ.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Facet {
    /// `key "stock"`, `output of A`.
    pub(crate) at: String,
    /// What the finding has there.
    pub(crate) here: String,
    /// What the outcomes that would be right have there, in the finding's order.
    pub(crate) expected: Vec<String>,
    /// Whether no outcome that would be right has what the finding has, and that counts.
    pub(crate) is_wrong: bool,
}

/// Where a finding's outcome and those that would be right differ among each other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// The outcomes that would be right, each once, with all orders that give it.
    pub(crate) orders: Vec<String>,
    /// Where they differ.
    pub(crate) facets: Vec<Facet>,
    /// Keys that are the same in all.
    pub(crate) same_keys: usize,
    /// Statuses and outputs that are the same in all.
    pub(crate) same_endings: usize,
}

/// How much is the same in all outcomes, if anything is.
pub(crate) fn told_same(comparison: &Comparison) -> Option<String> {
    let counted = |count: usize, one: &str, several: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {several}")),
    };
    let parts: Vec<String> = [
        counted(comparison.same_keys, "key", "keys"),
        counted(
            comparison.same_endings,
            "status or output",
            "statuses or outputs",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("The same in all: {}.", parts.join(", ")))
}

/// Holds a finding's outcome against those that would be right.
pub(crate) fn comparison(finding: &Finding) -> Comparison {
    let mut orders: Vec<(String, &Shown)> = Vec::new();
    for reference in &finding.expected {
        let known = orders.iter_mut().find(|(_, outcome)| {
            endings(outcome).map(|(_, fact)| fact)
                == endings(&reference.outcome).map(|(_, fact)| fact)
                && outcome.keys == reference.outcome.keys
        });
        match known {
            Some((order, _)) => *order = format!("{order}; {}", reference.order),
            None => orders.push((reference.order.clone(), &reference.outcome)),
        }
    }
    let mut comparison = Comparison::default();
    compare_endings(&mut comparison, finding, &orders);
    compare_keys(&mut comparison, finding, &orders);
    comparison.orders = orders.into_iter().map(|(order, _)| order).collect();
    comparison
}

fn compare_endings(comparison: &mut Comparison, finding: &Finding, orders: &[(String, &Shown)]) {
    for (index, (at, here)) in endings(&finding.outcome).into_iter().enumerate() {
        let expected: Vec<Option<String>> = orders
            .iter()
            .map(|(_, outcome)| endings(outcome).into_iter().nth(index))
            .map(|fact| fact.and_then(|(_, fact)| fact))
            .collect();
        if expected.iter().all(|fact| *fact == here) {
            comparison.same_endings += usize::from(here.is_some());
            continue;
        }
        // A program that the schedule killed ends like none that it did not: that alone is no difference.
        let named = |difference: &Difference| difference.at == at;
        let counts = finding.differences.is_empty() || finding.differences.iter().any(named);
        let is_wrong = counts && !expected.contains(&here);
        let shown = |fact: Option<String>| fact.unwrap_or_else(|| "(did not run)".to_owned());
        comparison.facets.push(Facet {
            at: at.to_owned(),
            here: shown(here),
            expected: expected.into_iter().map(shown).collect(),
            is_wrong,
        });
    }
}

fn compare_keys(comparison: &mut Comparison, finding: &Finding, orders: &[(String, &Shown)]) {
    let all = orders.iter().map(|(_, outcome)| *outcome);
    let mut names: Vec<(usize, &str)> = all
        .chain([&finding.outcome])
        .flat_map(|outcome| &outcome.keys)
        .map(|key| (key.db, key.key.as_str()))
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let here = key_fact(&finding.outcome, name);
        let expected: Vec<String> = orders
            .iter()
            .map(|(_, outcome)| key_fact(outcome, name))
            .collect();
        if expected.iter().all(|fact| *fact == here) {
            comparison.same_keys += 1;
            continue;
        }
        comparison.facets.push(Facet {
            at: key_name(name),
            is_wrong: !expected.contains(&here),
            here,
            expected,
        });
    }
}

/// What can be said of the programs' ends, always in the same order.
pub(crate) fn endings(outcome: &Shown) -> [(&'static str, Option<String>); 6] {
    let status = |ending: &Option<Ending>| ending.as_ref().map(|ending| ending.status.to_string());
    let output = |ending: &Option<Ending>| ending.as_ref().map(|ending| quoted(&ending.output));
    [
        ("status of A", status(&outcome.a)),
        ("output of A", output(&outcome.a)),
        ("status of B", status(&outcome.b)),
        ("output of B", output(&outcome.b)),
        ("status of after", status(&outcome.after)),
        ("output of after", output(&outcome.after)),
    ]
}

fn quoted(output: &str) -> String {
    match output.trim_end_matches('\n') {
        "" => "(nothing)".to_owned(),
        output => output.to_owned(),
    }
}

/// A key as `key "stock"`, with its database if it is not the first.
fn key_name((db, key): (usize, &str)) -> String {
    let key = if key.starts_with('"') {
        format!("key {key}")
    } else {
        format!("key \"{key}\"")
    };
    if db == 0 {
        key
    } else {
        format!("{key} in database {db}")
    }
}

/// A key for readers, and its value.
pub(crate) fn key_line(key: &ShownKey) -> (String, String) {
    (key_name((key.db, &key.key)), key_value(key))
}

fn key_fact(outcome: &Shown, (db, name): (usize, &str)) -> String {
    let found = outcome
        .keys
        .iter()
        .find(|key| key.db == db && key.key == name);
    found.map_or_else(|| "(no such key)".to_owned(), key_value)
}

/// A key's value with its type, and whether it has a time to live.
fn key_value(key: &ShownKey) -> String {
    let ttl = if key.ttl { ", with a TTL" } else { "" };
    format!("{} {}{ttl}", key.r#type, key.value)
}
