//! Random programs get the same replies from the fake and from the real server, byte for byte; and a fault would be noticed.
//!
//! Without `REDIS_URL` the reference is the fake itself over TCP, with another seed: what depends on a hash table's order or on
//! the driver still shows. `DIFFERENTIAL_PROGRAMS` and `DIFFERENTIAL_SEED` choose how many programs and which.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on ends there, and tells what it has covered"
)]

use std::cell::RefCell;
use std::io::Write as _;
use std::path::Path;

use fakeserver::Server;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tests::differential::{Coverage, Side, compare};
use tests::mutants::MUTANTS;
use tests::program::{Program, programs, rows_left_out, rows_without_grammar, sweep, targets};
use tests::server::{Backend, Kind, real_url};
use tests::transcript::Transcript;

/// Programs on a developer's machine, and on continuous integration.
const PROGRAMS: u32 = 300;
const PROGRAMS_CI: u32 = 2000;

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

fn runner(cases: u32, seed: u64) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 3000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// The server whose answers are right.
struct Reference {
    real: Option<Backend>,
}

impl Reference {
    fn new() -> Reference {
        Reference {
            real: real_url().map(|_| Backend::start(Kind::Real)),
        }
    }

    /// Runs `with` on the reference, empty and with its first settings.
    fn fresh<T>(&self, with: impl FnOnce(&Backend) -> T) -> T {
        let Some(real) = &self.real else {
            return with(&Backend::start(Kind::Tcp));
        };
        real.empty();
        let mut control = real.raw();
        for (name, value) in Program::settings() {
            control.call(&["CONFIG", "SET", name, value]);
        }
        with(real)
    }

    fn compare(&self, program: &Program, coverage: &mut Coverage) -> Result<(), String> {
        // Another seed than the default, so that the reference's hash tables are in another order if it is a fake too.
        let subject = Backend::from_fake(Server::builder().seed(0x5eed).build());
        self.fresh(|reference| {
            compare(
                program,
                &mut Side::new(reference),
                &mut Side::new(&subject),
                coverage,
            )
            .map_err(|difference| difference.to_string())
        })
    }
}

#[test]
fn random_programs_get_the_same_replies() {
    let reference = Reference::new();
    let coverage = RefCell::new(Coverage::default());
    let run = |program: &Program| reference.compare(program, &mut coverage.borrow_mut());
    let mut failures = Vec::new();
    for program in sweep(seed()) {
        if run(&program).is_err() && failures.len() < FAILURES_MAX {
            let program = program.shrink(|shorter| run(shorter).is_err());
            failures.extend(run(&program).err().map(|why| (why, program)));
        }
    }
    let outcome = runner(programs_count(), seed()).run(&programs(), |program| {
        run(&program).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Abort(why)) => panic!("the programs ended early: {why}"),
        Err(TestError::Fail(panic, program)) => {
            let program = program.shrink(|shorter| run(shorter).is_err());
            let why = run(&program).err().unwrap_or_else(|| panic.to_string());
            failures.push((why, program));
        }
    }
    tell(&coverage.borrow());
    for (at, (_, program)) in failures.iter().enumerate() {
        reference.fresh(|backend| keep(at, program, backend));
    }
    let texts: Vec<&str> = failures.iter().map(|(why, _)| why.as_str()).collect();
    assert!(
        failures.is_empty(),
        "{} differences:\n{}",
        failures.len(),
        texts.join("\n\n")
    );
    let coverage = coverage.into_inner();
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
        "differential: {} commands against {}, {} % succeed, {} rows and options, {} rows left out",
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

/// Programs after which a mutant counts as not caught.
const MUTANT_PROGRAMS: u32 = 1500;

#[test]
fn every_mutant_of_the_engine_is_caught() {
    assert!(MUTANTS.len() >= 20);
    let mut missed = Vec::new();
    let swept = sweep(seed());
    for mutant in MUTANTS {
        let caught = |program: &Program| {
            let (right, faulty) = (Backend::start(Kind::Memory), Backend::start(Kind::Memory));
            let mut coverage = Coverage::default();
            let outcome = compare(
                program,
                &mut Side::new(&right),
                &mut Side::mutated(&faulty, mutant),
                &mut coverage,
            );
            outcome.is_err()
        };
        if swept.iter().any(caught) {
            println!("swept: {}", mutant.name);
            continue;
        }
        let mut random = runner(MUTANT_PROGRAMS, seed());
        let mut programs = (0..MUTANT_PROGRAMS).map(|_| programs().new_tree(&mut random).unwrap());
        match programs.position(|program| caught(&program.current())) {
            Some(at) => println!("program {at}: {}", mutant.name),
            None => missed.push(mutant.name),
        }
    }
    assert!(missed.is_empty(), "not caught: {}", missed.join("; "));
}
