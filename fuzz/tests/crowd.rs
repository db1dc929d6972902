//! Relays, sweepers, a purge and workers in each other's way: nothing is lost, nothing comes twice; relays and sweepers of
//! several commands are caught.

use fakeserver::explore::{
    Budget, Coverage, Exhaustive, Exploration, Explorer, Faults, RandomWalk, Reduction, Strategy,
};
use fuzz::control::CrowdFlaw;
use fuzz::scenario::{Crowd, Jam};

fn explore(crowd: &Crowd, strategy: Box<dyn Strategy>, faults: Faults, runs: u64) -> Exploration {
    let explored = Explorer::new()
        .faults(faults)
        .explore(crowd, strategy, Budget::schedules(runs));
    explored.expect("the crowd can be explored")
}

fn every() -> Box<dyn Strategy> {
    // Scripts take queues by names that they are given, so that no order may be left out.
    Box::new(Exhaustive::new(Reduction::None))
}

fn breaking() -> Faults {
    Faults::at_most(1).drop_before().lose_reply()
}

fn holds(crowd: &Crowd, explored: Exploration) {
    if let Some(found) = explored.counterexample {
        panic!("{crowd:?}\n{found}");
    }
}

// C1, C10
#[test]
fn those_who_relay_or_sweep_the_same_do_it_once() {
    for jam in [Jam::Relays, Jam::Sweepers] {
        let crowd = Crowd::new(jam, 2);
        let explored = explore(&crowd, every(), Faults::none(), 200_000);
        assert_eq!(explored.coverage, Coverage::Exhaustive, "{crowd:?}");
        assert!(explored.schedules > 10, "{crowd:?}: {}", explored.schedules);
        holds(&crowd, explored);
        for (clients, faults) in [(2, breaking()), (3, Faults::none()), (3, breaking())] {
            let crowd = Crowd::new(jam, clients);
            let walk = Box::new(RandomWalk::new(7));
            holds(&crowd, explore(&crowd, walk, faults, 500));
        }
    }
}

// C26
#[test]
fn a_purge_against_an_emit_leaves_the_event_in_one_place_at_most() {
    for (seed, faults) in [(1, Faults::none()), (2, breaking())] {
        let crowd = Crowd::new(Jam::Purge, 3);
        let walk = Box::new(RandomWalk::new(seed));
        holds(&crowd, explore(&crowd, walk, faults, 1_000));
    }
}

// C8
#[test]
fn workers_whose_leases_end_at_any_time_lose_nothing_and_do_nothing_twice() {
    for (clients, seed, faults) in [
        (1, 1, breaking()),
        (2, 2, Faults::none()),
        (2, 3, breaking()),
        (3, 4, breaking()),
    ] {
        let crowd = Crowd::new(Jam::Workers, clients);
        let walk = Box::new(RandomWalk::new(seed));
        holds(&crowd, explore(&crowd, walk, faults, 500));
    }
}

// C1, C10
#[test]
fn relays_and_sweepers_of_several_commands_are_caught() {
    for (flaw, property) in [
        (CrowdFlaw::PublishThenAck, "once"),
        (CrowdFlaw::FireInTwo, "kept"),
    ] {
        let crowd = Crowd::control(flaw);
        let found = explore(&crowd, every(), Faults::none(), 200_000).counterexample;
        let found = found.unwrap_or_else(|| panic!("{flaw:?} escaped"));
        assert_eq!(found.violation.property, property, "{found}");
        assert!(found.preemptions <= 2, "{found}");
    }
    assert_eq!(CrowdFlaw::ALL.len(), 2);
}
