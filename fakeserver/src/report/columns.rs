//! [`columns()`]: the space-time diagram for a terminal.

use std::fmt::Write as _;

use super::layout::{WIDTH, cut, cut_to, hanging, line, plain, wrap};
use super::picture::{Mark, Picture, Step};
use super::rows::{Row, rows, told_left};

/// Columns in front of the diagram, for the name of a point.
const POINT_WIDTH: usize = 8;

/// Columns behind the diagram, for marks.
const MARK_WIDTH: usize = 15;

/// Characters of a folded command at most.
const LOCAL_LEN_MAX: usize = 40;

/// More lanes than this have no room for text: it stands beside them.
const WIDE_LANES_MAX: usize = 3;

/// How wide the columns are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// As wide as there is room.
    Room,
    /// As wide as their content, if there is room.
    Content,
}

/// Draws the steps, a column for each lane, in the order in which the server saw them.
pub(crate) fn columns(out: &mut String, picture: &Picture, fit: Fit) {
    if picture.lanes.len() > WIDE_LANES_MAX {
        return beside(out, picture);
    }
    let marked = picture.steps.iter().any(|step| !margin(step).is_empty());
    let marks = if marked { MARK_WIDTH } else { 0 };
    let room = (WIDTH - POINT_WIDTH - marks) / picture.lanes.len().max(1);
    let width = match fit {
        Fit::Room => room,
        Fit::Content => room.min(longest(picture) + 4),
    };
    let heads = picture.lanes.iter().map(|lane| plain(&lane.head()));
    let heads: Vec<Vec<String>> = heads.map(|head| vec![cut_to(&head, width - 2)]).collect();
    cells(out, "", &heads, width, "");
    let rule = vec![vec!["-".repeat(width - 2)]; picture.lanes.len()];
    cells(out, "", &rule, width, "");
    for row in rows(picture) {
        diagram_row(out, picture, &row, width);
    }
}

/// Characters of the longest text in a column.
fn longest(picture: &Picture) -> usize {
    let heads = picture.lanes.iter().map(|lane| lane.head().len());
    let texts = rows(picture).into_iter().map(|row| match row {
        Row::Step(_, step) => one_line(step)
            .len()
            .max(step.note.as_ref().map_or(0, |note| note.len() + 4)),
        Row::Local(_, step, words) => folded(step, &words).len() + 2,
        Row::Left(_) => 0,
    });
    heads.chain(texts).max().unwrap_or_default()
}

fn diagram_row(out: &mut String, picture: &Picture, row: &Row<'_>, width: usize) {
    let in_column = |own: usize, lines: Vec<String>| -> Vec<Vec<String>> {
        let cell = |lane| {
            if lane == own {
                lines.clone()
            } else {
                vec!["|".to_owned()]
            }
        };
        (0..picture.lanes.len()).map(cell).collect()
    };
    match row {
        Row::Left(range) => {
            let steps = picture.steps.get(range.clone()).unwrap_or_default();
            let text = plain(&told_left(steps));
            line(out, &format!("{:POINT_WIDTH$}:  ({text})", ""));
        }
        Row::Local(_, step, words) => {
            let lines = wrap(&cut(&folded(step, words)), width - 4).into_iter();
            let lines = lines.map(|text| format!("  {text}")).collect();
            let own = step.lane.unwrap_or_default();
            cells(out, "", &in_column(own, lines), width, "");
        }
        Row::Step(_, step) => match step.lane {
            None => event(out, step),
            Some(own) => {
                let lines = step_lines(step, width - 2);
                let cells_of = in_column(own, lines);
                cells(
                    out,
                    &format!("  {}", step.point),
                    &cells_of,
                    width,
                    &margin(step),
                );
            }
        },
    }
}

