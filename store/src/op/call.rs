//! One call of a script: by hash, and once by source where the server does not know the hash.

use redis::{ServerError, Value};

use super::{
    Batch, Replies,
    reply::{self, CORRUPT_MARKER},
    script::Script,
};

/// A script with its keys and arguments, sent once by hash and once by source at most.
#[derive(Debug)]
pub(crate) struct Call {
    script: &'static Script,
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
    asked_by_source: bool,
}

impl Call {
    pub(crate) fn new(
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

    /// Replaces the last argument.
    pub(crate) fn set_last_argument(&mut self, argument: Vec<u8>) {
        if let Some(last) = self.arguments.last_mut() {
            *last = argument;
        }
    }

    /// The keys, in the order of the script.
    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// What to send, if these are not replies to the end of it.
    pub(crate) fn next(&mut self, replies: &Replies) -> Option<Batch> {
        match replies {
            Replies::Start => Some(self.by_hash()),
            Replies::Received(values) if !self.asked_by_source && is_no_script(values) => {
                self.asked_by_source = true;
                let command = self.script.by_source(&self.names(), &self.arguments);
                Some(Batch::shared([command]))
            }
            _ => None,
        }
    }

    /// From the start, be it for the first time or after it has ended.
    pub(crate) fn by_hash(&mut self) -> Batch {
        self.asked_by_source = false;
        Batch::shared([self.script.by_hash(&self.names(), &self.arguments)])
    }

    /// The key that holds something else, if that is what the script says.
    pub(crate) fn corrupt_key(&self, error: &ServerError) -> Option<&str> {
        let message = reply::error_text(error);
        let (_, number) = message.split_once(CORRUPT_MARKER)?;
        let number: usize = number.trim().parse().ok()?;
        self.keys.get(number.checked_sub(1)?).map(String::as_str)
    }

    fn names(&self) -> Vec<&str> {
        self.keys.iter().map(String::as_str).collect()
    }
}

fn is_no_script(values: &[Value]) -> bool {
    matches!(values, [Value::ServerError(error)] if reply::is_no_script(error))
}
