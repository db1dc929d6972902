//! A server on a free port, for any client; its clock stands still until the test moves it.
//!
//! `cargo run -p fakeserver --example in_process`

#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use fakeserver::{Clock, Server};

fn main() -> std::io::Result<()> {
    let server = Server::builder()
        .clock(Clock::frozen_at(1_722_150_000_000))
        .start();
    let mut client = TcpStream::connect(("127.0.0.1", server.port()))?;

    println!("SET   {}", ask(&mut client, "SET session alive PX 1500")?);
    println!("PTTL  {}", ask(&mut client, "PTTL session")?);
    server.advance(Duration::from_secs(2));
    println!(
        "GET   {} after two seconds that nobody waited for",
        ask(&mut client, "GET session")?
    );
    Ok(())
}

/// Sends one inline request and reads its reply, which is short here.
fn ask(client: &mut TcpStream, request: &str) -> std::io::Result<String> {
    client.write_all(format!("{request}\r\n").as_bytes())?;
    let mut reply = [0; 256];
    let len = client.read(&mut reply)?;
    Ok(reply[..len].escape_ascii().to_string())
}
