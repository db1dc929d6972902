//! Numbers of interleavings that can be worked out by hand.

use fakeserver::explore::{
    Budget, Coverage, Exhaustive, Exploration, ExploreError, Explorer, RandomWalk, Reduction,
};

use crate::counter::{Counter, Noise, Way};

fn explore(counter: Counter, reduction: Reduction) -> Result<Exploration, ExploreError> {
    let strategy = Box::new(Exhaustive::new(reduction));
    Explorer::new().explore(&counter, strategy, Budget::schedules(100_000))
}

/// All schedules, though some lose an update: the check is left out.
fn count(counter: Counter, reduction: Reduction) -> u64 {
    let exploration = explore(counter, reduction).unwrap();
    assert_eq!(exploration.coverage, Coverage::Exhaustive);
    if let Some(found) = exploration.counterexample {
        panic!("{counter:?}\n{found}");
    }
    exploration.schedules
}

#[test]
fn two_optimistic_clients_of_five_commands_have_252_interleavings() {
    assert_eq!(
        count(Counter::new(2, Way::Optimistic), Reduction::None),
        252
    );
    assert_eq!(count(Counter::new(2, Way::Disjoint), Reduction::None), 252);
}

#[test]
fn work_between_the_commands_does_not_hide_an_interleaving() {
    for noise in [
        Noise::Yields(1),
        Noise::Yields(3),
        Noise::Yields(100),
        Noise::Tasks(200),
        Noise::BackOff,
    ] {
        let counter = Counter::new(2, Way::Optimistic).with(noise);
        assert_eq!(count(counter, Reduction::None), 252, "{noise:?}");
    }
}

#[test]
fn reductions_keep_one_schedule_of_each_class() {
    let optimistic = Counter::new(2, Way::Optimistic);
    assert_eq!(count(optimistic, Reduction::LocalFirst), 20);
    assert_eq!(count(optimistic, Reduction::SleepSets), 6);
    let disjoint = Counter::new(2, Way::Disjoint);
    assert_eq!(count(disjoint, Reduction::LocalFirst), 20);
    assert_eq!(count(disjoint, Reduction::SleepSets), 1);
    let three = Counter::new(3, Way::Disjoint);
    assert_eq!(count(three, Reduction::LocalFirst), 1_680);
    assert_eq!(count(three, Reduction::SleepSets), 1);
    let three = Counter::new(3, Way::Optimistic);
    assert_eq!(count(three, Reduction::SleepSets), 804);
}

#[test]
fn unprotected_increments_of_two_and_three_clients_have_6_and_90_interleavings() {
    let [two, three] = [2, 3].map(|clients| Counter::new(clients, Way::GetSet).unchecked());
    assert_eq!(count(two, Reduction::None), 6);
    assert_eq!(count(three, Reduction::None), 90);
    assert_eq!(count(two, Reduction::SleepSets), 4);
    assert_eq!(count(three, Reduction::SleepSets), 36);
}

#[test]
fn a_bound_on_preemptions_says_so() {
    let counter = Counter::new(2, Way::GetSet).unchecked();
    for (preemptions, schedules) in [(0, 2), (1, 4), (2, 6)] {
        let strategy = Exhaustive::new(Reduction::None).preemptions_at_most(preemptions);
        let exploration = Explorer::new()
            .explore(&counter, Box::new(strategy), Budget::schedules(100))
            .unwrap();
        assert_eq!(exploration.schedules, schedules, "{preemptions}");
        let bounded = exploration.coverage == Coverage::Bounded(preemptions);
        assert_eq!(bounded, preemptions < 2);
    }
}

#[test]
fn a_budget_makes_a_sample_of_it() {
    let counter = Counter::new(3, Way::Optimistic);
    let strategy = Box::new(Exhaustive::new(Reduction::None));
    let exploration = Explorer::new()
        .explore(&counter, strategy, Budget::schedules(50))
        .unwrap();
    assert_eq!(
        (exploration.schedules, exploration.coverage),
        (50, Coverage::Sampled)
    );
    let walk = Box::new(RandomWalk::new(1));
    let exploration = Explorer::new()
        .explore(
            &counter,
            walk,
            Budget::schedules(500).while_true(|so_far| so_far < 40),
        )
        .unwrap();
    assert_eq!(
        (exploration.schedules, exploration.coverage),
        (40, Coverage::Sampled)
    );
}

#[test]
fn work_on_other_threads_is_refused() {
    let counter = Counter::new(2, Way::Optimistic).with(Noise::Blocking);
    let error = explore(counter, Reduction::None).unwrap_err();
    assert!(matches!(error, ExploreError::Escaped(_)), "{error}");
    assert!(error.to_string().contains("counter.rs"), "{error}");
}

#[test]
fn time_passes_only_when_no_command_can_run() {
    // Both clients wait between GET and SET, so that both GETs come before both SETs: two orders each.
    let counter = Counter::new(2, Way::GetSet)
        .with(Noise::TimeOut)
        .unchecked();
    assert_eq!(count(counter, Reduction::None), 4);
}
