//! Keeps a player's best score in a hash: what was read is watched, and read again if it changes before the write.

#![allow(clippy::print_stdout, reason = "a program shows its result")]

use std::env::{args, var};
use std::error::Error;

use redis::Commands;

fn main() -> Result<(), Box<dyn Error>> {
    let url = var("REDIS_URL")?;
    let score: i64 = args().nth(1).ok_or("usage: SCORE")?.parse()?;
    let mut connection = redis::Client::open(url)?.get_connection()?;
    let beaten = redis::transaction(&mut connection, &["player:7"], |connection, pipe| {
        let best: Option<i64> = connection.hget("player:7", "best")?;
        let beaten = best.is_none_or(|best| score > best);
        if !beaten {
            return Ok(Some(false));
        }
        let written: Option<()> = pipe
            .hset("player:7", "best", score)
            .ignore()
            .query(connection)?;
        Ok(written.map(|()| true))
    })?;
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
