//! [`Remote`]: a real server behind the held programs, on which a finding is confirmed.
//!
//! Its clock cannot be moved and its inside not be seen, so time is waited for, keys are made to expire by shortening their time
//! to live, and a command whose reply does not come soon is taken to wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::thread;
use std::time::Duration;

use super::SweepError;
use super::search::{Origin, Source, prepare};
use super::upstream::{Delivery, Link, Upstream};
use crate::clock::Timestamp;
use crate::error::CommandError;
use crate::remote::{self, Address, Frame, Line};
use crate::value::Blob;
use crate::wire::{Reply, Request};

/// A command that is not answered for so long waits for something.
const BLOCKED_AFTER: Duration = Duration::from_millis(50);

/// How much time is waited for at once.
const TIME_STEP: Duration = Duration::from_millis(20);

/// Servers for runs: the same one again and again, emptied.
pub(super) struct RemoteSource {
    pub(super) address: Address,
}

impl RemoteSource {
    /// The server's version. Errors: it cannot be reached, or holds keys.
    pub(super) fn check(&self) -> Result<String, SweepError> {
        let mut line = self.address.connect().map_err(SweepError::Server)?;
        remote::version_if_empty(&mut line).map_err(SweepError::Server)
    }
}

impl Source for RemoteSource {
    fn server(&mut self, origin: &Origin) -> Result<Box<dyn Upstream>, SweepError> {
        let own = self.address.connect().map_err(SweepError::Server)?;
        let mut server = Remote {
            address: self.address.clone(),
            lines: BTreeMap::new(),
            blocked: BTreeSet::new(),
            own,
            links: 0,
            now: origin.now,
            deliveries: VecDeque::new(),
        };
        remote::empty(&mut |words| server.ask(words));
        prepare(&mut server, &origin.setup)?;
        Ok(Box::new(server))
    }
}

/// A server elsewhere.
struct Remote {
    address: Address,
    lines: BTreeMap<Link, Line>,
    /// Those on which a command's reply is awaited.
    blocked: BTreeSet<Link>,
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
        self.blocked.insert(link);
        loop {
            let Some(Frame { reply, bytes, .. }) = line.next(BLOCKED_AFTER) else {
                return;
            };
            let is_push = matches!(reply, Reply::Push(_));
            self.deliveries.push_back(Delivery { link, reply, bytes });
            if !is_push {
                self.blocked.remove(&link);
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
                if !matches!(reply, Reply::Push(_)) {
                    self.blocked.remove(link);
                }
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
        self.blocked.remove(&link);
    }

    fn is_open(&self, link: Link) -> bool {
        self.lines.get(&link).is_some_and(Line::is_open)
    }

    fn is_blocked(&self, link: Link) -> bool {
        self.blocked.contains(&link)
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
        let mortals = remote::mortals(&mut |words| self.ask(words));
        let first = mortals.iter().map(|(_, _, ttl)| *ttl).min()?;
        Some(self.now.plus_millis(first.saturating_add(1)))
    }

    fn pass_until(&mut self, at: Timestamp) -> Vec<Blob> {
        let by = at.millis().saturating_sub(self.now.millis());
        if by <= 0 {
            return Vec::new();
        }
        self.now = at;
        let gone = remote::shorten_lives(&mut |words| self.ask(words), by);
        gone.into_iter().map(Blob::from).collect()
    }

    fn ask(&mut self, words: &[&[u8]]) -> Reply {
        let failed = |error: io::Error| Reply::Error(CommandError::custom(error.to_string()));
        self.own.ask(words).unwrap_or_else(failed)
    }
}
