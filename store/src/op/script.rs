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

/// How the server is told which script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Hash,
    Source,
}

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
        self.whole(By::Hash, keys, arguments)
    }

    pub(crate) fn by_source<A: AsRef<[u8]>>(&self, keys: &[&str], arguments: &[A]) -> Cmd {
        self.whole(By::Source, keys, arguments)
    }

    fn whole<A: AsRef<[u8]>>(&self, by: By, keys: &[&str], arguments: &[A]) -> Cmd {
        let lengths = arguments.iter().map(|argument| argument.as_ref().len());
        let keys = keys.iter().copied();
        let mut call = self.call(by, keys, arguments.len(), lengths.sum());
        for argument in arguments {
            call.arg(argument.as_ref());
        }
        call
    }

    /// A call whose arguments are still to come: about so many, of about so many bytes together.
    pub(super) fn call<'k>(
        &self,
        by: By,
        keys: impl ExactSizeIterator<Item = &'k str> + Clone,
        arguments: usize,
        arguments_len: usize,
    ) -> Cmd {
        let (name, script) = match by {
            By::Hash => ("EVALSHA", self.hash()),
            By::Source => ("EVAL", self.source),
        };
        let keys_len: usize = keys.clone().map(str::len).sum();
        // The number of keys takes few digits.
        let len = name.len() + script.len() + 8 + keys_len + arguments_len;
        let mut call = Cmd::with_capacity(3 + keys.len() + arguments, len);
        call.arg(name).arg(script).arg(keys.len());
        for key in keys {
            call.arg(key);
        }
        call
    }
}
