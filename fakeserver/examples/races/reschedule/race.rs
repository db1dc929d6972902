//! Moves a job to a later time, or cancels it: moved is removed and added again.

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
            let planned: bool = connection.zrem("schedule", job)?;
            if planned {
                let () = connection.zadd("schedule", job, time)?;
            }
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
