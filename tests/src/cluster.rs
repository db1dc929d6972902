//! [`Cluster`]: a real Redis Cluster of three masters and three replicas, started for the tests of this process.
//!
//! The program is the one that the environment variable `REDIS_SERVER` names, else `redis-server` on the search path. Without it
//! the tests leave the cluster out and say so once on standard error; on continuous integration, where `CI` is set, that is a
//! failure.
//!
//! Each node has a shell beside it that waits for its standard input to end and then ends the node by its process id: so nodes
//! end with the process of the tests, however that ends.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Client, Connection, RedisResult, Value, cmd};

/// Masters, and replicas: one for each.
const MASTERS: usize = 3;

/// After so long without an answer a node is taken for dead by the others, and its replica asks for votes.
const NODE_TIMEOUT_MS: u32 = 1_500;

/// How long a state that has to come may take; nodes and tests share few cores.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a shell does for a node: names its process, ends it when the tests' process has ended, and removes its directory then. It
/// ends with the node, so that it never signals a process that has the same number later.
const WARDEN: &str = r#"
dir=$1; shift; exec 3<&0
"$@" >/dev/null 2>&1 & pid=$!
echo $pid
{ read _ <&3; : >"$dir/over"; kill -9 $pid; } & reader=$!
wait $pid
kill $reader 2>/dev/null
if [ -e "$dir/over" ]; then rm -rf "$dir"; fi
"#;

/// A cluster, and who is who in it.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
}

/// One redis-server.
#[derive(Debug)]
pub struct Node {
    port: u16,
    bus: u16,
    directory: PathBuf,
    process: Mutex<Process>,
}

#[derive(Debug)]
struct Process {
    /// Its standard input is what keeps the node alive.
    warden: Child,
    pid: u32,
}

