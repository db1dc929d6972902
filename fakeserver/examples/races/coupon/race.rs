//! Redeems a coupon, once for each customer: looks whether the customer had it, then writes the customer down.

#![allow(clippy::print_stdout, reason = "a program shows its result")]

use std::env::{args, var};
use std::error::Error;

use redis::Commands;

fn main() -> Result<(), Box<dyn Error>> {
    let url = var("REDIS_URL")?;
    let customer = args().nth(1).ok_or("usage: CUSTOMER")?;
    let mut connection = redis::Client::open(url)?.get_connection()?;
    if connection.sismember("coupon:spring", &customer)? {
        println!("{customer} had it already");
        return Ok(());
    }
    let () = connection.sadd("coupon:spring", &customer)?;
    println!("{customer} gets a discount");
    Ok(())
}
