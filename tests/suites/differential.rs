//! Random programs get the same replies from the fake and from the real server, byte for byte; and a fault would be noticed.
//!
//! Without `REDIS_URL` the reference is the fake itself over TCP, with another seed: what depends on a hash table's order or on
//! the driver still shows. `DIFFERENTIAL_PROGRAMS` and `DIFFERENTIAL_SEED` choose how many programs and which,
//! `DIFFERENTIAL_MUTANTS` a word of the names of the mutants that are to be caught.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on ends there, and tells what it has covered"
)]

use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fakeserver::config::Permission;
use fakeserver::{Config, Server};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config as Cases, RngAlgorithm, TestRng, TestRunner};
use tests::differential::{Coverage, Remains, Side, compare, exchange};
use tests::mutants::{Mutant, SOUND, mutants};
use tests::program::{Program, programs, rows_left_out, rows_without_grammar, sweep, targets};
use tests::server::{Backend, Kind, real_url};
use tests::transcript::Transcript;

/// Programs on a developer's machine, and on continuous integration.
const PROGRAMS: u32 = 300;
const PROGRAMS_CI: u32 = 10_000;

/// Programs run at the same time: one on the reference, while the other one's replies come from the fake and are compared.
const WORKERS: usize = 2;

/// Commands of a hundred that have to succeed: programs of errors would compare little.
const SUCCESS_RATE_MIN: usize = 60;

/// So many differences are made short and told in full.
const FAILURES_MAX: usize = 12;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn programs_count() -> u32 {
    let on_ci = std::env::var_os("CI").is_some();
    let default = if on_ci { PROGRAMS_CI } else { PROGRAMS };
    number("DIFFERENTIAL_PROGRAMS").map_or(default, |count| count as u32)
}

fn seed() -> u64 {
    number("DIFFERENTIAL_SEED").unwrap_or(1)
}

fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(
        Cases::default(),
        TestRng::from_seed(RngAlgorithm::ChaCha, &bytes),
    )
}

