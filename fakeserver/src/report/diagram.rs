//! The space-time diagram of a page: a lane for each connection, downwards in the order in which the server saw the commands.

use std::fmt::Write as _;

use super::escape::escaped;
use super::picture::{Access, Lane, Picture, Step};
use super::rows::{Row, rows, told_left};

/// From so many lanes on, boxes are wider than their lanes.
const DENSE_LANES_MIN: usize = 4;

/// Draws the steps.
pub(crate) fn diagram(out: &mut String, picture: &Picture) {
    let count = picture.lanes.len();
    let class = match count {
        0..DENSE_LANES_MIN => format!("lanes-{count}"),
        DENSE_LANES_MIN..=6 => format!("dense lanes-{count}"),
        _ => "dense many".to_owned(),
    };
    let _ = write!(
        out,
        "<div class=\"diagram\"><table class=\"steps {class}\">\n<thead>\n<tr><th class=\"point\"><span class=\"unseen\">Point</span></th>"
    );
    for Lane {
        name,
        detail,
        program,
        class,
    } in &picture.lanes
    {
        let _ = write!(
            out,
            "<th class=\"lane {class}\" scope=\"col\"><b>{}</b>",
            escaped(name)
        );
        if !detail.is_empty() {
            let _ = write!(out, " <small>{}</small>", escaped(detail));
        }
        let _ = write!(out, "<code>{}</code></th>", escaped(program));
    }
    let _ = write!(out, "</tr>\n</thead>\n<tbody data-lanes=\"{count}\">\n");
    for row in rows(picture) {
        draw_row(out, picture, &row);
    }
    out.push_str("</tbody>\n</table><svg class=\"arrows\" width=\"0\" height=\"0\" aria-hidden=\"true\"></svg></div>\n");
}

fn draw_row(out: &mut String, picture: &Picture, row: &Row<'_>) {
    let span = picture.lanes.len().max(1);
    match row {
        Row::Left(range) => {
            let steps = picture.steps.get(range.clone()).unwrap_or_default();
            let _ = writeln!(
                out,
                "<tr class=\"left\"><td class=\"point\"></td><td colspan=\"{span}\"><details><summary>{}</summary>{}</details></td></tr>",
                escaped(&told_left(steps)),
                listed(steps)
            );
        }
        Row::Local(range, step, words) => {
            let steps = picture.steps.get(range.clone()).unwrap_or_default();
            let summary = escaped(&words.join("; "));
            let content = format!(
                "<details class=\"local\"><summary>{summary}</summary>{}</details>",
                listed(steps)
            );
            in_lane(out, "", step, picture, &content);
        }
        Row::Step(at, step) if step.lane.is_none() => {
            let content = step_box(*at, step);
            let _ = writeln!(
                out,
                "<tr class=\"event\"><td class=\"point\"></td><td colspan=\"{span}\">{content}</td></tr>"
            );
        }
        Row::Step(at, step) => {
            let content = step_box(*at, step);
            in_lane(out, &escaped(&step.point), step, picture, &content);
        }
    }
}

fn in_lane(out: &mut String, point: &str, step: &Step, picture: &Picture, content: &str) {
    let _ = write!(out, "<tr><td class=\"point\">{point}</td>");
    for (at, lane) in picture.lanes.iter().enumerate() {
        let content = if step.lane == Some(at) { content } else { "" };
        // Where a box that is wider than its lane would leave the diagram.
        let right = if 2 * at >= picture.lanes.len() {
            " right"
        } else {
            ""
        };
        let _ = write!(
            out,
            "<td class=\"lane {}{right}\">{content}</td>",
            lane.class
        );
    }
    out.push_str("</tr>\n");
}

/// A step as a button, which the script makes one stop of the walk.
fn step_box(at: usize, step: &Step) -> String {
    let class = match step.access {
        Access::Read => "read",
        Access::Write => "write",
        Access::Event => "happens",
        Access::Local => "quiet",
    };
    let (marked, badge) = match step.mark {
        Some(mark) => (
            " marked",
            format!("<span class=\"badge\">{}</span>", mark.word()),
        ),
        None => ("", String::new()),
    };
    let number = match step.number {
        Some(number) => format!("<small>#{number}</small> "),
        None => String::new(),
    };
    let mut text = format!(
        "<button type=\"button\" class=\"step {class}{marked}\" data-step=\"{at}\" data-who=\"{}\"><span class=\"unseen\">{}: </span>{badge}\
         <code class=\"command\">{number}{}</code>",
        escaped(&step.whose),
        escaped(&step.who),
        escaped(&step.command)
    );
    if !step.reply.is_empty() {
        let _ = write!(
            text,
            "<code class=\"reply\">{}</code>",
            escaped(&step.reply)
        );
    }
    for (key, before, after) in step.changes.iter().take(CHANGE_COUNT_MAX) {
        let _ = write!(
            text,
            "<code class=\"change\">{} <del>{}</del> <ins>{}</ins></code>",
            escaped(key),
            escaped(before),
            escaped(after)
        );
    }
    if step.changes.len() > CHANGE_COUNT_MAX {
        let more = step.changes.len() - CHANGE_COUNT_MAX;
        let _ = write!(text, "<span class=\"change\">and {more} more keys</span>");
    }
    if let Some(note) = &step.note {
        let _ = write!(text, "<span class=\"note\">{}</span>", escaped(note));
    }
    text.push_str("</button>");
    text
}

/// Changed keys that are shown in a step's box; the script shows all.
const CHANGE_COUNT_MAX: usize = 4;

fn listed(steps: &[Step]) -> String {
    let mut text = String::from("<ul>");
    for step in steps {
        let who = escaped(&step.who);
        let command = escaped(&step.command);
        let reply = escaped(&step.reply);
        let _ = write!(
            text,
            "<li>{who}: <code>{command}</code> <code class=\"reply\">{reply}</code></li>"
        );
    }
    text.push_str("</ul>");
    text
}
