//! Redeems a coupon, once for each customer: whether writing the customer down was news is the answer.

#![allow(clippy::print_stdout, reason = "a program shows its result")]

use std::env::{args, var};
use std::error::Error;

use redis::Commands;

fn main() -> Result<(), Box<dyn Error>> {
    let url = var("REDIS_URL")?;
    let customer = args().nth(1).ok_or("usage: CUSTOMER")?;
    let mut connection = redis::Client::open(url)?.get_connection()?;
    let first: bool = connection.sadd("coupon:spring", &customer)?;
    println!(
        "{customer} {}",
        if first {
            "gets a discount"
        } else {
            "had it already"
        }
    );
    Ok(())
}
