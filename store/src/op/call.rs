//! One call of a script: by hash, and once by source where the server does not know the hash.

use redis::Value;

use super::{Batch, Replies, reply, script::Script};

/// A script with its keys and arguments.
#[derive(Debug)]
pub(super) struct Call {
    script: &'static Script,
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
    asked_by_source: bool,
}

impl Call {
    pub(super) fn new(
        script: &'static Script,
        keys: Vec<String>,
        arguments: impl IntoIterator<Item = Vec<u8>>,
    ) -> Self {
        Self {
            script,
            keys,
            arguments: arguments.into_iter().collect(),
            asked_by_source: false,
        }
    }

    /// The keys, in the order of the script.
    pub(super) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The batch that asks by hash.
    pub(super) fn batch(&self) -> Batch {
        Batch::shared([self.script.by_hash(&self.names(), &self.arguments)])
    }

    /// The batch that asks by source, once, if the server has not run the script for not knowing it.
    pub(super) fn again(&mut self, replies: &Replies) -> Option<Batch> {
        let Replies::Received(values) = replies else {
            return None;
        };
        let unknown =
            matches!(values.as_slice(), [Value::ServerError(error)] if reply::is_no_script(error));
        if !unknown || std::mem::replace(&mut self.asked_by_source, true) {
            return None;
        }
        Some(Batch::shared([self
            .script
            .by_source(&self.names(), &self.arguments)]))
    }

    fn names(&self) -> Vec<&str> {
        self.keys.iter().map(String::as_str).collect()
    }
}
