//! The chain in which a test says what it explores, and the variables with which whoever runs it steers it.

use fakeserver::explore::{
    Client, Coverage, Environment, Exhaustive, ExploreError, Explorer, Faults, Phase, RandomWalk,
    Recipe, Reduction, Report, Scenario,
};
use redis::{AsyncCommands, RedisResult};
use tests::local::LocalServer;

/// GET, then SET.
async fn add(cx: Client<(), ()>) -> RedisResult<()> {
    let mut con = cx.connect().await?;
    let n: Option<i64> = con.get("n").await?;
    con.set("n", n.unwrap_or(0) + 1).await
}

fn counter(clients: usize) -> Scenario<(), ()> {
    let sum = clients as i64;
    Explorer::new()
        .clients(clients, add)
        .at_end("all were counted", move |db| db.get("n") == Some(sum))
}

fn found(report: &Report) -> String {
    report.counterexample.as_ref().unwrap().schedule.to_string()
}

#[test]
fn check_panics_with_the_schedule_its_picture_and_how_to_see_it_again() {
    let panic = std::panic::catch_unwind(|| counter(2).check()).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    let schedule = found(&counter(2).explore().unwrap());
    for part in [
        "violated: all were counted: does not hold",
        "abba (4 commands, 1 preemptions, 0 faults)",
        "   2  |                * SET n 1 -> OK",
        "searched: depth first, source sets: found by schedule 2",
        &format!(
            "again: EXPLORER_SCHEDULE={schedule} cargo test \
             builder::check_panics_with_the_schedule_its_picture_and_how_to_see_it_again"
        ),
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn what_is_found_is_written_as_a_page_where_one_is_wanted() {
    let folder = std::env::temp_dir().join(format!("explorer-pages-{}", std::process::id()));
    let pages = Environment::empty().html(folder.to_str().unwrap());
    let text = counter(2).environment(pages).holds().unwrap_err();
    let (_, path) = text.rsplit_once("page: ").unwrap();
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.contains("all were counted") && page.contains("GET n"));
    assert!(std::path::Path::new(path).starts_with(&folder));
    std::fs::remove_dir_all(&folder).unwrap();
    // What cannot be written does not hide what was found.
    let nowhere = Environment::empty().html("/dev/null/pages");
    let text = counter(2).environment(nowhere).holds().unwrap_err();
    assert!(text.contains("violated: all were counted") && text.contains("page: cannot write"));
}

#[test]
fn a_server_that_cannot_be_asked_does_not_hide_what_was_found() {
    let report = counter(2)
        .confirm_on("redis://127.0.0.1:1")
        .explore()
        .unwrap();
    assert!(report.counterexample.is_some() && matches!(report.confirmed, Some(Err(_))));
    assert!(report.to_string().contains("not tried on a real server: "));
    let shown = report.shown().unwrap();
    let cause = shown.cause.unwrap();
    assert_eq!((cause.key.as_str(), cause.read), ("\"n\"", 0));
}

#[test]
fn what_is_found_is_tried_on_a_real_server_that_was_named() {
    let Some(server) = LocalServer::start(&["--save", ""]) else {
        return;
    };
    let report = counter(2).confirm_on(server.url()).explore().unwrap();
    let confirmed = report.confirmed.as_ref().unwrap().as_ref().unwrap();
    assert!(confirmed.same, "{confirmed:?}");
    assert!(
        report
            .to_string()
            .contains("confirmed: the same on redis-server 7")
    );
}

#[test]
fn a_right_scenario_says_how_much_was_seen() {
    let scenario = || {
        Explorer::new()
            .clients(3, |cx| async move {
                cx.connect()
                    .await
                    .unwrap()
                    .incr::<_, _, ()>("n", 1)
                    .await
                    .unwrap();
            })
            .at_end("all were counted", |db| db.get("n") == Some(3))
            .named("increments")
    };
    let text = scenario().check().to_string();
    assert_eq!(
        text,
        "increments: nothing wrong (depth first, source sets: exhaustive, 6 schedules)"
    );
    let some = scenario()
        .strategy(
            Exhaustive::new(Reduction::None)
                .preemptions_at_most(0)
                .schedules(100),
        )
        .then(Exhaustive::new(Reduction::SleepSets).schedules(4))
        .then(RandomWalk::new(1).schedules(100));
    let text = some.check().to_string();
    assert_eq!(
        text,
        "increments: nothing wrong (depth first, no reduction: exhaustive, 6 schedules)"
    );
    let some = scenario()
        .strategy(Exhaustive::new(Reduction::SleepSets).schedules(4))
        .then(RandomWalk::new(1).schedules(100));
    let text = some.check().to_string();
    assert_eq!(
        text,
        "increments: nothing wrong (depth first, sleep sets: sampled, 4 schedules; random walk: sampled, 100 schedules)"
    );
}

#[test]
fn a_schedule_in_the_environment_is_run_instead_of_a_search() {
    let schedule = found(&counter(2).explore().unwrap());
    let replay = |scenario: Scenario<(), ()>, schedule: &str| {
        scenario
            .environment(Environment::empty().schedule(schedule))
            .explore()
    };
    let report = replay(counter(2), &schedule).unwrap();
    assert_eq!(found(&report), schedule);
    assert_eq!(report.schedules(), 1);
    // One that does no harm.
    let serial = schedule.replace("abba", "aabb");
    assert!(
        replay(counter(2), &serial)
            .unwrap()
            .counterexample
            .is_none()
    );
    // One that is not possible.
    let impossible = schedule.replace("abba", "aaaa");
    let error = replay(counter(2), &impossible).unwrap_err();
    assert!(matches!(error, ExploreError::Diverged(_)), "{error}");
    // Another scenario's: more clients, other faults, another name, another function.
    let others = [
        counter(3),
        counter(2).faults(Faults::at_most(1).drop_before()),
        counter(2).named("counter"),
        Explorer::new().clients(2, |cx| async move { add(cx).await }),
    ];
    for other in others {
        let error = replay(other, &schedule).unwrap_err().to_string();
        assert!(error.starts_with("EXPLORER_SCHEDULE: "), "{error}");
        assert!(error.contains("is another scenario's schedule"), "{error}");
    }
    // None at all.
    for (text, reason) in [
        (
            "abba",
            "a schedule has the form v1:<8 hexadecimal digits>:<choices>, not \"abba\"",
        ),
        (
            "v1:00000000:a?",
            "no choice at position 1 of the schedule, not \"v1:00000000:a?\"",
        ),
    ] {
        let error = replay(counter(2), text).unwrap_err().to_string();
        assert_eq!(error, format!("EXPLORER_SCHEDULE: {reason}"));
    }
}

#[test]
fn seed_and_budget_come_from_the_environment() {
    let right = || {
        Explorer::new()
            .clients(2, |cx| async move {
                cx.connect().await?.incr::<_, _, ()>("n", 1).await
            })
            .strategy(RandomWalk::new(1).schedules(1_000))
    };
    let budget = right().environment(Environment::empty().budget("70"));
    assert_eq!(budget.explore().unwrap().schedules(), 70);
    for (environment, text) in [
        (
            Environment::empty().budget("many"),
            "EXPLORER_BUDGET: \"many\": invalid digit found in string",
        ),
        (
            Environment::empty().seed("-1"),
            "EXPLORER_SEED: \"-1\": invalid digit found in string",
        ),
    ] {
        assert_eq!(
            right()
                .environment(environment)
                .explore()
                .unwrap_err()
                .to_string(),
            text
        );
    }
    let schedules_until_found = |seed: &str| {
        let random = counter(2).strategy(RandomWalk::new(1));
        let report = random
            .environment(Environment::empty().seed(seed))
            .explore();
        report.unwrap().schedules()
    };
    let numbers: Vec<u64> = (0..20)
        .map(|seed| schedules_until_found(&seed.to_string()))
        .collect();
    let again: Vec<u64> = (0..20)
        .map(|seed| schedules_until_found(&seed.to_string()))
        .collect();
    assert_eq!(numbers, again);
    assert!(
        numbers.iter().any(|number| *number != numbers[0]),
        "{numbers:?}"
    );
}

/// A client that only goes wrong if it is overtaken at each of its steps.
fn rare() -> Scenario<(), ()> {
    Explorer::new()
        .clients(2, |cx| async move {
            let mut con = cx.connect().await?;
            for _ in 0..6 {
                con.append::<_, _, ()>("log", cx.index()).await?;
            }
            RedisResult::Ok(())
        })
        .at_end("never in turns", |db| {
            db.get::<String>("log") != Some("10".repeat(6))
        })
}

#[test]
fn what_is_found_does_not_depend_on_the_number_of_threads() {
    let mut late = 0;
    for seed in 0..4 {
        let run = |threads: usize| {
            let random = rare()
                .strategy(RandomWalk::new(0).schedules(50_000))
                .seed(seed);
            let report = random.threads(threads).explore().unwrap();
            (report.schedules(), report.to_string())
        };
        let one = run(1);
        // Beyond the first block of seeds.
        late += usize::from(one.0 > 64);
        for threads in [2, 3] {
            assert_eq!(run(threads), one, "{threads} threads, seed {seed}");
        }
    }
    assert!(late > 0);
    let exhausted = counter(3)
        .strategy(Exhaustive::new(Reduction::None))
        .threads(2);
    assert_eq!(exhausted.explore().unwrap().schedules(), 2);
}

#[test]
fn a_client_may_fail_if_the_test_says_so() {
    let pushy = || {
        Explorer::new()
            .faults(Faults::at_most(1).drop_before())
            .clients(2, |cx| async move {
                cx.connect().await?.incr::<_, _, ()>("n", 1).await
            })
    };
    let report = pushy().explore().unwrap();
    let violation = &report.counterexample.as_ref().unwrap().violation;
    assert_eq!(violation.property, "no client fails");
    assert!(
        violation
            .details
            .contains("ended with: connection lost by the schedule"),
        "{violation}"
    );
    let report = pushy().may_fail().explore().unwrap();
    assert!(report.counterexample.is_none(), "{report}");
    assert_eq!(report.coverage(), Coverage::Exhaustive);
    // Only those that were added last.
    let report = pushy().may_fail().client(add).explore().unwrap();
    let violation = &report.counterexample.as_ref().unwrap().violation;
    assert!(
        violation.details.starts_with("client c ended with"),
        "{violation}"
    );
}

#[test]
fn a_history_that_is_too_long_for_a_specification_is_an_error() {
    use fakeserver::explore::Spec;

    struct Anything;

    impl Spec for Anything {
        type State = u64;
        type Input = u64;
        type Output = u64;

        fn init(&self) -> u64 {
            0
        }

        fn step(&self, state: &u64, input: &u64, _: Option<&u64>) -> impl IntoIterator<Item = u64> {
            (*input < 20).then_some(state.wrapping_mul(31) + input)
        }
    }

    let long = Explorer::new()
        .history()
        .search_at_most(500)
        .linearizable_as(Anything)
        .clients(1, |cx| async move {
            for input in (0..20).chain([99]) {
                let _ = cx.attempt(input, async { Err(()) }).await;
            }
            cx.operation(99, async { 0 }).await;
        });
    let error = long.explore().unwrap_err();
    assert!(matches!(error, ExploreError::Undecided(_)), "{error}");
    assert!(error.to_string().contains("22 operations"), "{error}");
}

#[test]
fn nobody_to_explore_is_an_error() {
    let error = Explorer::new().history::<(), ()>().explore().unwrap_err();
    assert!(matches!(error, ExploreError::NoClients), "{error}");
    let error = Explorer::new()
        .clients(53, |_| async {})
        .explore()
        .unwrap_err();
    assert!(matches!(error, ExploreError::TooManyClients(53)), "{error}");
}

#[test]
fn a_phase_needs_no_budget() {
    let phase = Phase::from(RandomWalk::new(1));
    let report = counter(2).strategy(phase).explore().unwrap();
    assert!(report.counterexample.is_some());
}
