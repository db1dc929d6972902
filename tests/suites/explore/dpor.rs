//! Source sets: the numbers of classes that are known, bugs found in the second schedule, and memory that does not grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fakeserver::explore::{
    Budget, Coverage, Decision, Exhaustive, Exploration, Explorer, Point, Ran, Reduction, Strategy,
    Workload,
};

use crate::counter::{Counter, Noise, Way};
use crate::races::{Commits, Role, Timers};

fn explore(workload: &impl Workload, strategy: Exhaustive) -> Exploration {
    Explorer::new()
        .explore(workload, Box::new(strategy), Budget::schedules(100_000))
        .unwrap()
}

/// Complete schedules, and those that were given up.
fn count(workload: &impl Workload, strategy: Exhaustive) -> (u64, u64) {
    let exploration = explore(workload, strategy);
    assert_eq!(exploration.coverage, Coverage::Exhaustive);
    if let Some(found) = exploration.counterexample {
        panic!("{}\n{found}", workload.description());
    }
    (exploration.schedules, exploration.pruned)
}

#[test]
fn each_class_is_seen_once_and_none_is_given_up() {
    for (clients, way, classes) in [
        (2, Way::GetSet, 4),
        (3, Way::GetSet, 36),
        (2, Way::Optimistic, 6),
        (3, Way::Optimistic, 804),
        (2, Way::Disjoint, 1),
        (3, Way::Disjoint, 1),
    ] {
        let counter = Counter::new(clients, way).unchecked();
        let counted = count(&counter, Exhaustive::source_dpor());
        assert_eq!(counted, (classes, 0), "{counter:?}");
    }
    let [delete, reschedule] = [Role::Delete, Role::Reschedule];
    for (roles, classes) in [
        (&[delete, reschedule][..], 3),
        (&[delete, reschedule, delete], 15),
    ] {
        let timers = Timers::of(roles).unchecked();
        let counted = count(&timers, Exhaustive::source_dpor());
        assert_eq!(counted, (classes, 0), "{timers:?}");
    }
}

#[test]
fn two_full_commits_have_12_classes_at_whole_keys() {
    for strategy in [Exhaustive::source_dpor(), Exhaustive::sleep_sets()] {
        assert_eq!(count(&Commits { clients: 2 }, strategy), (12, 0));
    }
}

#[test]
fn three_full_commits_have_6264_classes_at_whole_keys() {
    let counted = count(&Commits { clients: 3 }, Exhaustive::source_dpor());
    assert_eq!(counted, (6_264, 0));
}

#[test]
fn two_full_commits_have_as_many_orders_as_there_are_ways_to_mix_two_times_eight_commands() {
    let plain = count(&Commits { clients: 2 }, Exhaustive::new(Reduction::None));
    assert_eq!(plain, (12_870, 0));
}

#[test]
fn a_race_behind_any_number_of_commands_is_found_in_the_second_schedule_of_three() {
    for timers in [Timers::needle(50), Timers::deep(50)] {
        let exploration = explore(&timers, Exhaustive::source_dpor());
        let found = exploration.counterexample.unwrap();
        assert_eq!(
            (exploration.schedules, found.preemptions),
            (2, 1),
            "{found}"
        );
        let counted = count(&timers.unchecked(), Exhaustive::source_dpor());
        assert_eq!(counted, (3, 0));
    }
}

#[test]
fn time_orders_what_it_led_to_behind_all_that_could_run() {
    // Both clients wait between GET and SET. Both GETs commute, both SETs do not.
    let counter = Counter::new(2, Way::GetSet)
        .with(Noise::TimeOut)
        .unchecked();
    assert_eq!(count(&counter, Exhaustive::source_dpor()), (2, 0));
}

#[test]
fn a_bound_on_preemptions_leaves_local_first_of_it() {
    let counter = Counter::new(2, Way::Optimistic);
    let bounded = Exhaustive::source_dpor().preemptions_at_most(100);
    assert_eq!(count(&counter, bounded), (20, 0));
}

/// A strategy whose memory is looked at after each schedule.
struct Watched {
    strategy: Exhaustive,
    entries_max: Arc<AtomicUsize>,
    steps_max: Arc<AtomicUsize>,
}

impl Strategy for Watched {
    fn begin(&mut self) -> bool {
        self.strategy.begin()
    }

    fn choose(&mut self, point: &Point<'_>) -> Decision {
        self.strategy.choose(point)
    }

    fn end(&mut self, steps: &[Ran]) {
        self.strategy.end(steps);
        self.steps_max.fetch_max(steps.len(), Ordering::Relaxed);
        self.entries_max
            .fetch_max(self.strategy.entries_held(), Ordering::Relaxed);
    }

    fn coverage(&self) -> Coverage {
        self.strategy.coverage()
    }
}

#[test]
fn memory_grows_with_the_length_of_a_schedule_and_not_with_their_number() {
    let clients = 3;
    let mut most = Vec::new();
    for schedules in [40, 800] {
        let [entries_max, steps_max] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let watched = Watched {
            strategy: Exhaustive::source_dpor(),
            entries_max: Arc::clone(&entries_max),
            steps_max: Arc::clone(&steps_max),
        };
        let counter = Counter::new(clients, Way::Optimistic);
        let exploration = Explorer::new()
            .explore(&counter, Box::new(watched), Budget::schedules(schedules))
            .unwrap();
        assert_eq!(exploration.schedules, schedules);
        let [entries, steps] = [entries_max, steps_max].map(|max| max.load(Ordering::Relaxed));
        // Per step a clock, and per lane an alternative, sleeping or not.
        assert!(
            entries <= steps * (1 + clients),
            "{entries} for {steps} steps"
        );
        most.push(entries);
    }
    assert!(most[1] <= most[0] * 3 / 2, "{most:?}");
}
