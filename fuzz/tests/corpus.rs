//! The fuzz targets' corpora, on a stable compiler.

#![allow(
    clippy::unwrap_used,
    reason = "a test's helpers may fail as loudly as its body"
)]

use std::path::PathBuf;
use std::time::Duration;

use fuzz::bytes::{Input, run};
use fuzz::mutate::Mutator;
use fuzz::target::Target;

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    inputs("schedule")
}

fn inputs_of(target: Target) -> Vec<(PathBuf, Vec<u8>)> {
    inputs(target.name())
}

fn inputs(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let files = std::fs::read_dir(folder).unwrap();
    let mut inputs: Vec<_> = files
        .map(|file| {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            (path, bytes)
        })
        .collect();
    inputs.sort();
    inputs
}

#[test]
fn the_store_is_clean_under_the_whole_corpus() {
    for (path, bytes) in corpus() {
        if let Err(found) = run(&bytes) {
            panic!("{}\n{found}", path.display());
        }
    }
}

#[test]
fn the_corpus_holds_every_scenario_with_and_without_faults() {
    let mut seen: Vec<(&str, bool)> = corpus()
        .iter()
        .map(|(_, bytes)| {
            let input = Input::new(bytes);
            (input.hunt.scenario.name(), input.faults > 0)
        })
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(
        seen.len(),
        2 * fuzz::scenario::Scenario::ALL.len(),
        "{seen:?}"
    );
}

#[test]
fn any_bytes_mean_something() {
    for bytes in [&[][..], &[255; 3], &[1, 2], &[7; 600]] {
        run(bytes).unwrap();
    }
}

#[test]
fn the_fake_holds_under_the_corpora_of_all_targets() {
    for target in Target::ALL {
        let inputs = inputs_of(target);
        assert!(inputs.len() >= 8, "{}", target.name());
        for (path, bytes) in inputs {
            if let Err(found) = target.run(&bytes) {
                panic!("{}\n{found}", path.display());
            }
        }
    }
}

#[test]
fn the_fake_holds_under_a_moment_of_changed_inputs() {
    for target in Target::ALL {
        let corpus = inputs_of(target).into_iter().map(|(_, bytes)| bytes);
        let mut mutator = Mutator::new(1, corpus.collect());
        let (runs, found) = mutator.run(target, Duration::from_secs(1));
        assert!(runs > 0, "{}", target.name());
        if let Some(found) = found {
            panic!("{}: {:?}\n{}", target.name(), found.input, found.text);
        }
    }
}

#[test]
fn payloads_are_sealed_as_the_server_seals_them() {
    // A payload of ours with a byte changed is refused, so the checksum is the server's.
    let restored = Target::Payload.run(&fuzz::target::sealed(b"\x00\x05hello"));
    assert_eq!(restored, Ok(()));
    let server = fakeserver::Server::new();
    let mut payload = fuzz::target::sealed(b"\x00\x05hello");
    assert_eq!(
        server.command([b"RESTORE", &b"k"[..], b"0", &payload]),
        fakeserver::Reply::OK
    );
    payload[3] ^= 1;
    assert!(
        server
            .command([b"RESTORE", &b"l"[..], b"0", &payload])
            .is_error()
    );
}
