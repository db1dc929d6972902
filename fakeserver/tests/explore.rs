//! `fakeserver explore`: what takes two preemptions or three programs, replays, and what it refuses.

#![cfg(all(feature = "program", unix))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::process::{Command, Output};

use fakeserver::sweep::Report;

#[path = "support/bash.rs"]
mod bash;

use bash::program;

/// Goes wrong only if the key comes while it reads and goes later.
const READ: &str =
    "ask EXISTS busy; one=$reply; ask EXISTS busy; [ $one$reply = :0:1 ] && ask SET torn 1; exit 0";
const WORK: &str = "ask SET busy 1; ask DEL busy";

/// Goes wrong only if two others count while it reads, at two places.
const SEE: &str = "ask GET n; zero=$reply; ask GET n; one=$reply; ask GET n; \
                   [ $zero$one$reply = '$-112' ] && ask SET torn 1; exit 0";
const COUNT: &str = "ask INCR n";

fn run(task: &str, options: &[&str], programs: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fakeserver"));
    command.arg(task).args(options);
    for script in programs {
        command.arg("--").args(program(script));
    }
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn report(options: &[&str], programs: &[&str]) -> Report {
    let options = [&["--json", "-", "--quiet"], options].concat();
    let output = run("explore", &options, programs);
    let report: Report = serde_json::from_str(&text(&output)).unwrap_or_else(|error| {
        panic!("{error} {output:?}");
    });
    let expected = i32::from(!report.is_clean());
    assert_eq!(output.status.code(), Some(expected));
    report
}

#[test]
fn what_takes_two_preemptions_is_missed_by_the_sweep_and_found_here() {
    let swept = run("sweep", &["--only", "isolation"], &[READ, WORK]);
    assert_eq!(swept.status.code(), Some(0), "{swept:?}");
    let one = report(&["--preemptions", "1"], &[READ, WORK]);
    assert!(one.is_clean(), "{one:?}");
    let two = report(&[], &[READ, WORK]);
    // Two and two commands have six orders, each of at most two preemptions.
    let claim = "all 6 schedules with at most 2 preemptions of these 2 programs, these inputs";
    assert_eq!(two.claim, claim);
    let [finding] = &two.findings[..] else {
        panic!("{two:?}");
    };
    assert_eq!(finding.schedule, "explore:abaab");
    assert_eq!(
        finding.title,
        "B runs before A's `EXISTS busy`, A runs before B's `DEL busy`: no serial order gives what comes of it"
    );
    let cause = finding.cause.as_ref().unwrap();
    assert_eq!(
        (cause.key.as_str(), cause.read, cause.written),
        ("busy", 0, 1)
    );
    assert_eq!(finding.expected.len(), 1, "both orders give the same");
}

#[test]
fn what_takes_three_programs_is_found() {
    let programs = [SEE, COUNT, COUNT];
    let bounded = report(&[], &programs);
    // Three, one and one command have twenty orders, and one of the two that go wrong has a command more.
    let claim = "all 20 schedules with at most 2 preemptions of these 3 programs, these inputs";
    assert_eq!(bounded.claim, claim);
    let schedules = |report: &Report| {
        let findings = report.findings.iter();
        let all = findings.flat_map(|one| one.also.iter().chain([&one.schedule]).cloned());
        all.collect::<std::collections::BTreeSet<String>>()
    };
    let both = ["explore:abacaa", "explore:acabaa"].map(str::to_owned);
    assert_eq!(schedules(&bounded), both.clone().into());
    let options = ["--strategy", "random", "--schedules", "60", "--seed", "1"];
    let sampled = report(&options, &programs);
    assert_eq!(
        sampled.claim,
        "sampled 60 schedules of these 3 programs, these inputs (random, seed 1)"
    );
    let found = schedules(&sampled);
    assert!(!found.is_empty());
    assert!(found.iter().all(|one| both.contains(one)), "{found:?}");
    let few = report(&["--schedules", "5"], &programs);
    assert!(
        few.claim.starts_with("sampled 5 schedules"),
        "{}",
        few.claim
    );
}

#[test]
fn priorities_find_what_takes_two_preemptions() {
    let options = ["--strategy", "pct", "--schedules", "100", "--seed", "1"];
    let sampled = report(&options, &[READ, WORK]);
    assert_eq!(
        sampled.claim,
        "sampled 100 schedules of these 2 programs, these inputs (PCT, seed 1)"
    );
    assert_eq!(sampled.findings[0].schedule, "explore:abaab");
}

#[test]
fn a_long_schedule_is_made_short() {
    let own =
        "ask GET own1; ask GET own2; ask GET own3; ask GET own4; ask GET own5; ask GET own6; ";
    let long = |rest: &str| format!("{own}{rest}");
    let programs = [long(READ), long(WORK)];
    let programs = programs.each_ref().map(String::as_str);
    let options = ["--strategy", "random", "--schedules", "40", "--seed", "2"];
    let found = report(&options, &programs);
    let [finding] = &found.findings[..] else {
        panic!("{found:?}");
    };
    // A's seven, B's seven, A's last two, B's last.
    assert_eq!(finding.schedule, "explore:aaaaaaabbbbbbbaab");
}

#[test]
fn a_schedule_that_was_found_is_replayed_and_gives_the_same_twice() {
    let found = report(&["--clock", "1700000000000"], &[READ, WORK]);
    let replay = &found.findings[0].replay;
    let replay = replay.replacen("fakeserver", env!("CARGO_BIN_EXE_fakeserver"), 1);
    let replayed = || Command::new("bash").args(["-c", &replay]).output().unwrap();
    let (one, other) = (replayed(), replayed());
    assert_eq!(one.status.code(), Some(1), "{one:?}");
    assert_eq!(text(&one), text(&other));
    let lines: Vec<_> = text(&one).lines().take(5).map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "a1 EXISTS busy -> (integer) 0",
            "b1 SET busy 1 -> OK",
            "a1 EXISTS busy -> (integer) 1",
            "a1 SET torn 1 -> OK",
            "b1 DEL busy -> (integer) 1"
        ]
    );
    let serial = run("explore", &["--replay", "explore:aabb"], &[READ, WORK]);
    assert_eq!(serial.status.code(), Some(0), "{serial:?}");
    assert!(text(&serial).contains("a serial order gives this"));
    let impossible = run("explore", &["--replay", "explore:aaaab"], &[READ, WORK]);
    assert_eq!(impossible.status.code(), Some(2), "{impossible:?}");
    let complaint = String::from_utf8_lossy(&impossible.stderr).into_owned();
    assert!(complaint.contains("only B can go on"), "{complaint}");
}