impl Cluster {
    /// The cluster of this process, whole: all masters answer and each has its replica. One test has it at a time. None if there
    /// is no program to start.
    pub fn claim() -> Option<MutexGuard<'static, Cluster>> {
        static CLUSTER: OnceLock<Option<Mutex<Cluster>>> = OnceLock::new();
        let cluster =
            CLUSTER.get_or_init(|| program().map(|program| Mutex::new(Cluster::start(&program))));
        let cluster = cluster
            .as_ref()?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        cluster.heal();
        Some(cluster)
    }

    fn start(program: &OsString) -> Cluster {
        let nodes = (0..MASTERS * 2)
            .map(|index| Node::start(program, index))
            .collect();
        let cluster = Cluster { nodes };
        let (masters, replicas) = cluster.nodes.split_at(MASTERS);
        for (index, master) in masters.iter().enumerate() {
            let slots = |index: usize| (16_384 * index / MASTERS).to_string();
            let last = (16_384 * (index + 1) / MASTERS - 1).to_string();
            master.ask(&["CLUSTER", "ADDSLOTSRANGE", &slots(index), &last]);
            master.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        }
        let first = cluster.nodes.first().expect("there are nodes");
        for node in cluster.nodes.iter().skip(1) {
            first.ask(&[
                "CLUSTER",
                "MEET",
                "127.0.0.1",
                &node.port.to_string(),
                &node.bus.to_string(),
            ]);
        }
        let all = cluster.nodes.len();
        eventually("all nodes know each other", || {
            let knows = |node: &Node| {
                node.info("CLUSTER").get("cluster_known_nodes") == Some(&all.to_string())
            };
            cluster.nodes.iter().all(knows)
        });
        for (master, replica) in masters.iter().zip(replicas) {
            let id = master.id();
            eventually("a replica follows its master", || {
                replica.try_ask(&["CLUSTER", "REPLICATE", &id]).is_ok()
            });
        }
        cluster
    }

    /// Starts what was killed, and waits until every node is in step with the cluster again.
    fn heal(&self) {
        for node in &self.nodes {
            if node.try_ask(&["PING"]).is_err() {
                node.revive();
            }
            node.ask(&["CONFIG", "SET", "masterauth", ""]);
        }
        eventually("the cluster is whole", || {
            let whole = |node: &Node| {
                let linked = node
                    .info("REPLICATION")
                    .get("master_link_status")
                    .is_none_or(|link| link == "up");
                node.info("CLUSTER")
                    .get("cluster_state")
                    .is_some_and(|state| state == "ok")
                    && linked
            };
            self.masters().len() == MASTERS
                && self.nodes.iter().all(whole)
                && self.nodes.iter().all(Node::sees_all_alive)
        });
    }

    /// The addresses of all nodes, for a client.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Node::url).collect()
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Those that are masters by their own account.
    pub fn masters(&self) -> Vec<&Node> {
        let is_master = |node: &&Node| {
            node.info("REPLICATION")
                .get("role")
                .is_some_and(|role| role == "master")
        };
        self.nodes.iter().filter(is_master).collect()
    }

    /// The master that serves a slot by its own account.
    pub fn owner(&self, slot: u16) -> &Node {
        let owners = self.masters();
        let owner = owners.into_iter().find(|node| node.serves(slot));
        owner.expect("a master serves the slot")
    }

    /// A master that does not serve the slot.
    pub fn other_master(&self, slot: u16) -> &Node {
        let owner = self.owner(slot).port();
        let others = self.masters().into_iter();
        let mut others = others.filter(|node| node.port() != owner);
        others.next().expect("there are several masters")
    }

    /// Removes all data, on replicas too.
    pub fn empty(&self) {
        for master in self.masters() {
            let mut connection = master.connect().expect("a connection");
            let mut ask = |words: &[&str]| -> Value {
                let mut command = redis::Cmd::new();
                command
                    .arg(words)
                    .query(&mut connection)
                    .expect("an answer")
            };
            ask(&["FLUSHALL"]);
            ask(&["SCRIPT", "FLUSH"]);
            // It may have interrupted a replica that was being filled, which would come back later with what there was before.
            eventually("a replica is empty", || {
                ask(&["WAIT", "1", "500"]) == Value::Int(1)
            });
        }
    }

    /// Begins to move a slot to another master.
    pub fn begin_to_move(&self, slot: u16, to: &Node) {
        let from = self.owner(slot);
        let number = slot.to_string();
        to.ask(&["CLUSTER", "SETSLOT", &number, "IMPORTING", &from.id()]);
        from.ask(&["CLUSTER", "SETSLOT", &number, "MIGRATING", &to.id()]);
    }

    /// Moves at most so many keys of a slot that moves; how many are left.
    pub fn move_keys(&self, slot: u16, to: &Node, count: usize) -> usize {
        let from = self.owner(slot);
        let number = slot.to_string();
        let keys: Vec<Vec<u8>> = from
            .connect()
            .and_then(|mut connection| {
                cmd("CLUSTER")
                    .arg("GETKEYSINSLOT")
                    .arg(&number)
                    .arg(count)
                    .query(&mut connection)
            })
            .expect("keys of a slot");
        if !keys.is_empty() {
            self.move_named(to, slot, &keys);
        }
        let Value::Int(left) = from.ask(&["CLUSTER", "COUNTKEYSINSLOT", &number]) else {
            panic!("a number of keys");
        };
        usize::try_from(left).unwrap_or_default()
    }

    /// Moves these keys of a slot that moves.
    pub fn move_named(&self, to: &Node, slot: u16, keys: &[impl redis::ToRedisArgs]) {
        let mut migrate = cmd("MIGRATE");
        migrate.arg("127.0.0.1").arg(to.port).arg("");
        migrate.arg(0).arg(10_000).arg("KEYS").arg(keys);
        let mut connection = self.owner(slot).connect().expect("a connection");
        let moved: RedisResult<Value> = migrate.query(&mut connection);
        assert!(moved.is_ok(), "MIGRATE: {moved:?}");
    }

    /// Makes the move of a slot known: the new owner first, so that the slot is never nobody's.
    pub fn end_move(&self, slot: u16, to: &Node) {
        let number = slot.to_string();
        let id = to.id();
        to.ask(&["CLUSTER", "SETSLOT", &number, "NODE", &id]);
        for master in self.masters() {
            master.ask(&["CLUSTER", "SETSLOT", &number, "NODE", &id]);
        }
        eventually("the slot has moved", || to.serves(slot));
    }

    /// Waits until the replicas of a master have all that it has written.
    pub fn await_replicated(&self, master: &Node) {
        eventually("a replica is in step", || {
            let offset = |name: &str| master.info("REPLICATION").get(name).cloned();
            let own = offset("master_repl_offset");
            let replica = offset("slave0")
                .filter(|line| line.contains("state=online"))
                .and_then(|line| {
                    let found = line
                        .split(',')
                        .find_map(|part| part.strip_prefix("offset="));
                    found.map(str::to_owned)
                });
            own.is_some() && own == replica
        });
    }

    /// From now on the replicas of a master are told nothing, but take over when it dies.
    pub fn cut_replication(&self, master: &Node) {
        let id = master.id();
        let of_master = |node: &&Node| {
            node.lines()
                .iter()
                .any(|line| line.contains("myself,slave") && line.contains(&id))
        };
        let replicas: Vec<&Node> = self.nodes.iter().filter(of_master).collect();
        assert!(!replicas.is_empty(), "a master has a replica");
        for replica in replicas {
            // The master knows no password, so that every try to link fails.
            replica.ask(&["CONFIG", "SET", "masterauth", "wrong"]);
            replica.ask(&["CLIENT", "KILL", "TYPE", "master"]);
            eventually("the link is down", || {
                replica
                    .info("REPLICATION")
                    .get("master_link_status")
                    .is_some_and(|link| link == "down")
            });
        }
    }

    /// Waits until a slot is served by another node than this one.
    pub fn await_failover(&self, slot: u16, dead: &Node) -> &Node {
        let mut found = None;
        eventually("a replica takes over", || {
            found = self
                .masters()
                .into_iter()
                .find(|node| node.port != dead.port && node.serves(slot));
            found.is_some()
        });
        found.expect("it was found")
    }
}

