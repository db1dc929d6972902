//! [`Peer`]: the Python store and transport in a process of their own, driven call by call.
//!
//! The environment variable `HAREL_PYTHON` names a Python that has what `interop/requirements.txt` lists. Without it the tests
//! that need one are left out and say so; on continuous integration, where `CI` is set, its absence is a failure.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// Which of the Python twins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// The blocking one.
    Sync,
    /// The one on asyncio.
    Async,
}

impl Flavour {
    /// As the driver calls it.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Sync => "sync",
            Flavour::Async => "async",
        }
    }
}

/// A Python process with a store and a transport on one server. It ends with this value.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    calls: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// The Python to use; none if it was not named. Panics on continuous integration if it was not.
    pub fn python() -> Option<String> {
        let python = std::env::var("HAREL_PYTHON")
            .ok()
            .filter(|path| !path.is_empty());
        if python.is_none() {
            assert!(
                std::env::var_os("CI").is_none(),
                "HAREL_PYTHON must name a Python with harel when CI is set"
            );
            eprintln!("HAREL_PYTHON is not set: nothing is tested against the Python store");
        }
        python
    }

    /// Starts one on this server, with keys under this prefix. Panics if it does not start.
    pub fn start(python: &str, url: &str, prefix: &str, flavour: Flavour) -> Peer {
        let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/driver.py");
        let mut child = Command::new(python)
            .args([driver, url, prefix, flavour.name()])
            // What it imports lies in the checkout.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("HAREL_PYTHON names a Python");
        let calls = child.stdin.take().expect("standard input is a pipe");
        let answers = child.stdout.take().expect("standard output is a pipe");
        Peer {
            child,
            calls,
            answers: BufReader::new(answers),
        }
    }

    /// One call, such as `store.load`; what it returned, or what it raised.
    ///
    /// # Errors
    /// The exception: its members `type` and `text`, and what it carries. Panics if the process is gone.
    pub fn call(&mut self, name: &str, args: &Value) -> Result<Value, Value> {
        self.send(name, args).expect("the process listens");
        self.answer().expect("the process answers")
    }

    /// Sends a call whose answer is fetched later, or never.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn send(&mut self, name: &str, args: &Value) -> io::Result<()> {
        writeln!(self.calls, "{}", json!({ "call": name, "args": args }))?;
        self.calls.flush()
    }

    /// The answer to the oldest call that has none yet.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn answer(&mut self) -> io::Result<Result<Value, Value>> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let mut answer: Value = serde_json::from_str(&line)?;
        Ok(match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer.get_mut("ok").map(Value::take).unwrap_or_default()),
        })
    }

    /// Ends the process as a power cut would.
    ///
    /// # Errors
    /// If it cannot be ended.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
