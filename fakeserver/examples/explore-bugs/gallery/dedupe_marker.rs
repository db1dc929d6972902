//! A worker that marks a message as seen before it acts, and breaks down in between, never acts: the message comes again, and is
//! taken for done.

use fakeserver::explore::{Connector, Explorer, Faults, Scenario};
use redis::{AsyncCommands, RedisResult, Script};

use super::Explored;

async fn handle(con: &mut impl AsyncCommands) -> RedisResult<()> {
    if con.set_nx("seen:message", 1).await? {
        con.incr::<_, _, ()>("balance", 100).await?;
    }
    Ok(())
}

async fn handle_at_once(con: &mut impl AsyncCommands) -> RedisResult<()> {
    let text =
        "if redis.call('SETNX', KEYS[1], 1) == 1 then redis.call('INCRBY', KEYS[2], 100) end";
    let script = Script::new(text);
    script
        .key("seen:message")
        .key("balance")
        .invoke_async(con)
        .await
}

/// The queue delivers a message until somebody says that it is done.
async fn until_done(connector: Connector, at_once: bool) {
    loop {
        let handled = async {
            let mut con = connector.connect().await?;
            if at_once {
                handle_at_once(&mut con).await
            } else {
                handle(&mut con).await
            }
        };
        if handled.await.is_ok() {
            return;
        }
    }
}

fn scenario(name: &str, at_once: bool) -> Scenario<(), ()> {
    Explorer::new()
        .faults(Faults::at_most(1).drop_before().lose_reply())
        .clients(2, move |cx| until_done(cx.connector(), at_once))
        .named(name)
        .at_end("the message had its effect once", |db| {
            db.get::<i64>("balance") == Some(100)
        })
}

pub(super) fn wrong() -> Explored {
    scenario("SETNX, then INCRBY", false).explore()
}

pub(super) fn right() -> Explored {
    scenario("SETNX and INCRBY in one script", true).explore()
}
