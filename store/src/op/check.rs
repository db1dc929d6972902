//! Looking at a server before trusting it with executions.

use redis::{Value, cmd};

use super::{Batch, Operation, Replies, Step, reply};
use crate::{CommitPath, Settings, StoreError, Unfit};

/// A script that does nothing, to see whether scripts may run.
const NOTHING: &str = "return 1";

/// `INFO memory`, `INFO replication`, and a script that does nothing: whether the server would lose data or refuse
/// commits.
///
/// The policies that spare keys without a time to live are refused too: locks of a transport and what is retained for a time
/// have one. A server that does not say its policy or its role passes.
///
/// It tells how things are now: a server that is configured anew or becomes a replica later is not noticed. A user who
/// may not ask for `INFO` can not be told either: then the answer is [`StoreError::Refused`].
#[derive(Debug, Clone)]
pub struct Check {
    needs_scripts: bool,
}

impl Check {
    /// For a store with these settings.
    pub fn new(settings: &Settings) -> Self {
        Self {
            needs_scripts: settings.path() != CommitPath::Watch,
        }
    }

    fn looked(&self, replies: Replies) -> Result<(), StoreError> {
        let [memory, replication, script] = replies.harmless()?;
        let info = |value, section| {
            let value = reply::accepted(value, section, "")?;
            let text = reply::bytes(value).ok_or_else(|| reply::unexpected("INFO"))?;
            Ok::<_, StoreError>(String::from_utf8_lossy(&text).into_owned())
        };
        let memory = info(memory, "INFO memory")?;
        let replication = info(replication, "INFO replication")?;
        if let Some(policy) = line(&memory, "maxmemory_policy:").filter(|it| *it != "noeviction") {
            return Err(unfit(Unfit::Evicting, policy));
        }
        if let Some(role) = line(&replication, "role:").filter(|role| *role != "master") {
            let of = line(&replication, "master_host:").unwrap_or("unknown");
            return Err(unfit(Unfit::Replica, &format!("{role} of {of}")));
        }
        match script {
            Value::ServerError(error) if self.needs_scripts => {
                Err(unfit(Unfit::WithoutScripts, &reply::error_text(&error)))
            }
            _ => Ok(()),
        }
    }
}

fn unfit(reason: Unfit, found: &str) -> StoreError {
    StoreError::Unfit {
        reason,
        found: found.to_owned(),
    }
}

fn line<'t>(info: &'t str, name: &str) -> Option<&'t str> {
    info.lines().find_map(|line| line.strip_prefix(name))
}

impl Operation for Check {
    const NAME: &'static str = "check";

    type Output = ();

    fn step(&mut self, replies: Replies) -> Step<()> {
        if let Replies::Start = replies {
            return Step::Send(Batch::shared([
                cmd("INFO").arg("memory").take(),
                cmd("INFO").arg("replication").take(),
                cmd("EVAL").arg(NOTHING).arg(0).take(),
            ]));
        }
        Step::Done(self.looked(replies))
    }
}
