//! What the command line and the environment ask for.

use std::io;
use std::path::PathBuf;

use crate::jobs::Job;
use crate::memory::Idle;

const ROUNDS_MIN: usize = 7;
const ROUNDS_OF_SMOKE: usize = 3;

/// How to run, and which rows.
pub(crate) struct Options {
    pub(crate) smoke: bool,
    pub(crate) list: bool,
    pub(crate) rounds: usize,
    pub(crate) json: PathBuf,
    /// Set in the process that measures its own memory.
    pub(crate) idle: Option<Idle>,
    filters: Vec<String>,
}

impl Options {
    pub(crate) fn from_env() -> io::Result<Options> {
        let smoke = std::env::var("PEERS_SMOKE").is_ok_and(|text| text == "1");
        let mut options = Options {
            smoke,
            list: false,
            rounds: rounds()?,
            json: std::env::var_os("PEERS_JSON").map_or_else(default_json, PathBuf::from),
            idle: None,
            filters: Vec::new(),
        };
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                // Cargo says so to every benchmark.
                "--bench" => {}
                "--smoke" => options.smoke = true,
                "--list" => options.list = true,
                "--idle-tcp" => options.idle = Some(Idle::Tcp),
                "--idle-socketless" => options.idle = Some(Idle::Socketless),
                flag if flag.starts_with('-') => {
                    return Err(io::Error::other(format!(
                        "unknown flag {flag}; there are --smoke and --list, and parts of rows' names"
                    )));
                }
                part => options.filters.push(part.to_lowercase()),
            }
        }
        if options.smoke {
            options.rounds = ROUNDS_OF_SMOKE;
        }
        Ok(options)
    }

    pub(crate) fn selects(&self, job: &Job) -> bool {
        let name = job.name.to_lowercase();
        let is_named = |part: &String| name.contains(part.as_str());
        (job.smoke || !self.smoke) && (self.filters.is_empty() || self.filters.iter().any(is_named))
    }
}

fn rounds() -> io::Result<usize> {
    let Ok(text) = std::env::var("PEERS_ROUNDS") else {
        return Ok(ROUNDS_MIN);
    };
    match text.parse() {
        Ok(rounds) if rounds >= ROUNDS_MIN => Ok(rounds),
        _ => Err(io::Error::other(format!(
            "PEERS_ROUNDS={text}: it has to be a number of at least {ROUNDS_MIN}"
        ))),
    }
}

/// Beside the program, in the target directory.
fn default_json() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_fakeserver")).with_file_name("peers.json")
}
