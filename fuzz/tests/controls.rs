//! The hunt's own controls: every broken store is caught, by the clause that is meant for it, and every clause is needed.

use fakeserver::explore::{Replayed, Schedule};
use fuzz::control::Flaw;
use fuzz::replay;
use fuzz::runner::{Search, catch};
use fuzz::scenario::Hunt;
use fuzz::spec::{Clause, Clauses};

#[test]
fn every_broken_store_is_caught_and_its_schedule_replays_to_the_byte() {
    for flaw in Flaw::ALL {
        let caught = catch(&Hunt::control(flaw), flaw, Search::default()).unwrap();
        let found = caught.counterexample;
        let found = found.unwrap_or_else(|| panic!("{} escaped", flaw.name()));
        assert_eq!(
            found.violation.property,
            flaw.clause().name(),
            "{}\n{found}",
            flaw.name()
        );
        assert!(
            found.preemptions + found.faults <= 2,
            "{}\n{found}",
            flaw.name()
        );

        let schedule: Schedule = found.schedule.to_string().parse().unwrap();
        let hunt = replay::workload_of(&schedule).unwrap();
        assert_eq!(hunt.flaw, Some(flaw));
        let replayed = replay::replay(&hunt, &schedule).unwrap();
        let Replayed::Breaks(again) = replayed else {
            panic!("{} replays without a violation", flaw.name());
        };
        assert_eq!(again.to_string(), found.to_string());
    }
}

/// A hundred times what it takes to catch any of them: within this they escape.
const WIDE: Search = Search {
    preemptions_max: 1,
    schedules_max: 1_000,
};

#[test]
fn without_any_single_clause_a_broken_store_escapes() {
    for clause in Clause::ALL {
        let mut flaws = Flaw::ALL
            .into_iter()
            .rev()
            .filter(|flaw| flaw.clause() == clause);
        let escapes = flaws.find(|flaw| {
            let hunt = Hunt {
                clauses: Clauses::without(clause),
                ..Hunt::control(*flaw)
            };
            let caught = catch(&hunt, *flaw, WIDE).unwrap();
            if let Some(found) = &caught.counterexample {
                println!("without {}: {}\n{found}", clause.name(), flaw.name());
            }
            caught.counterexample.is_none()
        });
        assert!(
            escapes.is_some(),
            "no broken store needs the clause {}",
            clause.name()
        );
    }
}
