//! [`text()`]: the report in a terminal.

use super::ExploreReport;
use super::view::{picture, told_cause, told_size};
use crate::report::columns::{Fit, columns};
use crate::report::layout::{cut, field, line, plain};

/// Keys that are listed at most.
const KEY_COUNT_MAX: usize = 10;

/// What was violated, the diagram, and how to see it again.
pub(super) fn text(report: &ExploreReport) -> String {
    let mut out = String::new();
    let (property, details) = (plain(&report.property), plain(&report.details));
    line(&mut out, &format!("VIOLATED {property}: {details}"));
    line(&mut out, "");
    for key in report.keys.iter().take(KEY_COUNT_MAX) {
        let told = format!("{} = {}", plain(&key.key), cut(&plain(&key.value)));
        field(&mut out, "before", &told);
    }
    let more = report.keys.len().saturating_sub(KEY_COUNT_MAX);
    if more > 0 {
        field(&mut out, "", &format!("and {more} more keys"));
    }
    if !report.keys.is_empty() {
        line(&mut out, "");
    }
    columns(&mut out, &picture(report), Fit::Content);
    line(&mut out, "");
    if let Some(cause) = told_cause(report) {
        field(&mut out, "cause", &plain(&cause));
    }
    field(&mut out, "workload", &cut(&plain(&report.workload)));
    if !report.claim.is_empty() {
        field(&mut out, "explored", &plain(&report.claim));
    }
    field(&mut out, "schedule", &told_size(report));
    let confirmed = match &report.confirmed {
        None => "not tried on a real server".to_owned(),
        Some(real) if real.same => format!("yes, the same on {}", plain(&real.server_version)),
        Some(real) => {
            let difference = real.first_difference.as_deref().unwrap_or_default();
            let server = plain(&real.server_version);
            format!("NO, not the same on {server}: {}", plain(difference))
        }
    };
    field(&mut out, "confirmed", &confirmed);
    for note in &report.notes {
        field(&mut out, "note", &plain(note));
    }
    // In one piece, so that it can be copied.
    line(&mut out, &format!("  replay     {}", plain(&report.replay)));
    out
}
