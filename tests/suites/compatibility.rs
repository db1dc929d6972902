//! x
#![allow(clippy::unwrap_used, reason = "x")]
use std::path::Path;
use tests::compatibility::*;
use tests::server::{Backend, Kind};
use tests::transcript::Transcript;

fn transcripts() -> Vec<Transcript> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Transcript::parse(&name, &std::fs::read_to_string(path).unwrap()).unwrap()
    }).collect()
}

#[test]
fn survey() {
    let backend = Backend::start(Kind::Memory);
    let mut raw = backend.raw();
    raw.call(&["HELLO", "3"]);
    let survey = Survey::new(Described::of_server(&mut raw), &transcripts());
    let failures = survey.failures(&[], |_, _| false);
    for f in &failures { println!("{f}"); }
    println!("{}", failures.len());
}
