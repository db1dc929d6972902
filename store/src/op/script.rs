//! Scripts: by hash, and by source where the server does not know the hash.

use std::sync::LazyLock;

use redis::{Cmd, cmd};

/// A script and its SHA-1.
#[derive(Debug)]
pub struct Script {
    source: &'static str,
    hash: LazyLock<String>,
}

/// Compare the version, then write the row and everything that comes with it.
pub(super) static COMMIT: Script = Script {
    source: include_str!("../lua/commit.lua"),
    hash: LazyLock::new(|| redis::Script::new(COMMIT.source).get_hash().to_owned()),
};

/// Remove a timer that still has its score.
pub(super) static DELETE_TIMER: Script = Script {
    source: include_str!("../lua/delete_timer.lua"),
    hash: LazyLock::new(|| {
        redis::Script::new(DELETE_TIMER.source)
            .get_hash()
            .to_owned()
    }),
};

/// Remove an execution and what belongs to it.
pub(super) static PURGE: Script = Script {
    source: include_str!("../lua/purge.lua"),
    hash: LazyLock::new(|| redis::Script::new(PURGE.source).get_hash().to_owned()),
};

/// Store a copy of a row under another key.
pub(super) static FORK: Script = Script {
    source: include_str!("../lua/fork.lua"),
    hash: LazyLock::new(|| redis::Script::new(FORK.source).get_hash().to_owned()),
};

/// Look up a page of the index.
pub(super) static INDEX_PAGE: Script = Script::new(include_str!("../lua/index_page.lua"), || {
    INDEX_PAGE.digest()
});

/// Bring entries of the index in line with the rows.
pub(super) static INDEX_REPAIR: Script =
    Script::new(include_str!("../lua/index_repair.lua"), || {
        INDEX_REPAIR.digest()
    });

impl Script {
    /// A script whose hash is worked out when it is first needed.
    pub(crate) const fn new(source: &'static str, hash: fn() -> String) -> Self {
        Self {
            source,
            hash: LazyLock::new(hash),
        }
    }

    /// The SHA-1, worked out anew.
    pub(crate) fn digest(&self) -> String {
        redis::Script::new(self.source).get_hash().to_owned()
    }

    /// The source.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// The SHA-1 of the source in hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    pub(crate) fn by_hash<A: AsRef<[u8]>>(&self, keys: &[&str], arguments: &[A]) -> Cmd {
        call("EVALSHA", self.hash(), keys, arguments)
    }

    pub(crate) fn by_source<A: AsRef<[u8]>>(&self, keys: &[&str], arguments: &[A]) -> Cmd {
        call("EVAL", self.source, keys, arguments)
    }
}

fn call<A: AsRef<[u8]>>(name: &str, script: &str, keys: &[&str], arguments: &[A]) -> Cmd {
    let mut command = cmd(name);
    command.arg(script).arg(keys.len());
    for key in keys {
        command.arg(*key);
    }
    for argument in arguments {
        command.arg(argument.as_ref());
    }
    command
}
