//! Scripts: by hash, and by source where the server does not know the hash.

use std::sync::OnceLock;

use redis::Cmd;

/// A script and its SHA-1.
#[derive(Debug)]
pub struct Script {
    source: &'static str,
    hash: OnceLock<String>,
}

/// Compare the version, then write the row and everything that comes with it.
pub(super) static COMMIT: Script = Script::new(concat!(
    include_str!("../lua/prelude.lua"),
    include_str!("../lua/commit.lua")
));

/// Remove a timer that still has its score.
pub(super) static DELETE_TIMER: Script = Script::new(include_str!("../lua/delete_timer.lua"));

/// Remove an execution and what belongs to it.
pub(super) static PURGE: Script = Script::new(concat!(
    include_str!("../lua/prelude.lua"),
    include_str!("../lua/purge.lua")
));

/// Store a copy of a row under another key.
pub(super) static FORK: Script = Script::new(include_str!("../lua/fork.lua"));

/// Look up a page of the index.
pub(super) static INDEX_PAGE: Script = Script::new(include_str!("../lua/index_page.lua"));

/// Bring entries of the index in line with the rows.
pub(super) static INDEX_REPAIR: Script = Script::new(include_str!("../lua/index_repair.lua"));

impl Script {
    /// A script whose hash is worked out when it is first needed.
    pub(crate) const fn new(source: &'static str) -> Self {
        Self {
            source,
            hash: OnceLock::new(),
        }
    }

    /// The source.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// The SHA-1 of the source in hexadecimal digits.
    pub fn hash(&self) -> &str {
        self.hash
            .get_or_init(|| redis::Script::new(self.source).get_hash().to_owned())
    }

    pub(crate) fn by_hash<A: AsRef<[u8]>>(&self, keys: &[&str], arguments: &[A]) -> Cmd {
        call("EVALSHA", self.hash(), keys, arguments)
    }

    pub(crate) fn by_source<A: AsRef<[u8]>>(&self, keys: &[&str], arguments: &[A]) -> Cmd {
        call("EVAL", self.source, keys, arguments)
    }
}

fn call<A: AsRef<[u8]>>(name: &str, script: &str, keys: &[&str], arguments: &[A]) -> Cmd {
    let lengths = keys.iter().map(|key| key.len());
    let lengths = lengths.chain(arguments.iter().map(|argument| argument.as_ref().len()));
    // The number of keys takes few digits.
    let data = name.len() + script.len() + 8 + lengths.sum::<usize>();
    let mut command = Cmd::with_capacity(3 + keys.len() + arguments.len(), data);
    command.arg(name).arg(script).arg(keys.len());
    for key in keys {
        command.arg(*key);
    }
    for argument in arguments {
        command.arg(argument.as_ref());
    }
    command
}
