//! What no transcript can hold: requests with an address that a server gives, work in the background, the end of a server,
//! and replies that tell of every command.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fakeserver::Server;
use serde_json::Value;
use tests::frame::Frame;
use tests::json::to_json;
use tests::raw::{PATIENCE, Raw, Received};
use tests::server::{Backend, Kind};

fn call(raw: &mut Raw, request: &str) -> String {
    let words: Vec<&str> = request.split(' ').collect();
    raw.call(&words).to_lines().join(" ")
}

/// Waits until nothing is written in the background.
fn until_idle(raw: &mut Raw) {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let info = call(raw, "INFO persistence");
        let busy = [
            "rdb_bgsave_in_progress:1",
            "aof_rewrite_in_progress:1",
            "aof_rewrite_scheduled:1",
        ];
        if !busy.iter().any(|field| info.contains(field)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the server does not come to an end with saving");
}

#[test]
fn saving_in_the_background_is_said_to_begin() {
    Backend::each(|backend| {
        let mut raw = backend.raw();
        until_idle(&mut raw);
        let before = call(&mut raw, "LASTSAVE");
        for (request, reply) in [
            ("BGSAVE", "+Background saving started"),
            ("BGSAVE SCHEDULE", "+Background saving started"),
            (
                "BGREWRITEAOF",
                "+Background append only file rewriting started",
            ),
        ] {
            assert_eq!(call(&mut raw, request), reply, "{request}");
            until_idle(&mut raw);
        }
        assert!(call(&mut raw, "LASTSAVE") >= before);
    });
}

#[test]
fn a_client_is_killed_by_its_address() {
    Backend::each(|backend| {
        if backend.kind() == Kind::Memory {
            // Connections without a socket share one address.
            return;
        }
        let (mut killer, mut victim) = (backend.raw(), backend.raw());
        let Frame::Blob(_, info) = victim.call(&["CLIENT", "INFO"]) else {
            panic!("CLIENT INFO replies with text");
        };
        let info = String::from_utf8(info).unwrap();
        let address = info
            .split(' ')
            .find_map(|field| field.strip_prefix("addr="));
        let request = format!("CLIENT KILL {}", address.unwrap());
        assert_eq!(call(&mut killer, &request), "+OK");
        assert_eq!(victim.receive(PATIENCE), Received::Closed);
        assert_eq!(call(&mut killer, &request), "-ERR No such client");
    });
}

#[test]
fn shutdown_ends_the_fake_in_each_form() {
    for options in [
        &[][..],
        &["NOSAVE"],
        &["SAVE"],
        &["NOW"],
        &["FORCE"],
        &["NOSAVE", "NOW", "FORCE"],
    ] {
        let server = Server::start();
        let mut raw = Raw::tcp(("127.0.0.1", server.port())).unwrap();
        raw.request(&[&["SHUTDOWN"], options].concat());
        assert_eq!(raw.receive(PATIENCE), Received::Closed, "{options:?}");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let ended = async { tokio::time::timeout(PATIENCE, server.until_shutdown()).await };
        assert!(runtime.block_on(ended).is_ok(), "{options:?}");
    }
}

#[test]
fn debug_loadaof_leaves_the_data_of_the_fake_as_it_is() {
    let backend = Backend::start(Kind::Memory);
    let mut raw = backend.raw();
    call(&mut raw, "SET k v");
    assert_eq!(call(&mut raw, "DEBUG LOADAOF"), "+OK");
    assert_eq!(call(&mut raw, "GET k"), "$1 v");
}

#[test]
fn command_and_its_subcommands_tell_of_the_same_commands() {
    Backend::each(|backend| {
        let mut raw = backend.raw();
        raw.call(&["HELLO", "3"]);
        let all = to_json(&raw.call(&["COMMAND"]));
        assert_eq!(to_json(&raw.call(&["COMMAND", "INFO"])), all);
        let (mut names, mut subcommands) = (BTreeSet::new(), BTreeSet::new());
        let name_of = |entry: &Value| entry[0].as_str().unwrap().to_owned();
        for entry in all.as_array().unwrap() {
            names.insert(name_of(entry));
            subcommands.extend(entry[9].as_array().unwrap().iter().map(name_of));
        }
        let docs = to_json(&raw.call(&["COMMAND", "DOCS"]));
        let documented: BTreeSet<String> = docs.as_object().unwrap().keys().cloned().collect();
        assert_eq!(documented, names);
        let list = to_json(&raw.call(&["COMMAND", "LIST"]));
        let listed = list.as_array().unwrap().iter();
        let listed: BTreeSet<String> = listed.map(|name| name.as_str().unwrap().into()).collect();
        assert_eq!(listed, &names | &subcommands);
    });
}
