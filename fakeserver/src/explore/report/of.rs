//! A report of a counterexample.

use super::{ExploreReport, FORMAT, ShownChange, ShownKey, ShownLane, ShownStep};
use crate::explore::check::cause;
use crate::explore::normal::{dependencies, reduced};
use crate::explore::schedule::Act;
use crate::explore::trace::{Answered, Change, Step, Trace};
use crate::explore::{Counterexample, Lane};
use crate::redis_client::to_reply;
use crate::report::told;

/// What stands in front of a client's number.
pub(super) const CLIENT: &str = "client ";

/// Bytes of a command, a reply or a value that a report keeps at most.
const TEXT_LEN_MAX: usize = 4_000;

impl ExploreReport {
    /// What is known of the counterexample itself; the other methods add what is known around it.
    pub fn of(found: &Counterexample, workload: impl Into<String>) -> ExploreReport {
        let trace = &found.trace;
        ExploreReport {
            format: FORMAT,
            workload: workload.into(),
            property: found.violation.property.clone(),
            details: found.violation.details.clone(),
            claim: String::new(),
            schedule: found.schedule.to_string(),
            preemptions: found.preemptions,
            faults: found.faults,
            shrunk: found.shrunk,
            lanes: lanes(trace),
            keys: trace
                .keys
                .iter()
                .map(|((db, key), value)| ShownKey {
                    key: key_name(*db, key),
                    value: cut(value),
                })
                .collect(),
            steps: steps(trace),
            cause: cause(trace),
            replay: String::new(),
            confirmed: None,
            notes: Vec::new(),
        }
        .replayed_by("cargo test")
    }
}

fn lanes(trace: &Trace) -> Vec<ShownLane> {
    let own = trace.steps.iter().map(|step| step.choice.lane);
    let mut lanes: Vec<Lane> = own.filter(|lane| *lane != Lane::WORLD).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let shown = lanes.into_iter().map(|lane| ShownLane {
        name: lane.to_string(),
        client: match trace.clients.get(lane.index()) {
            Some(client) => format!("{CLIENT}{client}"),
            None => String::new(),
        },
    });
    shown.collect()
}

fn steps(trace: &Trace) -> Vec<ShownStep> {
    let steps = &trace.steps;
    // Everybody depends on what happens to the server, which says nothing.
    let is_world = |at: usize| {
        let step = steps.get(at);
        step.is_some_and(|step| step.choice.lane == Lane::WORLD)
    };
    let mut depends = dependencies(steps);
    for (at, depends) in depends.iter_mut().enumerate() {
        depends.retain(|other| !is_world(at) && !is_world(*other));
    }
    let after = reduced(steps, &depends);
    let mut shown: Vec<ShownStep> = Vec::with_capacity(steps.len());
    for (at, (step, after)) in steps.iter().zip(after).enumerate() {
        let before = at.checked_sub(1).and_then(|at| steps.get(at));
        let passed = step
            .at
            .saturating_sub(before.map(|step| step.at).unwrap_or_default());
        let reply = step.reply.clone().map(to_reply);
        let is_world = is_world(at);
        shown.push(ShownStep {
            lane: if is_world {
                String::new()
            } else {
                step.choice.lane.to_string()
            },
            connection: step.connection,
            command: if is_world {
                told_act(step.choice.act)
            } else {
                cut(&told::command_text(&step.request, &<[u8]>::to_vec))
            },
            reply: reply.map_or_else(String::new, |reply| {
                cut(&told::reply_text(&reply, &<[u8]>::to_vec))
            }),
            access: access(step).to_owned(),
            note: note(trace, at, step, passed.as_millis()),
            after,
            changes: step.changes.iter().map(change).collect(),
            at_ms: u64::try_from(step.at.as_millis()).unwrap_or(u64::MAX),
        });
    }
    shown
}

fn access(step: &Step) -> &'static str {
    if step.choice.lane == Lane::WORLD {
        "event"
    } else if step.local && !step.choice.is_fault() {
        "local"
    } else if !step.changes.is_empty() || step.footprint.may_write() {
        "write"
    } else {
        "read"
    }
}

/// What happened to the server.
fn told_act(act: Act) -> String {
    match act {
        Act::Advance(by) => format!("{} ms pass", by.as_secs_f64() * 1000.0),
        Act::Expire(nth) => format!("the time of key number {nth} by deadline is up"),
        Act::FlushScripts => "the script cache is emptied".to_owned(),
        Act::Restart { keeps_data: true } => "the server restarts".to_owned(),
        Act::Restart { keeps_data: false } => "the server restarts without its data".to_owned(),
        Act::Failover { lost: 1 } => "fail-over: the last write is lost".to_owned(),
        Act::Failover { lost } => format!("fail-over: the last {lost} writes are lost"),
        Act::Execute | Act::DropBefore | Act::LoseReply => act.to_string(),
    }
}

fn note(trace: &Trace, at: usize, step: &Step, passed_ms: u128) -> Option<String> {
    let happened = match (step.choice.act, trace.answered(at)) {
        (Act::DropBefore, _) => Some("the connection is lost before it runs".to_owned()),
        (Act::LoseReply, _) => Some("the reply is lost".to_owned()),
        (act, _) if act.is_of_world() => None,
        (_, Answered::AtOnce) => None,
        (_, Answered::By(by)) => Some(format!("waits until step {by}")),
        (_, Answered::After(waited)) => Some(format!("waits for {} ms", waited.as_millis())),
        (_, Answered::Never) => Some("waits to the end".to_owned()),
    };
    let later = (passed_ms > 0).then(|| format!("{passed_ms} ms later"));
    let told: Vec<String> = [later, happened].into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn change(change: &Change) -> ShownChange {
    ShownChange {
        key: key_name(change.database, &change.key),
        before: change.before.as_deref().map(cut),
        after: change.after.as_deref().map(cut),
    }
}

fn key_name(database: usize, key: &str) -> String {
    match database {
        0 => key.to_owned(),
        _ => format!("{key} in database {database}"),
    }
}

fn cut(text: &str) -> String {
    if text.len() <= TEXT_LEN_MAX {
        return text.to_owned();
    }
    let end = (0..=TEXT_LEN_MAX)
        .rev()
        .find(|at| text.is_char_boundary(*at));
    let (start, rest) = text
        .split_at_checked(end.unwrap_or(0))
        .unwrap_or((text, ""));
    format!("{start}...(+{})", rest.len())
}
