//! Commands of the table: over bytes and as values they are answered alike.

use fakeserver::wire::{Request, encode};
use tests::compare::Order;
use tests::frame::Frame;
use tests::program::{CLIENTS, Program, Start};

use super::bench::Bench;
use fakeserver::engine::Peer;

/// Bytes from which one command is made.
const DRAW_LEN: usize = 24;

/// Four bytes choose what the commands have in common, each two and [`DRAW_LEN`] more are a command.
pub(super) fn run(bytes: &[u8]) -> Result<(), String> {
    let (start, rest) = bytes.split_at(bytes.len().min(4));
    let mut first = Start::default();
    first
        .iter_mut()
        .zip(start)
        .for_each(|(to, from)| *to = *from);
    let draws: Vec<_> = rest
        .chunks(DRAW_LEN + 2)
        .map(|draw| {
            let byte = |at: usize| draw.get(at).copied().unwrap_or(0);
            let which = u16::from_le_bytes([byte(0), byte(1)]);
            (which, draw.get(2..).unwrap_or_default().to_vec())
        })
        .collect();
    let program = Program::from_draws(first, &draws);
    let (mut wired, mut direct) = (Bench::new(), Bench::new());
    let wires: Vec<_> = (0..CLIENTS).map(|_| wired.connect()).collect();
    let values: Vec<_> = (0..CLIENTS)
        .map(|_| direct.engine.connect_direct(Peer::default(), direct.now))
        .collect();
    for (client, protocol) in program.protocols.iter().enumerate() {
        let hello = Request::new(["HELLO", *protocol]);
        wired.engine.submit(wires[client], hello.clone(), wired.now);
        direct.engine.submit(values[client], hello, direct.now);
        wired.output(wires[client]);
        while direct.engine.poll_reply(values[client]).is_some() {}
    }
    for step in &program.steps {
        let (wire, value) = (wires[step.client], values[step.client]);
        let packed = tests::raw::request(&step.words);
        wired.engine.receive(wire, &packed, wired.now);
        let spoken = direct.engine.protocol(value);
        direct
            .engine
            .submit(value, Request::new(&step.words), direct.now);
        let mut wanted = Vec::new();
        while let Some(reply) = direct.engine.poll_reply(value) {
            let now_spoken = direct.engine.protocol(value);
            // HELLO is answered in the protocol that it asks for.
            let protocol = if step.command == "hello" {
                now_spoken
            } else {
                spoken
            };
            encode(&reply, protocol, &mut wanted);
        }
        let got = wired.output(wire);
        well_formed(&got).map_err(|text| format!("{step:?}: {text}"))?;
        // Some replies are figures, of which only the kind is compared.
        let is_alike = is_own_affair(&step.command)
            || got == wanted
            || step.order == Order::Kind && got.first() == wanted.first();
        if !is_alike {
            return Err(format!(
                "{step:?}\nover bytes: {}\nas values: {}",
                String::from_utf8_lossy(&got),
                String::from_utf8_lossy(&wanted)
            ));
        }
    }
    Ok(())
}

/// Commands whose reply tells of the connection itself, or changes the protocol on the way.
fn is_own_affair(command: &str) -> bool {
    let names = [
        "client", "info", "memory", "debug", "exec", "reset", "quit", "hello",
    ];
    names.contains(&command.split('|').next().unwrap_or_default())
}

fn well_formed(mut bytes: &[u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        match Frame::parse(bytes) {
            Ok(Some((_, len))) => bytes = bytes.get(len..).unwrap_or_default(),
            Ok(None) => return Err("half a reply".to_owned()),
            Err(malformed) => return Err(malformed.0),
        }
    }
    Ok(())
}
