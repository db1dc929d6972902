//! How a test in Rust steers its server beside the clock: faults, and a look at all keys.

use std::time::Duration;

use crate::command::error_text;
use crate::dump::text_of;
use crate::faults::{Fault, Target, When};
use crate::server::Server;

impl Server {
    /// Lets a command fail: the next time that a client sends it, unless [`Failure`] is told otherwise. `CONFIG|GET` is a
    /// subcommand, `*` is any command.
    ///
    /// # Panics
    /// If there is no such command.
    ///
    /// ```
    /// let server = fakeserver::Server::new();
    /// server.fail("SET").nth(2).with_error("OOM command not allowed when used memory > 'maxmemory'.");
    /// assert_eq!(server.command(["SET", "k", "1"]), fakeserver::Reply::OK);
    /// assert!(server.command(["SET", "k", "2"]).is_error());
    /// assert_eq!(server.command(["SET", "k", "3"]), fakeserver::Reply::OK);
    /// ```
    pub fn fail(&self, command: impl AsRef<[u8]>) -> Failure<'_> {
        match Target::parse(command.as_ref()) {
            Ok(target) => Failure {
                server: self,
                target,
                when: When::Nth(1),
            },
            Err(error) => panic!("{error}"),
        }
    }

    /// Forgets all faults that have been asked for; how many there were.
    pub fn clear_faults(&self) -> usize {
        self.shared()
            .enter(|engine, _| engine.control.faults.clear())
    }

    /// All keys with their values and times to live, as text in the same order each time.
    pub fn dump(&self) -> String {
        self.shared().enter(|engine, now| {
            engine.keyspace.set_now(now);
            text_of(&engine.keyspace)
        })
    }
}

/// A fault in the making; it is in force once it is said what goes wrong.
///
/// What counts is what clients send: a command in a transaction is seen when it is queued, and what scripts call is not seen.
#[derive(Debug)]
#[must_use = "nothing fails until it is said how"]
pub struct Failure<'a> {
    server: &'a Server,
    target: Target,
    when: When,
}

impl Failure<'_> {
    /// The n-th time from now on, counted from 1; once.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn nth(mut self, n: u64) -> Self {
        assert!(n > 0, "the first time is number 1");
        self.when = When::Nth(n);
        self
    }

    /// Every time.
    pub fn always(mut self) -> Self {
        self.when = When::Always;
        self
    }

    /// The command is not run, and answered with this error, its code in front: `NOSCRIPT No matching script.`
    ///
    /// # Panics
    /// If the text is empty or has more than one line.
    pub fn with_error(self, text: impl AsRef<[u8]>) {
        match error_text(text.as_ref()) {
            Ok(text) => self.add(Fault::Error(text)),
            Err(error) => panic!("{error}"),
        }
    }

    /// The connection is closed before the command is run.
    pub fn drop_before(self) {
        self.add(Fault::DropBefore);
    }

    /// The command is run, and the connection is closed before it is answered; if it waits, when its wait is over.
    pub fn drop_after(self) {
        self.add(Fault::DropAfter);
    }

    /// The command is run, and answered so much later by the server's clock.
    pub fn delay(self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.add(Fault::Delay(millis));
    }

    fn add(self, fault: Fault) {
        let Failure {
            server,
            target,
            when,
        } = self;
        let added = server
            .shared()
            .enter(|engine, _| engine.control.faults.add(target, when, fault));
        if let Err(error) = added {
            panic!("{error}");
        }
    }
}
