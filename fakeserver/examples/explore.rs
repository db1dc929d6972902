//! Is it right whatever the order of the commands? Two buyers and one piece in stock.
//!
//! `cargo run -p fakeserver --features explore --example explore`

#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use fakeserver::explore::{ExploreError, Explorer};
use redis::{AsyncCommands, RedisResult};

/// What is to be tried: any code that talks through a connection it is given.
async fn buy(con: &mut impl AsyncCommands) -> RedisResult<bool> {
    let stock: i64 = con.get("stock").await?;
    if stock == 0 {
        return Ok(false);
    }
    con.decr::<_, _, ()>("stock", 1).await?;
    Ok(true)
}

fn main() -> Result<(), ExploreError> {
    let report = Explorer::new()
        .setup(|cx| async move { cx.connect().await?.set::<_, _, ()>("stock", 1).await })
        .clients(2, |cx| async move { buy(&mut cx.connect().await?).await })
        .invariant("stock is never negative", |db| {
            db.get::<i64>("stock") >= Some(0)
        })
        .explore()?; // a test ends with .check(), which panics with what this prints
    println!("{report}");
    Ok(())
}
