//! Reports made by hand, for tests of what draws them.

use std::path::PathBuf;

use crate::sweep::report::Report;

/// A report with a finding of each sort, hostile names among them.
pub(crate) fn findings() -> Report {
    serde_json::from_str(include_str!("findings.json")).unwrap()
}

/// A report without findings.
pub(crate) fn clean() -> Report {
    let mut report = findings();
    report.findings.clear();
    report
}

/// Where a file of this folder is.
pub(crate) fn path(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sweep/samples");
    PathBuf::from(folder).join(name)
}
