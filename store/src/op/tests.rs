//! Operations against scripted replies.

mod calls;
mod commits;

use redis::{Value, parse_redis_value};
use serde_json::json;

use super::*;
use crate::{Commit, Event, Execution, SpawnIntent, TimerOp, Version};

fn value(resp: &str) -> Value {
    parse_redis_value(resp.replace('\n', "\r\n").as_bytes()).unwrap()
}

fn received(replies: &[&str]) -> Replies {
    Replies::Received(replies.iter().map(|reply| value(reply)).collect())
}

fn lost() -> Replies {
    Replies::Lost(std::io::Error::from(std::io::ErrorKind::TimedOut).into())
}

fn unsent() -> Replies {
    Replies::Unsent(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into())
}

/// The commands of a step as text, a word per argument; panics if the operation is over.
fn sent<T: std::fmt::Debug>(step: Step<T>) -> (Channel, Vec<String>) {
    let Step::Send(batch) = step else {
        panic!("over: {step:?}")
    };
    let word = |argument: redis::Arg<&[u8]>| match argument {
        redis::Arg::Simple(word) => String::from_utf8_lossy(word).into_owned(),
        _ => panic!("a cursor"),
    };
    let words = |command: &Cmd| command.args_iter().map(word).collect::<Vec<_>>().join(" ");
    (batch.channel(), batch.commands().map(words).collect())
}

fn done<T: std::fmt::Debug>(step: Step<T>) -> Result<T, StoreError> {
    let Step::Done(result) = step else {
        panic!("not over: {step:?}")
    };
    result
}

fn everything() -> Commit {
    Commit::for_event("e")
        .emit(Some("t"), Event::new("m1", "K"))
        .emit(None, Event::new("m2", "K"))
        .timer(TimerOp::schedule("P", 1e16))
        .timer(TimerOp::cancel("Q"))
        .spawn(SpawnIntent::new("c", "R"))
        .trace(json!({"k": 1}).as_object().unwrap().clone())
}

fn execution(version: i64) -> Execution {
    let mut execution = Execution::new("a", "d");
    execution.version = Version::new(version);
    execution
}
