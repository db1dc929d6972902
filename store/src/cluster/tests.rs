//! Courses without a server: what is sent again, and what never is.

use std::{borrow::Cow, time::Duration};

use redis::{Value, cmd};

use super::{
    Address,
    course::{Course, Next, To},
};
use crate::op::{Batch, Replies, protocol_error};

const PATIENCE: Duration = Duration::from_secs(1);

fn here() -> Address {
    Address::new("h", 1)
}

fn there() -> Address {
    Address::new("t", 2)
}

fn says(line: &str) -> Value {
    redis::parse_redis_value(format!("{line}\r\n").as_bytes()).unwrap()
}

fn moved() -> Value {
    says("-MOVED 1 t:2")
}

fn ask() -> Value {
    says("-ASK 1 t:2")
}

fn batch(names: &[&str]) -> Batch {
    Batch::shared(names.iter().map(|name| cmd(name).arg("0").take()))
}

fn course(batch: &Batch) -> Course<'_> {
    Course::new(batch, || "probe".to_owned(), PATIENCE)
}

fn names(course: &Course<'_>) -> Vec<String> {
    let (pipeline, before, count) = course.leg();
    assert_eq!(pipeline.len(), before + count);
    let name = |command: &redis::Cmd| match command.args_iter().next() {
        Some(redis::Arg::Simple(name)) => String::from_utf8_lossy(name).into_owned(),
        _ => String::new(),
    };
    pipeline.cmd_iter().map(name).collect()
}

fn received(values: Vec<Value>) -> Replies {
    Replies::Received(values)
}

fn end(next: Next) -> Vec<Value> {
    match next {
        Next::Done(Replies::Received(values)) => values,
        other => panic!("not the end: {other:?}"),
    }
}

#[test]
fn a_batch_that_is_served_goes_out_once_and_is_not_copied() {
    let batch = batch(&["EVALSHA"]);
    let mut course = course(&batch);
    assert!(matches!(course.leg(), (Cow::Borrowed(_), 0, 1)));
    assert_eq!(
        end(course.after(received(vec![Value::Okay]), &here())),
        [Value::Okay]
    );
}

#[test]
fn a_command_that_did_not_run_goes_where_it_is_sent() {
    let batch = batch(&["EVALSHA"]);
    let mut course = course(&batch);
    assert!(
        matches!(course.after(received(vec![moved()]), &here()), Next::Moved(owner) if owner == there())
    );
    assert_eq!(
        (course.to(), names(&course)),
        (&To::Owner, vec!["EVALSHA".to_owned()])
    );
    assert!(matches!(
        course.after(received(vec![ask()]), &here()),
        Next::Go
    ));
    assert_eq!(
        (course.to(), names(&course)),
        (
            &To::Asking(there()),
            vec!["ASKING".to_owned(), "EVALSHA".to_owned()]
        )
    );
    assert_eq!(
        end(course.after(received(vec![Value::Okay]), &there())),
        [Value::Okay]
    );
}

#[test]
fn a_lost_reply_ends_the_course() {
    let batch = batch(&["EVALSHA"]);
    let mut course = course(&batch);
    let lost = Replies::Lost(protocol_error("cut"));
    assert!(matches!(
        course.after(lost, &here()),
        Next::Done(Replies::Lost(_))
    ));
}

