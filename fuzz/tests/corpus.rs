//! The fuzz target's corpus, on a stable compiler.

use std::path::PathBuf;

use fuzz::bytes::{Input, run};

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus/schedule");
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
