//! [`Address`] and [`Line`]: a connection that is written and read when told, so that the order of commands is ours.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::frame::{Frame, read_frame};
use crate::wire::{Reply, encode_request};

/// How long the server may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Where a server is.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
}

impl Address {
    /// Reads `redis://[[user]:password@]host[:port]`. None if it is something else.
    pub(crate) fn parse(url: &str) -> Option<Address> {
        let rest = url.strip_prefix("redis://")?.trim_end_matches('/');
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (place, 6379),
        };
        if host.is_empty() || place.contains('/') {
            return None;
        }
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or(("", login)))
        {
            Some((user, password)) => (Some(user).filter(|user| !user.is_empty()), Some(password)),
            None => (None, None),
        };
        Some(Address {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            user: user.map(str::to_owned),
            password: password.map(str::to_owned),
        })
    }

    /// A new connection, authenticated.
    pub(crate) fn connect(&self) -> io::Result<Line> {
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, ANSWER_WITHIN) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    let mut line = Line::new(stream);
                    self.log_in(&mut line)?;
                    return Ok(line);
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn log_in(&self, line: &mut Line) -> io::Result<()> {
        let Some(password) = &self.password else {
            return Ok(());
        };
        let user = self.user.as_ref().map(String::as_bytes);
        let words = [Some(&b"AUTH"[..]), user, Some(password.as_bytes())];
        match line.ask(&words.into_iter().flatten().collect::<Vec<_>>())? {
            Reply::Error(error) => Err(io::Error::other(error.to_string())),
            _ => Ok(()),
        }
    }
}

/// A connection to the server.
pub(crate) struct Line {
    stream: TcpStream,
    received: Vec<u8>,
    is_open: bool,
}

impl Line {
    fn new(stream: TcpStream) -> Line {
        Line {
            stream,
            received: Vec::new(),
            is_open: true,
        }
    }

    /// Whether neither side has closed it.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Sends a command.
    pub(crate) fn write(&mut self, words: &[&[u8]]) {
        let mut bytes = Vec::new();
        encode_request(words, &mut bytes);
        self.is_open &= self.stream.write_all(&bytes).is_ok();
    }

    /// The next frame, waited for no longer than so long.
    pub(crate) fn next(&mut self, within: Duration) -> Option<Frame> {
        let until = Instant::now() + within;
        let mut buffer = [0; 16 * 1024];
        loop {
            match read_frame(&self.received) {
                Ok(Some(frame)) => {
                    self.received.drain(..frame.len);
                    return Some(frame);
                }
                Ok(None) => {}
                Err(_) => self.is_open = false,
            }
            let left = until.saturating_duration_since(Instant::now());
            if !self.is_open {
                return None;
            }
            // A time-out of zero would mean none at all.
            let patience = left.max(Duration::from_millis(1));
            if self.stream.set_read_timeout(Some(patience)).is_err() {
                self.is_open = false;
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => self.is_open = false,
                Ok(len) => self
                    .received
                    .extend_from_slice(buffer.get(..len).unwrap_or_default()),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    if left.is_zero() {
                        return None;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.is_open = false,
            }
        }
    }

    /// Sends a command and waits for its reply.
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> io::Result<Reply> {
        self.write(words);
        let frame = self.next(ANSWER_WITHIN);
        let frame = frame.ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "no answer"))?;
        Ok(frame.reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_all_forms_are_read() {
        let of = |url| Address::parse(url).map(|a| (a.host, a.port, a.user, a.password));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            of("redis://localhost"),
            Some(("localhost".to_owned(), 6379, None, None))
        );
        assert_eq!(
            of("redis://:p@h:1/"),
            Some(("h".to_owned(), 1, None, some("p")))
        );
        assert_eq!(
            of("redis://u:p@[::1]:7"),
            Some(("::1".to_owned(), 7, some("u"), some("p")))
        );
        for bad in [
            "",
            "localhost:6379",
            "rediss://h",
            "redis://",
            "redis://h:port",
            "redis://h/1",
        ] {
            assert!(Address::parse(bad).is_none(), "{bad}");
        }
    }
}
