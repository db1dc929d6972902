//! Moves money from one account to another, if there is enough.

#![allow(clippy::print_stdout, reason = "a program shows its result")]

use std::env::{args, var};
use std::error::Error;

use redis::Commands;

fn main() -> Result<(), Box<dyn Error>> {
    let url = var("REDIS_URL")?;
    let amount: i64 = args().nth(1).ok_or("usage: AMOUNT")?.parse()?;
    let mut connection = redis::Client::open(url)?.get_connection()?;
    let balance: i64 = connection.get("account:ada")?;
    if balance < amount {
        println!("refused: not enough for {amount}");
        return Ok(());
    }
    let () = connection.decr("account:ada", amount)?;
    let () = connection.incr("account:bob", amount)?;
    println!("moved {amount}");
    Ok(())
}
