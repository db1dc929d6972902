//! The gate over TCP: code that opens its connections itself, with redis-rs' own connections, in this process.

use fakeserver::explore::{self, Explorer, Replayed, Schedule, Trace};
use fakeserver::sweep::{Choice, Explore, Fate, Interleaving, Role, Strategy, Sweep};
use redis::aio::ConnectionManager;
use redis::{AsyncCommands, RedisResult, Value};

use crate::gates::{ATTEMPTS_MAX, Adders, Way, add_blocking, random_schedules, said};

/// Adds one as the explorer's clients do, over sockets.
fn adder(url: &str) -> RedisResult<()> {
    let client = redis::Client::open(url)?;
    let mut connection = client.get_connection()?;
    for _ in 0..ATTEMPTS_MAX {
        match said(&add_blocking(&mut connection)).as_str() {
            "true" => break,
            "lost" => connection = client.get_connection()?,
            _ => {}
        }
    }
    Ok(())
}

fn adders() -> Sweep {
    Sweep::new().a(adder).b(adder).clock(1_700_000_000_000)
}

#[test]
fn optimistic_clients_over_tcp_have_as_many_schedules_as_the_explorer_counts() {
    let explore = Explore {
        preemptions: Some(100),
        ..Explore::default()
    };
    let report = adders().explore(&explore).unwrap();
    assert!(report.is_clean(), "{}", report.text());
    // Three commands each that others see, in any order; what follows a conflict is forced.
    assert_eq!(
        report.claim,
        "all 20 schedules with at most 100 preemptions of these 2 programs, these inputs"
    );
}

/// A step as both ways tell it: whose, what, and what came back.
type Line = (String, String, String);

fn spell(reply: &Value) -> String {
    match reply {
        Value::Okay => "OK".to_owned(),
        Value::Nil => "(nil)".to_owned(),
        Value::Int(number) => format!("(integer) {number}"),
        Value::BulkString(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(spell).collect();
            format!("[{}]", items.join(", "))
        }
        other => panic!("{other:?}"),
    }
}

/// The steps of a trace that others see, as turns and as lines.
fn visible(trace: &Trace) -> (Interleaving, Vec<Line>) {
    let (mut turns, mut lines) = (Vec::new(), Vec::new());
    for step in trace.steps.iter().filter(|step| !step.local) {
        let role = Role::PROGRAMS[step.choice.lane.index()];
        let fate = match step.choice.act {
            explore::Act::DropBefore => Fate::DropBefore,
            explore::Act::LoseReply => Fate::LoseReply,
            _ => Fate::Execute,
        };
        turns.push(Choice { role, fate });
        if fate == Fate::DropBefore {
            let what = format!("a connection of {role} is closed");
            lines.push(("server".to_owned(), what, String::new()));
            continue;
        }
        let words = step
            .request
            .words()
            .map(|word| word.escape_ascii().to_string());
        let command = words.collect::<Vec<_>>().join(" ");
        let reply = step.reply.as_ref().map(spell).unwrap_or_default();
        lines.push((role.name().to_owned(), command, reply));
    }
    (Interleaving::new(turns), lines)
}

#[test]
fn a_replay_over_tcp_has_the_trace_of_the_explorer_also_after_a_reconnect() {
    let mut lost = 0;
    for text in random_schedules(2, 12) {
        let schedule: Schedule = text.parse().unwrap();
        let trace = match Explorer::new().replay(&Adders::new(Way::Direct, 2), &schedule) {
            Ok(Replayed::Holds(trace)) => trace,
            other => panic!("{text}: {other:?}"),
        };
        let (turns, expected) = visible(&trace);
        lost += usize::from(turns.to_string().contains(['!', '~']));
        let replay = || -> Vec<Line> {
            let replayed = adders().replay_interleaving(&turns).unwrap();
            let steps = replayed.steps.into_iter();
            let seen = steps.filter(|step| step.access != "local");
            seen.map(|step| (step.role, step.command, step.reply))
                .collect()
        };
        assert_eq!(replay(), expected, "{text} {turns}");
        assert_eq!(replay(), expected, "{text} {turns}, again");
    }
    assert!(lost > 3, "{lost}");
}

async fn manager(url: &str) -> RedisResult<ConnectionManager> {
    ConnectionManager::new(redis::Client::open(url)?).await
}

async fn count_by_get_and_set(url: String) -> RedisResult<()> {
    let mut connection = manager(&url).await?;
    let n: Option<i64> = connection.get("n").await?;
    connection.set("n", n.unwrap_or(0) + 1).await
}

async fn count_by_incr(url: String) -> RedisResult<()> {
    let mut connection = manager(&url).await?;
    connection.incr::<_, _, ()>("n", 1).await?;
    connection.incr("n", 1).await
}

#[test]
fn connection_managers_are_explored_and_what_was_run_is_called_a_sample() {
    let explore = Explore {
        strategy: Strategy::Random,
        schedules: 20,
        preemptions: None,
    };
    let wrong = Sweep::new()
        .role_async(Role::A, count_by_get_and_set)
        .role_async(Role::B, count_by_get_and_set)
        .role_async(Role::C, count_by_get_and_set)
        .explore(&explore)
        .unwrap();
    assert_eq!(
        wrong.claim,
        "sampled 20 schedules of these 3 programs, these inputs (random, seed 0)"
    );
    let finding = &wrong.findings[0];
    let cause = finding.cause.as_ref().unwrap();
    assert_eq!(
        (finding.kind.as_str(), cause.key.as_str()),
        ("isolation", "n")
    );
    assert!(!finding.expected.is_empty());
    assert!(finding.outcome.more.contains_key("c"), "{finding:?}");
    let right = Sweep::new()
        .role_async(Role::A, count_by_incr)
        .role_async(Role::B, count_by_incr)
        .role_async(Role::C, count_by_incr)
        .explore(&explore)
        .unwrap();
    assert!(right.is_clean(), "{}", right.text());
}
