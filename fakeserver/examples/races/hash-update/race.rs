//! Keeps a player's best score in a hash: reads it, compares, writes.

#![allow(clippy::print_stdout, reason = "a program shows its result")]

use std::env::{args, var};
use std::error::Error;

use redis::Commands;

fn main() -> Result<(), Box<dyn Error>> {
    let url = var("REDIS_URL")?;
    let score: i64 = args().nth(1).ok_or("usage: SCORE")?.parse()?;
    let mut connection = redis::Client::open(url)?.get_connection()?;
    let best: Option<i64> = connection.hget("player:7", "best")?;
    let beaten = best.is_none_or(|best| score > best);
    if beaten {
        let () = connection.hset("player:7", "best", score)?;
    }
    println!(
        "{score} {}",
        if beaten {
            "is a new best"
        } else {
            "is no new best"
        }
    );
    Ok(())
}
