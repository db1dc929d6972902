//! Transcripts and past failures, on every backend; with `RECORD=1` their replies are taken from the real server instead.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::path::{Path, PathBuf};

use tests::server::{Backend, Kind, real_url};
use tests::transcript::Transcript;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "resp"))
        .collect();
    files.sort();
    files
}

fn load(path: &Path) -> Transcript {
    let text = std::fs::read_to_string(path).unwrap();
    let folder = path
        .parent()
        .and_then(Path::file_name)
        .unwrap()
        .to_string_lossy();
    let name = format!("{folder}/{}", path.file_name().unwrap().to_string_lossy());
    Transcript::parse(&name, &text).unwrap_or_else(|error| panic!("{error}"))
}

fn run(kind: Kind) {
    let mut failures = Vec::new();
    for path in files("transcripts").iter().chain(&files("regressions")) {
        let transcript = load(path);
        if std::env::var_os("RECORD").is_some() {
            if kind == Kind::Real {
                std::fs::write(path, transcript.record(&Backend::start(kind))).unwrap();
            }
            continue;
        }
        failures.extend(transcript.run(&Backend::start(kind)));
    }
    assert!(
        failures.is_empty(),
        "{} replies differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn the_fake_in_memory_answers_as_recorded() {
    run(Kind::Memory);
}

#[test]
fn the_fake_over_tcp_answers_as_recorded() {
    run(Kind::Tcp);
}

#[test]
fn the_real_server_answers_as_recorded() {
    if real_url().is_some() {
        run(Kind::Real);
    }
}

const SAMPLE: &str = "\
# sample: redis 7.0.15
> SET k \"a\\x00\\\\b\"
+OK

> GET k
$4
a\\x00\\x5cb

> GET missing
$-1

@b
! resp3
> GET missing
_

# no blank line is needed before a comment
> PING
~ any
+something
";

#[test]
fn a_transcript_that_holds_passes_and_each_wrong_line_is_told() {
    let backend = Backend::start(Kind::Memory);
    let sample = Transcript::parse("sample", SAMPLE).unwrap();
    assert_eq!(sample.run(&backend), Vec::<String>::new());
    for (right, wrong, told) in [
        (
            "+OK",
            "+ok",
            "sample:2 on Memory\n  sent   > SET k \"a\\x00\\\\b\"\n  wanted +ok\n  got    +OK",
        ),
        ("a\\x00\\x5cb", "a\\x00\\x5cc", "sample:5"),
        ("$-1", "_", "sample:9"),
        ("+something", ":1", "sample:18"),
    ] {
        let broken = SAMPLE.replacen(right, wrong, 1);
        let failures = Transcript::parse("sample", &broken).unwrap().run(&backend);
        assert_eq!(failures.len(), 1, "{wrong}: {failures:?}");
        assert!(failures[0].contains(told), "{}", failures[0]);
    }
}

#[test]
fn recording_a_transcript_again_changes_nothing_but_replies() {
    let backend = Backend::start(Kind::Memory);
    let wrong = SAMPLE
        .replacen("+OK", "+ko", 1)
        .replacen("+something", ":1", 1);
    let recorded = Transcript::parse("sample", &wrong)
        .unwrap()
        .record(&backend);
    // What is right is kept as it was written: of PING only the type counts there.
    assert_eq!(recorded, SAMPLE.replacen("+something", "+PONG", 1));
    let again = Transcript::parse("sample", SAMPLE).unwrap();
    assert_eq!(again.record(&backend), SAMPLE);
}

#[test]
fn a_line_that_means_nothing_is_refused_with_its_number() {
    for (text, at) in [
        ("> PING\n+PONG\n\nPONG\n", "t:4"),
        ("> PING\n~ some\n+PONG\n", "t:1"),
        ("> GET k\n$3\nab\n", "t:1"),
        ("! resp4\n", "t:1"),
    ] {
        let error = Transcript::parse("t", text).unwrap_err();
        assert!(error.starts_with(at), "{error}");
    }
}
