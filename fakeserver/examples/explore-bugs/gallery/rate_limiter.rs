//! A limiter that reads its counter before it counts lets through everybody who reads at the same time.

use fakeserver::explore::{Explorer, Scenario};
use redis::{AsyncCommands, RedisResult};

use super::Explored;

const LIMIT: i64 = 2;

async fn admit(con: &mut impl AsyncCommands) -> RedisResult<bool> {
    let count: Option<i64> = con.get("hits").await?;
    if count.unwrap_or(0) >= LIMIT {
        return Ok(false);
    }
    con.incr::<_, _, ()>("hits", 1).await?;
    Ok(true)
}

async fn admit_at_once(con: &mut impl AsyncCommands) -> RedisResult<bool> {
    let count: i64 = con.incr("hits", 1).await?;
    Ok(count <= LIMIT)
}

/// Operations are questions to the limiter; the output says whether one was let through.
fn scenario(name: &str) -> Scenario<(), bool> {
    Explorer::new().history::<(), bool>().named(name).verify(
        "nobody gets in beyond the limit",
        |run| {
            let admitted = run.history.iter().filter(|one| one.output == Some(true));
            admitted.count() <= LIMIT as usize
        },
    )
}

pub(super) fn wrong() -> Explored {
    scenario("GET, then INCR")
        .clients(3, |cx| async move {
            let mut con = cx.connect().await?;
            cx.attempt((), admit(&mut con)).await
        })
        .explore()
}

pub(super) fn right() -> Explored {
    scenario("INCR, and its reply")
        .clients(3, |cx| async move {
            let mut con = cx.connect().await?;
            cx.attempt((), admit_at_once(&mut con)).await
        })
        .explore()
}
