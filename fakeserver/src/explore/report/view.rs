//! The steps of a report as they are drawn, and what the text and the page say alike.

use super::{ExploreReport, ShownStep};
use crate::report::picture::{Access, Lane, Picture, Step};

/// Diagrams of more rows than this leave out what is far from everything that matters.
const ROW_COUNT_MAX: usize = 24;

/// So many rows around one that matters are shown in any case.
const ROWS_AROUND: usize = 0;

/// Colours of lanes, over and over.
const CLASSES: [&str; 6] = ["role-a", "role-b", "role-c", "role-d", "role-e", "role-f"];

/// The steps as they are drawn.
pub(super) fn picture(report: &ExploreReport) -> Picture {
    let lanes = report.lanes.iter().zip(CLASSES.into_iter().cycle());
    let lanes = lanes.map(|(lane, class)| Lane {
        name: lane.name.clone(),
        detail: String::new(),
        program: lane.client.clone(),
        class,
    });
    let steps = report.steps.iter().enumerate().map(|(at, step)| {
        let lane = report.lanes.iter().position(|lane| lane.name == step.lane);
        let access = Access::of(&step.access);
        let cause = report.cause.as_ref();
        Step {
            lane,
            who: who(step),
            whose: whose(report, step),
            number: reconnects(report, step).then_some(step.connection as usize),
            point: at.to_string(),
            command: step.command.clone(),
            reply: step.reply.clone(),
            access,
            note: step.note.clone(),
            mark: cause.and_then(|cause| cause.mark(at, access)),
            after: step.after.clone(),
            changes: step
                .changes
                .iter()
                .map(|change| {
                    let shown = |value: &Option<String>, none: &str| {
                        value.clone().unwrap_or_else(|| none.to_owned())
                    };
                    let before = shown(&change.before, "(none)");
                    (change.key.clone(), before, shown(&change.after, "(gone)"))
                })
                .collect(),
        }
    });
    Picture {
        lanes: lanes.collect(),
        steps: steps.collect(),
        row_count_max: ROW_COUNT_MAX,
        rows_around: ROWS_AROUND,
    }
}

fn who(step: &ShownStep) -> String {
    match step.lane.as_str() {
        "" => "the schedule".to_owned(),
        lane => lane.to_owned(),
    }
}

fn whose(report: &ExploreReport, step: &ShownStep) -> String {
    let lane = report.lanes.iter().find(|lane| lane.name == step.lane);
    let mut lane_name = who(step);
    if reconnects(report, step) {
        lane_name = format!("{lane_name}, connection {}", step.connection);
    }
    match lane.map(|lane| lane.client.as_str()) {
        None | Some("") => lane_name,
        Some(client) => format!("{client} ({lane_name})"),
    }
}

fn reconnects(report: &ExploreReport, step: &ShownStep) -> bool {
    let mut own = report.steps.iter().filter(|other| other.lane == step.lane);
    own.any(|other| other.connection != step.connection)
}

/// The cause in words: who read, who wrote between, who overwrote.
pub(super) fn told_cause(report: &ExploreReport) -> Option<String> {
    let cause = report.cause.as_ref()?;
    let step = |at: usize| {
        let step = report.steps.get(at)?;
        Some((whose(report, step), step.command.clone()))
    };
    let (reader, read) = step(cause.read)?;
    let (writer, written) = step(cause.written)?;
    let end = match cause.overwritten.and_then(|at| Some((at, step(at)?))) {
        Some((at, (who, command))) => {
            format!("{who} wrote as if it had not (step {at}, {command})")
        }
        None => "nothing was done about it".to_owned(),
    };
    Some(format!(
        "{reader} read {} (step {}, {read}), {writer} changed it (step {}, {written}), {end}",
        cause.key, cause.read, cause.written
    ))
}

/// How long the schedule is, and what it was.
pub(super) fn told_size(report: &ExploreReport) -> String {
    let mut told = [
        counted(report.steps.len(), "command"),
        counted(report.preemptions, "preemption"),
        counted(report.faults, "fault"),
    ]
    .join(", ");
    if let Some(from) = report.shrunk {
        told = format!(
            "{told}; shrunk from {} and {} in {}",
            counted(from.commands, "command"),
            counted(from.preemptions, "preemption"),
            counted(from.reruns, "run")
        );
    }
    told
}

fn counted(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    }
}
