//! [`html()`]: the report as one page that needs no network and no server, and shows all it knows without its script, too.

use std::fmt::Write as _;

use super::ExploreReport;
use super::view::{picture, told_cause, told_size};
use crate::report::diagram::diagram;
use crate::report::escape::escaped;
use crate::report::page;

/// The report as a page.
pub(super) fn html(report: &ExploreReport) -> String {
    let mut out = String::new();
    page::head(&mut out, &format!("Explorer: {}", report.property));
    summary(&mut out, report);
    out.push_str("<article class=\"finding\" id=\"finding-1\" data-finding=\"0\">\n");
    if let Some(cause) = told_cause(report) {
        let _ = writeln!(out, "<p class=\"cause\">{}.</p>", escaped(&cause));
    }
    keys(&mut out, report);
    out.push_str("<div class=\"walk\">\n");
    diagram(&mut out, &picture(report));
    out.push_str("<aside class=\"detail\" aria-live=\"polite\" hidden></aside>\n</div>\n");
    page::replay(&mut out, &report.replay, &confirmed(report));
    out.push_str("</article>\n");
    page::list(&mut out, "Notes", &report.notes);
    page::foot(&mut out, &report.to_json());
    out
}

fn summary(out: &mut String, report: &ExploreReport) {
    let _ = write!(
        out,
        "<header class=\"top\">\n<p class=\"brand\">Interleaving explorer</p>\n\
         <h1><span class=\"verdict found\">violated</span><span class=\"claim\"> {}</span></h1>\n\
         <p class=\"details\">{}</p>\n<dl class=\"programs\">\n",
        escaped(&report.property),
        escaped(&report.details)
    );
    let facts = [
        ("workload", report.workload.clone()),
        ("schedule", report.schedule.clone()),
    ];
    for (name, value) in facts {
        let value = escaped(&value);
        let _ = writeln!(
            out,
            "<div><dt>{name}</dt><dd><code>{value}</code></dd></div>"
        );
    }
    let _ = write!(
        out,
        "</dl>\n<ul class=\"runs\">\n<li>{}</li>\n",
        escaped(&told_size(report))
    );
    if !report.claim.is_empty() {
        let _ = writeln!(out, "<li>{}</li>", escaped(&report.claim));
    }
    out.push_str(
        "</ul>\n</header>\n<main>\n<p class=\"keys\">Walk the steps: <kbd>j</kbd> <kbd>k</kbd> or arrow keys.</p>\n",
    );
}

fn keys(out: &mut String, report: &ExploreReport) {
    if report.keys.is_empty() {
        return;
    }
    let count = report.keys.len();
    let open = if count <= OPEN_KEY_COUNT_MAX {
        " open"
    } else {
        ""
    };
    let _ = write!(
        out,
        "<details{open}><summary>Key space before ({count})</summary>\n<table class=\"whole\">\n<tbody>\n"
    );
    for key in &report.keys {
        let (name, value) = (escaped(&key.key), escaped(&key.value));
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><code>{name}</code></th><td><code>{value}</code></td></tr>"
        );
    }
    out.push_str("</tbody>\n</table>\n</details>\n");
}

/// More keys than this are folded.
const OPEN_KEY_COUNT_MAX: usize = 6;

fn confirmed(report: &ExploreReport) -> String {
    match &report.confirmed {
        None => "not tried on a real server".to_owned(),
        Some(real) => {
            let server = escaped(&real.server_version);
            if real.same {
                return format!("<span class=\"yes\">yes</span>, the same on {server}");
            }
            let difference = real.first_difference.as_deref().unwrap_or_default();
            let difference = escaped(difference);
            format!("<span class=\"no\">no</span>, not the same on {server}: {difference}")
        }
    }
}
