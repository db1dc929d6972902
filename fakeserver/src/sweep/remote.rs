//! [`Remote`]: a real server behind the held programs, on which a finding is confirmed.
//!
//! Its clock cannot be moved and its inside not be seen, so time is waited for, keys are made to expire by shortening their time
//! to live, and a command whose reply does not come soon is taken to wait.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use super::SweepError;
use super::frame::{Frame, read_frame};
use super::search::{Origin, Source, prepare};
use super::upstream::{Delivery, Link, Upstream};
use crate::clock::Timestamp;
use crate::error::CommandError;
use crate::value::Blob;
use crate::wire::{Reply, Request};

/// A command that is not answered for so long waits for something.
const BLOCKED_AFTER: Duration = Duration::from_millis(50);

/// How long the server may take to answer the sweep's own commands.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How much time is waited for at once.
const TIME_STEP: Duration = Duration::from_millis(20);

/// Milliseconds of real time that a run may take: by so much a key may seem to have a shorter or a longer time to live.
const TOGETHER: i64 = 500;

/// Where a server is.
#[derive(Clone, Debug)]
pub(super) struct Address {
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
}

impl Address {
    /// Reads `redis://[[user]:password@]host[:port]`. None if it is something else.
    pub(super) fn parse(url: &str) -> Option<Address> {
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

    fn connect(&self) -> io::Result<Line> {
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

/// Servers for runs: the same one again and again, emptied.
pub(super) struct RemoteSource {
    pub(super) address: Address,
}

impl RemoteSource {
    /// The server's version. Errors: it cannot be reached, or holds keys.
    pub(super) fn check(&self) -> Result<String, SweepError> {
        let mut line = self.address.connect().map_err(SweepError::Server)?;
        let info = line.ask(&[b"INFO"]).map_err(SweepError::Server)?;
        let Reply::Bulk(info) = info else {
            let what = "it does not answer INFO";
            return Err(SweepError::Server(io::Error::other(what)));
        };
        let info = String::from_utf8_lossy(&info).into_owned();
        if info.lines().any(|line| line.starts_with("db")) {
            let what = "it holds keys: give a server that may be emptied";
            return Err(SweepError::Server(io::Error::other(what)));
        }
        let version = info
            .lines()
            .find_map(|line| line.strip_prefix("redis_version:"));
        Ok(format!(
            "redis-server {}",
            version.unwrap_or("of unknown version").trim()
        ))
    }
}

impl Source for RemoteSource {
    fn server(&mut self, origin: &Origin) -> Result<Box<dyn Upstream>, SweepError> {
        let own = self.address.connect().map_err(SweepError::Server)?;
        let mut server = Remote {
            address: self.address.clone(),
            lines: BTreeMap::new(),
            own,
            links: 0,
            now: origin.now,
            deliveries: VecDeque::new(),
        };
        for words in [
            &[&b"FLUSHALL"[..]][..],
            &[b"SCRIPT", b"FLUSH"],
            &[b"FUNCTION", b"FLUSH"],
        ] {
            server.ask(words);
        }
        prepare(&mut server, &origin.setup)?;
        Ok(Box::new(server))
    }
}

/// A connection to the server.
struct Line {
    stream: TcpStream,
    received: Vec<u8>,
    is_open: bool,
    /// Whether a command's reply is awaited.
    is_blocked: bool,
}

impl Line {
    fn new(stream: TcpStream) -> Line {
        Line {
            stream,
            received: Vec::new(),
            is_open: true,
            is_blocked: false,
        }
    }

    fn write(&mut self, words: &[&[u8]]) {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        self.is_open &= self.stream.write_all(&bytes).is_ok();
    }

    /// The next frame, waited for no longer than so long.
    fn next(&mut self, within: Duration) -> Option<Frame> {
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

    fn ask(&mut self, words: &[&[u8]]) -> io::Result<Reply> {
        self.write(words);
        let frame = self.next(ANSWER_WITHIN);
        let frame = frame.ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "no answer"))?;
        Ok(frame.reply)
    }
}

/// A server elsewhere.
struct Remote {
    address: Address,
    lines: BTreeMap<Link, Line>,
    own: Line,
    links: u64,
    /// What the clock shows that the schedule moves.
    now: Timestamp,
    deliveries: VecDeque<Delivery>,
}

impl Remote {
    /// A number from `INFO`.
    fn figure(&mut self, section: &str, names: &[&str]) -> u64 {
        let Reply::Bulk(info) = self.ask(&[b"INFO", section.as_bytes()]) else {
            return 0;
        };
        let info = String::from_utf8_lossy(&info).into_owned();
        let figures = info.lines().filter_map(|line| {
            let (name, figure) = line.trim().split_once(':')?;
            names.contains(&name).then(|| figure.parse::<u64>().ok())?
        });
        figures.sum()
    }

    /// Keys with a time to live: database, key, milliseconds.
    fn mortals(&mut self) -> Vec<(usize, Vec<u8>, i64)> {
        let mut found = Vec::new();
        for db in super::snapshot::used_databases(self) {
            self.ask(&[b"SELECT", db.to_string().as_bytes()]);
            for key in super::snapshot::flat(self.ask(&[b"KEYS", b"*"])) {
                if let Reply::Integer(ttl @ 0..) = self.ask(&[b"PTTL", &key]) {
                    found.push((db, key, ttl));
                }
            }
        }
        self.ask(&[b"SELECT", b"0"]);
        found
    }
}

impl Upstream for Remote {
    fn open(&mut self) -> io::Result<Link> {
        self.links += 1;
        let link = Link(self.links);
        self.lines.insert(link, self.address.connect()?);
        Ok(link)
    }

    fn submit(&mut self, link: Link, request: &Request) {
        let Some(line) = self.lines.get_mut(&link) else {
            return;
        };
        line.write(&request.words().collect::<Vec<_>>());
        line.is_blocked = true;
        loop {
            let Some(Frame { reply, bytes, .. }) = line.next(BLOCKED_AFTER) else {
                return;
            };
            let is_push = matches!(reply, Reply::Push(_));
            self.deliveries.push_back(Delivery { link, reply, bytes });
            if !is_push {
                line.is_blocked = false;
                return;
            }
        }
    }

    fn poll(&mut self) -> Option<Delivery> {
        if let Some(delivery) = self.deliveries.pop_front() {
            return Some(delivery);
        }
        for (link, line) in &mut self.lines {
            if let Some(Frame { reply, bytes, .. }) = line.next(Duration::ZERO) {
                line.is_blocked &= matches!(reply, Reply::Push(_));
                return Some(Delivery {
                    link: *link,
                    reply,
                    bytes,
                });
            }
        }
        None
    }

    fn close(&mut self, link: Link) {
        self.lines.remove(&link);
    }

    fn is_open(&self, link: Link) -> bool {
        self.lines.get(&link).is_some_and(|line| line.is_open)
    }

    fn is_blocked(&self, link: Link) -> bool {
        self.lines.get(&link).is_some_and(|line| line.is_blocked)
    }

    fn changes(&mut self) -> u64 {
        let saved = self.figure("persistence", &["rdb_changes_since_last_save"]);
        saved + self.figure("stats", &["expired_keys"])
    }

    fn pass_time(&mut self) -> Option<Duration> {
        thread::sleep(TIME_STEP);
        Some(TIME_STEP)
    }

    fn next_expiry(&mut self) -> Option<Timestamp> {
        let first = self.mortals().iter().map(|(_, _, ttl)| *ttl).min()?;
        Some(self.now.plus_millis(first.saturating_add(1)))
    }

    fn pass_until(&mut self, at: Timestamp) -> Vec<Blob> {
        let by = at.millis().saturating_sub(self.now.millis());
        if by <= 0 {
            return Vec::new();
        }
        self.now = at;
        let mut gone = Vec::new();
        for (db, key, ttl) in self.mortals() {
            self.ask(&[b"SELECT", db.to_string().as_bytes()]);
            let is_due = ttl <= by.saturating_add(TOGETHER);
            let left = if is_due { 1 } else { ttl - by };
            self.ask(&[b"PEXPIRE", &key, left.to_string().as_bytes()]);
            if is_due {
                while self.ask(&[b"EXISTS", &key]) == Reply::Integer(1) {
                    thread::sleep(Duration::from_millis(1));
                }
                gone.push(Blob::from(key));
            }
        }
        self.ask(&[b"SELECT", b"0"]);
        gone
    }

    fn ask(&mut self, words: &[&[u8]]) -> Reply {
        let failed = |error: io::Error| Reply::Error(CommandError::custom(error.to_string()));
        self.own.ask(words).unwrap_or_else(failed)
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
