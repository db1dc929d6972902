//! Servers as processes: started, connected to, and asked what they have used; and the middle of several figures.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Linux counts process times in hundredths of a second, whatever its own clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// How long a reply may take: a server may have ten million keys to make or to drop before it.
const PATIENCE: Duration = Duration::from_secs(300);

/// A server's process, which ends with this value.
pub(crate) struct Process {
    child: Child,
    port: u16,
}

impl Process {
    /// Starts what `command` makes for a port, and waits for its first reply.
    pub(crate) fn start(command: impl FnOnce(&str) -> Command) -> io::Result<Process> {
        // Free a moment ago; whoever takes it in between makes the start fail, not the measurement wrong.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = command(&port.to_string());
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                let program = command.get_program().to_string_lossy();
                io::Error::other(format!("cannot start {program}: {error}"))
            })?;
        let process = Process { child, port };
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            match process.ping() {
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_micros(100)),
                Ok(()) => return Ok(process),
            }
        }
    }

    fn ping(&self) -> io::Result<()> {
        let mut stream = self.connect()?;
        stream.write_all(b"*1\r\n$4\r\nPING\r\n")?;
        match BufReader::new(stream).read_line(&mut String::new())? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// User and system time so far: the nanoseconds of its threads where the kernel tells them and none has ended, or else ticks.
    pub(crate) fn cpu_seconds(&self, threads_end: bool) -> io::Result<f64> {
        let process = format!("/proc/{}", self.child.id());
        if !threads_end && let Some(nanos) = thread_nanos(Path::new(&process)) {
            return Ok(nanos as f64 / 1e9);
        }
        let stat = std::fs::read_to_string(format!("{process}/stat"))?;
        // The program's name, in brackets, may hold blanks; what is counted comes behind it.
        let behind = stat.rsplit(')').next().unwrap_or_default();
        let mut fields = behind.split_whitespace().skip(11);
        let mut ticks = || fields.next().and_then(|field| field.parse::<f64>().ok());
        let spent = ticks().zip(ticks()).map(|(user, system)| user + system);
        spent
            .map(|ticks| ticks / TICKS_PER_SECOND)
            .ok_or_else(|| io::Error::other("the kernel does not tell what time was spent"))
    }

    pub(crate) fn rss_bytes(&self) -> io::Result<f64> {
        rss_bytes(&self.child.id().to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Resident memory of a process; `self` is this one.
pub(crate) fn rss_bytes(process: &str) -> io::Result<f64> {
    kilobytes(&format!("/proc/{process}/status"), "VmRSS:")
        .map(|kilobytes| kilobytes * 1024.0)
        .ok_or_else(|| io::Error::other("the kernel does not tell how much memory is resident"))
}

/// A figure of a file that the kernel makes, by the word that begins its line.
pub(crate) fn kilobytes(path: &str, head: &str) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(head))?;
    line.split_whitespace().next()?.parse().ok()
}

fn thread_nanos(process: &Path) -> Option<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir(process.join("task")).ok()? {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        sum += text.split(' ').next()?.parse::<u64>().ok()?;
    }
    Some(sum)
}

/// The value that such a share of all, from 0 to 1, does not exceed.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    // Rounded up: of fewer than a thousand, all but the longest are too few for 99.9 %.
    let at = last - (last as f64 * (1.0 - share)) as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}
