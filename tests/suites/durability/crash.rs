//! A real server that writes each commit to its disk before it answers, killed in the middle of many commits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use store::{CommitPath, Execution, Resolution, StoreError};
use tests::local::LocalServer;

use crate::ledger::{self, Ledger, audit};
use crate::twin::Side;

const PREFIX: &str = "stm";

/// Who writes, each to an execution of its own.
const WRITERS: [(&str, Side, CommitPath); 4] = [
    ("a", Side::Sync, CommitPath::Script),
    ("b", Side::Sync, CommitPath::Watch),
    ("c", Side::Async, CommitPath::Script),
    ("d", Side::Async, CommitPath::Watch),
];

/// All of the writers' commits together.
const COMMITS: usize = 10_000;

/// The server is killed when so many have been acknowledged.
const KILLS: [usize; 4] = [1_500, 4_000, 6_001, 9_000];

/// How long a life of the server may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// What one writer knows.
#[derive(Debug, Default)]
struct Told {
    /// The last version that was acknowledged.
    acknowledged: i64,
    /// Positions of acknowledged events.
    outbox: BTreeMap<i64, String>,
    /// How its last commit ended, if that was not well.
    error: Option<(Execution, StoreError)>,
}

/// Commits until all are done or one fails.
fn write(url: &str, writer: (&str, Side, CommitPath), told: &mut Told, acknowledged: &AtomicUsize) {
    let (id, side, path) = writer;
    let settings = ledger::settings(PREFIX).commit_path(path);
    let mut store = side.store(url, &settings);
    let mut execution = match store.load(id) {
        Ok(loaded) => loaded.unwrap_or_else(|| Execution::new(id, "d")),
        // It was killed before the first commit of this life.
        Err(_) => return,
    };
    while told.acknowledged < (COMMITS / WRITERS.len()) as i64 {
        let commit = ledger::next(&mut execution);
        match store.commit(&mut execution, &commit) {
            Ok(committed) => {
                told.acknowledged += 1;
                assert_eq!(committed.version.get(), told.acknowledged);
                let ids = commit.emits.iter().map(|emit| emit.event.id.clone());
                let seqs = committed.outbox.iter().map(|seq| seq.get());
                told.outbox.extend(seqs.zip(ids));
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                told.error = Some((execution, error));
                return;
            }
        }
    }
}

/// Whether what the writer was told is true.
fn compare(url: &str, writer: (&str, Side, CommitPath), told: &mut Told, found: &Ledger) {
    let (id, side, path) = writer;
    let version = found.versions[id];
    for (seq, event) in &told.outbox {
        assert_eq!(found.outbox.get(seq), Some(event), "{id}: position {seq}");
    }
    let Some((mut execution, error)) = told.error.take() else {
        assert_eq!(version, told.acknowledged, "{id}");
        return;
    };
    assert_eq!(execution.version.get(), told.acknowledged, "{id}: {error}");
    let StoreError::Indeterminate { attempt, .. } = error else {
        assert!(matches!(error, StoreError::Io { .. }), "{id}: {error}");
        assert_eq!(version, told.acknowledged, "{id}: {error}");
        return;
    };
    let settings = ledger::settings(PREFIX).commit_path(path);
    let mut store = side.store(url, &settings);
    let resolution = store.resolve(&mut execution, &attempt.unwrap()).unwrap();
    let has_landed = match resolution {
        Resolution::Landed(_) => true,
        Resolution::NotLanded { is_final, .. } => {
            assert!(!is_final, "{id}");
            false
        }
        other => panic!("{id}: {other:?}"),
    };
    assert_eq!(version, told.acknowledged + i64::from(has_landed), "{id}");
    assert_eq!(execution.version.get(), version, "{id}");
    told.acknowledged = version;
}

#[test]
fn a_killed_server_has_every_acknowledged_commit_and_no_half_of_another() {
    let settings = [
        ["--save", ""],
        ["--appendonly", "yes"],
        ["--appendfsync", "always"],
        // Small enough that the log is written anew in between.
        ["--auto-aof-rewrite-min-size", "1mb"],
    ];
    let Some(mut server) = LocalServer::start(settings.as_flattened()) else {
        return;
    };
    let url = server.url();
    let acknowledged = AtomicUsize::new(0);
    let mut told: [Told; WRITERS.len()] = Default::default();
    let (mut landed_unseen, mut lost) = (0, 0);
    for mark in KILLS.into_iter().chain([COMMITS]) {
        thread::scope(|scope| {
            for (writer, told) in WRITERS.into_iter().zip(&mut told) {
                let (url, acknowledged) = (&url, &acknowledged);
                scope.spawn(move || write(url, writer, told, acknowledged));
            }
            let until = Instant::now() + PATIENCE;
            while mark < COMMITS && acknowledged.load(Ordering::Relaxed) < mark {
                assert!(Instant::now() < until, "the commits take too long");
                thread::sleep(Duration::from_micros(200));
            }
            if mark < COMMITS {
                server.kill();
            }
        });
        if mark < COMMITS {
            server.restart();
        }
        let found = audit(&url, PREFIX, &WRITERS.map(|writer| writer.0));
        for (writer, told) in WRITERS.into_iter().zip(&mut told) {
            let (before, was_told) = (told.acknowledged, told.error.is_some());
            compare(&url, writer, told, &found);
            // Those that landed count: they are not committed again.
            let landed = told.acknowledged - before;
            landed_unseen += landed;
            lost += i64::from(was_told) - landed;
            acknowledged.fetch_add(landed as usize, Ordering::Relaxed);
        }
    }
    assert_eq!(acknowledged.into_inner(), COMMITS);
    eprintln!("without an answer: {landed_unseen} commits that landed, {lost} that did not");
}
