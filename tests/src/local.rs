//! [`LocalServer`]: a redis-server of a test's own, which it may kill and start again.

use std::env;
use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Client, cmd};

/// How long a server may take until it answers; it may have a log to read first.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the server and removes its directory when this process has ended, however that was: then its input ends.
const WARDEN: &str = "read -r _; kill -9 \"$1\"; rm -rf \"$2\"";

/// A redis-server on a port of the loopback interface, with a directory of its own. Both go with this value.
#[derive(Debug)]
pub struct LocalServer {
    program: OsString,
    settings: Vec<String>,
    directory: PathBuf,
    port: u16,
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    server: Child,
    warden: Child,
}

impl LocalServer {
    /// Starts one with these settings beside port and directory; none if there is no program to start, which on
    /// continuous integration is a failure. The environment variable `REDIS_SERVER` names another program.
    pub fn start(settings: &[&str]) -> Option<LocalServer> {
        let program = program()?;
        let port = free_port();
        let name = format!("redis-server-{}-{port}", std::process::id());
        let directory = env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a directory for the server");
        let mut server = LocalServer {
            program,
            settings: settings.iter().map(|&word| word.to_owned()).collect(),
            directory,
            port,
            process: None,
        };
        server.restart();
        Some(server)
    }

    /// The URL that clients open.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.server.kill().expect("it can be killed");
            // Its number may be another's soon.
            process.warden.kill().expect("it can be killed");
            process.server.wait().expect("it was killed");
            process.warden.wait().expect("it was killed");
        }
    }

    /// Starts it again on its directory, and waits until it has read what is there.
    pub fn restart(&mut self) {
        self.kill();
        let server = Command::new(&self.program)
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            // The log is opened where the server is when it reads its name.
            .arg("--dir")
            .arg(&self.directory)
            .args(["--logfile", "log"])
            .args(&self.settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts");
        let warden = Command::new("sh")
            .args(["-c", WARDEN, "sh", &server.id().to_string()])
            .arg(&self.directory)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        self.process = Some(Process { server, warden });
        let client = Client::open(self.url()).expect("a valid URL");
        let until = Instant::now() + PATIENCE;
        loop {
            let pong = client
                .get_connection()
                .and_then(|mut connection| cmd("PING").query::<String>(&mut connection));
            match pong {
                Ok(_) => return,
                Err(error) => assert!(Instant::now() < until, "no server: {error}"),
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn program() -> Option<OsString> {
    let named = env::var_os("REDIS_SERVER").filter(|name| !name.is_empty());
    let program = named.unwrap_or_else(|| "redis-server".into());
    if Command::new(&program).arg("--version").output().is_ok() {
        return Some(program);
    }
    let name = program.display();
    assert!(
        env::var_os("CI").is_none(),
        "{name}: a redis-server is needed when CI is set"
    );
    eprintln!("{name} is not there: tests that kill one are left out");
    None
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}
