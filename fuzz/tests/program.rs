//! The program: exit status, and one clear line for what it cannot do.

#![allow(
    clippy::unwrap_used,
    reason = "a test's helpers may fail as loudly as its body"
)]

use std::process::{Command, Output};

fn hunt(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fuzz"))
        .args(arguments)
        .env_remove("REDIS_URL")
        .output()
        .unwrap()
}

#[test]
fn bad_usage_is_one_line_and_status_2() {
    for arguments in [
        &["--no-such-flag"][..],
        &["--clients", "0"],
        &["--clients", "many"],
        &["--seconds", "0"],
        &["--scenario", "nowhere"],
        &["--replay", "v1:zz:a"],
        &["--replay", "v1:00000000:a"],
        &["--redis", "nonsense"],
        &["--redis", "redis://127.0.0.1:1/"],
        &["stray"],
    ] {
        let output = hunt(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
        assert!(text.starts_with("error: "), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn help_is_no_error() {
    let output = hunt(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    for option in [
        "--clients",
        "--seconds",
        "--seed",
        "--scenario",
        "--replay",
        "--redis",
    ] {
        assert!(text.contains(option), "{text}");
    }
}

#[test]
fn a_short_hunt_is_clean_and_its_counterexamples_replay() {
    let output = hunt(&["--seconds", "2", "--scenario", "mixed"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("5 of 5 broken stores caught"), "{text}");
    let words = text.split_whitespace();
    let schedules: Vec<&str> = words.filter(|word| word.starts_with("v1:")).collect();
    assert_eq!(schedules.len(), 5, "{text}");
    for schedule in schedules {
        let [first, second] = [(); 2].map(|()| hunt(&["--replay", schedule]));
        let text = String::from_utf8(first.stdout.clone()).unwrap();
        assert_eq!(first.status.code(), Some(1), "{text}");
        assert!(
            text.contains("\nviolated: ") && text.contains(schedule),
            "{text}"
        );
        assert_eq!(first.stdout, second.stdout);
    }
}
