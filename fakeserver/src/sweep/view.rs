//! What the text and the page show alike: the picture of the steps, and where outcomes differ.

use crate::report::picture::{Access, Lane, Mark, Picture, Step};
use crate::sweep::report::{Difference, Finding, Programs, Shown, ShownKey, ShownStep};

/// Other schedules with the same outcome that are named.
const ALSO_COUNT_MAX: usize = 8;

/// Diagrams of more rows than this leave out what is far from everything that matters.
const ROW_COUNT_MAX: usize = 48;

/// So many rows around one that matters are shown in any case.
const ROWS_AROUND: usize = 3;

/// A program with more connections than this has one lane for all of them.
const LANES_PER_ROLE_MAX: usize = 3;

/// What has a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// Each program.
    Programs,
    /// Each of their connections, unless there are too many.
    Connections,
}

/// The finding's steps as they are drawn.
pub(crate) fn picture(finding: &Finding, programs: &Programs, by: Lanes) -> Picture {
    let columns = lanes(finding, by);
    let several = |role: &str| columns.iter().filter(|(other, _)| *other == role).count() > 1;
    let drawn = columns.iter().map(|(role, connection)| Lane {
        name: role_name(role).to_owned(),
        detail: match connection {
            Some(number) if several(role) => format!("connection {number}"),
            _ => String::new(),
        },
        program: program_of(role, programs),
        class: role_class(role),
    });
    let has = |(role, connection): &(&str, Option<usize>), step: &ShownStep| {
        *role == step.role && connection.is_none_or(|number| number == step.connection)
    };
    let steps = finding.steps.iter().enumerate().map(|(at, step)| {
        let lane = columns.iter().position(|lane| has(lane, step));
        let shared = lane
            .and_then(|lane| columns.get(lane))
            .is_some_and(|(_, own)| own.is_none());
        let numbered = match by {
            Lanes::Programs => has_several_connections(finding, &step.role),
            Lanes::Connections => shared,
        };
        let who = role_name(&step.role);
        Step {
            lane,
            who: who.to_owned(),
            whose: match step.connection {
                0 => who.to_owned(),
                number => format!("{who}, connection {number}"),
            },
            number: (numbered && lane.is_some()).then_some(step.connection),
            // What runs behind all others is not counted by any schedule.
            point: step
                .point
                .filter(|_| step.role != "after")
                .map(|point| format!("{}{point}", step.role))
                .unwrap_or_default(),
            command: step.command.clone(),
            reply: step.reply.clone(),
            access: Access::of(&step.access),
            note: step.note.clone(),
            mark: mark(finding, at),
            ..Step::default()
        }
    });
    Picture {
        lanes: drawn.collect(),
        steps: steps.collect(),
        row_count_max: ROW_COUNT_MAX,
        rows_around: ROWS_AROUND,
    }
}

/// Roles, each with a connection or for all of its own.
fn lanes(finding: &Finding, by: Lanes) -> Vec<(&'static str, Option<usize>)> {
    let mut lanes = Vec::new();
    for role in COLUMNS {
        let own = finding.steps.iter().filter(|step| step.role == role);
        let mut connections: Vec<usize> = own.map(|step| step.connection).collect();
        connections.sort_unstable();
        connections.dedup();
        let together = by == Lanes::Programs || connections.len() > LANES_PER_ROLE_MAX;
        if together && !connections.is_empty() {
            lanes.push((role, None));
        } else {
            lanes.extend(connections.into_iter().map(|number| (role, Some(number))));
        }
    }
    lanes
}

fn has_several_connections(finding: &Finding, role: &str) -> bool {
    let mut own = finding.steps.iter().filter(|step| step.role == role);
    let first = own.next().map(|step| step.connection);
    own.any(|step| Some(step.connection) != first)
}

/// A class name, whatever the role is called.
fn role_class(role: &str) -> &'static str {
    match role {
        "a" => "role-a",
        "b" => "role-b",
        "c" => "role-c",
        "d" => "role-d",
        "e" => "role-e",
        _ => "role-after",
    }
}

/// The command line of a role's program.
fn program_of(role: &str, programs: &Programs) -> String {
    let words = match role {
        "a" => Some(&programs.a),
        "b" => programs.b.as_ref(),
        "c" => programs.more.first(),
        "d" => programs.more.get(1),
        "e" => programs.more.get(2),
        _ => programs.after.as_ref(),
    };
    words.map(|words| words.join(" ")).unwrap_or_default()
}

/// The mark of a step, if the finding's cause names it.
pub(crate) fn mark(finding: &Finding, at: usize) -> Option<Mark> {
    let access = finding.steps.get(at).map(|step| Access::of(&step.access));
    finding.cause.as_ref()?.mark(at, access.unwrap_or_default())
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

/// Who may have a column of its own, in order.
pub(crate) const COLUMNS: [&str; 6] = ["a", "b", "c", "d", "e", "after"];

/// `A` for `a`; `the schedule` for the server.
pub(crate) fn role_name(role: &str) -> &str {
    match role {
        "a" => "A",
        "b" => "B",
        "c" => "C",
        "d" => "D",
        "e" => "E",
        "server" => "the schedule",
        other => other,
    }
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
            endings(outcome) == endings(&reference.outcome)
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
            at,
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
pub(crate) fn endings(outcome: &Shown) -> Vec<(String, Option<String>)> {
    let of = |role: &&str| match *role {
        "a" => outcome.a.as_ref(),
        "b" => outcome.b.as_ref(),
        "after" => outcome.after.as_ref(),
        more => outcome.more.get(more),
    };
    let told = |role: &&str| {
        let (name, ending) = (role_name(role), of(role));
        let status = ending.map(|ending| ending.status.to_string());
        let output = ending.map(|ending| quoted(&ending.output));
        [
            (format!("status of {name}"), status),
            (format!("output of {name}"), output),
        ]
    };
    COLUMNS.iter().flat_map(told).collect()
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
