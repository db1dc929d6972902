//! The programs that are measured, as processes.

use std::io::{self, Read};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::process::Process;

const FAKEREDIS: &str = "import sys
from fakeredis import TcpFakeServer
TcpFakeServer(('127.0.0.1', int(sys.argv[1])), server_type='redis').serve_forever()";

/// A program that can be measured.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Peer {
    Ours,
    Redis,
    Valkey,
    FakeRedis,
}

impl Peer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::Ours => "fakeserver",
            Peer::Redis => "redis-server",
            Peer::Valkey => "valkey-server",
            Peer::FakeRedis => "fakeredis",
        }
    }

    pub(crate) fn is_installed(self) -> bool {
        let mut command = if self == Peer::FakeRedis {
            let mut python = Command::new("python3");
            python.args(["-c", "from fakeredis import TcpFakeServer"]);
            python
        } else {
            let mut program = Command::new(self.name());
            program.arg("--version");
            program
        };
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    fn command(self, port: &str) -> Command {
        let mut command = match self {
            Peer::Ours => Command::new(env!("CARGO_BIN_EXE_fakeserver")),
            Peer::Redis | Peer::Valkey => Command::new(self.name()),
            Peer::FakeRedis => Command::new("python3"),
        };
        match self {
            Peer::Ours => command.args(["--port", port]),
            Peer::FakeRedis => command.args(["-c", FAKEREDIS, port]),
            Peer::Redis | Peer::Valkey => command
                .args(["--port", port, "--bind", "127.0.0.1"])
                .args(["--save", "", "--appendonly", "no"]),
        };
        command
    }
}

/// A server's process, which ends with this value.
pub(crate) struct Server {
    pub(crate) peer: Peer,
    process: Process,
}

impl Server {
    /// Starts it and waits for its first reply.
    pub(crate) fn start(peer: Peer) -> io::Result<Server> {
        let process = Process::start(|port| peer.command(port))?;
        Ok(Server { peer, process })
    }

    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        self.process.connect()
    }

    pub(crate) fn cpu_seconds(&self) -> io::Result<f64> {
        // A thread for each connection: the nanoseconds of those that have ended are lost, the ticks are not.
        self.process.cpu_seconds(self.peer == Peer::FakeRedis)
    }

    pub(crate) fn rss_bytes(&self) -> io::Result<f64> {
        self.process.rss_bytes()
    }
}

/// Reads so many lines. Values hold no line breaks, so lines tell where replies end.
pub(crate) fn skip_lines(stream: &mut TcpStream, mut lines: usize) -> io::Result<()> {
    let mut chunk = [0; 16 * 1024];
    while lines > 0 {
        let len = stream.read(&mut chunk)?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if chunk[..len].starts_with(b"-") {
            return Err(io::Error::other(
                String::from_utf8_lossy(&chunk[..len]).into_owned(),
            ));
        }
        let ends = memchr::memchr_iter(b'\n', &chunk[..len]).count();
        lines -= ends.min(lines);
    }
    Ok(())
}
