//! Rules of the repository that no compiler checks: file lengths, banned words, arrows between packages, documents.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of a source file, the tests at its end not counted.
const FILE_LEN_MAX: usize = 600;

/// Packages of the workspace.
const PACKAGES: [&str; 4] = ["fakeserver", "fuzz", "store", "tests"];

/// What the top level may hold.
const TOP_LEVEL: [&str; 11] = [
    ".cargo",
    ".ci",
    ".gitignore",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "fakeserver",
    "fuzz",
    "store",
    "tests",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// What a command prints that is run at the repository's top level; it has to succeed.
fn printed_by(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The files that belong to the repository: those that git knows, and those that it would add.
fn files() -> Vec<String> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let listed = printed_by(Command::new("git").args(arguments));
    listed
        .lines()
        .filter(|name| root().join(name).is_file())
        .map(str::to_owned)
        .collect()
}

/// The sources, with their texts.
fn sources() -> Vec<(String, String)> {
    let sources = files()
        .into_iter()
        .filter(|name| Path::new(name).extension().is_some_and(|ext| ext == "rs"));
    sources
        .map(|name| {
            (
                name.clone(),
                std::fs::read_to_string(root().join(name)).unwrap(),
            )
        })
        .collect()
}

/// The lines that a rule does not allow, as `file:line: text`.
fn offending(texts: &[(String, String)], offends: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in texts {
        for (at, line) in text.lines().enumerate() {
            if offends(name, line) {
                found.push(format!("{name}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    found
}

#[test]
fn no_source_file_is_longer_than_the_limit() {
    let long: Vec<String> = sources()
        .iter()
        .map(|(name, text)| {
            (
                name,
                text.split("\n#[cfg(test)]\nmod tests {")
                    .next()
                    .unwrap_or_default()
                    .lines()
                    .count(),
            )
        })
        .filter(|(_, lines)| *lines > FILE_LEN_MAX)
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect();
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn nothing_is_left_unfinished_or_switched_off() {
    // Put together here, so that this file does not name them.
    let marks = ["TO DO", "FIX ME"].map(|mark| mark.replace(' ', ""));
    let calls = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!("));
    let ignored = format!("#[{}", "ignore");
    let found = offending(&sources(), |_, line| {
        marks
            .iter()
            .chain(&calls)
            .chain([&ignored])
            .any(|mark| line.contains(mark.as_str()))
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn library_code_does_not_give_up_on_input() {
    let found = offending(
        &sources()
            .into_iter()
            .filter(|(name, _)| !name.contains("/tests"))
            .filter(|(name, _)| {
                name.starts_with("fakeserver/src/") || name.starts_with("store/src/")
            })
            .map(|(name, text)| {
                let code = text
                    .split("\n#[cfg(test)]")
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                (name, code)
            })
            .collect::<Vec<_>>(),
        |_, line| line.contains(".unwrap()") && !line.trim_start().starts_with("//"),
    );
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn no_file_names_a_path_of_a_machine() {
    // A transcript or a golden dump may hold any bytes; what is written by hand may not.
    let texts: Vec<(String, String)> = files()
        .into_iter()
        .filter(|name| !name.starts_with("tests/golden/") && name != "Cargo.lock")
        .filter_map(|name| {
            Some((
                name.clone(),
                std::fs::read_to_string(root().join(name)).ok()?,
            ))
        })
        .collect();
    let home = root().parent().unwrap().display().to_string();
    let prefixes = ["/home", "/root", "/Users", "/work"].map(|folder| format!("{folder}/"));
    let found = offending(&texts, |name, line| {
        name != "tests/suites/tidy.rs"
            && ((home.len() > 1 && line.contains(&format!("{home}/")))
                || prefixes.iter().any(|prefix| names_path(line, prefix)))
    });
    assert_eq!(found, Vec::<String>::new());
}

/// Whether an absolute path begins in the line: `a/root/b` is none.
fn names_path(line: &str, prefix: &str) -> bool {
    line.match_indices(prefix).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/~}".contains(c))
    })
}

#[test]
fn the_top_level_holds_what_it_is_meant_to() {
    let top: BTreeSet<String> = files()
        .iter()
        .filter_map(|name| name.split('/').next())
        .map(str::to_owned)
        .collect();
    let unexpected: Vec<&String> = top
        .iter()
        .filter(|name| !TOP_LEVEL.contains(&name.as_str()))
        .collect();
    assert_eq!(unexpected, Vec::<&String>::new());
}

#[test]
fn every_package_has_an_architecture_document() {
    let files: BTreeSet<String> = files().into_iter().collect();
    let missing: Vec<&str> = PACKAGES
        .into_iter()
        .filter(|package| !files.contains(&format!("{package}/ARCHITECTURE.md")))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn every_suite_is_named_in_the_manifest() {
    // With `autotests = false` a suite that nobody names is not run, and nobody is told.
    let manifest = std::fs::read_to_string(root().join("tests/Cargo.toml")).unwrap();
    let missing: Vec<String> = files()
        .into_iter()
        .filter_map(|name| Some(name.strip_prefix("tests/")?.to_owned()))
        .filter(|name| name.starts_with("suites/") && name.matches('/').count() == 1)
        .filter(|name| !manifest.contains(&format!("\"{name}\"")))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}

/// Rows of the critique of the Python store (`store-contract.md`), each of which needs two tests.
const CRITIQUE: u32 = 31;

#[test]
fn every_row_of_the_critique_has_a_test_that_fails_naively_and_one_that_holds() {
    let named = |line: &str, row: u32| {
        line.trim_start().starts_with("//")
            && line
                .split(|c: char| !c.is_ascii_alphanumeric())
                .any(|word| word == format!("C{row}"))
    };
    let sources = sources();
    let suites: Vec<&str> = sources
        .iter()
        .filter(|(path, _)| path.starts_with("tests/suites/") || path.starts_with("fuzz/tests/"))
        .map(|(_, text)| text.as_str())
        .collect();
    for row in 1..=CRITIQUE {
        let lines = suites.iter().flat_map(|text| text.lines());
        let mentions = lines.filter(|line| named(line, row)).count();
        assert!(mentions >= 2, "C{row} has {mentions} tests");
    }
    assert!(named("// C7: twice", 7) && !named("// C7: twice", 1) && !named("call(C7)", 7));
}

/// Names of the packages that one is built with, through any number of others.
fn dependencies(package: &str, arguments: &[&str]) -> BTreeSet<String> {
    let tree = printed_by(
        Command::new(env!("CARGO"))
            .args(["tree", "--prefix", "none", "--format", "{p}", "-p", package])
            .args(arguments),
    );
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names
        .filter(|name| *name != package)
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_arrows_between_packages_point_one_way() {
    let all = ["--all-features", "-e", "normal,dev,build"];
    for (package, never) in [
        ("store", &["fakeserver", "tests", "fuzz", "proptest"][..]),
        ("fakeserver", &["store", "tests", "fuzz", "proptest"]),
        ("tests", &["fuzz"]),
    ] {
        let found = dependencies(package, &all);
        let wrong: Vec<&&str> = never.iter().filter(|name| found.contains(**name)).collect();
        assert!(wrong.is_empty(), "{package} must not need {wrong:?}");
    }
    let bare = dependencies("fakeserver", &["--no-default-features", "-e", "normal"]);
    for name in ["tokio", "redis", "mlua", "clap"] {
        assert!(
            !bare.contains(name),
            "fakeserver without features must not need {name}"
        );
    }
}
