//! What came of a schedule, beside what would have been right.

use std::fmt::Write as _;

use crate::report::escape::escaped;
use crate::sweep::report::{Finding, Shown};
use crate::sweep::view::{Comparison, Facet, comparison, endings, key_line, told_same};

/// Characters that are shown of what values have in common in front of their difference, and behind it.
const COMMON_LEN_MAX: usize = 40;

/// Draws the table of all places in which outcomes differ, and the whole key space behind it.
pub(super) fn outcomes(out: &mut String, finding: &Finding) {
    out.push_str("<section class=\"outcomes\"><h3>Outcome</h3>\n");
    let comparison = comparison(finding);
    if comparison.orders.is_empty() {
        differences(out, finding);
    } else {
        table(out, &comparison);
    }
    let same = told_same(&comparison).unwrap_or_default();
    let _ = write!(
        out,
        "<p class=\"same\">{same}</p>\n<details><summary>The whole outcome</summary>\n"
    );
    whole(out, &finding.outcome);
    out.push_str("</details>\n</section>\n");
}

fn differences(out: &mut String, finding: &Finding) {
    out.push_str("<ul>\n");
    for difference in &finding.differences {
        let at = escaped(&difference.at);
        let got = escaped(&difference.got);
        let expected = escaped(&difference.expected.join(" or "));
        let _ = writeln!(
            out,
            "<li>{at}: <code>{got}</code> instead of <code>{expected}</code></li>"
        );
    }
    out.push_str("</ul>\n");
}

fn table(out: &mut String, comparison: &Comparison) {
    out.push_str("<table class=\"compare\">\n<thead><tr><th><span class=\"unseen\">Where</span></th><th scope=\"col\">this schedule</th>");
    for order in &comparison.orders {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escaped(order));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for facet in &comparison.facets {
        facet_row(out, comparison, facet);
    }
    out.push_str("</tbody>\n</table>\n");
    if !comparison.facets.iter().any(|facet| facet.is_wrong) {
        out.push_str(
            "<p>Each of these is in some outcome that is right, but in none are all of them.</p>\n",
        );
    }
}

fn facet_row(out: &mut String, comparison: &Comparison, facet: &Facet) {
    let (class, sign) = if facet.is_wrong {
        ("wrong", "<span class=\"unseen\">wrong: </span>")
    } else {
        ("varies", "")
    };
    let _ = write!(
        out,
        "<tr class=\"{class}\"><th scope=\"row\">{sign}{}</th><td class=\"here\" data-order=\"this schedule\">{}</td>",
        escaped(&facet.at),
        highlighted(&facet.here, facet)
    );
    for (value, order) in facet.expected.iter().zip(&comparison.orders) {
        let agrees = if *value == facet.here { " agrees" } else { "" };
        let _ = write!(
            out,
            "<td class=\"order{agrees}\" data-order=\"{}\">{}</td>",
            escaped(order),
            highlighted(value, facet)
        );
    }
    out.push_str("</tr>\n");
}

/// A value whose part that is not the same in all outcomes stands out.
fn highlighted(value: &str, facet: &Facet) -> String {
    let all = || facet.expected.iter().chain([&facet.here]);
    let count =
        |common: &dyn Fn(&str) -> usize| all().map(|other| common(other)).min().unwrap_or(0);
    let start = count(&|other| same_start(value, other));
    let rest = value.get(start..).unwrap_or_default();
    let end = count(&|other| {
        let other = other.get(start..).unwrap_or_default();
        same_end(rest, other)
    });
    let middle = value.get(start..value.len() - end).unwrap_or_default();
    let middle = if start + end == 0 {
        escaped(middle)
    } else {
        format!("<mark>{}</mark>", escaped(middle))
    };
    let head = from_end(value.get(..start).unwrap_or_default());
    let tail = from_start(value.get(value.len() - end..).unwrap_or_default());
    format!("<code>{head}{middle}{tail}</code>")
}

/// What all have in common at their start; of something long its end.
fn from_end(text: &str) -> String {
    let count = text.chars().count();
    let Some((at, _)) = text
        .char_indices()
        .nth(count.saturating_sub(COMMON_LEN_MAX))
    else {
        return escaped(text);
    };
    let skipped = count.saturating_sub(COMMON_LEN_MAX);
    format!(
        "{}{}",
        skip(skipped),
        escaped(text.get(at..).unwrap_or_default())
    )
}

/// What all have in common at their end; of something long its start.
fn from_start(text: &str) -> String {
    let Some((at, _)) = text.char_indices().nth(COMMON_LEN_MAX) else {
        return escaped(text);
    };
    let skipped = text.chars().count() - COMMON_LEN_MAX;
    format!(
        "{}{}",
        escaped(text.get(..at).unwrap_or_default()),
        skip(skipped)
    )
}

fn skip(count: usize) -> String {
    match count {
        0 => String::new(),
        _ => format!("<span class=\"skip\">\u{2026}{count} the same\u{2026}</span>"),
    }
}

fn same_start(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs
        .take_while(|(one, other)| one == other)
        .map(|(character, _)| character.len_utf8())
        .sum()
}

fn same_end(one: &str, other: &str) -> usize {
    let pairs = one.chars().rev().zip(other.chars().rev());
    pairs
        .take_while(|(one, other)| one == other)
        .map(|(character, _)| character.len_utf8())
        .sum()
}

/// Draws all of an outcome.
pub(super) fn whole(out: &mut String, outcome: &Shown) {
    out.push_str("<table class=\"whole\">\n<tbody>\n");
    let mut row = |name: &str, value: &str| {
        let name = escaped(name);
        let value = escaped(value);
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{name}</th><td><code>{value}</code></td></tr>"
        );
    };
    for (name, value) in endings(outcome) {
        if let Some(value) = value {
            row(&name, &value);
        }
    }
    for key in &outcome.keys {
        let (name, value) = key_line(key);
        row(&name, &value);
    }
    out.push_str("</tbody>\n</table>\n");
}
