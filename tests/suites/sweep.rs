//! The race sweep with real client libraries: what it finds is found on a real server too, and the store is clean.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use fakeserver::sweep::{Compare, Kind, Sweep};
use redis::{Commands, Connection, RedisResult, cmd};
use store::{Commit, CommitPath, Event, Execution, RedisStore, Settings, StoreError};
use tests::local::LocalServer;

fn connect(url: &str) -> RedisResult<Connection> {
    redis::Client::open(url)?.get_connection()
}

fn count_by_get_and_set(url: &str) -> RedisResult<()> {
    let mut con = connect(url)?;
    let n: Option<i64> = con.get("n")?;
    con.set("n", n.unwrap_or(0) + 1)
}

/// A limiter whose counter may expire between look and count, and never expires then.
fn limit_by_exists_and_incr(url: &str) -> RedisResult<i64> {
    let mut con = connect(url)?;
    let is_new = !con.exists::<_, bool>("hits")?;
    let hits = con.incr("hits", 1)?;
    if is_new {
        let _: bool = con.expire("hits", 60)?;
    }
    Ok(hits)
}

fn first_hit(url: &str) -> RedisResult<()> {
    connect(url)?.set_ex("hits", 1, 60)
}

fn take_lock(con: &mut Connection, token: &str) -> RedisResult<bool> {
    let taken: Option<String> = cmd("SET")
        .arg("lock")
        .arg(token)
        .arg("NX")
        .arg("EX")
        .arg(10)
        .query(con)?;
    Ok(taken.is_some())
}

/// Takes a lock and lets it go without asking whose it is by now.
fn work_under_a_lock(url: &str) -> RedisResult<bool> {
    let mut con = connect(url)?;
    let is_taken = take_lock(&mut con, "a")?;
    if is_taken {
        con.incr::<_, _, ()>("work", 1)?;
        con.del::<_, ()>("lock")?;
    }
    Ok(is_taken)
}

/// Takes the same lock, and has it still when the program ends.
fn hold_the_lock(url: &str) -> RedisResult<bool> {
    take_lock(&mut connect(url)?, "b")
}

/// Marks a job as queued, and then queues it.
fn enqueue_once(url: &str) -> RedisResult<()> {
    let mut con = connect(url)?;
    if con.set_nx("queued:job", 1)? {
        con.rpush::<_, _, ()>("jobs", "job")?;
    }
    Ok(())
}

#[test]
fn findings_are_confirmed_on_a_real_server() {
    let Some(server) = LocalServer::start(&["--save", ""]) else {
        return;
    };
    let sweep = || Sweep::new().confirm(server.url());
    for (name, schedule, sweep) in [
        (
            "a lost update",
            "isolation:a1",
            sweep()
                .only([Kind::Isolation])
                .a(count_by_get_and_set)
                .b(count_by_get_and_set),
        ),
        (
            "a counter for ever",
            "expiry:a1",
            sweep()
                .only([Kind::Expiry])
                .setup(first_hit)
                .a(limit_by_exists_and_incr),
        ),
        (
            "somebody else's lock",
            "expiry:a1:b",
            sweep()
                .only([Kind::Expiry])
                .a(work_under_a_lock)
                .b(hold_the_lock),
        ),
        (
            "a marker without its job",
            "crash:a1",
            sweep().only([Kind::Crash]).a(enqueue_once),
        ),
    ] {
        let report = sweep.run().unwrap();
        let found: Vec<_> = report
            .findings
            .iter()
            .map(|finding| finding.schedule.as_str())
            .collect();
        assert!(
            found.contains(&schedule),
            "{name}: {found:?}\n{}",
            report.text()
        );
        for finding in &report.findings {
            let confirmed = finding.confirmed.as_ref().unwrap();
            assert!(
                confirmed.same && confirmed.server.starts_with("redis-server 7"),
                "{name} {confirmed:?}\n{}",
                report.text()
            );
        }
    }
    let mut con = connect(&server.url()).unwrap();
    assert_eq!(cmd("DBSIZE").query::<usize>(&mut con), Ok(0));
    // Whose keys they are is not ours to know.
    con.set::<_, _, ()>("k", "v").unwrap();
    let refused = sweep().a(count_by_get_and_set).run().unwrap_err();
    assert!(refused.to_string().contains("it holds keys"), "{refused}");
}

/// Loads an order and commits one step of it, again until nobody else was faster.
fn step(url: &str, path: CommitPath, event: &str) -> Result<(), StoreError> {
    let mut store = RedisStore::connect(url, Settings::default().commit_path(path))?;
    loop {
        let mut order = store.load("order-1")?.expect("the setup made it");
        let paid = Event::new(format!("{event}-out"), "Paid");
        let commit = Commit::for_event(event).emit(Some("billing"), paid);
        match store.commit(&mut order, &commit) {
            Err(StoreError::Conflict { .. }) => {}
            other => return other.map(drop),
        }
    }
}

#[test]
fn the_store_is_clean_on_all_paths() {
    for path in [CommitPath::Script, CommitPath::Mixed, CommitPath::Watch] {
        let create = move |url: &str| -> Result<(), StoreError> {
            let mut order = Execution::new("order-1", "order");
            let settings = Settings::default().commit_path(path);
            let mut store = RedisStore::connect(url, settings)?;
            store.create(&mut order, &Commit::new()).map(drop)
        };
        let mut sweep = Sweep::new();
        if path != CommitPath::Script {
            // Numbers are drawn in front of the transaction there, so one that fails leaves a gap: which numbers there are differs,
            // how many entries there are does not.
            sweep = sweep.compare(Compare::Shape).ignore("*:seq");
        }
        let report = sweep
            .setup(create)
            .a(move |url: &str| step(url, path, "e-1"))
            .b(move |url: &str| step(url, path, "e-2"))
            .run()
            .unwrap();
        assert!(report.is_clean(), "{path:?}\n{}", report.text());
        assert!(
            report.runs["isolation"] > 0 && report.runs["lost-reply"] > 0,
            "{path:?} {:?}",
            report.runs
        );
    }
}
