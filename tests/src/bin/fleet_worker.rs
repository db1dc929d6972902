//! A worker as a process of its own, to be killed by a test: `fleet_worker URL PREFIX VISIBILITY_MS [TURNS]`.
//!
//! It ends after so many turns, or with its standard input.

use std::io::Read;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use tests::fleet::{Turn, Worker};

const IDLE: Duration = Duration::from_millis(5);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, prefix, visibility, turns @ ..] = arguments.as_slice() else {
        return ExitCode::from(2);
    };
    let visibility = Duration::from_millis(visibility.parse().unwrap_or(1000));
    let mut turns: u64 = turns
        .first()
        .and_then(|turns| turns.parse().ok())
        .unwrap_or(u64::MAX);
    let Ok(mut worker) = Worker::new(url, prefix, visibility) else {
        return ExitCode::from(2);
    };
    if turns == u64::MAX {
        thread::spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
    }
    while turns > 0 {
        turns -= 1;
        match worker.turn() {
            Ok(Turn::Busy) => {}
            Ok(Turn::Idle) => thread::sleep(IDLE),
            Err(error) => {
                eprintln!("rust worker: {error}");
                thread::sleep(IDLE);
            }
        }
    }
    ExitCode::SUCCESS
}
