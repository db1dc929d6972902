//! [`Program`]: what a role runs: a process, a closure, or something that whoever started the sweep runs for it.

use std::fmt;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::doors::Event;
use super::report::{Ending, Status};
use super::schedule::Role;

/// Bytes of a program's output that are kept.
const OUTPUT_LEN_MAX: u64 = 256 * 1024;

/// How long a program's output is waited for behind its end: a child of its own may hold it open.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);

/// A closure: takes the URL of its server; what it returns is its output, an error its failure.
pub(super) type Closure = Arc<dyn Fn(&str) -> Result<String, String> + Send + Sync>;

/// What a role runs.
#[derive(Clone)]
pub(super) enum Program {
    /// A command line.
    Process(Vec<String>),
    /// A function of this process, on a thread.
    Closure(Closure),
    /// A function of whoever started the sweep, and its name.
    Hosted(String),
}

impl Program {
    /// As the report names it.
    pub(super) fn words(&self) -> Vec<String> {
        match self {
            Program::Process(words) => words.clone(),
            Program::Closure(_) => vec!["(closure)".to_owned()],
            Program::Hosted(name) => vec![name.clone()],
        }
    }

    /// Whether it takes so long to start that it is worth to start it before its turn.
    pub(super) fn is_slow_to_start(&self) -> bool {
        matches!(self, Program::Process(_))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Program").field(&self.words()).finish()
    }
}

/// A program ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) role: Role,
    /// In which run.
    pub(super) run: u64,
    pub(super) ending: Ending,
    /// What it said on standard error.
    pub(super) complaint: String,
}

/// What the host of programs must not do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// Its line is closed.
    #[error("whoever runs the programs is gone")]
    Gone,
    /// It said something else than that a program ended.
    #[error("cannot understand `{line}`: {source}")]
    Line {
        /// What it said.
        line: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// What a host is told, a line each.
#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub(super) enum Order<'a> {
    /// Start a role.
    Run {
        role: &'a str,
        run: u64,
        url: &'a str,
    },
    /// A role is dead.
    Stop { role: &'a str, run: u64 },
}

/// What a host answers.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    ended: String,
    run: u64,
    status: i32,
    output: String,
}

/// Reads a host's line.
pub(super) fn answer(line: &str) -> Event {
    let read = serde_json::from_str::<Answer>(line).and_then(|answer| {
        let role = Role::ALL
            .into_iter()
            .find(|role| role.name() == answer.ended)
            .ok_or_else(|| serde::de::Error::custom("no such role"))?;
        Ok((role, answer))
    });
    match read {
        Ok((role, answer)) => Event::Ended(Ended {
            role,
            run: answer.run,
            ending: Ending {
                status: Status::Code(answer.status),
                output: answer.output,
            },
            complaint: String::new(),
        }),
        Err(source) => Event::HostLost(HostError::Line {
            line: line.to_owned(),
            source,
        }),
    }
}

/// A program that cannot be started.
#[derive(Debug, Error)]
#[error("cannot run `{program}`: {source}")]
pub struct LaunchError {
    program: String,
    source: io::Error,
}

/// A program under way.
#[derive(Debug)]
pub(super) struct Running {
    role: Role,
    run: u64,
    kill: Option<oneshot::Sender<()>>,
    is_hosted: bool,
}

impl Running {
    /// Ends it if it is a process; a host is told that it is dead.
    pub(super) fn kill(&mut self) {
        if let Some(kill) = self.kill.take() {
            // It may have ended by itself.
            let _ = kill.send(());
        }
        if self.is_hosted {
            order(&Order::Stop {
                role: self.role.name(),
                run: self.run,
            });
        }
    }
}

