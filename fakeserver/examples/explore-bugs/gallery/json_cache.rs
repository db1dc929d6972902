//! Two clients change different fields of one JSON text: who writes last has not seen the other's change.

use fakeserver::explore::{Explorer, Scenario};
use redis::{AsyncCommands, RedisResult, Value, cmd, pipe};

use super::Explored;

const FIELDS: [&str; 2] = ["mail", "name"];

fn with_field(json: &str, field: &str) -> String {
    let mut profile: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    profile[field] = "new".into();
    profile.to_string()
}

async fn change(con: &mut impl AsyncCommands, field: &str) -> RedisResult<()> {
    let json: String = con.get("profile").await?;
    con.set("profile", with_field(&json, field)).await
}

async fn change_unless_changed(con: &mut impl AsyncCommands, field: &str) -> RedisResult<()> {
    loop {
        cmd("WATCH").arg("profile").exec_async(con).await?;
        let json: String = con.get("profile").await?;
        let mut transaction = pipe();
        transaction
            .atomic()
            .set("profile", with_field(&json, field));
        let done: Option<Vec<Value>> = transaction.query_async(con).await?;
        if done.is_some() {
            return Ok(());
        }
    }
}

fn scenario(name: &str) -> Scenario<(), ()> {
    Explorer::new()
        .setup(|cx| async move { cx.connect().await?.set::<_, _, ()>("profile", "{}").await })
        .named(name)
        .at_end("both fields were changed", |db| {
            let json: String = db.get("profile").unwrap_or_default();
            FIELDS.iter().all(|field| json.contains(field))
        })
}

pub(super) fn wrong() -> Explored {
    scenario("GET, then SET")
        .clients(2, |cx| async move {
            change(&mut cx.connect().await?, FIELDS[cx.index()]).await
        })
        .explore()
}

pub(super) fn right() -> Explored {
    scenario("GET and SET under WATCH")
        .clients(2, |cx| async move {
            change_unless_changed(&mut cx.connect().await?, FIELDS[cx.index()]).await
        })
        .explore()
}
