//! [`text()`]: the report in a terminal, or in the message of a test that failed.

use std::fmt::Write as _;

use crate::sweep::report::{Finding, Programs, Report, ShownStep};
use crate::sweep::view::{
    Comparison, Facet, Mark, Row, also, column_head, comparison, connection, mark, rows,
    told_cause, told_same,
};

/// Columns that a line has at most, but for command lines, which must stay whole.
const WIDTH: usize = 108;

/// Columns in front of the diagram, for the number of a point.
const POINT_WIDTH: usize = 8;

/// Columns behind the diagram, for marks.
const MARK_WIDTH: usize = 15;

/// Characters of a command or a value at most.
const VALUE_LEN_MAX: usize = 160;

/// Outcomes that would be right, shown side by side at most.
const ORDER_COUNT_MAX: usize = 3;

/// Characters of a folded command at most.
const LOCAL_LEN_MAX: usize = 40;

/// Lines that a list shows at most.
const LIST_LEN_MAX: usize = 20;

/// The report for a terminal: each finding with its diagram, then what was run.
pub(crate) fn text(report: &Report) -> String {
    let mut out = String::new();
    let count = report.findings.len();
    for (at, finding) in report.findings.iter().enumerate() {
        let title = plain(&finding.title);
        line(&mut out, &format!("FINDING {} of {count}: {title}", at + 1));
        line(&mut out, "");
        head(&mut out, finding);
        line(&mut out, "");
        diagram(&mut out, finding, &report.programs);
        line(&mut out, "");
        outcomes(&mut out, finding);
        line(&mut out, "");
        advice(&mut out, finding);
        line(&mut out, "");
    }
    summary(&mut out, report);
    out
}

fn head(out: &mut String, finding: &Finding) {
    field(out, "kind", &plain(&finding.kind));
    field(out, "schedule", &plain(&finding.schedule));
    if let Some(also) = also(finding) {
        field(out, "also", &plain(&also));
    }
    for label in &finding.outcome.labels {
        field(out, "note", &plain(label));
    }
}

fn advice(out: &mut String, finding: &Finding) {
    if let Some(told) = told_cause(finding) {
        field(out, "cause", &cut(&plain(&told)));
    }
    if let Some(repair) = &finding.repair {
        let text = format!("{} ({})", plain(&repair.text), plain(&repair.rule));
        field(out, "repair", &text);
    }
    let confirmed = match &finding.confirmed {
        Some(real) if real.same => format!("yes, the same on {}", plain(&real.server)),
        Some(real) => format!("NO, not the same on {}", plain(&real.server)),
        None => "not tried on a real server (--confirm URL)".to_owned(),
    };
    field(out, "confirmed", &confirmed);
    // In one piece, so that it can be copied.
    if !finding.replay.is_empty() {
        line(out, &format!("  replay     {}", plain(&finding.replay)));
    }
}

/// The steps, a column for each program, in the order in which the server saw them.
fn diagram(out: &mut String, finding: &Finding, programs: &Programs) {
    let columns: Vec<&str> = ["a", "b", "after"]
        .into_iter()
        .filter(|role| finding.steps.iter().any(|step| step.role == *role))
        .collect();
    let marks = if finding.cause.is_some() {
        MARK_WIDTH
    } else {
        0
    };
    let room = WIDTH - POINT_WIDTH - marks;
    let width = room / columns.len().max(1);
    let heads: Vec<String> = columns
        .iter()
        .map(|role| plain(&column_head(role, programs)))
        .collect();
    let heads: Vec<Vec<String>> = heads
        .iter()
        .map(|head| vec![cut_to(head, width - 2)])
        .collect();
    cells(out, "", &heads, width, "");
    let rule = vec![vec!["-".repeat(width - 2)]; columns.len()];
    cells(out, "", &rule, width, "");
    for row in rows(finding) {
        diagram_row(out, finding, &row, &columns, width);
    }
}

