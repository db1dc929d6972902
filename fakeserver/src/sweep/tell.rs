//! Steps and findings in words.

use super::labels::Labels;
use super::report::ShownStep;
use super::schedule::{Act, Schedule};
use super::search::Candidate;
use super::step::Step;
use crate::report::told;
use crate::wire::{Reply, Request};

/// A command as redis-cli would take it.
pub(super) fn command_text(request: &Request, labels: &Labels) -> String {
    told::command_text(request, &|word| labels.apply(word))
}

/// A reply on one line, as redis-cli prints its parts.
pub(super) fn reply_text(reply: &Reply, labels: &Labels) -> String {
    told::reply_text(reply, &|bytes| labels.apply(bytes))
}

/// A step for readers.
pub(super) fn shown_step(step: &Step, labels: &Labels) -> ShownStep {
    let Some(role) = step.role else {
        return ShownStep {
            role: "server".to_owned(),
            connection: 0,
            command: step.note.clone().unwrap_or_default(),
            reply: String::new(),
            access: "event".to_owned(),
            point: None,
            note: None,
        };
    };
    let access = match step.point {
        None => "local",
        Some(_) if step.changed => "write",
        Some(_) => "read",
    };
    // What such a command tells is long, and nobody decides by it.
    let is_long = |request: &Request| {
        matches!(
            request.name().to_ascii_uppercase().as_slice(),
            b"INFO" | b"COMMAND"
        )
    };
    let reply = step.reply.as_ref().filter(|_| !is_long(&step.request));
    ShownStep {
        role: role.name().to_owned(),
        connection: step.connection,
        command: command_text(&step.request, labels),
        reply: reply
            .map(|reply| reply_text(reply, labels))
            .unwrap_or_default(),
        access: access.to_owned(),
        point: step.point,
        note: step.note.clone(),
    }
}

/// A finding in one line.
pub(super) fn title(candidate: &Candidate, labels: &Labels) -> String {
    let Schedule { of, point, act } = candidate.schedule;
    let command = |point: usize| {
        let is_it = |step: &&Step| step.role == Some(of) && step.point == Some(point);
        let step = candidate.ran.steps.iter().find(is_it);
        step.map(|step| short(&command_text(&step.request, labels)))
    };
    let at = command(point);
    let place = match at {
        Some(command) => format!("before {of}'s {command}"),
        None => format!("before command {point} of {of}"),
    };
    let other = of.rival();
    if candidate.ran.stuck {
        return format!("the programs do not end if something happens {place}");
    }
    match act {
        Act::RunOther => {
            format!("{other} runs {place}, and no serial order gives what comes of it")
        }
        Act::Die => {
            let last = point.checked_sub(1).and_then(command).unwrap_or_default();
            format!("{of} dies after its {last}: neither nothing nor everything is done")
        }
        Act::LoseReply => {
            let command = place.trim_start_matches("before ");
            format!(
                "the reply to {command} is lost, and what {of} does about it is neither once nor not at all"
            )
        }
        Act::Expire => {
            format!("keys expire {place}, which is neither like before {of} nor like after it")
        }
        Act::ExpireAndRunOther => {
            format!(
                "keys expire and {other} runs {place}, and no serial order gives what comes of it"
            )
        }
        Act::FlushScripts => format!("the script cache is emptied {place}, and {of} does not cope"),
        Act::Reset => {
            format!("the connection is reset {place}: neither nothing nor everything is done")
        }
        Act::RestartKept => {
            format!("the server restarts {place}: neither nothing nor everything is done")
        }
        Act::RestartEmpty => format!(
            "the server loses its data {place}, which is neither like before {of} nor like after it"
        ),
    }
}

fn short(text: &str) -> String {
    const MAX: usize = 40;
    if text.chars().count() <= MAX {
        return format!("`{text}`");
    }
    let start: String = text.chars().take(MAX).collect();
    format!("`{start}...`")
}
