//! What is committed: the same as in `interop/bench.py`.

use redis::cmd;
use serde_json::json;
use store::{Commit, Event, Execution, Settings, SpawnIntent, Status, TimerOp};

pub(crate) const PREFIX: &str = "stm";

/// Orders in a document whose row has about 1 KB.
pub(crate) const SMALL: usize = 7;

/// Orders in a document whose row has about 64 KB.
pub(crate) const LARGE: usize = 780;

pub(crate) fn settings() -> Settings {
    Settings::new(PREFIX).expect("a valid prefix")
}

pub(crate) fn execution(size: usize) -> Execution {
    let mut execution = Execution::new("order-17", "order");
    execution.status = Status::Running;
    execution.active_path = Some("Order.Paying".to_owned());
    let order =
        json!({ "sku": "tea-green-0042", "amount": 3, "price": 4.25, "gift": false, "note": null });
    let context = json!({ "attempts": 3, "total": 17.25, "orders": vec![order; size] });
    execution.context = context.as_object().cloned().unwrap_or_default();
    execution
}

/// A commit that changes nothing but the row, or one with an effect of each kind.
pub(crate) fn commit(number: usize, is_complex: bool) -> Commit {
    let id = format!("event-{number}");
    let commit = Commit::for_event(&id);
    if !is_complex {
        return commit;
    }
    let mut paid = Event::new(format!("{id}-a"), "Paid");
    paid.data.insert("amount".to_owned(), json!(17.25));
    let mut spawn = SpawnIntent::new(format!("child-{number}"), "Order.Shipping");
    spawn.context.insert("by".to_owned(), json!("order"));
    let step = json!({ "event": id, "from": "Order.Cart", "to": "Order.Paying" });
    commit
        .emit(Some("order-18"), paid)
        .emit(None, Event::new(format!("{id}-b"), "Noted"))
        .timer(TimerOp::schedule("Order.Paying", 1.7e9 + number as f64))
        .spawn(spawn)
        .trace(step.as_object().cloned().unwrap_or_default())
}

pub(crate) fn commits(count: usize, is_complex: bool) -> Vec<Commit> {
    (0..count)
        .map(|number| commit(number, is_complex))
        .collect()
}

/// Empties the server: what one round leaves must not slow the next one.
pub(crate) fn flush(url: &str) {
    let mut connection = connect(url);
    cmd("FLUSHALL").exec(&mut connection).expect("a server");
}

pub(crate) fn connect(url: &str) -> redis::Connection {
    let client = redis::Client::open(url).expect("a valid URL");
    client.get_connection().expect("a server")
}
