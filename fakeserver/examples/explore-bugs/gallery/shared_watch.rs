//! WATCH belongs to a connection. If tasks share one, the first EXEC ends the watches of all.

use std::sync::Arc;

use fakeserver::explore::{Connection, Connector, Explorer, Scenario};
use redis::{RedisResult, Value, cmd, pipe};
use tokio::sync::Mutex;

use super::Explored;

/// A connection that is free for others between two calls, as a multiplexed one is.
type Shared = Arc<Mutex<Connection>>;

async fn add_one(shared: Shared) -> RedisResult<()> {
    loop {
        cmd("WATCH")
            .arg("n")
            .exec_async(&mut *shared.lock().await)
            .await?;
        let n: Option<i64> = cmd("GET")
            .arg("n")
            .query_async(&mut *shared.lock().await)
            .await?;
        let mut transaction = pipe();
        transaction.atomic().set("n", n.unwrap_or(0) + 1);
        let done: Option<Vec<Value>> = transaction.query_async(&mut *shared.lock().await).await?;
        if done.is_some() {
            return Ok(());
        }
    }
}

/// Two requests to one web server.
async fn serve(one: Shared, other: Shared) -> RedisResult<()> {
    let (one, other) = tokio::join!(add_one(one), add_one(other));
    one.and(other)
}

async fn connect(cx: &Connector) -> RedisResult<Shared> {
    Ok(Arc::new(Mutex::new(cx.connect().await?)))
}

fn scenario(name: &str) -> Scenario<(), ()> {
    Explorer::new()
        .history()
        .named(name)
        .at_end("both were counted", |db| db.get::<i64>("n") == Some(2))
}

pub(super) fn wrong() -> Explored {
    scenario("one connection for two tasks")
        .client(|cx| async move {
            let shared = connect(&cx.connector()).await?;
            serve(Arc::clone(&shared), shared).await
        })
        .explore()
}

pub(super) fn right() -> Explored {
    scenario("a connection for each task")
        .client(|cx| async move {
            let connector = cx.connector();
            serve(connect(&connector).await?, connect(&connector).await?).await
        })
        .explore()
}