#[test]
fn right_programs_are_clean() {
    let watch = "ask WATCH n; ask GET n; n=${reply/'$-1'/0}; ask MULTI; ask SET n $((n + 1)); ask EXEC; \
                 case $reply in '*1') read -r reply <&3;; esac";
    let again = format!("reply='*-1'; while [ \"$reply\" = '*-1' ]; do {watch}; done");
    let clean = report(&["--preemptions", "3"], &[&again, &again]);
    assert!(clean.is_clean(), "{clean:?}");
    assert!(clean.claim.starts_with("all "), "{}", clean.claim);
    assert_eq!(clean.programs.more.len(), 0);
}

#[test]
fn programs_that_wait_for_each_other_take_turns_and_make_it_a_sample() {
    let take = "ask BLPOP queue 0; read -r a <&3; read -r a <&3; read -r a <&3; ask INCR done";
    let give = "ask INCR ready; ask RPUSH queue x";
    let waits = report(&["--patience", "1000"], &[take, give]);
    assert!(waits.is_clean(), "{waits:?}");
    assert!(waits.claim.starts_with("sampled "), "{}", waits.claim);
    let for_b = |note: &String| note.starts_with("A waits for B in ") && note.contains("explore:");
    assert!(waits.notes.iter().any(for_b), "{:?}", waits.notes);
}

#[test]
fn programs_that_end_by_a_signal_or_say_nothing_are_programs_like_others() {
    let killed = "ask GET n; ask INCR n; kill -9 $$";
    let found = report(&[], &[killed, COUNT]);
    assert!(found.is_clean(), "{found:?}");
    let silent = report(&[], &["exit 0", COUNT, "exit 0"]);
    assert!(silent.is_clean(), "{silent:?}");
}

#[test]
fn what_cannot_be_explored_is_refused_with_a_reason() {
    for (options, programs, reason) in [
        (&[][..], &[][..], "there is no program to sweep"),
        (&[], &[COUNT], "there is one program only"),
        (
            &[],
            &[COUNT; 6],
            "6 programs are given, and there is room for 5",
        ),
        (&["--strategy", "luck"], &[COUNT; 2], "invalid value 'luck'"),
        (&["--preemptions", "-1"], &[COUNT; 2], "unexpected argument"),
        (&["--only", "crash"], &[COUNT; 2], "unexpected argument"),
        (&["--replay", "abab"], &[COUNT; 2], "is no interleaving"),
        (
            &["--replay", "explore:f"],
            &[COUNT; 2],
            "is no interleaving",
        ),
        (&["--setup", "false"], &[COUNT; 2], "the setup failed"),
        (&[], &[COUNT, "exit 7"], "B fails before it sends a command"),
        (
            &["--time-limit", "0.5"],
            &[COUNT, "sleep 100"],
            "B does not end by itself",
        ),
        (
            &["--confirm", "localhost"],
            &[COUNT; 2],
            "is not an address",
        ),
    ] {
        let output = run("explore", options, programs);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{options:?} {complaint}");
        assert!(complaint.contains(reason), "{options:?}: {complaint}");
    }
    let missing = Command::new(env!("CARGO_BIN_EXE_fakeserver"))
        .args(["explore", "--", "true", "--", "/no/such/program"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
    let complaint = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(
        complaint.contains("cannot run `/no/such/program`"),
        "{complaint}"
    );
}
