//! The gallery of bugs: what its program prints, word for word.

#[path = "../../../fakeserver/examples/explore-bugs/gallery/mod.rs"]
mod gallery;

use std::fmt::Write as _;

/// Hashes of workloads are left out: they change with the names of functions.
fn without_hashes(text: &str) -> String {
    let mut parts = text.split("v1:");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let _ = write!(text, "v1:HASH{}", &part[8..]);
    }
    text
}

#[test]
fn every_bug_is_found_and_its_right_version_passes_exhaustively() {
    let mut text = String::new();
    for bug in &gallery::BUGS {
        text.push_str(&bug.text().unwrap());
        text.push('\n');
    }
    let text = without_hashes(&text);
    let text = text.replace(
        "cargo test bugs::every_bug_is_found_and_its_right_version_passes_exhaustively",
        "and the same program",
    );
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/explore-bugs.txt");
    if std::env::var_os("RECORD").is_some() {
        std::fs::write(golden, &text).unwrap();
    }
    let expected = std::fs::read_to_string(golden).unwrap();
    assert_eq!(text, expected);
    assert_eq!(text.matches("exhaustive").count(), gallery::BUGS.len());
    assert_eq!(text.matches("violated").count(), gallery::BUGS.len());
}
