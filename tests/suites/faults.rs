//! What clients see when connections break or send what they should not.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::Commands;
use tests::frame::Frame;
use tests::raw::{PATIENCE, Received, request};
use tests::server::{Backend, Kind};

/// Requests that no client should send, and what is said before the connection is closed.
#[rustfmt::skip]
const REFUSED: &[(&[u8], &str)] = &[
    (b"*x\r\n", "-ERR Protocol error: invalid multibulk length"),
    (b"*2147483648\r\n", "-ERR Protocol error: invalid multibulk length"),
    (b"*1\r\n+PING\r\n", "-ERR Protocol error: expected '$', got '+'"),
    (b"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length"),
    (b"*1\r\n$x\r\n", "-ERR Protocol error: invalid bulk length"),
    (b"*1\r\n$536870913\r\n", "-ERR Protocol error: invalid bulk length"),
    (b"SET k \"v\r\n", "-ERR Protocol error: unbalanced quotes in request"),
];

#[test]
fn a_request_that_cannot_be_read_is_refused_and_the_connection_closed() {
    Backend::each(|backend| {
        for (bytes, text) in REFUSED {
            let mut raw = backend.raw();
            // What was sent before it is still answered.
            raw.send(&[b"PING\r\n", *bytes].concat());
            let kind = backend.kind();
            assert_eq!(
                raw.receive(PATIENCE),
                Received::Frame(Frame::Line(b"+PONG".to_vec())),
                "{kind:?}"
            );
            let refusal = Received::Frame(Frame::Line(text.as_bytes().to_vec()));
            assert_eq!(raw.receive(PATIENCE), refusal, "{kind:?}");
            assert_eq!(
                raw.receive(PATIENCE),
                Received::Closed,
                "{kind:?} after {text}"
            );
        }
    });
}

#[test]
fn a_request_may_come_byte_by_byte_and_many_at_once() {
    Backend::each(|backend| {
        let mut raw = backend.raw();
        for byte in request(&["SET", "k", "a\r\nb"]) {
            raw.send(&[byte]);
        }
        assert_eq!(
            raw.receive(PATIENCE),
            Received::Frame(Frame::Line(b"+OK".to_vec()))
        );
        let many = request(&["APPEND", "k", "x"]).repeat(1000);
        raw.send(&many);
        for at in 1..=1000 {
            let want = Received::Frame(Frame::Line(format!(":{}", 4 + at).into_bytes()));
            assert_eq!(raw.receive(PATIENCE), want, "{:?}", backend.kind());
        }
    });
}

#[test]
fn whatever_a_lost_connection_held_is_let_go() {
    Backend::each(|backend| {
        let (mut watcher, mut waiter, mut other) = (backend.raw(), backend.raw(), backend.raw());
        watcher.call(&["WATCH", "k"]);
        watcher.call(&["MULTI"]);
        watcher.call(&["SET", "k", "v"]);
        waiter.request(&["BLPOP", "l", "0"]);
        assert_eq!(waiter.receive(Duration::from_millis(50)), Received::Silence);
        drop((watcher, waiter));
        // The real server notices on its next turn that they have gone.
        std::thread::sleep(Duration::from_millis(50));
        // A client that has gone takes no element.
        assert_eq!(
            other.call(&["RPUSH", "l", "x"]),
            Frame::Line(b":1".to_vec())
        );
        assert_eq!(
            other.call(&["LLEN", "l"]),
            Frame::Line(b":1".to_vec()),
            "{:?}",
            backend.kind()
        );
        assert_eq!(other.call(&["EXISTS", "k"]), Frame::Line(b":0".to_vec()));
    });
}

/// A proxy that lets requests through, and, once told to, cuts the connection in the place of the next reply.
struct Proxy {
    url: String,
    cut: Arc<AtomicBool>,
}

impl Proxy {
    fn start(server: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let cut = Arc::new(AtomicBool::new(false));
        let (server, told) = (
            server
                .trim_start_matches("redis://")
                .trim_end_matches('/')
                .to_owned(),
            Arc::clone(&cut),
        );
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
                let (up, down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pass(up, server, &AtomicBool::new(false)));
                let told = Arc::clone(&told);
                std::thread::spawn(move || pass(down, client, &told));
            }
        });
        Proxy { url, cut }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, cut: &AtomicBool) {
    let mut chunk = [0; 4096];
    while let Ok(len) = from.read(&mut chunk) {
        if len == 0 || cut.swap(false, Ordering::SeqCst) || to.write_all(&chunk[..len]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn a_command_whose_reply_was_lost_has_been_run_once() {
    for kind in Backend::kinds()
        .iter()
        .filter(|kind| **kind != Kind::Memory)
    {
        let backend = Backend::start(*kind);
        let proxy = Proxy::start(&backend.url().unwrap());
        let client = redis::Client::open(proxy.url.as_str()).unwrap();
        let mut connection = client.get_connection().unwrap();
        let before: i64 = connection.incr("n", 1).unwrap();
        proxy.cut.store(true, Ordering::SeqCst);
        let lost = connection.incr::<_, _, i64>("n", 1).unwrap_err();
        assert!(lost.is_connection_dropped() || lost.is_io_error(), "{lost}");
        let after: i64 = client.get_connection().unwrap().get("n").unwrap();
        assert_eq!((before, after), (1, 2), "{kind:?}");
    }
}