fn diagram_row(out: &mut String, finding: &Finding, row: &Row<'_>, columns: &[&str], width: usize) {
    let in_column = |step: &ShownStep, lines: Vec<String>| -> Vec<Vec<String>> {
        let own = |role: &&str| **role == *step.role;
        let empty = || vec!["|".to_owned()];
        let cell = |role| if own(role) { lines.clone() } else { empty() };
        columns.iter().map(cell).collect()
    };
    match row {
        Row::Left(steps) => {
            let text = format!("({} more commands)", steps.len());
            line(out, &format!("{:POINT_WIDTH$}:  {text}", ""));
        }
        Row::Local(_, step, words) => {
            let words: Vec<String> = words
                .iter()
                .map(|word| cut_to(&plain(word), LOCAL_LEN_MAX))
                .collect();
            let text = format!("({}{})", connection(finding, step), words.join("; "));
            let lines = wrap(&cut(&text), width - 4).into_iter();
            let lines = lines.map(|text| format!("  {text}")).collect();
            cells(out, "", &in_column(step, lines), width, "");
        }
        Row::Step(at, step) if !columns.contains(&step.role.as_str()) => {
            event(out, step, mark(finding, *at));
        }
        Row::Step(at, step) => {
            let lines = step_lines(finding, step, width - 2);
            let mark = mark(finding, *at).map(arrow).unwrap_or_default();
            cells(out, &point(step), &in_column(step, lines), width, &mark);
        }
    }
}

/// What the schedule did, across all columns.
fn event(out: &mut String, step: &ShownStep, mark: Option<Mark>) {
    let mut text = format!("{:POINT_WIDTH$}==== {}", "", cut(&plain(&step.command)));
    if !step.reply.is_empty() {
        let _ = write!(text, " -> {}", cut(&plain(&step.reply)));
    }
    if let Some(note) = &step.note {
        let _ = write!(text, " ({})", plain(note));
    }
    text.push_str(" ====");
    if let Some(mark) = mark {
        text = format!("{text:<0$}{1}", WIDTH - MARK_WIDTH, arrow(mark));
    }
    line(out, &text);
}

