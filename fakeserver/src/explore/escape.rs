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

/// The first line of a backtrace that belongs neither to the explorer nor to what it stands on.
fn caller(backtrace: &str) -> Option<String> {
    const OTHERS: [&str; 7] = [
        "std::", "core::", "alloc::", "tokio::", "fakeserver::", "redis::", "futures",
    ];
    let mut is_own = false;
    for line in backtrace.lines().map(str::trim) {
        if let Some(place) = line.strip_prefix("at ") {
            // The standard library's own sources are not the program either.
            if is_own && !place.starts_with("/rustc/") {
                return Some(place.to_owned());
            }
            continue;
        }
        let Some((_, symbol)) = line.split_once(": ") else {
            continue;
        };
        let symbol = symbol.trim_start_matches(['<', '&']);
        is_own = !OTHERS.iter().any(|other| symbol.starts_with(other));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_is_the_first_line_of_the_program() {
        let backtrace = "\
   0: fakeserver::explore::escape::here
             at ./fakeserver/src/explore/escape.rs:61:11
   1: <tokio::runtime::blocking::pool::Spawner>::spawn_thread
             at /deps/tokio/src/runtime/blocking/pool.rs:1:1
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
