//! Whoever looks whether a lock is still its own, and then deletes it, may delete the next owner's.

use fakeserver::explore::{Explorer, Scenario};
use redis::{AsyncCommands, RedisResult, Script};

use super::Explored;

async fn release(con: &mut impl AsyncCommands) -> RedisResult<()> {
    let owner: Option<String> = con.get("lock").await?;
    if owner.as_deref() == Some("a") {
        con.del::<_, ()>("lock").await?;
    }
    Ok(())
}

async fn release_at_once(con: &mut impl AsyncCommands) -> RedisResult<()> {
    let text =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end";
    Script::new(text)
        .key("lock")
        .arg("a")
        .invoke_async(con)
        .await
}

/// The lock is `a`'s; its deadline may strike at any moment, and the next in line takes it.
fn scenario(name: &str) -> Scenario<(), ()> {
    Explorer::new()
        .setup(|cx| async move { cx.connect().await?.set::<_, _, ()>("lock", "a").await })
        .named(name)
        .client(|cx| async move { cx.connect().await?.del::<_, ()>("lock").await })
        .client(|cx| async move { cx.connect().await?.set_nx::<_, _, ()>("lock", "b").await })
        .deny_lost_updates()
}

pub(super) fn wrong() -> Explored {
    scenario("GET, then DEL")
        .client(|cx| async move { release(&mut cx.connect().await?).await })
        .explore()
}

pub(super) fn right() -> Explored {
    scenario("GET and DEL in one script")
        .client(|cx| async move { release_at_once(&mut cx.connect().await?).await })
        .explore()
}
