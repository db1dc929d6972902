//! The list of rows, and what they are measured on.

use std::io::{self, Write};

use crate::options::Options;
use crate::report::Row;
use crate::servers::{Peer, Server};
use crate::{measure, memory, start, workloads};

/// One row to be measured.
pub(crate) struct Job {
    pub(crate) name: String,
    /// Whether the short form has it.
    pub(crate) smoke: bool,
    #[allow(clippy::type_complexity, reason = "it is written once")]
    pub(crate) run: Box<dyn Fn(&mut Stage) -> io::Result<Row>>,
}

impl Job {
    pub(crate) fn new(
        name: impl Into<String>,
        smoke: bool,
        run: impl Fn(&mut Stage) -> io::Result<Row> + 'static,
    ) -> Job {
        Job {
            name: name.into(),
            smoke,
            run: Box::new(run),
        }
    }
}

/// All rows, in the order of the table.
pub(crate) fn all() -> Vec<Job> {
    let mut jobs = start::jobs();
    for workload in workloads::all() {
        jobs.push(Job::new(
            workload.name.clone(),
            workload.smoke,
            move |stage| measure::compare(&workload, stage),
        ));
    }
    jobs.extend(memory::jobs());
    jobs
}

/// The servers that rows share.
pub(crate) struct Stage {
    pub(crate) rounds: usize,
    pub(crate) smoke: bool,
    pub(crate) ours: Server,
    pub(crate) redis: Server,
    /// Those that are installed, of the peers that nobody needs.
    pub(crate) others: Vec<Server>,
}

impl Stage {
    /// Starts what is there; the error is that redis-server is not.
    pub(crate) fn new(options: &Options, out: &mut impl Write) -> io::Result<Stage> {
        let mut stage = Stage {
            rounds: options.rounds,
            smoke: options.smoke,
            redis: Server::start(Peer::Redis)
                .map_err(|error| io::Error::other(format!("redis-server is needed: {error}")))?,
            ours: Server::start(Peer::Ours)?,
            others: Vec::new(),
        };
        if options.smoke {
            return Ok(stage);
        }
        for peer in [Peer::Valkey, Peer::FakeRedis] {
            if peer.is_installed() {
                stage.others.push(Server::start(peer)?);
            } else {
                writeln!(out, "{} is not installed: no figures of it", peer.name())?;
            }
        }
        Ok(stage)
    }
}