/// Draws lanes as bars, and beside them what happens.
fn beside(out: &mut String, picture: &Picture) {
    let names: Vec<String> = picture.lanes.iter().map(|lane| plain(&lane.name)).collect();
    let width = names.iter().map(String::len).max().unwrap_or_default() + 1;
    let bars = |own: Option<usize>| {
        let mut text = String::new();
        for lane in 0..picture.lanes.len() {
            let sign = if own == Some(lane) { "*" } else { "|" };
            let _ = write!(text, "{sign:<width$}");
        }
        text
    };
    let mut head = String::new();
    for name in &names {
        let _ = write!(head, "{name:<width$}");
    }
    line(out, &format!("{:POINT_WIDTH$}{head}", ""));
    let room = WIDTH
        .saturating_sub(POINT_WIDTH + width * names.len() + 2)
        .max(40);
    for row in rows(picture) {
        let (point, own, mut text) = match &row {
            Row::Left(range) => {
                let steps = picture.steps.get(range.clone()).unwrap_or_default();
                ("", None, format!("({})", plain(&told_left(steps))))
            }
            Row::Local(_, step, words) => ("", step.lane, folded(step, words)),
            Row::Step(_, step) => {
                let note = step.note.as_ref().map(|note| format!(" ! {}", plain(note)));
                let text = format!("{}{}", one_line(step), note.unwrap_or_default());
                (step.point.as_str(), step.lane, text)
            }
        };
        if let Row::Step(_, step) = &row
            && !margin(step).is_empty()
        {
            let _ = write!(text, "  {}", margin(step));
        }
        let own_name = own
            .and_then(|own| names.get(own))
            .map_or("", String::as_str);
        let text = hanging(&format!("{own_name} {text}"), room, "    ");
        for (at, part) in text.iter().enumerate() {
            let point = if at == 0 { point } else { "" };
            let own = own.filter(|_| at == 0);
            line(
                out,
                &format!("  {point:<6}{} {}", bars(own), part.trim_start_matches(' ')),
            );
        }
    }
}

/// A local command, or several in a row.
fn folded(step: &Step, words: &[String]) -> String {
    let words: Vec<String> = words
        .iter()
        .map(|word| cut_to(&plain(word), LOCAL_LEN_MAX))
        .collect();
    format!("({}{})", numbered(step), words.join("; "))
}

/// What the schedule did, across all columns.
fn event(out: &mut String, step: &Step) {
    let mut text = format!("{:POINT_WIDTH$}==== {}", "", cut(&plain(&step.command)));
    if !step.reply.is_empty() {
        let _ = write!(text, " -> {}", cut(&plain(&step.reply)));
    }
    if let Some(note) = &step.note {
        let _ = write!(text, " ({})", plain(note));
    }
    text.push_str(" ====");
    if let Some(mark) = step.mark {
        text = format!("{text:<0$}{1}", WIDTH - MARK_WIDTH, arrow(mark));
    }
    line(out, &text);
}

/// `#2 `, the connection's number, where the lane has several.
fn numbered(step: &Step) -> String {
    step.number
        .map(|number| format!("#{number} "))
        .unwrap_or_default()
}

fn one_line(step: &Step) -> String {
    let command = format!("{}{}", numbered(step), cut(&plain(&step.command)));
    match cut(&plain(&step.reply)).as_str() {
        "" => command,
        reply => format!("{command} -> {reply}"),
    }
}

fn step_lines(step: &Step, width: usize) -> Vec<String> {
    let mut text = format!("{}{}", numbered(step), cut(&plain(&step.command)));
    let reply = cut(&plain(&step.reply));
    if !reply.is_empty() && text.len() + reply.len() + 4 <= width {
        let _ = write!(text, " -> {reply}");
    }
    let mut lines = hanging(&text, width, "    ");
    if !reply.is_empty() && !text.ends_with(&format!(" -> {reply}")) {
        lines.extend(hanging(&format!("  -> {reply}"), width, "     "));
    }
    if let Some(note) = &step.note {
        lines.extend(hanging(&format!("  ! {}", plain(note)), width, "    "));
    }
    lines
}

/// What stands behind a step: its part in the cause, else which steps it depends on.
fn margin(step: &Step) -> String {
    match (step.mark, step.after.as_slice()) {
        (Some(mark), _) => arrow(mark),
        (None, []) => String::new(),
        (None, after) => {
            let named = after.iter().rev().take(AFTER_COUNT_MAX).rev();
            let named: Vec<String> = named.map(usize::to_string).collect();
            format!("after {}", named.join(", "))
        }
    }
}

/// Steps that a step is said to depend on at most, the last of them.
const AFTER_COUNT_MAX: usize = 3;

fn arrow(mark: Mark) -> String {
    format!("<- {}", mark.word())
}

/// Cells of one width beside each other, each of several lines, between what stands in front and behind.
fn cells(out: &mut String, front: &str, cells: &[Vec<String>], width: usize, behind: &str) {
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    for at in 0..height {
        let mut text = format!("{:POINT_WIDTH$}", if at == 0 { front } else { "" });
        for cell in cells {
            let bar = cell.first().filter(|text| *text == "|");
            let part = cell.get(at).or(bar).map_or("", String::as_str);
            let _ = write!(text, "{part:width$}");
        }
        if at == 0 {
            text.push_str(behind);
        }
        line(out, &text);
    }
}
