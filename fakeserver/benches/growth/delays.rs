//! How long another client waits while one does something large.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::common::request;
use crate::peer::{Client, Peer, Server};
use crate::process::quantile;
use crate::{LARGE, Plan, median};

/// How long the other client rests between two questions.
const REST: Duration = Duration::from_micros(200);

/// What a client does: first unobserved, then observed.
struct Load {
    name: &'static str,
    /// The most keys or members of it.
    most: usize,
    prepare: fn(&mut Client, usize) -> io::Result<()>,
    act: fn(&mut Client, usize) -> io::Result<()>,
}

const LOADS: &[Load] = &[
    Load {
        name: "nothing",
        most: LARGE,
        prepare: |_, _| Ok(()),
        act: |_, _| {
            std::thread::sleep(Duration::from_millis(500));
            Ok(())
        },
    },
    Load {
        name: "SCAN of all keys",
        most: LARGE,
        prepare: populate,
        act: scan_all,
    },
    Load {
        name: "keys that double",
        most: LARGE,
        prepare: populate,
        act: |client, keys| {
            client.pour(keys + keys / 4, |at| {
                request(&["SET", &format!("more:{at}"), "v"])
            })
        },
    },
    Load {
        name: "all keys expire at once",
        most: LARGE,
        prepare: set_to_expire,
        act: await_expiry,
    },
    Load {
        name: "FLUSHALL SYNC",
        most: usize::MAX,
        prepare: populate,
        act: |client, _| client.ask(&["FLUSHALL", "SYNC"]).map(|_| ()),
    },
    Load {
        name: "FLUSHALL ASYNC",
        most: usize::MAX,
        prepare: populate,
        act: |client, _| client.ask(&["FLUSHALL", "ASYNC"]).map(|_| ()),
    },
    Load {
        name: "DEL of a sorted set",
        most: LARGE,
        prepare: sorted_set,
        act: |client, _| client.ask(&["DEL", "zset"]).map(|_| ()),
    },
    Load {
        name: "UNLINK of a sorted set",
        most: LARGE,
        prepare: sorted_set,
        act: |client, _| client.ask(&["UNLINK", "zset"]).map(|_| ()),
    },
    Load {
        name: "ZADD to a sorted set",
        most: LARGE,
        prepare: sorted_set,
        act: |client, members| {
            client.pour(members / 4, |at| {
                let (score, member) = (at * 7 % members, format!("member:{}", at * 5));
                request(&["ZADD", "zset", &score.to_string(), &member])
            })
        },
    },
    Load {
        name: "ZRANGEBYSCORE of a tenth",
        most: LARGE,
        prepare: sorted_set,
        act: |client, members| {
            let (from, to) = (members / 2, members / 2 + members / 10);
            let range = ["ZRANGEBYSCORE", "zset", &from.to_string(), &to.to_string()];
            client.ask(&range).map(|_| ())
        },
    },
    Load {
        name: "ZRANGEBYSCORE of all",
        most: LARGE,
        prepare: sorted_set,
        act: |client, _| {
            client
                .ask(&["ZRANGEBYSCORE", "zset", "-inf", "+inf"])
                .map(|_| ())
        },
    },
    Load {
        name: "pipeline of 100,000",
        most: LARGE,
        prepare: populate,
        act: pipeline,
    },
    Load {
        name: "slow reader of 64 MB",
        most: LARGE,
        prepare: |client, _| {
            let value = "x".repeat(1024 * 1024);
            client.ask(&["SET", "large", &value]).map(|_| ())
        },
        act: read_slowly,
    },
];

