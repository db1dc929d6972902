//! Stresses over sockets: many connections at once, nothing lost and nothing torn.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use redis::{Client, Commands, Connection, Script, Value};
use tests::server::{Backend, Kind};

/// Runs a stress on each server that listens on a port.
fn each_socket(stress: fn(&str)) {
    for kind in Backend::kinds() {
        if *kind != Kind::Memory {
            let backend = Backend::start(*kind);
            stress(&backend.url().unwrap());
        }
    }
}

fn connect(url: &str) -> Connection {
    Client::open(url).unwrap().get_connection().unwrap()
}

/// Starts `count` threads at the same moment, each with a connection of its own.
fn at_once<T: Send + 'static>(
    url: &str,
    count: usize,
    work: impl Fn(usize, &mut Connection) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let (barrier, work) = (Arc::new(Barrier::new(count)), Arc::new(work));
    let threads: Vec<_> = (0..count)
        .map(|at| {
            let (barrier, work, url) = (Arc::clone(&barrier), Arc::clone(&work), url.to_owned());
            thread::spawn(move || {
                let mut connection = connect(&url);
                barrier.wait();
                work(at, &mut connection)
            })
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect()
}

const INCREMENTERS: usize = 8;
const INCREMENTS: usize = 300;

#[test]
fn eight_connections_increment_optimistically_and_no_increment_is_lost() {
    each_socket(|url| {
        let conflicts = at_once(url, INCREMENTERS, |_, connection| {
            (0..INCREMENTS)
                .map(|_| increment(connection))
                .sum::<usize>()
        });
        let total: usize = connect(url).get("counter").unwrap();
        assert_eq!(total, INCREMENTERS * INCREMENTS);
        assert!(
            conflicts.iter().sum::<usize>() > 0,
            "no two increments met: the stress did not stress"
        );
    });
}

/// WATCH, GET, MULTI, SET, EXEC until it goes through; how often it did not.
fn increment(connection: &mut Connection) -> usize {
    for conflicts in 0.. {
        redis::cmd("WATCH").arg("counter").exec(connection).unwrap();
        let value: Option<usize> = connection.get("counter").unwrap();
        // Others get between now, even where there is but one processor.
        thread::yield_now();
        let done: Option<(String,)> = redis::pipe()
            .atomic()
            .set("counter", value.unwrap_or(0) + 1)
            .query(connection)
            .unwrap();
        if done.is_some() {
            return conflicts;
        }
    }
    unreachable!("the loop ends when the increment went through")
}

const SCRIPTERS: usize = 6;
const SCRIPTS: usize = 60;

/// Reads, works for a while, writes: whoever gets between read and write makes an update lost.
const READ_WORK_WRITE: &str = r"
    local value = tonumber(redis.call('GET', KEYS[1]) or '0')
    local sum = 0
    for i = 1, 20000 do sum = sum + i % 7 end
    redis.call('SET', KEYS[1], value + 1)
    redis.call('RPUSH', KEYS[2], value + 1)
    return value + 1
";

#[test]
fn six_connections_run_scripts_that_read_work_and_write_and_none_is_lost() {
    each_socket(|url| {
        let mut seen: Vec<usize> = at_once(url, SCRIPTERS, |_, connection| {
            let script = Script::new(READ_WORK_WRITE);
            (0..SCRIPTS)
                .map(|_| {
                    script
                        .key("total")
                        .key("log")
                        .invoke::<usize>(connection)
                        .unwrap()
                })
                .collect::<Vec<_>>()
        })
        .concat();
        seen.sort_unstable();
        let all: Vec<usize> = (1..=SCRIPTERS * SCRIPTS).collect();
        assert_eq!(seen, all);
        let log: Vec<usize> = connect(url).lrange("log", 0, -1).unwrap();
        assert_eq!(log, all);
    });
}

const ROUNDS: usize = 400;
const FIELDS: usize = 5;

#[test]
fn readers_see_all_writes_of_a_multi_block_or_none() {
    each_socket(|url| {
        let done = Arc::new(AtomicBool::new(false));
        let writes = Arc::clone(&done);
        let torn = at_once(url, 5, move |at, connection| match at {
            0 => {
                for round in 1..=ROUNDS {
                    write_all(connection, round);
                }
                writes.store(true, Ordering::SeqCst);
                Vec::new()
            }
            1 | 2 => read_until(connection, &writes, read_by_mget),
            3 => read_until(connection, &writes, read_by_multi),
            _ => read_until(connection, &writes, read_by_script),
        });
        assert_eq!(torn.concat(), Vec::<Vec<usize>>::new());
        assert_eq!(read_by_mget(&mut connect(url)), vec![ROUNDS; FIELDS]);
    });
}

fn write_all(connection: &mut Connection, round: usize) {
    let mut pipe = redis::pipe();
    pipe.atomic();
    for field in 0..FIELDS {
        pipe.set(format!("field:{field}"), round).ignore();
    }
    pipe.exec(connection).unwrap();
}

/// Reads until the writer is done; what was seen that no moment had, or that went back.
fn read_until(
    connection: &mut Connection,
    done: &AtomicBool,
    read: fn(&mut Connection) -> Vec<usize>,
) -> Vec<Vec<usize>> {
    let (mut torn, mut last) = (Vec::new(), 0);
    while !done.load(Ordering::SeqCst) {
        let seen = read(connection);
        if seen.iter().any(|value| *value != seen[0]) || seen[0] < last {
            torn.push(seen.clone());
        }
        last = seen[0];
    }
    torn
}

fn keys() -> Vec<String> {
    (0..FIELDS).map(|field| format!("field:{field}")).collect()
}

fn counts(values: Vec<Option<usize>>) -> Vec<usize> {
    values.into_iter().map(Option::unwrap_or_default).collect()
}

fn read_by_mget(connection: &mut Connection) -> Vec<usize> {
    counts(connection.mget(keys()).unwrap())
}

fn read_by_multi(connection: &mut Connection) -> Vec<usize> {
    let mut pipe = redis::pipe();
    pipe.atomic();
    for key in keys() {
        pipe.get(key);
    }
    counts(pipe.query(connection).unwrap())
}

fn read_by_script(connection: &mut Connection) -> Vec<usize> {
    let script = Script::new(
        "local r = {} for i, k in ipairs(KEYS) do r[i] = redis.call('GET', k) or '0' end return r",
    );
    counts(
        script
            .prepare_invoke()
            .key(keys())
            .invoke(connection)
            .unwrap(),
    )
}

#[test]
fn a_connection_that_ends_inside_of_multi_leaves_nothing_behind() {
    Backend::each(|backend| {
        let mut raw = backend.raw();
        raw.call(&["WATCH", "k"]);
        raw.call(&["MULTI"]);
        raw.call(&["SET", "k", "v"]);
        drop(raw);
        let mut other = backend.connection();
        let value = other.req_command(redis::cmd("GET").arg("k")).unwrap();
        assert_eq!(value, Value::Nil, "on {:?}", backend.kind());
    });
}