fn step_lines(finding: &Finding, step: &ShownStep, width: usize) -> Vec<String> {
    let command = cut(&plain(&step.command));
    let mut text = format!("{}{command}", connection(finding, step));
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

/// `a2` for the program's visible command number 2, as schedules count.
fn point(step: &ShownStep) -> String {
    // What runs behind all others is not counted by any schedule.
    step.point
        .filter(|_| step.role != "after")
        .map(|point| format!("  {}{point}", step.role))
        .unwrap_or_default()
}

fn arrow(mark: Mark) -> String {
    format!("<- {}", mark.word())
}

/// What came of it beside what would have been right, as far as they differ.
fn outcomes(out: &mut String, finding: &Finding) {
    let comparison = comparison(finding);
    if comparison.orders.is_empty() {
        for difference in finding.differences.iter().take(LIST_LEN_MAX) {
            let expected = cut(&plain(&difference.expected.join(" or ")));
            let got = cut(&plain(&difference.got));
            let at = cut(&plain(&difference.at));
            field(
                out,
                "differs",
                &format!("{at}: {got} instead of {expected}"),
            );
        }
        return;
    }
    table(out, &comparison);
    let more = comparison.facets.len().saturating_sub(LIST_LEN_MAX);
    if more > 0 {
        line(out, &format!("  and {more} more differences"));
    }
    if !comparison.facets.iter().any(|facet: &Facet| facet.is_wrong) {
        line(
            out,
            "  Each of these is in some outcome that is right, but in none are all of them.",
        );
    }
    if let Some(same) = told_same(&comparison) {
        line(out, &format!("  {same}"));
    }
}

fn table(out: &mut String, comparison: &Comparison) {
    let orders = comparison.orders.len().min(ORDER_COUNT_MAX);
    let name_width = 24;
    let width = (WIDTH - 4 - name_width) / (orders + 1);
    let row = |name: &str, values: Vec<String>| -> Vec<Vec<String>> {
        let mut cells = vec![wrap(&cut(&plain(name)), name_width - 2)];
        cells.extend(values.iter().map(|value| wrap(value, width - 2)));
        cells
    };
    let mut heads = vec!["here".to_owned()];
    heads.extend(
        comparison
            .orders
            .iter()
            .take(orders)
            .map(|order| plain(order)),
    );
    if let Some(last) = heads
        .last_mut()
        .filter(|_| comparison.orders.len() > orders)
    {
        let _ = write!(last, " (and {} more)", comparison.orders.len() - orders);
    }
    let widths: Vec<usize> = [name_width]
        .into_iter()
        .chain(vec![width; orders + 1])
        .collect();
    uneven(out, "    ", &row("", heads), &widths);
    for facet in comparison.facets.iter().take(LIST_LEN_MAX) {
        let mut values: Vec<String> = [&facet.here]
            .into_iter()
            .chain(facet.expected.iter().take(orders))
            .map(|value| plain(value))
            .collect();
        from_difference(&mut values);
        let sign = if facet.is_wrong { "  * " } else { "    " };
        let values = values.iter().map(|value| cut(value)).collect();
        uneven(out, sign, &row(&facet.at, values), &widths);
    }
}

/// Leaves out most of what long values have in common at their start, so that the difference is seen.
fn from_difference(values: &mut [String]) {
    const KEPT: usize = 16;
    let Some((first, rest)) = values.split_first() else {
        return;
    };
    if values.iter().all(|value| value.len() <= VALUE_LEN_MAX / 2) {
        return;
    }
    let common = |other: &String| {
        let pairs = first.bytes().zip(other.bytes());
        pairs.take_while(|(one, other)| one == other).count()
    };
    let differing = rest.iter().filter(|other| *other != first);
    let common = differing.map(common).min().unwrap_or_default();
    if common <= 2 * KEPT {
        return;
    }
    let left_out = common - KEPT;
    for value in values.iter_mut() {
        if let Some(rest) = value.get(left_out..) {
            *value = format!("({left_out} as elsewhere) ...{rest}");
        }
    }
}

fn summary(out: &mut String, report: &Report) {
    let counts = |counts: &std::collections::BTreeMap<String, usize>| -> String {
        let listed = counts.iter().filter(|(_, count)| **count > 0);
        let listed: Vec<String> = listed
            .map(|(kind, count)| format!("{} {count}", plain(kind)))
            .collect();
        let total: usize = counts.values().sum();
        if listed.is_empty() {
            total.to_string()
        } else {
            format!("{total} ({})", listed.join(", "))
        }
    };
    field(out, "server", &plain(&report.server));
    field(out, "runs", &counts(&report.runs));
    let why = "their outcome follows from one that was run";
    if report.skipped.values().any(|count| *count > 0) {
        field(
            out,
            "skipped",
            &format!("{}: {why}", counts(&report.skipped)),
        );
    }
    field(out, "time", &format!("{:.3} s", report.seconds));
    list(out, "left out", &report.left_out);
    list(out, "note", &report.notes);
    line(out, "");
    let claim = plain(&report.claim);
    let verdict = match report.findings.len() {
        0 => format!("no findings: {claim}"),
        1 => format!("1 finding in {claim}"),
        count => format!("{count} findings in {claim}"),
    };
    line(out, &verdict);
}

fn list(out: &mut String, name: &str, items: &[String]) {
    for item in items.iter().take(LIST_LEN_MAX) {
        field(out, name, &cut(&plain(item)));
    }
    let more = items.len().saturating_sub(LIST_LEN_MAX);
    if more > 0 {
        field(out, name, &format!("and {more} more"));
    }
}

/// A named text, its further lines below its first.
fn field(out: &mut String, name: &str, text: &str) {
    for (at, part) in wrap(text, WIDTH - 13).iter().enumerate() {
        let name = if at == 0 { name } else { "" };
        line(out, &format!("  {name:<11}{part}"));
    }
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

/// Cells of several widths beside each other.
fn uneven(out: &mut String, front: &str, cells: &[Vec<String>], widths: &[usize]) {
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    for at in 0..height {
        let mut text = if at == 0 { front } else { "    " }.to_owned();
        for (cell, width) in cells.iter().zip(widths) {
            let part = cell.get(at).map_or("", String::as_str);
            let _ = write!(text, "{part:width$}");
        }
        line(out, &text);
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

/// The text in printable ASCII on one line.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if character == ' ' || character.is_ascii_graphic() {
            plain.push(character);
        } else {
            plain.extend(character.escape_default());
        }
    }
    plain
}

/// The text, or its start and how much was left out. It has to be ASCII.
fn cut(text: &str) -> String {
    cut_to(text, VALUE_LEN_MAX)
}

fn cut_to(text: &str, len_max: usize) -> String {
    if text.len() <= len_max {
        return text.to_owned();
    }
    let mut kept = len_max.saturating_sub(12);
    let more = loop {
        let more = format!("...(+{})", text.len() - kept);
        if kept + more.len() <= len_max || kept == 0 {
            break more;
        }
        kept -= 1;
    };
    format!("{}{more}", text.get(..kept).unwrap_or_default())
}

/// The text in lines of at most so many columns, broken at blanks where there are some. It has to be ASCII.
fn wrap(text: &str, width: usize) -> Vec<String> {
    hanging(text, width, "")
}

/// [`wrap`], with something in front of each line but the first.
fn hanging(text: &str, width: usize, front: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        let front = if lines.is_empty() { "" } else { front };
        let room = width.saturating_sub(front.len()).max(1);
        let Some((head, tail)) = rest
            .split_at_checked(room)
            .filter(|(_, tail)| !tail.is_empty())
        else {
            lines.push(format!("{front}{rest}"));
            return lines;
        };
        let at_blank = if tail.starts_with(' ') {
            Some(head.len())
        } else {
            // A break that leaves most of the line empty helps nobody.
            head.rfind(' ').filter(|blank| *blank > room / 2)
        };
        let end = at_blank.unwrap_or(room);
        let (head, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        lines.push(format!("{front}{head}"));
        rest = tail.strip_prefix(' ').unwrap_or(tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::report::Ending;
    use crate::sweep::samples;

    #[test]
    fn findings_are_told_as_written_down() {
        let told = text(&samples::findings());
        if std::env::var_os("RECORD").is_some() {
            std::fs::write(samples::path("findings.txt"), &told).unwrap();
        }
        assert_eq!(told, include_str!("samples/findings.txt"));
    }

    #[test]
    fn lines_are_printable_and_short_but_for_commands_to_copy() {
        for line in text(&samples::findings()).lines() {
            let printable = |character: char| character == ' ' || character.is_ascii_graphic();
            assert!(line.chars().all(printable), "{line}");
            let whole = line.starts_with("  replay ") || line.starts_with("FINDING ");
            assert!(line.len() <= WIDTH + 2 || whole, "{}: {line}", line.len());
        }
    }

    #[test]
    fn a_clean_report_ends_with_its_claim() {
        let told = text(&samples::clean());
        assert!(!told.contains("FINDING"), "{told}");
        let claim = "all 14 single-preemption schedules of these two programs, these inputs";
        assert_eq!(
            told.lines().last(),
            Some(format!("no findings: {claim}").as_str())
        );
        let told = text(&samples::findings());
        assert_eq!(
            told.lines().last(),
            Some(format!("4 findings in {claim}").as_str())
        );
    }

    #[test]
    fn a_report_of_nothing_has_a_text() {
        let mut report = samples::findings();
        for finding in &mut report.findings {
            finding.steps.clear();
            finding.expected.clear();
            finding.outcome.a = Some(Ending {
                status: crate::sweep::report::Status::Code(1),
                output: String::new(),
            });
        }
        let told = text(&report);
        assert!(told.contains("FINDING 4 of 4"), "{told}");
    }

    #[test]
    fn what_is_cut_is_counted() {
        assert_eq!(cut_to("0123456789", 10), "0123456789");
        let long = "x".repeat(300);
        let short = cut_to(&long, 60);
        assert_eq!(short, format!("{}...(+252)", "x".repeat(48)));
    }

    #[test]
    fn long_values_start_near_their_difference() {
        let mut values = [
            format!("{}1", "x".repeat(200)),
            format!("{}2", "x".repeat(200)),
        ];
        from_difference(&mut values);
        let near = "x".repeat(16);
        assert_eq!(
            values,
            [
                format!("(184 as elsewhere) ...{near}1"),
                format!("(184 as elsewhere) ...{near}2")
            ]
        );
    }

    #[test]
    fn long_lines_break_at_blanks_or_anywhere() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("onetwothree", 4), ["onet", "woth", "ree"]);
        assert_eq!(hanging("one two three", 8, "  "), ["one two", "  three"]);
        assert_eq!(wrap("", 8), [""]);
    }
}
