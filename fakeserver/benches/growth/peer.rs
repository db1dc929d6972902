//! A server's process, and a client that counts replies.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::request;

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Peer {
    Ours,
    Theirs,
}

/// Ends with this value.
pub(crate) struct Server {
    process: Child,
    port: u16,
}

impl Server {
    pub(crate) fn start(peer: Peer) -> io::Result<Server> {
        // Free a moment ago; whoever takes it in between makes the start fail, not the measurement wrong.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let text = port.to_string();
        let (program, arguments) = match peer {
            Peer::Ours => {
                let program = std::env::var("GROWTH_PROGRAM");
                let program = program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_fakeserver").into());
                (program, format!("--port {text} --enable-debug-command"))
            }
            Peer::Theirs => {
                let rest = "--bind 127.0.0.1 --appendonly no --enable-debug-command yes --save";
                ("redis-server".to_owned(), format!("--port {text} {rest} "))
            }
        };
        let process = Command::new(&program)
            // The blank at the end of redis-server's line is the empty schedule of snapshots.
            .args(arguments.split(' '))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| io::Error::other(format!("cannot start {program}: {error}")))?;
        let server = Server { process, port };
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            match server.client().and_then(|mut it| it.ask(&["PING"])) {
                Ok(_) => return Ok(server),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    pub(crate) fn client(&self) -> io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(Client {
            input: BufReader::with_capacity(4096, stream),
        })
    }

    /// Nanoseconds of CPU that the process's threads have had so far.
    pub(crate) fn cpu_nanos(&self) -> io::Result<u64> {
        let tasks = format!("/proc/{}/task", self.process.id());
        let mut sum = 0;
        for task in std::fs::read_dir(Path::new(&tasks))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            let first = text.split(' ').next().and_then(|it| it.parse::<u64>().ok());
            sum += first.unwrap_or(0);
        }
        Ok(sum)
    }

    /// Bytes of memory in use by the process.
    pub(crate) fn resident(&self) -> io::Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
        Ok(kilobytes.unwrap_or(0) * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
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
