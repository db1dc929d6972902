//! [`Escape`]: a program that does what nobody here can put in order.

use std::backtrace::Backtrace;
use std::fmt;

/// What a program did that is not under the explorer's control, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Escape {
    /// What it did.
    pub what: String,
    /// How far the schedule was, and the place in the program as far as it is known.
    pub place: String,
}

impl fmt::Display for Escape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.what, self.place)
    }
}

/// What tokio says when something needs its I/O driver, which the explorer's runtime has not got, by version.
const NO_IO: [&str; 3] = [
    "IO is disabled",
    "there is no reactor running",
    "there is no signal driver running",
];

impl Escape {
    /// Work was handed to the pool of blocking threads; called by the thread that hands it over.
    pub(super) fn to_pool(progress: &str) -> Escape {
        let what = "the program gives work to a thread of tokio's blocking pool (spawn_blocking, file access, name resolution)";
        Escape {
            what: what.to_owned(),
            place: here(progress),
        }
    }

    /// A connection was used on another thread; called by that.
    pub(super) fn to_thread(connection: &str, progress: &str) -> Escape {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        Escape {
            what: format!(
                "thread {name:?} uses {connection}; only the explorer's own thread may, on which the clients run"
            ),
            place: here(progress),
        }
    }

    /// A client's code on a thread does what the explorer cannot put in order.
    pub(super) fn of_client(what: String, progress: String) -> Escape {
        Escape {
            what,
            place: progress,
        }
    }

    /// What a client's panic says, if it is about a socket, a process or a signal.
    pub(super) fn of_panic(client: usize, text: &str, progress: &str) -> Option<Escape> {
        NO_IO.iter().any(|sign| text.contains(sign)).then(|| Escape {
            what: format!(
                "client {client} uses a socket, process or signal of its own; connections come from its connector ({text})"
            ),
            place: progress.to_owned(),
        })
    }
}

/// The progress, and the line of the program that is being run.
fn here(progress: &str) -> String {
    match caller(&Backtrace::force_capture().to_string()) {
        Some(line) => format!("{progress}, at {line}"),
        None => progress.to_owned(),
    }
}

/// The first line of a backtrace that is neither the explorer's nor of a library. By the files, since a backtrace does not
/// always have the functions' full names.
fn caller(backtrace: &str) -> Option<String> {
    let own = file!().trim_end_matches("escape.rs");
    let others = [
        own,
        "/rustc/",
        "/registry/src/",
        "/git/checkouts/",
        "/vendor/",
    ];
    let places = backtrace.lines().map(str::trim);
    let mut places = places.filter_map(|line| line.strip_prefix("at "));
    let place = places.find(|place| !others.iter().any(|other| place.contains(other)))?;
    Some(place.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_is_the_first_line_of_the_program() {
        let backtrace = "\
   0: fakeserver::explore::escape::here
             at ./fakeserver/src/explore/escape.rs:61:11
   1: spawn_thread
             at /opt/cargo/registry/src/index/tokio/src/runtime/blocking/pool.rs:1:1
   2: __rust_begin_short_backtrace
             at /rustc/0/library/std/src/sys/backtrace.rs:1:1
   3: shop::stock::load::{{closure}}
             at ./src/stock.rs:31:9
   4: shop::main
             at ./src/main.rs:3:9";
        assert_eq!(caller(backtrace).as_deref(), Some("./src/stock.rs:31:9"));
        assert_eq!(caller("   0: <unknown>"), None);
    }
}
