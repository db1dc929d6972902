//! How often samples hit what is hard to hit, beside what theory says: fixed seeds, so that the counts are fixed.

use std::ops::Range;

use fakeserver::explore::{Budget, Explorer, Pct, Pos, RandomWalk, Strategy};

use crate::races::Timers;

const SCHEDULES: u64 = 600;

/// In how many of the schedules the timer is lost.
fn hits(timers: Timers, strategy: Box<dyn Strategy>) -> u64 {
    let timers = timers.unchecked();
    let exploration = Explorer::new()
        .explore(&timers, strategy, Budget::schedules(SCHEDULES))
        .unwrap();
    assert_eq!(exploration.schedules, SCHEDULES);
    timers.lost()
}

/// Three standard deviations around the number to be expected.
fn around(probability: f64) -> Range<u64> {
    let expected = probability * SCHEDULES as f64;
    let deviation = 3.0 * (expected * (1.0 - probability)).sqrt();
    let from = (expected - deviation).max(0.0);
    from as u64..(expected + deviation).ceil() as u64 + 1
}

fn check(name: &str, hits: u64, probability: f64) {
    let expected = around(probability);
    assert!(expected.contains(&hits), "{name}: {hits}, not {expected:?}");
}

/// Commands of a client before the race.
const PRIVATE: usize = 10;

#[test]
fn a_needle_is_hit_as_often_as_theory_says() {
    let needle = || Timers::needle(PRIVATE);
    let steps = (PRIVATE + 3) as f64;
    check(
        "walk",
        hits(needle(), Box::new(RandomWalk::new(1))),
        0.5_f64.powf(steps - 1.0),
    );
    assert_eq!(hits(needle(), Box::new(Pct::depth(1))), 0);
    // The deleting client comes first, and falls behind at the one right step.
    check("pct", hits(needle(), Box::new(Pct::depth(2))), 0.5 / steps);
    // The other client's command is drawn lower than all before the race, and then higher than one.
    check(
        "pos",
        hits(needle(), Box::new(Pos::new(1))),
        0.5 / (steps - 1.0),
    );
}

#[test]
fn a_race_at_the_end_of_three_clients_is_hit_as_often_as_theory_says() {
    let deep = || Timers::deep(PRIVATE);
    let steps = (3 * PRIVATE + 3) as f64;
    // The walk's number is that of its Markov chain, worked out by dynamic programming.
    check("walk", hits(deep(), Box::new(RandomWalk::new(1))), 0.0841);
    assert_eq!(hits(deep(), Box::new(Pct::depth(1))), 0);
    check("pct", hits(deep(), Box::new(Pct::depth(2))), 0.5 / steps);
    // By simulation of the sampling alone.
    check("pos", hits(deep(), Box::new(Pos::new(1))), 0.033);
}

#[test]
fn depths_take_turns() {
    let timers = || Timers::deep(2);
    let [one, other] = [(); 2].map(|()| hits(timers(), Box::new(Pct::depths(1..=3).seed(5))));
    assert_eq!(one, other);
    assert!(one > 0);
    let third = hits(timers(), Box::new(Pct::depths(1..=3).seed(6)));
    assert_ne!(one, third);
}
