//! Servers as processes: started, connected to, and asked what they have used.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Linux counts process times in hundredths of a second, whatever its own clock.
const TICKS_PER_SECOND: f64 = 100.0;

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
    process: Child,
    port: u16,
}

impl Server {
    /// Starts it and waits for its first reply.
    pub(crate) fn start(peer: Peer) -> io::Result<Server> {
        // Free a moment ago; whoever takes it in between makes the start fail, not the measurement wrong.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = peer
            .command(&port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| io::Error::other(format!("cannot start {}: {error}", peer.name())))?;
        let server = Server {
            peer,
            process,
            port,
        };
        server.await_pong()?;
        Ok(server)
    }

    fn await_pong(&self) -> io::Result<()> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let pong = self.connect().and_then(|mut stream| {
                stream.write_all(b"*1\r\n$4\r\nPING\r\n")?;
                skip_lines(&mut stream, 1)
            });
            match pong {
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_micros(100)),
                Ok(()) => return Ok(()),
            }
        }
    }

    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(stream)
    }

    /// User and system time so far: by its threads' nanoseconds where the kernel tells them, or else in ticks.
    pub(crate) fn cpu_seconds(&self) -> io::Result<f64> {
        let process = format!("/proc/{}", self.process.id());
        // A thread for each connection: the nanoseconds of those that have ended are lost, the ticks are not.
        if self.peer != Peer::FakeRedis
            && let Some(nanos) = thread_nanos(Path::new(&process))
        {
            return Ok(nanos as f64 / 1e9);
        }
        let stat = std::fs::read_to_string(format!("{process}/stat"))?;
        // The program's name, in brackets, may hold blanks; what is counted comes behind it.
        let behind = stat.rsplit(')').next().unwrap_or_default();
        let fields: Vec<&str> = behind.split_whitespace().collect();
        let ticks = |index: usize| {
            let field = fields
                .get(index)
                .and_then(|field| field.parse::<f64>().ok());
            field.unwrap_or(0.0)
        };
        Ok((ticks(11) + ticks(12)) / TICKS_PER_SECOND)
    }

    pub(crate) fn rss_bytes(&self) -> io::Result<f64> {
        rss_bytes(&self.process.id().to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Resident memory of a process; `self` is this one.
pub(crate) fn rss_bytes(process: &str) -> io::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes
        .map(|kilobytes| kilobytes * 1024.0)
        .ok_or_else(|| io::Error::other("the kernel does not tell how much memory is resident"))
}

fn thread_nanos(process: &Path) -> Option<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir(process.join("task")).ok()? {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        sum += text.split(' ').next()?.parse::<u64>().ok()?;
    }
    Some(sum)
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