/// Writes a line for the host to standard output.
pub(super) fn tell(line: &impl Serialize) -> io::Result<()> {
    use std::io::Write;
    let line = serde_json::to_string(line)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// A host that does not listen any more has closed standard input too, which ends the sweep.
fn order(order: &Order<'_>) {
    let _ = tell(order);
}

/// Starts a program; its end is reported to `events`.
pub(super) fn start(
    program: &Program,
    role: Role,
    run: u64,
    port: u16,
    events: &UnboundedSender<Event>,
) -> Result<Running, LaunchError> {
    let url = format!("redis://127.0.0.1:{port}");
    let mut running = Running {
        role,
        run,
        kill: None,
        is_hosted: false,
    };
    match program {
        Program::Process(words) => {
            let launched = launch(words, role, port, &url).map_err(|source| LaunchError {
                program: words.join(" "),
                source,
            })?;
            let (kill, killed) = oneshot::channel();
            running.kill = Some(kill);
            tokio::spawn(attend(launched, killed, role, run, events.clone()));
        }
        Program::Closure(closure) => {
            let (closure, events) = (Arc::clone(closure), events.clone());
            // Not one of the runtime's threads: a closure that never ends must not keep the runtime from ending.
            let thread = std::thread::Builder::new().name(format!("sweep {role}"));
            let spawned = thread.spawn(move || {
                let ending = call(&closure, &url);
                let _ = events.send(Event::Ended(Ended {
                    role,
                    run,
                    ending,
                    complaint: String::new(),
                }));
            });
            spawned.map_err(|source| LaunchError {
                program: "a closure".to_owned(),
                source,
            })?;
        }
        Program::Hosted(_) => {
            running.is_hosted = true;
            order(&Order::Run {
                role: role.name(),
                run,
                url: &url,
            });
        }
    }
    Ok(running)
}

fn call(closure: &Closure, url: &str) -> Ending {
    let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| closure(url)));
    let (status, output) = match called {
        Ok(Ok(output)) => (0, output),
        Ok(Err(error)) => (1, error),
        Err(panic) => (101, panic_text(panic.as_ref())),
    };
    Ending {
        status: Status::Code(status),
        output,
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic".to_owned())
}

fn launch(words: &[String], role: Role, port: u16, url: &str) -> io::Result<Child> {
    let number = port.to_string();
    let fill = |word: &String| {
        word.replace("{url}", url)
            .replace("{host}", "127.0.0.1")
            .replace("{port}", &number)
    };
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "an empty command"))?;
    Command::new(program)
        .args(arguments.iter().map(fill))
        .env("REDIS_URL", url)
        .env("REDIS_HOST", "127.0.0.1")
        .env("REDIS_PORT", &number)
        .env("SWEEP_ROLE", role.name())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its children are to die with it.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// Waits for a process, and reports how it ended.
async fn attend(
    mut child: Child,
    killed: oneshot::Receiver<()>,
    role: Role,
    run: u64,
    events: UnboundedSender<Event>,
) {
    let group = child.id().and_then(|id| Pid::from_raw(id as i32));
    let output = tokio::spawn(read_all(child.stdout.take()));
    let complaint = tokio::spawn(read_all(child.stderr.take()));
    let (status, was_killed) = tokio::select! {
        status = child.wait() => (status, false),
        order = killed => {
            let was_killed = order.is_ok();
            kill_group(group);
            (child.wait().await, was_killed)
        }
    };
    let status = match status {
        _ if was_killed => Status::Other("killed".to_owned()),
        Ok(status) => status_of(status),
        Err(error) => Status::Other(error.to_string()),
    };
    let within = |text| async { tokio::time::timeout(OUTPUT_GRACE, text).await };
    let output = within(output).await;
    // What it left behind in its process group would go on to use the server.
    kill_group(group);
    let text = |read: Result<Result<Vec<u8>, _>, _>| match read {
        Ok(Ok(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => String::new(),
    };
    let ended = Ended {
        role,
        run,
        ending: Ending {
            status,
            output: text(output),
        },
        complaint: text(within(complaint).await),
    };
    let _ = events.send(Event::Ended(ended));
}

fn kill_group(group: Option<Pid>) {
    if let Some(group) = group {
        // It may have ended, and all of its group.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn status_of(status: std::process::ExitStatus) -> Status {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Status::Code(code),
        (None, Some(signal)) => Status::Other(format!("signal {signal}")),
        (None, None) => Status::Other("unknown".to_owned()),
    }
}

async fn read_all(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        let mut limited = (&mut stream).take(OUTPUT_LEN_MAX);
        // What was read before an error is what there is.
        let _ = limited.read_to_end(&mut bytes).await;
        // A full pipe would stop the program.
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    bytes
}
