//! Counterexamples: shrunk, drawn, and the same when replayed.

use fakeserver::explore::{
    Budget, Bytes, Exhaustive, ExploreError, Explorer, RandomWalk, Reduction, Replayed, Schedule,
    Strategy,
};

use crate::counter::{Counter, Way};

#[test]
fn a_lost_update_is_drawn_as_two_columns() {
    let exploration = Explorer::new()
        .explore(
            &Counter::new(2, Way::GetSet),
            Box::new(Exhaustive::new(Reduction::None)),
            Budget::schedules(6),
        )
        .unwrap();
    let found = exploration.counterexample.unwrap();
    let expected = "\
violated: lost update: added 2 times, counted 1
schedule: v1:HASH:abba (4 commands, 1 preemptions, 0 faults)
step  conn a           conn b
   0  * GET n -> nil   |
   1  |                * GET n -> nil
   2  |                * SET n 1 -> OK
   3  * SET n 1 -> OK  |";
    let hash = found.schedule.workload().to_string();
    assert_eq!(found.to_string(), expected.replace("HASH", &hash));
}

#[test]
fn whatever_finds_it_the_counterexample_shrinks_to_one_preemption_and_replays() {
    let strategies: [Box<dyn Strategy>; 3] = [
        Box::new(Exhaustive::new(Reduction::SleepSets)),
        Box::new(RandomWalk::new(7)),
        Box::new(Bytes::new([0, 1, 0, 2, 0, 1, 0, 2, 0, 1])),
    ];
    let counter = Counter::new(3, Way::GetSet);
    for strategy in strategies {
        let exploration = Explorer::new()
            .explore(&counter, strategy, Budget::schedules(100))
            .unwrap();
        let found = exploration.counterexample.unwrap();
        assert_eq!(found.preemptions, 1, "{found}");
        let schedule: Schedule = found.schedule.to_string().parse().unwrap();
        let Replayed::Breaks(again) = Explorer::new().replay(&counter, &schedule).unwrap() else {
            panic!("replayed without a violation");
        };
        assert_eq!(again.to_string(), found.to_string());
    }
}

#[test]
fn a_schedule_of_another_workload_is_refused() {
    let schedule: Schedule = "v1:00000000:ab".parse().unwrap();
    let error = Explorer::new()
        .replay(&Counter::new(2, Way::GetSet), &schedule)
        .unwrap_err();
    assert!(
        matches!(error, ExploreError::WrongWorkload { .. }),
        "{error}"
    );
}

#[test]
fn a_schedule_that_is_not_possible_is_refused() {
    let counter = Counter::new(2, Way::GetSet);
    let right = Explorer::new()
        .explore(
            &counter,
            Box::new(Exhaustive::new(Reduction::None)),
            Budget::schedules(6),
        )
        .unwrap()
        .counterexample
        .unwrap()
        .schedule;
    let wrong: Schedule = format!("v1:{}:aaa", right.workload()).parse().unwrap();
    let error = Explorer::new().replay(&counter, &wrong).unwrap_err();
    assert!(matches!(error, ExploreError::Diverged(_)), "{error}");
}
