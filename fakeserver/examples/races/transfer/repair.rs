//! Moves money from one account to another, if there is enough: in one script.

#![allow(clippy::print_stdout, reason = "a program shows its result")]

use std::env::{args, var};
use std::error::Error;

const MOVE: &str = "
if tonumber(redis.call('GET', KEYS[1])) < tonumber(ARGV[1]) then return 0 end
redis.call('DECRBY', KEYS[1], ARGV[1])
redis.call('INCRBY', KEYS[2], ARGV[1])
return 1";

fn main() -> Result<(), Box<dyn Error>> {
    let url = var("REDIS_URL")?;
    let amount: i64 = args().nth(1).ok_or("usage: AMOUNT")?.parse()?;
    let mut connection = redis::Client::open(url)?.get_connection()?;
    let script = redis::Script::new(MOVE);
    let mut call = script.key("account:ada");
    let moved: bool = call
        .key("account:bob")
        .arg(amount)
        .invoke(&mut connection)?;
    if moved {
        println!("moved {amount}");
    } else {
        println!("refused: not enough for {amount}");
    }
    Ok(())
}
