//! How many partitions there are, which one an execution lies in, and the key that holds this for good.

use std::fmt;

use crc16::{State, XMODEM};
use redis::{Value, cmd};

use crate::{
    Event, Rejection, Settings, StoreError,
    keys::Keys,
    op::{Batch, Operation, Replies, Step, reply},
    transport::{Priority, Publish},
    worker::Territory,
};

/// More partitions than this are refused: a sweep visits each of them.
const PARTITIONS_MAX: u16 = 4_096;

/// How many partitions a sharded store has; fixed when it is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Partitions(u16);

/// One of them, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(u16);

impl Partitions {
    /// So many: at least one, at most 4,096.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for another number.
    pub fn new(count: u16) -> Result<Self, StoreError> {
        if (1..=PARTITIONS_MAX).contains(&count) {
            return Ok(Self(count));
        }
        Err(StoreError::Invalid {
            what: "number of partitions",
            reason: Rejection::OutOfRange,
        })
    }

    /// How many.
    pub fn count(self) -> u16 {
        self.0
    }

    /// Where the execution with this id lies: CRC16 (XMODEM, as in Redis Cluster) of the whole id, modulo the number of
    /// partitions. This never changes.
    ///
    /// ```
    /// use store::sharded::Partitions;
    ///
    /// let partitions = Partitions::new(16)?;
    /// assert_eq!(partitions.of("123456789").number(), 0x31C3 % 16);
    /// # Ok::<(), store::StoreError>(())
    /// ```
    pub fn of(self, id: &str) -> Partition {
        Partition(State::<XMODEM>::calculate(id.as_bytes()) % self.0)
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = Partition> {
        (0..self.0).map(Partition)
    }

    /// The one of this number; none if there is none.
    pub fn get(self, number: u16) -> Option<Partition> {
        (number < self.0).then_some(Partition(number))
    }

    /// The one behind this one, the first behind the last.
    pub(super) fn after(self, partition: Partition) -> Partition {
        Partition((partition.0 + 1) % self.0)
    }
}

impl Partition {
    /// Its number.
    pub fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Settings of the parts of a sharded store.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    base: Settings,
    partitions: Partitions,
}

impl Layout {
    pub(super) fn new(settings: &Settings, partitions: Partitions) -> Result<Self, StoreError> {
        // The braces are ours: a tag of the caller's would keep all partitions in one slot.
        if settings.keys().prefix().contains(['{', '}']) {
            return Err(StoreError::Invalid {
                what: "prefix of a sharded store",
                reason: Rejection::Malformed,
            });
        }
        let layout = Self {
            base: settings.clone(),
            partitions,
        };
        // What holds for one holds for all: they differ in a number.
        layout.keys("0").map(|_| layout)
    }

    fn keys(&self, part: &str) -> Result<Keys, StoreError> {
        Keys::new(format!("{{{}:{part}}}", self.base.keys().prefix()))
    }

    pub(super) fn partitions(&self) -> Partitions {
        self.partitions
    }

    /// Those of a partition: the same, under a prefix of its own.
    pub(super) fn settings(&self, partition: Partition) -> Result<Settings, StoreError> {
        let keys = self.keys(&partition.to_string())?;
        Ok(self.base.clone().under(keys))
    }

    /// Those under which the layout itself is kept.
    pub(super) fn home(&self) -> Result<Settings, StoreError> {
        let keys = self.keys("layout")?;
        Ok(self.base.clone().under(keys))
    }

    /// Queues an event in the partition that its execution lies in.
    pub(super) fn publish(
        &self,
        id: &str,
        event: &Event,
        priority: Priority,
    ) -> Result<Publish, StoreError> {
        let settings = self.settings(self.partitions.of(id))?;
        Publish::new(&settings, id, event, priority)
    }

    /// All of them, for a worker.
    pub(crate) fn territory(&self) -> Result<Territory, StoreError> {
        let first = self.settings(Partition(0))?;
        let others = self.partitions.iter().skip(1);
        let others: Result<Vec<_>, _> = others.map(|other| self.settings(other)).collect();
        Ok(Territory::of_several(first, others?, |id, count| {
            let count = u16::try_from(count).unwrap_or(PARTITIONS_MAX);
            usize::from(Partitions(count).of(id).0)
        }))
    }

    pub(super) fn record(&self) -> Result<RecordLayout, StoreError> {
        Ok(RecordLayout {
            key: self.home()?.keys().prefix().to_owned(),
            layout: format!("crc16/{}", self.partitions.0),
        })
    }
}

/// `SET` `NX`, `GET`: notes the layout if there is none, and says whether it is the one that is there.
#[derive(Debug)]
pub struct RecordLayout {
    key: String,
    layout: String,
}

impl Operation for RecordLayout {
    const NAME: &'static str = "record_layout";

    type Output = ();

    fn step(&mut self, replies: Replies) -> Step<()> {
        if let Replies::Start = replies {
            let set = cmd("SET").arg(&self.key).arg(&self.layout).arg("NX").take();
            let get = cmd("GET").arg(&self.key).take();
            return Step::Send(Batch::shared([set, get]));
        }
        // A repetition finds what the first one noted.
        Step::Done(replies.harmless().and_then(|[set, found]| {
            reply::accepted(set, "SET", &self.key)?;
            match reply::accepted(found, "GET", &self.key)? {
                Value::Nil => Err(reply::unexpected("GET")),
                found => {
                    self.compare(&reply::bytes(found).ok_or_else(|| reply::unexpected("GET"))?)
                }
            }
        }))
    }
}

impl RecordLayout {
    fn compare(&self, found: &[u8]) -> Result<(), StoreError> {
        if found == self.layout.as_bytes() {
            return Ok(());
        }
        Err(StoreError::Layout {
            key: self.key.clone(),
            expected: self.layout.clone(),
            found: String::from_utf8_lossy(found).into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partition_of_an_id_never_changes() {
        let partitions = Partitions::new(16).unwrap();
        let found = ["", "order-17", "a", "{tag}x", "\u{e9}"].map(|id| partitions.of(id).number());
        assert_eq!(found, [0, 0, 7, 9, 4]);
        let counts = (0..8_000).fold([0; 16], |mut counts, number| {
            counts[usize::from(partitions.of(&format!("order-{number}")).number())] += 1;
            counts
        });
        assert!(
            counts.iter().all(|count| (350..650).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn each_partition_has_a_tag_of_its_own() {
        let layout = Layout::new(
            &Settings::new("orders").unwrap(),
            Partitions::new(3).unwrap(),
        )
        .unwrap();
        let prefixes = layout.partitions().iter().map(|partition| {
            layout
                .settings(partition)
                .unwrap()
                .keys()
                .prefix()
                .to_owned()
        });
        assert_eq!(
            prefixes.collect::<Vec<_>>(),
            ["{orders:0}", "{orders:1}", "{orders:2}"]
        );
        assert_eq!(layout.record().unwrap().key, "{orders:layout}");
    }

    #[test]
    fn numbers_and_prefixes_that_make_no_layout_are_refused() {
        assert!(Partitions::new(0).is_err() && Partitions::new(4_097).is_err());
        let partitions = Partitions::new(4_096).unwrap();
        assert_eq!(partitions.after(Partition(4_095)), Partition(0));
        for prefix in ["{orders}", "a{", "}b"] {
            assert!(
                Layout::new(&Settings::new(prefix).unwrap(), partitions).is_err(),
                "{prefix}"
            );
        }
    }
}
