//! `fakeserver sweep`: programs that are processes, its options, its exit status, and the lines that it exchanges with a host.

#![cfg(all(feature = "program", unix))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use fakeserver::sweep::Report;

#[path = "support/bash.rs"]
mod bash;

use bash::program;

const BUY: &str = "ask GET stock; if [ \"$reply\" -gt 0 ]; then ask SET stock $((reply - 1)); echo bought; else echo sold out; fi";

/// Sweeps with these options and programs.
fn sweep(options: &[&str], programs: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fakeserver"));
    command.arg("sweep").args(options);
    for script in programs {
        command.arg("--").args(program(script));
    }
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The setup as one word.
fn setup() -> String {
    "bash -c 'exec 3<>/dev/tcp/{host}/{port}; printf \"SET stock 1\\r\\n\" >&3; read -r reply <&3'"
        .to_owned()
}

#[test]
fn an_update_that_is_lost_is_found_and_replayed() {
    let json = scratch("lost.json");
    let html = scratch("lost.html");
    let options = [
        "--only",
        "isolation",
        "--clock",
        "1700000000000",
        "--setup",
        &setup(),
        "--json",
        json.to_str().unwrap(),
        "--html",
        html.to_str().unwrap(),
    ];
    let output = sweep(&options, &[BUY, BUY]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output)
            .contains("all 1 single-preemption schedules of these two programs, these inputs"),
        "{}",
        text(&output)
    );
    let report: Report = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let [finding] = &report.findings[..] else {
        panic!("{report:?}");
    };
    assert_eq!(
        (finding.kind.as_str(), finding.schedule.as_str()),
        ("isolation", "isolation:a1")
    );
    let cause = finding.cause.as_ref().unwrap();
    let step = |at: usize| finding.steps[at].command.as_str();
    assert_eq!(
        [
            step(cause.read),
            step(cause.written),
            step(cause.overwritten.unwrap())
        ],
        ["GET stock", "SET stock 0", "SET stock 0"]
    );
    assert!(std::fs::read_to_string(html).unwrap().contains("<html"));

    // The replay command is one for a shell, and gives the same twice.
    let replay = finding
        .replay
        .replacen("fakeserver", env!("CARGO_BIN_EXE_fakeserver"), 1);
    let replayed = || Command::new("bash").args(["-c", &replay]).output().unwrap();
    let (one, other) = (replayed(), replayed());
    assert_eq!(one.status.code(), Some(1), "{one:?}");
    assert_eq!(text(&one), text(&other));
    assert!(
        text(&one).contains("string \"stock\" \"0\""),
        "{}",
        text(&one)
    );
}

#[test]
fn a_clean_sweep_says_what_it_claims() {
    let output = sweep(
        &["--setup", &setup()],
        &["ask DECR stock", "ask DECR stock"],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output).contains("no findings"), "{}", text(&output));
}

#[test]
fn a_program_that_dies_leaves_nothing_behind() {
    // Its child would set the key after the program was killed.
    let script = "ask INCR n; (sleep 0.3; ask SET late 1) & ask INCR n; ask INCR n; wait";
    let output = sweep(&["--only", "crash", "--json", "-", "--quiet"], &[script]);
    let report: Report = serde_json::from_str(&text(&output)).unwrap();
    let finding = &report.findings[0];
    assert_eq!(finding.kind, "crash");
    let keys: Vec<_> = finding
        .outcome
        .keys
        .iter()
        .map(|key| key.key.as_str())
        .collect();
    assert_eq!(keys, ["\"n\""], "{finding:?}");
}

