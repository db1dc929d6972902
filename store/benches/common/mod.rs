//! What the benchmarks share: a server of their own, and what a round took.

use std::io;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{Connection, cmd};

pub(crate) fn number(name: &str, default: usize) -> usize {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What a round took.
pub(crate) struct Spent {
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
}

/// A server's process, which ends with this value.
pub(crate) struct Server {
    process: Child,
    port: u16,
}

impl Server {
    pub(crate) fn start() -> io::Result<Server> {
        // Free a moment ago; whoever takes it in between makes the start fail, not the measurement wrong.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let text = port.to_string();
        let process = Command::new("redis-server")
            .args(["--port", &text, "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| io::Error::other(format!("cannot start redis-server: {error}")))?;
        let server = Server { process, port };
        let until = Instant::now() + Duration::from_secs(20);
        while let Err(error) = server.connect() {
            if Instant::now() > until {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    /// A connection to an empty server.
    pub(crate) fn connect(&self) -> io::Result<Connection> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/", self.port));
        let connection = client.and_then(|client| client.get_connection());
        let mut connection = connection.map_err(io::Error::other)?;
        cmd("FLUSHALL")
            .exec(&mut connection)
            .map_err(io::Error::other)?;
        Ok(connection)
    }

    /// User and system time of the process's main thread so far, by the kernel's nanoseconds.
    pub(crate) fn cpu_s(&self) -> io::Result<f64> {
        let id = self.process.id();
        let times = std::fs::read_to_string(format!("/proc/{id}/task/{id}/schedstat"))?;
        let nanos = times.split_whitespace().next();
        let nanos = nanos.and_then(|nanos| nanos.parse::<u64>().ok());
        nanos
            .map(|nanos| nanos as f64 / 1e9)
            .ok_or_else(|| io::Error::other("the kernel tells no times"))
    }

    pub(crate) fn spent(&self, begin: Instant, before: f64) -> io::Result<Spent> {
        Ok(Spent {
            cpu_s: self.cpu_s()? - before,
            wall_s: begin.elapsed().as_secs_f64(),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
