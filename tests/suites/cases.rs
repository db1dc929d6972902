//! The standalone program: how it starts, what it says, how it ends; and the list of public cases that it does not pass yet.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tests::frame::Frame;
use tests::raw::Raw;

/// Starting a program takes no longer than this on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The program's path. It belongs to another package, so cargo does not name it: it is built here if need be.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "-p",
                "fakeserver",
                "--bin",
                "fakeserver",
                "--message-format",
                "json",
            ])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        let messages = String::from_utf8_lossy(&built.stdout).into_owned();
        let executable = messages.lines().find_map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            let executable = message.get("executable")?.as_str()?.to_owned();
            executable.contains("fakeserver").then_some(executable)
        });
        PathBuf::from(executable.unwrap())
    })
}

fn run(arguments: &[&str]) -> Output {
    Command::new(program())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A program that runs; it does not outlive the test.
struct Running {
    child: Child,
    ready: String,
}

impl Running {
    fn start(arguments: &[&str]) -> Running {
        let mut child = Command::new(program())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut ready)
            .unwrap();
        Running { child, ready }
    }

    fn address(&self) -> &str {
        self.ready
            .trim_end()
            .strip_prefix("Ready: redis://")
            .unwrap()
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
    }

    /// Waits for the end; the exit status and what stood on standard error.
    fn end(&mut self) -> (Option<i32>, String) {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                let mut log = String::new();
                self.child
                    .stderr
                    .take()
                    .unwrap()
                    .read_to_string(&mut log)
                    .unwrap();
                return (status.code(), log);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the program did not end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_first_line_names_a_free_port_where_clients_are_served() {
    let running = Running::start(&["--port", "0"]);
    assert!(
        running.ready.starts_with("Ready: redis://127.0.0.1:"),
        "{}",
        running.ready
    );
    assert!(!running.ready.ends_with(":0\n"));
    let mut raw = Raw::tcp(running.address()).unwrap();
    assert_eq!(raw.call(&["PING"]), Frame::Line(b"+PONG".to_vec()));
    assert_eq!(raw.call(&["SET", "k", "v"]), Frame::Line(b"+OK".to_vec()));
    assert_eq!(raw.call(&["GET", "k"]), Frame::Blob(b'$', b"v".to_vec()));
}

#[test]
fn it_ends_with_status_zero_when_asked_to() {
    for signal in ["TERM", "INT"] {
        let mut running = Running::start(&["--port", "0"]);
        // Clients that are connected do not hold it up.
        let mut raw = Raw::tcp(running.address()).unwrap();
        raw.call(&["PING"]);
        running.signal(signal);
        assert_eq!(running.end().0, Some(0), "after SIG{signal}");
    }
}

#[test]
fn it_listens_where_it_is_told_to() {
    let running = Running::start(&["--port", "0", "--bind", "127.0.0.2"]);
    assert!(
        running.ready.starts_with("Ready: redis://127.0.0.2:"),
        "{}",
        running.ready
    );
    assert_eq!(
        Raw::tcp(running.address()).unwrap().call(&["PING"]),
        Frame::Line(b"+PONG".to_vec())
    );
}

#[test]
fn help_and_version_go_to_standard_output() {
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    for option in ["--port", "--bind"] {
        assert!(text.contains(option), "{option} in {text}");
    }
    assert!(help.stderr.is_empty());
}

#[test]
fn what_cannot_be_done_is_said_in_one_line_with_status_two() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (arguments, named) in [
        (&["--nosuch"][..], "--nosuch"),
        (&["--port", "70000"], "70000"),
        (&["--port", "x"], "x"),
        (&["--bind", "nowhere"], "nowhere"),
        (&["--port", &port], &port),
    ] {
        let output = run(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(
            text.lines().next().is_some_and(|line| line.contains(named)),
            "{arguments:?}: {text}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!text.contains("panicked"), "{arguments:?}: {text}");
    }
}

#[test]
fn the_list_of_cases_that_fail_names_cases_only() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let cases: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("cases.json")).unwrap()).unwrap();
    let ids: BTreeSet<&str> = cases
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|case| case["id"].as_str())
        .collect();
    assert_eq!(ids.len(), 140);
    let failing = std::fs::read_to_string(folder.join("failing.txt")).unwrap();
    let mut listed: Vec<&str> = failing
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    assert!(listed.iter().all(|id| ids.contains(id)));
    let count = listed.len();
    listed.sort_unstable();
    listed.dedup();
    assert_eq!(listed.len(), count, "a case is listed twice");
    assert!(ids.len() - count >= 90, "at least 90 of 140 have to pass");
}
