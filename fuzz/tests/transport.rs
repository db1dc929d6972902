//! Workers on one queue: under every order of their commands, and with a connection that breaks, a lease is a fence and
//! nothing is stranded; transports that do in several commands what ours does in one are caught.

use fakeserver::explore::{Budget, Coverage, Exhaustive, Exploration, Explorer, Faults, Reduction};
use fuzz::control::TransportFlaw;
use fuzz::scenario::{Bout, Duel};

fn explore(duel: &Duel, faults: Faults) -> Exploration {
    // Claims use queues and locks that they cannot declare, so that no order may be left out.
    let every = Box::new(Exhaustive::new(Reduction::None));
    let budget = Budget::schedules(200_000);
    Explorer::new()
        .faults(faults)
        .explore(duel, every, budget)
        .expect("the duel can be explored")
}

// C27
#[test]
fn a_lease_is_a_fence_under_every_order_of_commands() {
    for bout in Bout::ALL {
        for workers in [2, 3] {
            for faults in [
                Faults::none(),
                Faults::at_most(1).drop_before().lose_reply(),
            ] {
                let explored = explore(&Duel::new(bout, workers), faults);
                if let Some(found) = explored.counterexample {
                    panic!("{bout:?}, {workers} workers\n{found}");
                }
                assert_eq!(explored.coverage, Coverage::Exhaustive, "{bout:?}");
                assert!(explored.schedules > 1, "{bout:?}");
            }
        }
    }
}

// C27
#[test]
fn a_transport_of_several_commands_is_caught() {
    for (flaw, property) in [
        (TransportFlaw::NackInFour, "fenced"),
        (TransportFlaw::AckUnfenced, "fenced"),
        (TransportFlaw::DrainUnguarded, "stranded"),
        (TransportFlaw::ClaimInTwo, "exclusive"),
    ] {
        let explored = explore(&Duel::control(flaw), Faults::none());
        let found = explored.counterexample;
        let found = found.unwrap_or_else(|| panic!("{flaw:?} escaped"));
        assert_eq!(found.violation.property, property, "{found}");
        assert!(found.preemptions <= 2, "{found}");
    }
    assert_eq!(TransportFlaw::ALL.len(), 4);
}
