//! Who serves which slot, as far as is known.

use std::{collections::BTreeMap, fmt};

use redis::{
    ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError, RedisResult, Value,
};

use super::slot::Slot;
use crate::{StoreError, error::UNTAGGED, keys::Keys, op::reply};

/// So many nodes are asked in turn who serves what, before the answer is that nobody knows: a cluster can have hundreds, and
/// each may take its time to not answer.
const ASKED_MAX: usize = 6;

/// Where a node listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// By host, be it a name or a number, and port.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }

    /// As redirections spell it: host, colon, port; a node that does not say its host is where it was asked.
    pub(super) fn parse(text: &str, asked: &Address) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Self::beside(host, port.parse().ok()?, asked))
    }

    fn beside(host: &str, port: u16, asked: &Address) -> Self {
        let unknown = host.is_empty() || host == "?";
        Self::new(if unknown { &asked.host } else { host }, port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// What both twins know of a cluster, and which slot they are at.
#[derive(Clone)]
pub(super) struct Chart {
    seeds: Vec<Address>,
    /// How to reach a node, but for its address.
    template: ConnectionInfo,
    /// The first slot of each range, with the last one and who serves it.
    ranges: BTreeMap<u16, (u16, Address)>,
    /// What was learned of single slots since.
    moved: BTreeMap<Slot, Address>,
    stale: bool,
    asked: usize,
    aim: Option<Aim>,
    scans: BTreeMap<Slot, Address>,
}

/// The keys that the next operations use.
#[derive(Clone, PartialEq, Eq)]
struct Aim {
    prefix: String,
    slot: Slot,
}

impl Chart {
    /// With these nodes to begin with; nothing is asked yet.
    pub(super) fn new<T: IntoConnectionInfo>(
        nodes: impl IntoIterator<Item = T>,
    ) -> RedisResult<Self> {
        let mut template = None;
        let mut seeds = Vec::new();
        for node in nodes {
            let info = node.into_connection_info()?;
            match info.addr() {
                ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                    seeds.push(Address::new(host, *port));
                }
                _ => {
                    return Err((
                        ErrorKind::InvalidClientConfig,
                        "a node of a cluster has a host and a port",
                    )
                        .into());
                }
            }
            template.get_or_insert(info);
        }
        let template = template.ok_or_else(|| {
            RedisError::from((
                ErrorKind::InvalidClientConfig,
                "no node of the cluster was named",
            ))
        })?;
        Ok(Self {
            seeds,
            template,
            ranges: BTreeMap::new(),
            moved: BTreeMap::new(),
            stale: true,
            asked: 0,
            aim: None,
            scans: BTreeMap::new(),
        })
    }

    /// From now on operations use these keys; whether those before used another slot.
    pub(super) fn aim(&mut self, keys: &Keys) -> Result<bool, StoreError> {
        let prefix = keys.prefix();
        if self.aim.as_ref().is_some_and(|aim| aim.prefix == prefix) {
            return Ok(false);
        }
        if !keys.is_tagged() {
            return Err(UNTAGGED);
        }
        let slot = Slot::of(prefix);
        let before = self.aim.replace(Aim {
            prefix: prefix.to_owned(),
            slot,
        });
        Ok(before.is_some_and(|before| before.slot != slot))
    }

    fn slot(&self) -> RedisResult<Slot> {
        let aim = self.aim.as_ref();
        aim.map(|aim| aim.slot)
            .ok_or_else(|| (ErrorKind::Client, "no operation has named its keys").into())
    }

    /// A key in the slot that operations are at; nobody writes to it.
    pub(super) fn probe(&self) -> String {
        let prefix = self.aim.as_ref().map_or("", |aim| &aim.prefix);
        format!("{prefix}:probe")
    }

    /// Who serves the slot that operations are at; none if that has to be asked.
    pub(super) fn owner(&self) -> RedisResult<Option<Address>> {
        let slot = self.slot()?;
        if self.stale {
            return Ok(None);
        }
        Ok(self
            .moved
            .get(&slot)
            .or_else(|| self.in_ranges(slot))
            .cloned())
    }

    fn in_ranges(&self, slot: Slot) -> Option<&Address> {
        let (_, (last, address)) = self.ranges.range(..=slot.number()).next_back()?;
        (slot.number() <= *last).then_some(address)
    }

    /// Nothing that is known counts any more.
    pub(super) fn doubt(&mut self) {
        self.stale = true;
    }

    /// A node has said who serves the slot that operations are at.
    pub(super) fn moved(&mut self, address: Address) {
        if let Ok(slot) = self.slot() {
            self.moved.insert(slot, address);
        }
    }

    /// Whom to ask who serves what, in this order: each time others first, so that one that is wrong does not count for ever.
    pub(super) fn candidates(&mut self) -> Vec<Address> {
        let mut known: Vec<Address> = self.seeds.clone();
        known.extend(self.ranges.values().map(|(_, address)| address.clone()));
        known.sort_unstable();
        known.dedup();
        let count = known.len().max(1);
        known.rotate_left(self.asked % count);
        self.asked = self.asked.wrapping_add(1);
        known.truncate(ASKED_MAX);
        known
    }

    /// Takes a node's answer to `CLUSTER SLOTS`; who serves the slot that operations are at.
    pub(super) fn learn(&mut self, answer: Value, asked: &Address) -> RedisResult<Address> {
        let ranges = ranges_of(answer, asked)?;
        self.ranges = ranges;
        self.moved.clear();
        self.stale = false;
        let owner = self.owner()?;
        owner.ok_or_else(|| {
            self.stale = true;
            (
                ErrorKind::ClusterConnectionNotFound,
                "no node serves the slot",
            )
                .into()
        })
    }

    /// How to connect to a node.
    pub(super) fn info(&self, node: &Address) -> ConnectionInfo {
        let host = node.host.clone();
        let address = match self.template.addr() {
            ConnectionAddr::TcpTls {
                insecure,
                tls_params,
                ..
            } => ConnectionAddr::TcpTls {
                host,
                port: node.port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host, node.port),
        };
        self.template.clone().set_addr(address)
    }

    /// Whether a scan may go to this node. A cursor means something on the node that gave it only; a listing that went on
    /// elsewhere would miss rows.
    pub(super) fn may_scan(&mut self, node: &Address, from_start: bool) -> bool {
        let Ok(slot) = self.slot() else {
            return false;
        };
        if from_start {
            self.scans.insert(slot, node.clone());
        }
        self.scans.get(&slot).is_none_or(|before| before == node)
    }
}

impl fmt::Debug for Chart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The template has a password.
        f.debug_struct("Chart")
            .field("seeds", &self.seeds)
            .field("ranges", &self.ranges.len())
            .field("stale", &self.stale)
            .finish_non_exhaustive()
    }
}

