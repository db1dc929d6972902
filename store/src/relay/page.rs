//! Bounded pages of outbox and spawns.

use redis::{Cmd, Value, cmd};

use super::{Origin, Poison};
use crate::{
    OutboxEntry, Seq, Settings, SpawnEntry, StoreError, codec,
    op::{Batch, Operation, Replies, Step, reply, scan, validate},
};

/// Most entries that a page may be asked for: about what a server answers within a few milliseconds.
pub const PAGE_MAX: u32 = 10_000;

/// Where a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PageStart {
    /// Wherever the server finds it cheapest (`HSCAN`). Going on to the end meets every entry that was there all the time;
    /// the order is by seq within a page and arbitrary between pages, and a page may be somewhat longer than its limit.
    #[default]
    Anywhere,
    /// At this seq, and from there on by seq (`HMGET`): the oldest first, if the caller keeps the least seq that it has not
    /// seen acknowledged. A page covers so many numbers as its limit says, of which some may be unused. Seqs are not drawn in
    /// the order of commits: a writer that draws them before it commits may fill a gap behind a reader, so that from time to
    /// time one has to begin anywhere, or anew.
    Oldest(Seq),
    /// Where another page ended.
    At(Continuation),
}

/// Where a page ended. Opaque.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Continuation(pub(super) Place);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Cursor(u64),
    Seq(i64),
    /// Timers of this score (its bits), and how many of them were seen.
    Score(u64, u64),
}

/// A part of what waits.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RelayPage<E> {
    /// What can be worked off, the oldest first.
    pub entries: Vec<E>,
    /// What can not be read. It stays where it is until it is set aside with [`Quarantine`](super::Quarantine).
    pub poison: Vec<Poison>,
    /// How much waits in all, as of the beginning of this page.
    pub waiting: u64,
    /// Where to go on; none at the end. A page may be empty and have a successor.
    pub next: Option<Continuation>,
}

/// What waits in a hash by seq: [`OutboxEntry`], [`SpawnEntry`].
pub trait Entry: Sized {
    /// Which hash.
    const ORIGIN: Origin;

    /// The entry in a field.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    fn decode(key: &str, field: &[u8], value: &[u8]) -> Result<Self, StoreError>;

    /// Refuses an entry that could be read but not be worked off.
    ///
    /// # Errors
    /// [`StoreError::Invalid`].
    fn check(&self, settings: &Settings) -> Result<(), StoreError>;

    /// Its position.
    fn seq(&self) -> Seq;

    /// The value exactly as it is stored.
    fn stored(&self) -> &[u8];
}

impl Entry for OutboxEntry {
    const ORIGIN: Origin = Origin::Outbox;

    fn decode(key: &str, field: &[u8], value: &[u8]) -> Result<Self, StoreError> {
        codec::decode_outbox(key, field, value)
    }

    fn check(&self, settings: &Settings) -> Result<(), StoreError> {
        let Some(target) = &self.target_id else {
            return Ok(());
        };
        validate::execution_id(settings, "target id", target)?;
        validate::event_to_publish(settings, &self.event)
    }

    fn seq(&self) -> Seq {
        self.seq
    }

    fn stored(&self) -> &[u8] {
        self.stored.bytes()
    }
}

impl Entry for SpawnEntry {
    const ORIGIN: Origin = Origin::Spawns;

    fn decode(key: &str, field: &[u8], value: &[u8]) -> Result<Self, StoreError> {
        codec::decode_spawn(key, field, value)
    }

    fn check(&self, settings: &Settings) -> Result<(), StoreError> {
        validate::execution_id(settings, "child id", &self.child_id)
    }

    fn seq(&self) -> Seq {
        self.seq
    }

    fn stored(&self) -> &[u8] {
        self.stored.bytes()
    }
}

/// `HLEN`, and `HSCAN` or `HMGET`, in one round trip: a page of outbox or spawns. Only reads.
#[derive(Debug)]
pub struct EntryPage<E> {
    settings: Settings,
    key: String,
    start: PageStart,
    limit: u32,
    entry: std::marker::PhantomData<fn() -> E>,
}

impl<E: Entry> EntryPage<E> {
    /// From there on, of about so many entries ([`PAGE_MAX`] at most).
    pub fn new(settings: &Settings, start: PageStart, limit: u32) -> Self {
        Self {
            key: E::ORIGIN.key(settings.keys()),
            settings: settings.clone(),
            start,
            limit: limit.clamp(1, PAGE_MAX),
            entry: std::marker::PhantomData,
        }
    }