impl Node {
    fn start(program: &OsString, index: usize) -> Node {
        let directory =
            env::temp_dir().join(format!("store-cluster-{}-{index}", std::process::id()));
        // A port that is free now may be taken a moment later.
        for _ in 0..10 {
            let (port, bus) = (free_port(), free_port());
            let process = spawn(program, port, bus, &directory);
            let node = Node {
                port,
                bus,
                directory: directory.clone(),
                process: Mutex::new(process),
            };
            if node.await_pong() {
                return node;
            }
        }
        panic!("redis-server does not start");
    }

    fn await_pong(&self) -> bool {
        let until = Instant::now() + PATIENCE / 3;
        while Instant::now() < until {
            if self.try_ask(&["PING"]).is_ok() {
                return true;
            }
            thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its id in the cluster.
    pub fn id(&self) -> String {
        match self.ask(&["CLUSTER", "MYID"]) {
            Value::BulkString(id) => String::from_utf8(id).expect("an id is text"),
            other => panic!("no id: {other:?}"),
        }
    }

    /// A new connection.
    pub fn connect(&self) -> RedisResult<Connection> {
        let connection = Client::open(self.url())?.get_connection_with_timeout(PATIENCE / 10)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(connection)
    }

    /// The answer to a command; panics if it is an error.
    pub fn ask(&self, words: &[&str]) -> Value {
        self.try_ask(words)
            .unwrap_or_else(|error| panic!("{words:?} on port {}: {error}", self.port))
    }

    /// The answer to a command.
    pub fn try_ask(&self, words: &[&str]) -> RedisResult<Value> {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(*word);
        }
        command.query(&mut self.connect()?)
    }

    /// Lines of INFO, or of CLUSTER INFO, by name; none if it does not answer.
    pub fn info(&self, section: &str) -> BTreeMap<String, String> {
        let words: &[&str] = if section == "CLUSTER" {
            &["CLUSTER", "INFO"]
        } else {
            &["INFO", section]
        };
        let text = match self.try_ask(words) {
            Ok(Value::BulkString(text)) => String::from_utf8_lossy(&text).into_owned(),
            Ok(Value::VerbatimString { text, .. }) => text,
            _ => String::new(),
        };
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        pairs
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect()
    }

    /// How often it has answered with an error of this code since it started.
    pub fn errors(&self, code: &str) -> u64 {
        let counted = self.info("ERRORSTATS");
        let count = counted
            .get(&format!("errorstat_{code}"))
            .and_then(|text| text.strip_prefix("count="));
        count
            .and_then(|count| count.parse().ok())
            .unwrap_or_default()
    }

    fn lines(&self) -> Vec<String> {
        match self.try_ask(&["CLUSTER", "NODES"]) {
            Ok(Value::BulkString(text)) => String::from_utf8_lossy(&text)
                .lines()
                .map(str::to_owned)
                .collect(),
            Ok(Value::VerbatimString { text, .. }) => text.lines().map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    fn sees_all_alive(&self) -> bool {
        let lines = self.lines();
        lines.len() == MASTERS * 2
            && lines
                .iter()
                .all(|line| !line.contains("fail") && !line.contains("disconnected"))
    }

    fn serves(&self, slot: u16) -> bool {
        let lines = self.lines();
        let own = lines.iter().find(|line| line.contains("myself,master"));
        let ranges = own
            .map(|line| line.split(' ').skip(8))
            .into_iter()
            .flatten();
        ranges.filter(|range| !range.starts_with('[')).any(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let bound = |text: &str| text.parse::<u16>().ok();
            bound(first).is_some_and(|first| first <= slot)
                && bound(last).is_some_and(|last| slot <= last)
        })
    }

    /// Ends it as a crash would.
    pub fn kill(&self) {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let killed = Command::new("kill")
            .args(["-9", &process.pid.to_string()])
            .status();
        assert!(
            killed.is_ok_and(|status| status.success()),
            "kill {}",
            process.pid
        );
    }

    /// Starts it again with what it has on disk: its place in the cluster, and no data.
    fn revive(&self) {
        let program = program().expect("it was there before");
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        // As long as its shell is there, the number is its own.
        if matches!(process.warden.try_wait(), Ok(None)) {
            let mut kill = Command::new("kill");
            let _ = kill
                .args(["-9", &process.pid.to_string()])
                .stderr(Stdio::null())
                .status();
        }
        let _ = process.warden.wait();
        *process = spawn(&program, self.port, self.bus, &self.directory);
        drop(process);
        assert!(self.await_pong(), "a node starts again");
    }
}

fn spawn(program: &OsString, port: u16, bus: u16, directory: &PathBuf) -> Process {
    std::fs::create_dir_all(directory).expect("a directory for a node");
    let settings = [
        ("--port", port.to_string()),
        ("--cluster-port", bus.to_string()),
        ("--bind", "127.0.0.1".to_owned()),
        ("--dir", directory.display().to_string()),
        ("--save", String::new()),
        ("--appendonly", "no".to_owned()),
        ("--cluster-enabled", "yes".to_owned()),
        ("--cluster-node-timeout", NODE_TIMEOUT_MS.to_string()),
        ("--cluster-allow-replica-migration", "no".to_owned()),
        ("--cluster-replica-validity-factor", "0".to_owned()),
        ("--repl-diskless-sync-delay", "0".to_owned()),
        ("--logfile", "log".to_owned()),
    ];
    let mut command = Command::new("sh");
    command
        .args(["-c", WARDEN, "sh"])
        .arg(directory)
        .arg(program);
    for (name, value) in settings {
        command.arg(name).arg(value);
    }
    let mut warden = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let mut line = String::new();
    let output = warden.stdout.take().expect("it is piped");
    BufReader::new(output)
        .read_line(&mut line)
        .expect("a process id");
    let pid = line.trim().parse().expect("a process id");
    Process { warden, pid }
}

fn program() -> Option<OsString> {
    let named = env::var_os("REDIS_SERVER").filter(|name| !name.is_empty());
    let program = named.unwrap_or_else(|| "redis-server".into());
    let there = Command::new(&program).arg("--version").output().is_ok();
    if there {
        return Some(program);
    }
    assert!(
        env::var_os("CI").is_none(),
        "{}: a redis-server is needed when CI is set",
        program.display()
    );
    eprintln!(
        "{} is not there: the cluster is left out",
        program.display()
    );
    None
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

/// Waits until it is so; panics if it never is.
pub fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < until, "it takes too long until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}
