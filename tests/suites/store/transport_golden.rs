//! Plays the calls that the Python transport was given, with its clock and its tokens, and compares what each of them left.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use serde_json::{Value, json};
use store::{
    Event, Settings, codec,
    transport::{Clock, Lease, Priority},
};

use crate::{
    backend::{Backend, PROTOCOLS, Protocol, on_each},
    keyspace,
    meddling::Plan,
    transport::Courier,
    twin::SIDES,
};

#[test]
fn the_seeds_transport_leaves_the_same_keys_after_every_call() {
    replay_folder("seed");
}

#[test]
fn the_newer_dialects_transport_leaves_the_same_keys_after_every_call() {
    replay_folder("v0.9.0");
}

fn replay_folder(folder: &str) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/{folder}/20_transport.json"));
    let scenario: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    for protocol in PROTOCOLS {
        for side in SIDES {
            on_each(|backend| {
                let settings = Settings::new(scenario["prefix"].as_str().unwrap()).unwrap();
                let transport = Courier::with(backend, side, protocol, settings, Plan::none());
                let name = format!("{folder} {side:?} {protocol:?} on {}", backend.name);
                replay(&name, &scenario, backend, transport.counting());
            });
        }
    }
}

fn replay(name: &str, scenario: &Value, backend: &Backend, mut transport: Courier) {
    let mut raw = backend.connect(Protocol::Resp2);
    let mut leases = BTreeMap::new();
    transport.set_clock(Clock::Fixed(1_700_000_000_000));
    for (index, step) in scenario["steps"].as_array().unwrap().iter().enumerate() {
        let result = play(step, &mut transport, &mut leases);
        assert_eq!(result, step["result"], "{name}, step {index}");
        assert_eq!(
            keyspace::read(&mut raw),
            keyspace::from_golden(&step["keyspace_after"]),
            "{name}, step {index}"
        );
    }
}

fn play(step: &Value, transport: &mut Courier, leases: &mut BTreeMap<String, Lease>) -> Value {
    let args = &step["args"];
    let text = |name: &str| args[name].as_str().unwrap();
    let seconds = |name: &str| Duration::from_secs_f64(args[name].as_f64().unwrap_or_default());
    let priority = |name: &str| Priority::clamped(args[name].as_i64().unwrap_or_default());
    match step["op"].as_str().unwrap() {
        "clock" => {
            let now_ms = args["now"].as_f64().unwrap() * 1000.0;
            transport.set_clock(Clock::Fixed(now_ms as u64));
        }
        "publish" => {
            let event: Event = codec::decode_event(args["event"].to_string().as_bytes()).unwrap();
            transport
                .publish(text("group"), &event, priority("priority"))
                .unwrap();
        }
        "claim" => {
            let (visibility, least) = (seconds("visibility"), priority("min_priority"));
            let claimed = transport.claim(text("worker"), visibility, least).unwrap();
            let Some(lease) = claimed.lease else {
                return Value::Null;
            };
            let told = json!({
                "group_id": lease.group_id, "event_id": lease.event.id, "token": lease.token, "seq": 0
            });
            leases.insert(text("as").to_owned(), lease);
            return told;
        }
        "ack" => drop(transport.ack(&leases[text("lease")]).unwrap()),
        "nack" => drop(
            transport
                .nack(&leases[text("lease")], seconds("delay"))
                .unwrap(),
        ),
        other => panic!("unknown call {other}"),
    }
    Value::Null
}
