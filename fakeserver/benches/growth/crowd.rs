//! Ten thousand connections: half of them idle, a tenth subscribed, the rest asking.

use std::io::{self, Write};

use crate::peer::{Peer, Server};

const CONNECTIONS: usize = 10_000;

pub(crate) fn print(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\n{CONNECTIONS} connections, half idle, a tenth subscribed: bytes of server memory per connection"
    )?;
    let mut figures = Vec::new();
    for (name, peer) in [("redis-server", Peer::Theirs), ("fakeserver", Peer::Ours)] {
        let (idle, used) = measure(peer)?;
        writeln!(out, "{name:<14} {idle:>8.0} connected {used:>8.0} in use")?;
        figures.push(used);
    }
    writeln!(out, "ratio in use   {:.2}", figures[0] / figures[1])
}

/// Bytes per connection, newly made and after each has had its turn.
fn measure(peer: Peer) -> io::Result<(f64, f64)> {
    let server = Server::start(peer)?;
    let mut control = server.client()?;
    let limit = (CONNECTIONS + 16).to_string();
    control.ask(&["CONFIG", "SET", "maxclients", &limit])?;
    control.ask(&["SET", "key", "value"])?;
    let before = server.rss_bytes()?;
    let per_connection = |now: f64| (now - before) / CONNECTIONS as f64;
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let client = server.client().map_err(|error| {
            io::Error::other(format!(
                "{error}: are {CONNECTIONS} files allowed (`ulimit -n`)?"
            ))
        })?;
        clients.push(client);
    }
    control.ask(&["PING"])?;
    let idle = per_connection(server.rss_bytes()?);
    let (subscribers, rest) = clients.split_at_mut(CONNECTIONS / 10);
    for client in &mut *subscribers {
        client.ask(&["SUBSCRIBE", "news"])?;
    }
    let askers = rest.len() - CONNECTIONS / 2;
    for client in &mut rest[..askers] {
        client.ask(&["GET", "key"])?;
    }
    let heard = control.ask(&["PUBLISH", "news", "text"])?;
    if heard != format!(":{}", subscribers.len()) {
        return Err(io::Error::other(format!("PUBLISH reached {heard}")));
    }
    for client in subscribers {
        client.reply()?;
    }
    for client in rest {
        client.ask(&["PING"])?;
    }
    Ok((idle, per_connection(server.rss_bytes()?)))
}