pub(crate) fn print(plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nanother client's delay in ms by keys or members: redis-server / fakeserver; median of {} rounds",
        plan.rounds
    )?;
    writeln!(
        out,
        "{:<24} {:>9} {:>22} {:>22} {:>9}",
        "", "", "p99.9", "longest", "ratio"
    )?;
    for load in LOADS {
        let size = plan.keys.min(load.most);
        let (mut tails, mut peaks) = ([vec![], vec![]], [vec![], vec![]]);
        for _ in 0..plan.rounds {
            for (at, peer) in [Peer::Theirs, Peer::Ours].into_iter().enumerate() {
                let (tail, peak) = observe(load, peer, size)?;
                tails[at].push(tail);
                peaks[at].push(peak);
            }
        }
        let [tail, our_tail] = tails.map(|mut it| median(&mut it));
        let [peak, our_peak] = peaks.map(|mut it| median(&mut it));
        writeln!(
            out,
            "{:<24} {size:>9} {tail:>10.2} / {our_tail:>9.2} {peak:>10.2} / {our_peak:>9.2} {:>9.2}",
            load.name,
            peak / our_peak
        )?;
        out.flush()?;
    }
    Ok(())
}

/// The 99.9th percentile and the longest of another client's delays, in milliseconds.
fn observe(load: &Load, peer: Peer, keys: usize) -> io::Result<(f64, f64)> {
    let server = Server::start(peer)?;
    let (mut acting, mut other) = (server.client()?, server.client()?);
    (load.prepare)(&mut acting, keys)?;
    let over = AtomicBool::new(false);
    let (acted, delays) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask_until(&mut other, &over));
        std::thread::sleep(Duration::from_millis(20));
        let acted = (load.act)(&mut acting, keys);
        // What goes on behind the reply counts as well.
        std::thread::sleep(Duration::from_millis(100));
        over.store(true, Ordering::Relaxed);
        (acted, asking.join())
    });
    acted?;
    let mut delays = delays.map_err(|_| io::Error::other("the observer failed"))??;
    Ok((quantile(&mut delays, 0.999), quantile(&mut delays, 1.0)))
}

fn ask_until(client: &mut Client, over: &AtomicBool) -> io::Result<Vec<f64>> {
    let mut delays = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        client.ask(&["PING"])?;
        delays.push(begin.elapsed().as_secs_f64() * 1e3);
        std::thread::sleep(REST);
    }
    Ok(delays)
}

fn populate(client: &mut Client, keys: usize) -> io::Result<()> {
    client
        .ask(&["DEBUG", "POPULATE", &keys.to_string()])
        .map(|_| ())
}

fn scan_all(client: &mut Client, _: usize) -> io::Result<()> {
    let mut cursor = "0".to_owned();
    loop {
        // A reply's first short text is the next cursor.
        cursor = client.ask(&["SCAN", &cursor, "COUNT", "1000"])?;
        if cursor == "0" {
            return Ok(());
        }
    }
}

fn set_to_expire(client: &mut Client, keys: usize) -> io::Result<()> {
    // Far enough away that all are there, and then all are brought forward by one script.
    populate(client, keys)?;
    let script = "local t = redis.call('TIME') local at = (t[1] + 2) * 1000 \
        for n = 0, ARGV[1] - 1 do redis.call('PEXPIREAT', 'key:' .. n, at) end return 1";
    client
        .ask(&["EVAL", script, "0", &keys.to_string()])
        .map(|_| ())
}

/// Until no key is left, or for eight seconds: redis-server spreads the work out.
fn await_expiry(client: &mut Client, _: usize) -> io::Result<()> {
    let until = SystemTime::now() + Duration::from_secs(8);
    while SystemTime::now() < until && client.ask(&["DBSIZE"])? != ":0" {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn sorted_set(client: &mut Client, members: usize) -> io::Result<()> {
    client.pour(members.div_ceil(500), |at| {
        let mut words = vec!["ZADD".to_owned(), "zset".to_owned()];
        for n in at * 500..(at * 500 + 500).min(members) {
            words.extend([n.to_string(), format!("member:{n}")]);
        }
        request(&words.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

fn pipeline(client: &mut Client, _: usize) -> io::Result<()> {
    const REQUESTS: usize = 100_000;
    let bytes: Vec<u8> = (0..REQUESTS)
        .flat_map(|at| request(&["GET", &format!("key:{at}")]))
        .collect();
    client.send(&bytes)?;
    client.replies(REQUESTS)
}

fn read_slowly(client: &mut Client, _: usize) -> io::Result<()> {
    const REPLIES: usize = 64;
    client.send(&request(&["GET", "large"]).repeat(REPLIES))?;
    for _ in 0..REPLIES {
        client.reply()?;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