/// `CLUSTER SLOTS`: an array of first slot, last slot, master (host, port, id, ...), replicas.
fn ranges_of(answer: Value, asked: &Address) -> RedisResult<BTreeMap<u16, (u16, Address)>> {
    let answer = answer.extract_error()?;
    let unexpected = || {
        RedisError::from((
            ErrorKind::UnexpectedReturnType,
            "unexpected reply to CLUSTER SLOTS",
        ))
    };
    let mut ranges = BTreeMap::new();
    for range in reply::items(answer).ok_or_else(unexpected)? {
        let mut range = reply::items(range).ok_or_else(unexpected)?.into_iter();
        let mut number = || {
            range
                .next()
                .and_then(|value| u16::try_from(reply::integer(&value)?).ok())
        };
        let (first, last) = (number(), number());
        let master = range.next().and_then(reply::items);
        let (Some(first), Some(last), Some(master)) = (first, last, master) else {
            return Err(unexpected());
        };
        let mut master = master.into_iter();
        // A node that does not know its own host says nil.
        let host = master.next().and_then(reply::bytes).unwrap_or_default();
        let host = String::from_utf8(host).map_err(|_| unexpected())?;
        let port = master
            .next()
            .and_then(|value| u16::try_from(reply::integer(&value)?).ok());
        let address = Address::beside(&host, port.ok_or_else(unexpected)?, asked);
        ranges.insert(first, (last, address));
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(ranges: &[(i64, i64, &str, i64)]) -> Value {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let node = |host: &str, port| {
            Value::Array(vec![
                text(host),
                Value::Int(port),
                text("id"),
                Value::Array(Vec::new()),
            ])
        };
        let range = |&(first, last, host, port): &(i64, i64, &str, i64)| {
            Value::Array(vec![
                Value::Int(first),
                Value::Int(last),
                node(host, port),
                node(host, port + 1),
            ])
        };
        Value::Array(ranges.iter().map(range).collect())
    }

    fn chart() -> Chart {
        let mut chart = Chart::new(["redis://a:1/", "redis://b:2/"]).unwrap();
        chart.aim(&Keys::new("{t}").unwrap()).unwrap();
        chart
    }

    #[test]
    fn a_prefix_without_a_tag_or_with_an_empty_one_is_refused() {
        for prefix in ["stm", "{}", "{}:{t}", "{t", "t}"] {
            let refused = chart().aim(&Keys::new(prefix).unwrap()).unwrap_err();
            assert_eq!(
                refused.to_string(),
                "invalid prefix: has no `{tag}`, which a cluster needs"
            );
        }
        assert!(chart().aim(&Keys::new("app:{t}:x").unwrap()).is_ok());
    }

    #[test]
    fn the_owner_is_the_master_of_the_range_until_a_node_says_otherwise() {
        let mut chart = chart();
        let asked = Address::new("a", 1);
        assert_eq!(chart.owner().unwrap(), None);
        let learned = chart.learn(
            answer(&[(0, 15_890, "a", 1), (15_891, 16_383, "c", 3)]),
            &asked,
        );
        assert_eq!(learned.unwrap(), Address::new("c", 3));
        chart.moved(Address::new("d", 4));
        assert_eq!(chart.owner().unwrap(), Some(Address::new("d", 4)));
        chart.doubt();
        assert_eq!(chart.owner().unwrap(), None);
    }

    #[test]
    fn a_slot_that_nobody_serves_has_to_be_asked_again() {
        let mut chart = chart();
        let asked = Address::new("a", 1);
        assert!(chart.learn(answer(&[(0, 15_890, "a", 1)]), &asked).is_err());
        assert_eq!(chart.owner().unwrap(), None);
        assert!(chart.learn(Value::Int(1), &asked).is_err());
        assert!(
            chart
                .learn(
                    Value::Array(vec![Value::Array(vec![Value::Int(-1)])]),
                    &asked
                )
                .is_err()
        );
    }

    #[test]
    fn a_node_without_a_host_is_where_it_was_asked() {
        let mut chart = chart();
        let asked = Address::new("a", 1);
        assert_eq!(
            chart.learn(answer(&[(0, 16_383, "", 7)]), &asked).unwrap(),
            Address::new("a", 7)
        );
        assert_eq!(Address::parse(":7", &asked), Some(Address::new("a", 7)));
        assert_eq!(
            Address::parse("::1:7", &asked),
            Some(Address::new("::1", 7))
        );
        assert_eq!(Address::parse("7", &asked), None);
    }

    #[test]
    fn others_are_asked_first_each_time() {
        let mut chart = chart();
        let first = |chart: &mut Chart| chart.candidates().first().cloned();
        let asked = [first(&mut chart), first(&mut chart), first(&mut chart)];
        assert_eq!(
            asked,
            [
                Some(Address::new("a", 1)),
                Some(Address::new("b", 2)),
                Some(Address::new("a", 1))
            ]
        );
    }

    #[test]
    fn a_cursor_counts_on_its_own_node_only() {
        let mut chart = chart();
        let (here, there) = (Address::new("a", 1), Address::new("b", 2));
        assert!(chart.may_scan(&there, false), "begun by somebody else");
        assert!(chart.may_scan(&here, true));
        assert!(chart.may_scan(&here, false));
        assert!(!chart.may_scan(&there, false));
        assert!(chart.may_scan(&there, true));
    }
}
