//! A server's process, and a client that counts replies.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::common::request;
use crate::process::Process;

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Peer {
    Ours,
    Theirs,
}

impl Peer {
    fn command(self, port: &str) -> Command {
        match self {
            Peer::Ours => {
                let program = std::env::var("GROWTH_PROGRAM");
                let program = program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_fakeserver").into());
                let mut command = Command::new(program);
                command.args(["--port", port, "--enable-debug-command"]);
                command
            }
            Peer::Theirs => {
                let mut command = Command::new("redis-server");
                command
                    .args(["--port", port, "--bind", "127.0.0.1"])
                    .args(["--save", "", "--appendonly", "no"])
                    .args(["--enable-debug-command", "yes"]);
                command
            }
        }
    }
}

/// Ends with this value.
pub(crate) struct Server(Process);

impl Server {
    pub(crate) fn start(peer: Peer) -> io::Result<Server> {
        Process::start(|port| peer.command(port)).map(Server)
    }

    pub(crate) fn client(&self) -> io::Result<Client> {
        Ok(Client {
            input: BufReader::with_capacity(4096, self.0.connect()?),
        })
    }

    /// Microseconds of CPU so far.
    pub(crate) fn cpu_micros(&self) -> io::Result<f64> {
        self.0.cpu_seconds(false).map(|seconds| seconds * 1e6)
    }

    pub(crate) fn rss_bytes(&self) -> io::Result<f64> {
        self.0.rss_bytes()
    }
}

/// A connection.
pub(crate) struct Client {
    input: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.input.get_mut().write_all(bytes)
    }

    /// The first line of the reply to one request.
    pub(crate) fn ask(&mut self, words: &[&str]) -> io::Result<String> {
        self.send(&request(words))?;
        self.reply()
    }

    /// Reads one reply and returns its last line that is no bulk; an error is one.
    pub(crate) fn reply(&mut self) -> io::Result<String> {
        let (mut left, mut last) = (1_usize, String::new());
        while left > 0 {
            left -= 1;
            let mut line = String::new();
            if self.input.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let number = || line[1..].trim_end().parse::<i64>().unwrap_or(-1);
            match line.as_bytes().first() {
                Some(b'-') => return Err(io::Error::other(line)),
                Some(b'*') => left += usize::try_from(number()).unwrap_or(0),
                Some(b'$') if number() >= 0 => {
                    let mut bulk = vec![0; number() as usize + 2];
                    self.input.read_exact(&mut bulk)?;
                    if last.is_empty() && bulk.len() < 64 {
                        String::from_utf8_lossy(&bulk)
                            .trim_end()
                            .clone_into(&mut last);
                    }
                }
                _ => line.trim_end().clone_into(&mut last),
            }
        }
        Ok(last)
    }

    pub(crate) fn replies(&mut self, count: usize) -> io::Result<()> {
        (0..count).try_for_each(|_| self.reply().map(|_| ()))
    }

    /// Sends so many requests, made by number, in batches that fit into any socket's buffers.
    pub(crate) fn pour(
        &mut self,
        count: usize,
        mut make: impl FnMut(usize) -> Vec<u8>,
    ) -> io::Result<()> {
        const BATCH: usize = 256;
        for from in (0..count).step_by(BATCH) {
            let to = (from + BATCH).min(count);
            let bytes: Vec<u8> = (from..to).flat_map(&mut make).collect();
            self.send(&bytes)?;
            self.replies(to - from)?;
        }
        Ok(())
    }
}
