//! Who takes a lock with SETNX and breaks down before EXPIRE leaves it to nobody, for ever.

use fakeserver::explore::{Explorer, Faults, Scenario};
use redis::{AsyncCommands, ExistenceCheck, RedisResult, SetExpiry, SetOptions};

use super::Explored;

async fn take(con: &mut impl AsyncCommands) -> RedisResult<()> {
    if con.set_nx("lock", "a").await? {
        con.expire::<_, ()>("lock", 10).await?;
    }
    Ok(())
}

async fn take_at_once(con: &mut impl AsyncCommands) -> RedisResult<()> {
    let options = SetOptions::default()
        .conditional_set(ExistenceCheck::NX)
        .with_expiration(SetExpiry::EX(10));
    con.set_options("lock", "a", options).await
}

/// One connection may break, and its client gives up.
fn scenario(name: &str) -> Scenario<(), ()> {
    Explorer::new()
        .faults(Faults::at_most(1).drop_before().lose_reply())
        .history()
        .named(name)
        .at_end("a lock has a deadline", |db| {
            !db.exists("lock") || db.pttl("lock").is_some()
        })
}

pub(super) fn wrong() -> Explored {
    scenario("SETNX, then EXPIRE")
        .clients(2, |cx| async move { take(&mut cx.connect().await?).await })
        .may_fail()
        .explore()
}

pub(super) fn right() -> Explored {
    scenario("SET with NX and EX")
        .clients(2, |cx| async move {
            take_at_once(&mut cx.connect().await?).await
        })
        .may_fail()
        .explore()
}
