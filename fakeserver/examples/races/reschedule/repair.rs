//! Moves a job to a later time, or cancels it: moved only if it is still there, in one command.

#![allow(clippy::print_stdout, reason = "a program shows its result")]

use std::env::{args, var};
use std::error::Error;

use redis::Commands;

fn main() -> Result<(), Box<dyn Error>> {
    let url = var("REDIS_URL")?;
    let mut connection = redis::Client::open(url)?.get_connection()?;
    let arguments: Vec<String> = args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["move", job, time] => {
            let mut change = redis::cmd("ZADD");
            change
                .arg("schedule")
                .arg("XX")
                .arg("CH")
                .arg(time)
                .arg(job);
            let planned: bool = change.query(&mut connection)?;
            println!("{job} {}", if planned { "moved" } else { "not planned" });
        }
        ["cancel", job] => {
            let planned: bool = connection.zrem("schedule", job)?;
            println!(
                "{job} {}",
                if planned { "cancelled" } else { "not planned" }
            );
        }
        _ => return Err("usage: move JOB TIME | cancel JOB".into()),
    }
    Ok(())
}
