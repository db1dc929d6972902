//! Conversations of the operations with a server that is not there.

use redis::Value;

use super::*;
use crate::{
    Event, Settings,
    op::{Operation, Replies, Step},
};

fn claim() -> Claim {
    let (settings, second) = (Settings::default(), Duration::from_secs(1));
    let token = "w:1".to_owned();
    Claim::new(&settings, Clock::Fixed(5), token, second, Priority::MIN).unwrap()
}

fn words(batch: &crate::op::Batch) -> Vec<String> {
    let command = batch.commands().next().unwrap();
    command
        .args_iter()
        .map(|word| match word {
            redis::Arg::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        })
        .collect()
}

fn answer(items: &[&str]) -> Replies {
    let items = items
        .iter()
        .map(|item| Value::BulkString(item.as_bytes().to_vec()));
    Replies::Received(vec![Value::Array(items.collect())])
}

#[test]
fn a_publication_declares_every_key_that_it_may_touch() {
    let event = Event::new("e", "K");
    let mut publish = Publish::new(&Settings::default(), "g", &event, Priority::MAX).unwrap();
    let Step::Send(batch) = publish.step(Replies::Start) else {
        panic!("it asks first")
    };
    let words = words(&batch);
    assert_eq!(words[0], "EVALSHA");
    let declared = ["7", "stm:q:g", "stm:prio", "stm:ready:0", "stm:ready:1"];
    assert_eq!(words[2..7], declared);
}

#[test]
fn a_claim_of_a_priority_declares_the_tiers_from_there() {
    let (settings, second) = (Settings::default(), Duration::from_secs(1));
    let three = Priority::try_from(3).unwrap();
    let mut claim = Claim::new(&settings, Clock::Server, "w:1".to_owned(), second, three).unwrap();
    let Step::Send(batch) = claim.step(Replies::Start) else {
        panic!("it asks first")
    };
    assert_eq!(words(&batch)[2..5], ["2", "stm:ready:3", "stm:ready:4"]);
    let found = claim.step(answer(&["lease", "2", "g", r#"{"id":"e","kind":"K"}"#, ""]));
    let Step::Done(Ok(claimed)) = found else {
        panic!("{found:?}")
    };
    assert_eq!(claimed.lease.unwrap().priority, Priority::MAX);
}

#[test]
fn a_claim_buries_so_many_and_then_answers() {
    let mut claim = claim();
    let mut step = claim.step(Replies::Start);
    let mut burials = 0;
    loop {
        let Step::Send(batch) = step else { break };
        let is_burial = words(&batch).contains(&"bury".to_owned());
        step = if is_burial {
            burials += 1;
            claim.step(Replies::Received(vec![Value::Int(1)]))
        } else {
            claim.step(answer(&["lease", "1", "g", "not an event", ""]))
        };
    }
    let Step::Done(Ok(claimed)) = step else {
        panic!("{step:?}")
    };
    assert_eq!((burials, claimed.buried.len()), (BURIALS_MAX, BURIALS_MAX));
    assert_eq!(claimed.lease, None);
}

#[test]
fn answers_that_no_script_gives_are_errors() {
    for nonsense in [
        answer(&[]),
        answer(&["lease", "1", "g", ""]),
        answer(&["lease", "x", "g", "{}", ""]),
        answer(&["none", "soon", ""]),
        Replies::Received(vec![Value::Nil]),
        Replies::Received(Vec::new()),
    ] {
        let mut claim = claim();
        claim.step(Replies::Start);
        let step = claim.step(nonsense);
        assert!(matches!(step, Step::Done(Err(StoreError::Io { .. }))));
    }
}

#[test]
fn durations_are_whole_milliseconds_of_at_least_one() {
    let ms = |duration| milliseconds("delay", duration).ok();
    assert_eq!(ms(Duration::ZERO), Some(1));
    assert_eq!(ms(Duration::from_micros(2_999)), Some(2));
    assert_eq!(ms(Duration::MAX), None);
}

#[test]
fn waiting_is_a_matter_of_the_transports_clock_alone() {
    let next = |now_ms, next_ready_ms| NextReady {
        now_ms,
        next_ready_ms,
    };
    assert_eq!(next(10, 35).wait(), Duration::from_millis(25));
    assert_eq!(next(35, 10).wait(), Duration::ZERO);
}

#[test]
fn a_cluster_needs_a_tag_in_the_prefix() {
    let mut claim = claim();
    claim.step(Replies::Start);
    let text = "Keys in request don't hash to the same slot";
    let refusal = redis::ServerError::try_from(redis::make_extension_error(
        "CROSSSLOT".to_owned(),
        Some(text.to_owned()),
    ));
    let refusal = Value::ServerError(refusal.unwrap());
    let step = claim.step(Replies::Received(vec![refusal]));
    assert!(
        matches!(
            step,
            Step::Done(Err(StoreError::Invalid {
                reason: Rejection::Untagged,
                ..
            }))
        ),
        "{step:?}"
    );
}

#[cfg(feature = "async")]
#[test]
fn futures_of_the_asynchronous_twin_can_move_between_threads() {
    fn is_send<F: Send>(_: F) {}

    let mut transport = AsyncRedisTransport::from_url("redis://127.0.0.1/").unwrap();
    let (event, second) = (Event::new("e", "K"), Duration::from_secs(1));
    is_send(transport.publish("g", &event, Priority::MIN));
    is_send(transport.claim("w", second, Priority::MIN));
    let lease = Lease {
        group_id: "g".to_owned(),
        event,
        token: "w:1".to_owned(),
        priority: Priority::MIN,
        delivery: None,
    };
    is_send(transport.ack(&lease));
    is_send(transport.nack(&lease, second));
    is_send(transport.postpone(&lease, second));
    is_send(transport.extend(&lease, second));
}