    fn begin(&self) -> Place {
        match self.start {
            PageStart::Anywhere => Place::Cursor(0),
            PageStart::Oldest(seq) => Place::Seq(seq.get()),
            PageStart::At(Continuation(place)) => place,
        }
    }

    fn seqs(&self, from: i64) -> impl Iterator<Item = i64> + use<E> {
        from..from.saturating_add(i64::from(self.limit))
    }

    fn ask(&self) -> Batch {
        let length = cmd("HLEN").arg(&self.key).take();
        let rest: Vec<Cmd> = match self.begin() {
            Place::Seq(from) => {
                let counter = E::ORIGIN.counter(self.settings.keys());
                let mut fields = cmd("HMGET");
                fields.arg(&self.key);
                for seq in self.seqs(from) {
                    fields.arg(seq);
                }
                vec![cmd("GET").arg(counter).take(), fields]
            }
            Place::Cursor(cursor) => vec![self.scan(cursor)],
            Place::Score(..) => vec![self.scan(0)],
        };
        Batch::shared([length].into_iter().chain(rest))
    }

    fn scan(&self, cursor: u64) -> Cmd {
        let mut scan = cmd("HSCAN");
        scan.arg(&self.key).arg(cursor).arg("COUNT").arg(self.limit);
        scan
    }

    fn page(&self, waiting: u64, fields: Vec<scan::Pair>) -> RelayPage<E> {
        let mut page = RelayPage {
            entries: Vec::with_capacity(fields.len()),
            poison: Vec::new(),
            waiting,
            next: None,
        };
        for (field, value) in fields {
            match self.entry(&field, &value) {
                Ok(entry) => page.entries.push(entry),
                Err(error) => page
                    .poison
                    .push(Poison::new(E::ORIGIN, field, value, &error)),
            }
        }
        page.entries.sort_by_key(E::seq);
        // A scan may show a field twice while the hash grows or shrinks.
        page.entries.dedup_by_key(|entry| entry.seq());
        page
    }

    fn entry(&self, field: &[u8], value: &[u8]) -> Result<E, StoreError> {
        let entry = E::decode(&self.key, field, value)?;
        if entry.seq().to_string().as_bytes() != field {
            return Err(StoreError::Corrupt {
                key: self.key.clone(),
                field: None,
                reason: "field is not spelled as a seq".to_owned(),
            });
        }
        entry.check(&self.settings)?;
        Ok(entry)
    }

    fn scanned(&self, replies: Replies) -> Result<RelayPage<E>, StoreError> {
        let [length, scanned] = replies.harmless()?;
        let waiting = self.length(length)?;
        let scanned = reply::accepted(scanned, "HSCAN", &self.key)?;
        let (cursor, fields) = scan::parts(scanned, "HSCAN")?;
        let mut page = self.page(waiting, scan::pairs(fields, "HSCAN")?);
        page.next = (cursor != 0).then_some(Continuation(Place::Cursor(cursor)));
        Ok(page)
    }

    fn picked(&self, from: i64, replies: Replies) -> Result<RelayPage<E>, StoreError> {
        let unexpected = || reply::unexpected("HMGET");
        let [length, counter, values] = replies.harmless()?;
        let waiting = self.length(length)?;
        let counter_key = E::ORIGIN.counter(self.settings.keys());
        let counter = match reply::accepted(counter, "GET", &counter_key)? {
            Value::Nil => 0,
            counter => reply::integer(&counter).ok_or_else(|| StoreError::Corrupt {
                key: counter_key,
                field: None,
                reason: "not an integer".to_owned(),
            })?,
        };
        let values = reply::accepted(values, "HMGET", &self.key)?;
        let values = reply::items(values).ok_or_else(unexpected)?;
        let fields = self.seqs(from).zip(values).filter_map(|(seq, value)| {
            let value = reply::bytes(value)?;
            Some((seq.to_string().into_bytes(), value))
        });
        let mut page = self.page(waiting, fields.collect());
        let next = from.saturating_add(i64::from(self.limit));
        page.next = (waiting > 0 && next <= counter).then_some(Continuation(Place::Seq(next)));
        Ok(page)
    }

    fn length(&self, length: Value) -> Result<u64, StoreError> {
        reply::count(length, "HLEN", &self.key)
    }
}

impl<E: Entry> Operation for EntryPage<E> {
    const NAME: &'static str = "entry_page";

    type Output = RelayPage<E>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        if let Replies::Start = replies {
            return Step::Send(self.ask());
        }
        Step::Done(match self.begin() {
            Place::Seq(from) => self.picked(from, replies),
            Place::Cursor(_) | Place::Score(..) => self.scanned(replies),
        })
    }
}