#[test]
fn a_bad_command_line_is_refused_with_a_reason() {
    for (options, programs, reason) in [
        (
            &["--only", "luck"][..],
            &["ask PING"][..],
            "there is no kind `luck`",
        ),
        (&[], &[], "there is no program to sweep"),
        (
            &[],
            &["ask PING", "ask PING", "ask PING"],
            "3 programs are given, and there is room for 2",
        ),
        (
            &["--setup", "bash 'x"],
            &["ask PING"],
            "a quote does not end",
        ),
        (&["--setup", "false"], &["ask PING"], "the setup failed"),
        (&["--replay", "a1"], &["ask PING"], "is no schedule"),
        (
            &["--confirm", "localhost"],
            &["ask PING"],
            "is not an address",
        ),
        (
            &["--confirm", "redis://127.0.0.1:1"],
            &["ask PING"],
            "the server: ",
        ),
        (
            &["--heals-within", "soon"],
            &["ask PING"],
            "not a number of seconds",
        ),
        (&["--host", "c"], &[], "the roles are setup, a, b, after"),
        (&[], &["exit 7"], "A fails before it sends a command"),
        (
            &["--only", "crash"],
            &["ask GET n; exit $(($$ % 200 + 1))"],
            "end with another status each time",
        ),
        (
            &["--json", "/no/such/folder/x"],
            &["ask GET n"],
            "cannot write",
        ),
    ] {
        let output = sweep(options, programs);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{options:?} {complaint}");
        assert!(complaint.contains(reason), "{options:?}: {complaint}");
    }
    let missing = Command::new(env!("CARGO_BIN_EXE_fakeserver"))
        .args(["sweep", "--", "/no/such/program"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot run `/no/such/program`"));
}

/// The last line of a hosted sweep, in which each role counts by GET and SET.
fn hosted(
    options: &[&str],
    answer: impl Fn(&serde_json::Value) -> Option<String>,
) -> (Option<serde_json::Value>, Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fakeserver"))
        .args(["sweep", "--host", "a=count,b"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last = None;
    for line in lines {
        let order: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        match answer(&order) {
            Some(answer) => writeln!(stdin.as_mut().unwrap(), "{answer}").unwrap(),
            None if order["do"] == "report" => last = Some(order),
            None => drop(stdin.take()),
        }
    }
    let output = child.wait_with_output().unwrap();
    (
        last,
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn count(order: &serde_json::Value) -> Option<String> {
    if order["do"] != "run" {
        return None;
    }
    let address = order["url"]
        .as_str()
        .unwrap()
        .trim_start_matches("redis://")
        .to_owned();
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    let mut ask = |command: &str| {
        stream
            .get_mut()
            .write_all(format!("{command}\r\n").as_bytes())
            .unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        line.trim().to_owned()
    };
    let len = ask("STRLEN n");
    ask(&format!("SETRANGE n {} x", len.trim_start_matches(':')));
    let answer =
        serde_json::json!({"ended": order["role"], "run": order["run"], "status": 0, "output": ""});
    Some(answer.to_string())
}

#[test]
fn a_host_runs_its_roles_and_gets_the_report() {
    // One role at a time: the schedules of one program only, since this host cannot run two at once.
    let (last, status, _) = hosted(&["--only", "restart"], count);
    let last = last.unwrap();
    assert_eq!(
        last["report"]["programs"]["a"],
        serde_json::json!(["count"])
    );
    assert_eq!(
        last["report"]["programs"]["b"],
        serde_json::json!(["(hosted)"])
    );
    assert!(
        last["text"].as_str().unwrap().contains("restarts"),
        "{last}"
    );
    assert_eq!(
        status == Some(0),
        last["report"]["findings"] == serde_json::json!([])
    );
}

#[test]
fn a_host_that_goes_or_talks_nonsense_ends_the_sweep() {
    let (last, status, complaint) = hosted(&[], |_| None);
    assert_eq!((last.is_none(), status), (true, Some(2)));
    assert!(
        complaint.contains("whoever runs the programs is gone"),
        "{complaint}"
    );
    let (_, status, complaint) = hosted(&[], |_| Some("nonsense".to_owned()));
    assert_eq!(status, Some(2));
    assert!(
        complaint.contains("cannot understand `nonsense`"),
        "{complaint}"
    );
}
