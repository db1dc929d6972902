//! The standalone server, for tests in any language.

#[cfg(unix)]
mod explore;
#[cfg(unix)]
mod programs;
#[cfg(unix)]
mod sweep;

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use fakeserver::config::Permission;
use fakeserver::{Clock, Config, Server};
use mimalloc::MiMalloc;
use tokio::sync::Notify;

// Lua and small values allocate all the time. The library leaves the choice to the program that it is in.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// An in-memory Redis test double that answers as redis-server 7.0.15 does.
///
/// The first line on standard output is `Ready: redis://ADDRESS:PORT`; logs go to standard error. Ends on SIGINT and SIGTERM.
#[derive(Debug, Parser)]
#[command(name = "fakeserver", version, args_conflicts_with_subcommands = true)]
struct Options {
    #[cfg(unix)]
    #[command(subcommand)]
    task: Option<Task>,
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 6379)]
    port: u16,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Password that clients have to give
    #[arg(long)]
    password: Option<String>,
    /// Seed of random choices and hash tables; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Let clients call DEBUG
    #[arg(long)]
    enable_debug_command: bool,
    /// Instructions of Lua after which a script is ended; 0 for no limit
    #[arg(long, value_name = "COUNT", default_value_t = Config::default().script_instructions_max)]
    script_instructions: u64,
    /// Bytes that the scripts' Lua state may hold; 0 for no limit
    #[arg(long, value_name = "BYTES", default_value_t = Config::default().script_memory_max)]
    script_memory: usize,
    /// Let the clock stand at so many milliseconds since the epoch
    #[arg(long, value_name = "MILLISECONDS")]
    frozen_clock: Option<i64>,
    /// Let clients steer the server with FAKE: its clock, its faults, a dump; see FAKE HELP
    #[arg(long)]
    admin: bool,
    /// End when standard input ends, and so with the process that holds its other end
    #[arg(long)]
    parent_stdin: bool,
    /// Write the port to this file once the server can be reached
    #[arg(long, value_name = "FILE")]
    port_file: Option<PathBuf>,
}

#[cfg(unix)]
#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Run two programs under every schedule with one preemption or one fault, and report what no serial order gives.
    Sweep(Box<sweep::SweepOptions>),
    /// Run two to five programs under schedules with several preemptions, and report what no serial order gives.
    Explore(Box<explore::ExploreOptions>),
}

fn main() -> ExitCode {
    let options = Options::parse();
    #[cfg(unix)]
    match options.task {
        Some(Task::Sweep(options)) => return sweep::run(&options),
        Some(Task::Explore(options)) => return explore::run(&options),
        None => {}
    }
    let seed = options.seed.unwrap_or_else(random_seed);
    let mut config = Config::default();
    if options.enable_debug_command {
        config.enable_debug_command = Permission::Yes;
    }
    let mut builder = Server::builder()
        .config(config)
        .port(options.port)
        .bind(options.bind)
        .seed(seed)
        .admin(options.admin)
        .script_instructions(options.script_instructions)
        .script_memory(options.script_memory);
    if let Some(password) = &options.password {
        builder = builder.password(password);
    }
    if let Some(millis) = options.frozen_clock {
        builder = builder.clock(Clock::frozen_at(millis));
    }
    match builder.try_start() {
        Ok(server) => run(&server, &options),
        Err(error) => {
            eprintln!("fakeserver: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(server: &Server, options: &Options) -> ExitCode {
    match serve_until_asked_to_end(server, options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fakeserver: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(unix)]
fn serve_until_asked_to_end(server: &Server, options: &Options) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    runtime()?.block_on(async {
        // Whoever reads the ready line may send a signal at once, so the handlers come first.
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let orphaned = orphaned(options);
        say_ready(server, options)?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = orphaned.notified() => {}
            () = server.until_shutdown() => {}
        }
        Ok(())
    })
}

#[cfg(not(unix))]
fn serve_until_asked_to_end(server: &Server, options: &Options) -> io::Result<()> {
    runtime()?.block_on(async {
        let orphaned = orphaned(options);
        say_ready(server, options)?;
        tokio::select! {
            () = orphaned.notified() => Ok(()),
            result = tokio::signal::ctrl_c() => result,
            () = server.until_shutdown() => Ok(()),
        }
    })
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Is notified when standard input ends, if that is to be the end.
fn orphaned(options: &Options) -> Arc<Notify> {
    let orphaned = Arc::new(Notify::new());
    if options.parent_stdin {
        let ended = Arc::clone(&orphaned);
        std::thread::spawn(move || {
            // What is sent means nothing, and an input that cannot be read has ended.
            let mut bytes = [0; 1024];
            while matches!(io::stdin().read(&mut bytes), Ok(1..)) {}
            ended.notify_one();
        });
    }
    orphaned
}

/// Tells whoever started the program that it can connect now.
fn say_ready(server: &Server, options: &Options) -> io::Result<()> {
    let address = SocketAddr::new(options.bind, server.port());
    if let Some(path) = &options.port_file {
        write_whole(path, &format!("{}\n", address.port())).map_err(|error| {
            let path = path.display();
            io::Error::new(error.kind(), format!("cannot write {path}: {error}"))
        })?;
    }
    let mut out = io::stdout().lock();
    writeln!(out, "Ready: redis://{address}")?;
    out.flush()
}

/// Writes a file that is there with all its text or not at all, for those who wait for it.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(format!(".{}", std::process::id()));
    std::fs::write(&unfinished, text)?;
    std::fs::rename(&unfinished, path)
}

/// The standard library's hash maps are seeded by the operating system, which is as good as a seed gets here.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}
