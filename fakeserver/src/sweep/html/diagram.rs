//! The space-time diagram: a lane for each connection of each program, downwards in the order in which the server saw the commands.

use std::fmt::Write as _;

use super::escape::escaped;
use crate::sweep::report::{Finding, Programs, ShownStep};
use crate::sweep::view::{Mark, Row, column_head, mark, role_name, rows};

/// A program with more connections than this has one lane for all of them.
const LANES_PER_ROLE_MAX: usize = 3;

/// A lane: a program, and which of its connections, unless it stands for all.
#[derive(PartialEq, Eq)]
struct Lane<'a> {
    role: &'a str,
    connection: Option<usize>,
}

impl Lane<'_> {
    fn has(&self, step: &ShownStep) -> bool {
        self.role == step.role
            && self
                .connection
                .is_none_or(|number| number == step.connection)
    }
}

/// Draws a finding's steps.
pub(super) fn diagram(out: &mut String, finding: &Finding, programs: &Programs) {
    let lanes = lanes(finding);
    let count = lanes.len();
    out.push_str("<div class=\"diagram\"><table class=\"steps\">\n<thead>\n<tr><th class=\"point\"><span class=\"unseen\">Point</span></th>");
    for lane in &lanes {
        let head = column_head(lane.role, programs);
        let (name, program) = head.split_once(": ").unwrap_or((&head, ""));
        let role = role_class(lane.role);
        let several = lanes.iter().filter(|other| other.role == lane.role).count() > 1;
        let connection = match lane.connection {
            Some(number) if several => format!(" <small>connection {number}</small>"),
            _ => String::new(),
        };
        let _ = write!(
            out,
            "<th class=\"lane {role}\" scope=\"col\"><b>{}</b>{connection}<code>{}</code></th>",
            escaped(name),
            escaped(program)
        );
    }
    let _ = write!(out, "</tr>\n</thead>\n<tbody data-lanes=\"{count}\">\n");
    for row in rows(finding) {
        draw_row(out, finding, &row, &lanes);
    }
    out.push_str("</tbody>\n</table><svg class=\"arrows\" width=\"0\" height=\"0\" aria-hidden=\"true\"></svg></div>\n");
}

fn lanes(finding: &Finding) -> Vec<Lane<'_>> {
    let mut lanes = Vec::new();
    for role in ["a", "b", "after"] {
        let own = finding.steps.iter().filter(|step| step.role == role);
        let mut connections: Vec<usize> = own.map(|step| step.connection).collect();
        connections.sort_unstable();
        connections.dedup();
        if connections.len() > LANES_PER_ROLE_MAX {
            let connection = None;
            lanes.push(Lane { role, connection });
            continue;
        }
        let own = connections.into_iter().map(|number| Lane {
            role,
            connection: Some(number),
        });
        lanes.extend(own);
    }
    lanes
}

fn draw_row(out: &mut String, finding: &Finding, row: &Row<'_>, lanes: &[Lane<'_>]) {
    let span = lanes.len().max(1);
    match row {
        Row::Left(range) => {
            let steps = finding.steps.get(range.clone()).unwrap_or_default();
            let _ = writeln!(
                out,
                "<tr class=\"left\"><td class=\"point\"></td><td colspan=\"{span}\"><details><summary>{} more commands</summary>{}</details></td></tr>",
                steps.len(),
                listed(steps)
            );
        }
        Row::Local(range, step, words) => {
            let steps = finding.steps.get(range.clone()).unwrap_or_default();
            let summary = escaped(&words.join("; "));
            let content = format!(
                "<details class=\"local\"><summary>{summary}</summary>{}</details>",
                listed(steps)
            );
            in_lane(out, "", step, lanes, &content);
        }
        Row::Step(at, step) if !lanes.iter().any(|lane| lane.has(step)) => {
            let content = step_box(*at, step, mark(finding, *at), false);
            let _ = writeln!(
                out,
                "<tr class=\"event\"><td class=\"point\"></td><td colspan=\"{span}\">{content}</td></tr>"
            );
        }
        Row::Step(at, step) => {
            let point = step
                .point
                .filter(|_| step.role != "after")
                .map(|point| format!("{}{point}", escaped(&step.role)));
            let shared = lanes
                .iter()
                .any(|lane| lane.has(step) && lane.connection.is_none());
            let content = step_box(*at, step, mark(finding, *at), shared);
            in_lane(out, &point.unwrap_or_default(), step, lanes, &content);
        }
    }
}

fn in_lane(out: &mut String, point: &str, step: &ShownStep, lanes: &[Lane<'_>], content: &str) {
    let _ = write!(out, "<tr><td class=\"point\">{point}</td>");
    for lane in lanes {
        let role = role_class(lane.role);
        let content = if lane.has(step) { content } else { "" };
        let _ = write!(out, "<td class=\"lane {role}\">{content}</td>");
    }
    out.push_str("</tr>\n");
}

/// A step as a button, which the script makes one stop of the walk.
fn step_box(at: usize, step: &ShownStep, mark: Option<Mark>, numbered: bool) -> String {
    let class = match step.access.as_str() {
        "read" => "read",
        "write" => "write",
        "event" => "happens",
        _ => "quiet",
    };
    let (marked, badge) = match mark {
        Some(mark) => (
            " marked",
            format!("<span class=\"badge\">{}</span>", mark.word()),
        ),
        None => ("", String::new()),
    };
    let number = if numbered {
        format!("<small>#{}</small> ", step.connection)
    } else {
        String::new()
    };
    let mut text = format!(
        "<button type=\"button\" class=\"step {class}{marked}\" data-step=\"{at}\"><span class=\"unseen\">{}: </span>{badge}\
         <code class=\"command\">{number}{}</code>",
        escaped(role_name(&step.role)),
        escaped(&step.command)
    );
    if !step.reply.is_empty() {
        let _ = write!(
            text,
            "<code class=\"reply\">{}</code>",
            escaped(&step.reply)
        );
    }
    if let Some(note) = &step.note {
        let _ = write!(text, "<span class=\"note\">{}</span>", escaped(note));
    }
    text.push_str("</button>");
    text
}

fn listed(steps: &[ShownStep]) -> String {
    let mut text = String::from("<ul>");
    for step in steps {
        let role = escaped(role_name(&step.role));
        let command = escaped(&step.command);
        let reply = escaped(&step.reply);
        let _ = write!(
            text,
            "<li>{role}: <code>{command}</code> <code class=\"reply\">{reply}</code></li>"
        );
    }
    text.push_str("</ul>");
    text
}

/// A class name, whatever the role is called.
fn role_class(role: &str) -> &'static str {
    match role {
        "a" => "role-a",
        "b" => "role-b",
        _ => "role-after",
    }
}
