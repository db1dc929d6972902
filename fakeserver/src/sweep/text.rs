//! [`text()`]: the report in a terminal, or in the message of a test that failed.

use std::fmt::Write as _;

use crate::report::columns::{Fit, columns};
use crate::report::layout::{VALUE_LEN_MAX, WIDTH, cut, field, line, plain, wrap};
use crate::sweep::report::{Finding, Report};
use crate::sweep::view::{
    Comparison, Facet, Lanes, also, comparison, picture, told_cause, told_same,
};

/// Outcomes that would be right, shown side by side at most.
const ORDER_COUNT_MAX: usize = 3;

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
        let picture = picture(finding, &report.programs, Lanes::Programs);
        columns(&mut out, &picture, Fit::Room);
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
}