/// The sweep, then so many random programs.
fn all_programs(count: u32) -> impl Iterator<Item = Program> {
    let (strategy, mut runner) = (programs(), runner(seed()));
    let random = (0..count).map(move |_| strategy.new_tree(&mut runner).unwrap().current());
    sweep(seed()).into_iter().chain(random)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fake in memory; `seed` is that of its hash tables.
fn fake(seed: u64) -> Backend {
    Backend::from_fake(Server::builder().config(config()).seed(seed).build())
}

fn config() -> Config {
    Config {
        enable_debug_command: Permission::Yes,
        ..Config::default()
    }
}

/// The server whose answers are right: the real one, or a fake with a socket.
fn reference() -> Backend {
    match real_url() {
        Some(_) => Backend::start(Kind::Real),
        None => Backend::start(Kind::Tcp),
    }
}

/// Runs a program on both servers. The reference is free for the next one while the fake still runs.
fn check(
    program: &Program,
    reference: &Mutex<Side<'_>>,
    coverage: &mut Coverage,
) -> Result<(), String> {
    let (want, want_remains) = {
        let mut reference = lock(reference);
        reference.empty();
        (reference.run(program), Remains::of(&mut reference))
    };
    // Another seed than the default, so that the reference's hash tables are in another order if it is a fake too.
    let subject = fake(0x5eed);
    let mut subject = Side::new(&subject);
    let (got, remains) = (subject.run(program), Remains::of(&mut subject));
    compare(program, &want, &got, coverage).map_err(|difference| difference.to_string())?;
    let differ = |why: String| format!("what is left behind: {why}\nof the program\n{program:?}");
    want_remains.compare(&remains).map_err(differ)?;
    let mut reference = lock(reference);
    reference.empty();
    subject.empty();
    exchange(&[&want_remains, &remains], &mut reference, &mut subject).map_err(differ)
}

#[test]
fn random_programs_get_the_same_replies() {
    let backend = reference();
    let reference = Mutex::new(Side::new(&backend));
    let programs = Mutex::new(all_programs(programs_count()).enumerate());
    let coverage = Mutex::new(Coverage::default());
    let failures = Mutex::new(Vec::new());
    let work = || {
        let mut covered = Coverage::default();
        while lock(&failures).len() < FAILURES_MAX {
            let Some((at, program)) = lock(&programs).next() else {
                break;
            };
            if let Err(why) = check(&program, &reference, &mut covered) {
                lock(&failures).push((at, program, why));
            }
        }
        lock(&coverage).merge(&covered);
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    let coverage = lock(&coverage).clone();
    tell(&coverage);
    let mut failures = std::mem::take(&mut *lock(&failures));
    failures.sort_by_key(|(at, ..)| *at);
    let mut texts = Vec::new();
    for (at, program, first) in failures {
        let why = |program: &Program| check(program, &reference, &mut Coverage::default());
        let short = program.shrink(|shorter| why(shorter).is_err());
        let difference = why(&short).err();
        let difference = difference.unwrap_or_else(|| format!("only once: {first}"));
        keep(at, &short, &backend);
        texts.push(format!("program {at}: {difference}"));
    }
    assert!(
        texts.is_empty(),
        "{} differences, seed {}:\n{}",
        texts.len(),
        seed(),
        texts.join("\n\n")
    );
    let missed: Vec<String> = targets()
        .iter()
        .filter(|target| !coverage.has(target))
        .map(|target| format!("{} {}", target.command, target.option))
        .collect();
    assert!(missed.is_empty(), "never reached: {}", missed.join(", "));
    assert!(
        coverage.success_rate() >= SUCCESS_RATE_MIN,
        "only {} % of the commands succeed",
        coverage.success_rate()
    );
}

/// Says what was covered: in full on standard output, in a line on standard error, where it is always seen.
fn tell(coverage: &Coverage) {
    for line in coverage.table() {
        println!("{line}");
    }
    for (row, reason) in rows_left_out() {
        println!("left out: {row}: {reason}");
    }
    let _ = writeln!(
        std::io::stderr(),
        "differential: {} programs besides the sweep, seed {}, {} commands against {}, {} % succeed, {} rows and options, {} rows left out",
        programs_count(),
        seed(),
        coverage.commands(),
        if real_url().is_some() {
            "redis-server"
        } else {
            "the fake over TCP"
        },
        coverage.success_rate(),
        targets().len(),
        rows_left_out().len(),
    );
}

/// Keeps a program that failed, with the right replies, where it can be made a regression test from.
fn keep(at: usize, program: &Program, reference: &Backend) {
    let text = format!("# difference: redis 7.0.15\n{}", program.to_transcript());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("difference-{at}.resp"));
    let recorded = Transcript::parse("difference", &text).map(|text| text.record(reference));
    if std::fs::write(&path, recorded.unwrap_or(text)).is_ok() {
        let _ = writeln!(
            std::io::stderr(),
            "kept for tests/regressions: {}",
            path.display()
        );
    }
}

#[test]
fn every_row_of_the_table_has_a_grammar_or_a_reason_to_be_left_out() {
    assert_eq!(rows_without_grammar(), Vec::<&str>::new());
}

/// How an engine with a fault differs from one without.
fn caught(program: &Program, mutant: &'static Mutant) -> Result<(), String> {
    let (right, faulty) = (fake(0), fake(0));
    let (mut right, mut faulty) = (Side::new(&right), Side::mutated(&faulty, mutant));
    let (want, got) = (right.run(program), faulty.run(program));
    let (expected, found) = (Remains::of(&mut right), Remains::of(&mut faulty));
    compare(program, &want, &got, &mut Coverage::default()).map_err(|why| why.to_string())?;
    expected.compare(&found)?;
    right.empty();
    faulty.empty();
    exchange(&[&expected, &found], &mut right, &mut faulty)
}

/// Programs after which a mutant counts as not caught; a run on continuous integration has as many and more.
const MUTANT_PROGRAMS: u32 = 4000;

#[test]
fn every_mutant_of_the_engine_is_caught() {
    assert!(mutants().count() >= 50);
    // In any order, since the sweep comes to some commands late.
    let mut programs: Vec<Program> = all_programs(MUTANT_PROGRAMS).collect();
    fastrand::Rng::with_seed(seed()).shuffle(&mut programs);
    let word = std::env::var("DIFFERENTIAL_MUTANTS").unwrap_or_default();
    let mutants = mutants().filter(|mutant| mutant.name.contains(&word));
    let (mutants, missed) = (Mutex::new(mutants), Mutex::new(Vec::new()));
    let work = || {
        while let Some(mutant) = { lock(&mutants).next() } {
            let mut programs = programs.iter();
            match programs.position(|program| caught(program, mutant).is_err()) {
                Some(at) => println!("program {at}: {}", mutant.name),
                None => lock(&missed).push(mutant.name),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    let missed = lock(&missed);
    assert!(missed.is_empty(), "not caught: {}", missed.join("; "));
}

#[test]
fn an_engine_without_a_fault_is_not_caught() {
    for program in all_programs(PROGRAMS) {
        assert_eq!(caught(&program, SOUND), Ok(()));
    }
}
