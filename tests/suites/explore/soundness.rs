//! A reduction may leave out schedules, never an outcome: random programs end in the same set of final states and replies with
//! and without it. Whatever is wrong with a footprint, or with a reduction, shows in that.

use std::num::NonZero;

use fakeserver::explore::{Reduction, Workload};
use fakeserver::mutant::Mutant;

use crate::programs::Program;

const SEED: u64 = 7;

/// Programs of each test unless the environment asks for another number: the full proof takes 1,000.
const PROGRAMS: usize = 60;

fn programs() -> impl Iterator<Item = Program> {
    let count = std::env::var("SOUNDNESS_PROGRAMS").ok();
    let count = count.and_then(|count| count.parse().ok());
    let count = count.map_or(PROGRAMS, NonZero::<usize>::get);
    Program::small_ones(SEED).take(count)
}

#[test]
#[allow(clippy::print_stdout, reason = "the figures of the proof")]
fn reductions_lose_no_outcome_of_random_programs() {
    let reductions = [
        Reduction::LocalFirst,
        Reduction::SleepSets,
        Reduction::SourceDpor,
    ];
    let (mut outcomes, mut plain, mut reduced) = (0, 0, [0; 3]);
    for program in programs() {
        let (all, schedules) = program.outcomes(Reduction::None);
        outcomes += all.len();
        plain += schedules;
        for (reduction, sum) in reductions.into_iter().zip(&mut reduced) {
            let (some, schedules) = program.outcomes(reduction);
            assert_eq!(some, all, "{reduction:?} {}", program.description());
            *sum += schedules;
        }
    }
    println!("{outcomes} outcomes of {plain} schedules; reduced: {reduced:?}");
    let [_, sleep_sets, source_dpor] = reduced;
    assert!(
        sleep_sets < plain && source_dpor <= sleep_sets,
        "{reduced:?} of {plain}"
    );
}

#[test]
fn reductions_that_keep_real_time_lose_no_order_of_calls_and_returns() {
    let (mut plain, mut reduced) = (0, 0);
    for program in programs() {
        let (all, schedules) = program.outcomes_in_real_time(Reduction::None);
        plain += schedules;
        for reduction in BOTH {
            let (some, schedules) = program.outcomes_in_real_time(reduction);
            assert_eq!(some, all, "{reduction:?} {}", program.description());
            reduced += schedules;
        }
    }
    assert!(reduced < 2 * plain, "{reduced} of {plain}, twice");
}

/// What is wrong, with the reductions that must lose outcomes by it.
const WRONG: [(Mutant, &[Reduction]); 6] = [
    (Mutant::WatchTouchesNothing, &BOTH),
    (Mutant::ExecIgnoresWatched, &BOTH),
    (Mutant::GetTouchesNothing, &BOTH),
    (Mutant::IncrReadsOnly, &BOTH),
    (Mutant::NeverWoken, &BOTH),
    // Only source sets ask what led to a step.
    (Mutant::CausesIgnored, &[Reduction::SourceDpor]),
];

const BOTH: [Reduction; 2] = [Reduction::SleepSets, Reduction::SourceDpor];

#[test]
fn a_wrong_footprint_and_a_wrong_reduction_are_noticed() {
    let mut open: Vec<(Mutant, Reduction)> = Vec::new();
    for (mutant, reductions) in WRONG {
        open.extend(reductions.iter().map(|reduction| (mutant, *reduction)));
    }
    for program in programs() {
        let (all, _) = program.outcomes(Reduction::None);
        open.retain(|&(mutant, reduction)| {
            let (some, _) = mutant.during(|| program.outcomes(reduction));
            some == all
        });
        if open.is_empty() {
            return;
        }
    }
    panic!("not noticed: {open:?}");
}