#[test]
fn what_did_not_go_out_waits_in_bounds() {
    let batch = batch(&["EVALSHA"]);
    let mut course = course(&batch);
    let mut waited = Duration::ZERO;
    loop {
        match course.after(Replies::Unsent(protocol_error("down")), &here()) {
            Next::Wait { pause, doubt } => {
                assert!(doubt && pause <= PATIENCE / 4);
                waited += pause;
            }
            Next::Done(Replies::Unsent(_)) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(waited, PATIENCE);
}

#[test]
fn redirections_that_go_round_end() {
    for refusal in [
        moved(),
        ask(),
        says("-TRYAGAIN x"),
        says("-CLUSTERDOWN x"),
        says("-LOADING x"),
        says("-READONLY x"),
    ] {
        let batch = batch(&["EVALSHA"]);
        let mut course = course(&batch);
        let mut legs = 0;
        let last = loop {
            legs += 1;
            match course.after(received(vec![refusal.clone()]), &here()) {
                Next::Done(Replies::Received(values)) => break values,
                Next::Done(other) => panic!("{other:?}"),
                _ => assert!(legs < 30),
            }
        };
        assert_eq!(last, [refusal]);
    }
}

#[test]
fn reads_keep_their_order_when_the_first_is_elsewhere() {
    let batch = batch(&["GET", "SISMEMBER"]);
    let mut course = course(&batch);
    // The second was served before the first: its answer is older than it may be.
    assert!(matches!(
        course.after(received(vec![ask(), Value::Int(0)]), &here()),
        Next::Go
    ));
    assert_eq!(names(&course), ["ASKING", "GET"]);
    assert!(matches!(
        course.after(received(vec![Value::Nil]), &there()),
        Next::Go
    ));
    assert_eq!(
        (course.to(), names(&course)),
        (&To::Owner, vec!["SISMEMBER".to_owned()])
    );
    assert_eq!(
        end(course.after(received(vec![Value::Int(1)]), &here())),
        [Value::Nil, Value::Int(1)]
    );
}

#[test]
fn a_write_that_ran_behind_one_that_did_not_is_not_sent_again() {
    let batch = batch(&["INCR", "RPUSH"]);
    let mut course = course(&batch);
    let values = vec![moved(), Value::Int(1)];
    assert_eq!(end(course.after(received(values.clone()), &here())), values);
}

#[test]
fn a_batch_that_ran_in_part_and_can_not_go_on_is_lost() {
    let batch = batch(&["INCR", "RPUSH"]);
    let mut course = course(&batch);
    assert!(matches!(
        course.after(received(vec![Value::Int(1), moved()]), &here()),
        Next::Moved(_)
    ));
    assert_eq!(names(&course), ["RPUSH"]);
    let end = loop {
        match course.after(Replies::Unsent(protocol_error("down")), &there()) {
            Next::Wait { .. } => {}
            other => break other,
        }
    };
    assert!(matches!(end, Next::Done(Replies::Lost(_))));
}

#[test]
fn a_scan_stands_between_probes_and_starts_over() {
    let batch = batch(&["SCAN"]);
    let mut course = course(&batch);
    assert_eq!(course.scans_from_start(), Some(true));
    assert_eq!(names(&course), ["EXISTS", "SCAN", "EXISTS"]);
    let page = Value::Array(Vec::new());
    let behind = vec![Value::Int(0), page.clone(), moved()];
    assert!(matches!(
        course.after(received(behind), &here()),
        Next::Moved(_)
    ));
    let moving = vec![ask(), page.clone(), ask()];
    assert!(matches!(
        course.after(received(moving), &here()),
        Next::Wait { doubt: false, .. }
    ));
    assert_eq!(names(&course), ["EXISTS", "SCAN", "EXISTS"]);
    let whole = vec![Value::Int(0), page.clone(), Value::Int(0)];
    assert_eq!(end(course.after(received(whole), &here())), [page]);
}

#[test]
fn what_a_scan_saw_of_a_slot_in_motion_is_not_handed_on() {
    for at in [0, 2] {
        let batch = batch(&["SCAN"]);
        let mut course = course(&batch);
        let mut values = vec![Value::Int(0), Value::Array(Vec::new()), Value::Int(0)];
        values[at] = ask();
        let last = loop {
            match course.after(received(values.clone()), &here()) {
                Next::Wait { .. } => {}
                other => break end(other),
            }
        };
        assert_eq!(last, [ask()]);
    }
}

#[test]
fn a_write_does_not_cross_from_a_node_that_failed_to_the_one_that_took_over() {
    for (name, crosses) in [("EVALSHA", false), ("GET", true)] {
        let batch = batch(&[name]);
        let mut course = course(&batch);
        assert!(course.crosses_to(&there()).is_none());
        let next = course.after(Replies::Unsent(protocol_error("down")), &here());
        assert!(matches!(next, Next::Wait { doubt: true, .. }));
        assert!(course.crosses_to(&here()).is_none(), "it is there again");
        match course.crosses_to(&there()) {
            None => assert!(crosses, "{name}"),
            Some(end) => assert!(!crosses && matches!(end, Next::Done(Replies::Unsent(_)))),
        }
    }
}
