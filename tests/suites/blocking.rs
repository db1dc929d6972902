//! Blocked clients on the engine itself, where time and connections are in the test's hands.

use fakeserver::clock::Timestamp;
use fakeserver::config::Config;
use fakeserver::engine::{Engine, Peer};
use fakeserver::session::SessionId;

/// An engine and its time.
struct Bench {
    engine: Engine,
    now: Timestamp,
}

impl Bench {
    fn new() -> Bench {
        let now = Timestamp::from_millis(1_000_000);
        let engine = Engine::new(Config::default(), now);
        Bench { engine, now }
    }

    fn connect(&mut self) -> SessionId {
        self.engine.connect(Peer::default(), self.now)
    }

    /// Sends inline requests, a line each.
    fn send(&mut self, id: SessionId, lines: &str) {
        let bytes = format!("{}\r\n", lines.replace('\n', "\r\n"));
        self.engine.receive(id, bytes.as_bytes(), self.now);
    }

    /// What a client was sent since the last time, line ends as `|`.
    fn read(&mut self, id: SessionId) -> String {
        let mut out = Vec::new();
        self.engine.poll_transmit(id, &mut out);
        String::from_utf8_lossy(&out).replace("\r\n", "|")
    }

    fn pass(&mut self, millis: i64) {
        self.now = self.now.plus_millis(millis);
        self.engine.handle_timeout(self.now);
    }
}

#[test]
fn a_time_out_comes_to_the_millisecond_and_not_before() {
    let mut bench = Bench::new();
    let (a, b) = (bench.connect(), bench.connect());
    bench.send(a, "BLPOP k 0.55");
    bench.send(b, "BLMOVE k d LEFT LEFT 1\nECHO later");
    assert_eq!(
        bench.engine.poll_timeout(),
        Some(bench.now.plus_millis(550))
    );
    bench.pass(549);
    assert_eq!(
        (bench.read(a), bench.read(b)),
        (String::new(), String::new())
    );
    bench.pass(1);
    assert_eq!(
        (bench.read(a).as_str(), bench.read(b).as_str()),
        ("*-1|", "")
    );
    bench.pass(450);
    assert_eq!(bench.read(b), "*-1|$5|later|");
    assert_eq!(bench.engine.poll_timeout(), None);
    bench.send(b, "RPUSH k v\nLLEN k");
    assert_eq!(bench.read(b), ":1|:1|", "nobody waits any more");
}

#[test]
fn a_time_out_of_0_never_comes() {
    let mut bench = Bench::new();
    let a = bench.connect();
    bench.send(a, "BRPOP k 0");
    assert_eq!(bench.engine.poll_timeout(), None);
    bench.pass(i64::MAX / 4000);
    assert_eq!(bench.read(a), "");
    assert!(bench.engine.is_blocked(a));
}

#[test]
fn a_dead_client_takes_nothing() {
    let mut bench = Bench::new();
    let (dead, alive, pusher) = (bench.connect(), bench.connect(), bench.connect());
    bench.send(dead, "BLPOP k 0");
    bench.send(alive, "BLPOP k 0");
    bench.engine.disconnect(dead);
    bench.send(pusher, "RPUSH k v");
    assert_eq!(bench.read(alive), "*2|$1|k|$1|v|");
    assert_eq!(bench.read(pusher), ":1|");
}

#[test]
fn a_client_that_waits_for_two_keys_is_served_once() {
    let mut bench = Bench::new();
    let (a, pusher) = (bench.connect(), bench.connect());
    bench.send(a, "BLPOP x y x 0");
    bench.send(pusher, "RPUSH y 1\nRPUSH x 2\nLLEN x\nLLEN y");
    assert_eq!(bench.read(a), "*2|$1|y|$1|1|");
    assert_eq!(bench.read(pusher), ":1|:1|:1|:0|");
}

#[test]
fn an_unblocked_client_goes_on_after_the_batch_that_served_it() {
    let mut bench = Bench::new();
    let (a, pusher) = (bench.connect(), bench.connect());
    bench.send(a, "BLPOP k 0\nGET s");
    bench.send(pusher, "RPUSH k v\nSET s late");
    assert_eq!(bench.read(a), "*2|$1|k|$1|v|$4|late|");
}

#[test]
fn a_key_that_expires_before_it_is_looked_at_serves_nobody() {
    let mut bench = Bench::new();
    let (a, pusher) = (bench.connect(), bench.connect());
    bench.send(a, "BLPOP k 0");
    bench.send(pusher, "MULTI\nRPUSH k v\nPEXPIREAT k 1\nEXEC");
    assert_eq!(bench.read(a), "");
    bench.send(pusher, "RPUSH k w");
    assert_eq!(bench.read(a), "*2|$1|k|$1|w|");
}

#[test]
fn a_long_chain_of_clients_that_wake_each_other_needs_no_deep_stack() {
    const LINKS: usize = 5_000;
    let mut bench = Bench::new();
    let clients: Vec<_> = (0..LINKS).map(|_| bench.connect()).collect();
    for (link, id) in clients.iter().enumerate() {
        // Every second link is a move, the others push when they are answered.
        let next = link + 1;
        if link % 2 == 0 {
            bench.send(*id, &format!("BLMOVE k{link} k{next} LEFT RIGHT 0"));
        } else {
            bench.send(*id, &format!("BLPOP k{link} 0\nRPUSH k{next} v"));
        }
    }
    let pusher = bench.connect();
    bench.send(pusher, "RPUSH k0 v");
    assert!(clients.iter().all(|id| !bench.engine.is_blocked(*id)));
    bench.send(pusher, &format!("LLEN k{LINKS}"));
    assert_eq!(bench.read(pusher), ":1|:1|");
}
