//! What happens to the server: counted, and bugs that nothing else shows.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use fakeserver::explore::{Connection, Connector, Faults, Reduction, Run, Violation};
use redis::{Cmd, RedisResult, Value, cmd};

use crate::script::{Clients, Done, Script, broken, count, explore, nothing};

const SECOND: Duration = Duration::from_secs(1);

/// The name of the script `return 1`.
const SHA: &str = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";

fn command(text: &str) -> Cmd {
    let mut words = text.split(' ');
    let mut command = cmd(words.next().unwrap());
    words.for_each(|word| {
        command.arg(word);
    });
    command
}

/// Sends commands until one fails.
async fn send_all(client: Clients, commands: &[&str]) {
    let mut connection = client.connect().await.unwrap();
    for text in commands {
        if command(text).exec_async(&mut connection).await.is_err() {
            return;
        }
    }
}

fn get_and_set(client: Clients) -> Done {
    Box::pin(async { send_all(client, &["GET k", "SET k v"]).await })
}

#[test]
fn time_can_pass_in_front_of_each_command() {
    let script = Script::new("get and set", &[get_and_set]);
    let faults = |most| Faults::at_most(most).advance(SECOND);
    // In front of the one, of the other, or not at all.
    assert_eq!(count(script, faults(1)), 3);
    // Twice in front of either, or once in front of both, too.
    assert_eq!(count(script, faults(2)), 6);
    assert_eq!(count(script, faults(1).advance(2 * SECOND)), 5);
    // Nothing has a deadline, nothing is cached, and nothing was written before the last command.
    let idle = Faults::at_most(3).expire().flush_scripts().failover(2);
    assert_eq!(count(script, idle), 1);
}

fn two_deadlines(client: Clients) -> Done {
    Box::pin(async {
        let commands = ["SET a 1 EX 10", "SET b 1 EX 20", "GET a"];
        send_all(client, &commands).await;
    })
}

#[test]
fn the_time_of_keys_can_be_up_once_they_have_a_deadline() {
    let script = Script::new("deadlines", &[two_deadlines]);
    // None; a in front of the second SET; a or b in front of GET.
    assert_eq!(count(script, Faults::at_most(1).expire()), 4);
    // First a and then b, in one place or in two.
    assert_eq!(count(script, Faults::at_most(2).expire()), 6);
}

fn eval_and_evalsha(client: Clients) -> Done {
    Box::pin(async move {
        let mut connection = client.connect().await.unwrap();
        let eval = cmd("EVAL").arg("return 1").arg(0).take();
        let _ = eval.exec_async(&mut connection).await;
        let evalsha = cmd("EVALSHA").arg(SHA).arg(0).take();
        let reply: RedisResult<i64> = evalsha.query_async(&mut connection).await;
        let said = reply.map_or_else(|error| error.to_string(), |number| number.to_string());
        client.operation((), async { said }).await;
    })
}

#[test]
fn the_script_cache_can_be_emptied_once_there_is_a_script() {
    let mut script = Script::new("scripts", &[eval_and_evalsha]);
    assert_eq!(count(script, Faults::at_most(2).flush_scripts()), 2);
    script.check = |run| match run.history[0].output.as_deref() {
        Some("1") => Ok(()),
        said => Err(Violation::new("cached", format!("{said:?}"))),
    };
    assert_eq!(
        broken(script, Faults::at_most(1).flush_scripts()),
        "a(flush)a"
    );
}

#[test]
fn a_server_can_start_again_in_front_of_each_command() {
    let script = Script::new(
        "set and get",
        &[|client| Box::pin(async { send_all(client, &["SET k v", "GET k"]).await })],
    );
    assert_eq!(count(script, Faults::at_most(2).restart()), 3);
    // There is nothing to lose in front of SET.
    let both = Faults::at_most(1).restart().restart_empty();
    assert_eq!(count(script, both), 4);
}

#[test]
fn a_failover_loses_no_more_than_was_written() {
    let script = Script::new(
        "two sets and get",
        &[|client| Box::pin(async { send_all(client, &["SET k v", "SET l v", "GET k"]).await })],
    );
    // None in front of the first SET, one step of the second, one or two of GET.
    assert_eq!(count(script, Faults::at_most(1).failover(5)), 4);
    assert_eq!(count(script, Faults::at_most(1).failover(1)), 3);
    // A read is no step to be lost.
    let script = Script::new(
        "get, set, get",
        &[|client| Box::pin(async { send_all(client, &["GET k", "SET k v", "GET k"]).await })],
    );
    assert_eq!(count(script, Faults::at_most(1).failover(5)), 2);
}

#[test]
fn reductions_lose_no_outcome_of_what_happens_to_the_server() {
    static OUTCOMES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let all = Faults::at_most(1)
        .drop_before()
        .advance(SECOND)
        .expire()
        .flush_scripts()
        .restart()
        .restart_empty()
        .failover(2);
    let mut script = Script::new("deadlines and scripts", &[two_deadlines, eval_and_evalsha]);
    script.check = |run| {
        let said: Vec<_> = run.history.iter().map(|one| &one.output).collect();
        let state = run.call(["MGET", "a", "b"]).unwrap();
        let cached = run.call(["SCRIPT", "EXISTS", SHA]).unwrap();
        let outcome = format!("{said:?} {state:?} {cached:?}");
        OUTCOMES.lock().unwrap().insert(outcome);
        Ok(())
    };
    let mut sets = [
        Reduction::None,
        Reduction::LocalFirst,
        Reduction::SleepSets,
        Reduction::SourceDpor,
    ]
    .map(|reduction| {
        let exploration = explore(script, all, reduction);
        assert!(exploration.counterexample.is_none());
        let outcomes = std::mem::take(&mut *OUTCOMES.lock().unwrap());
        (exploration.schedules, outcomes)
    });
    sets.sort_by_key(|(schedules, _)| *schedules);
    assert!(sets[0].0 < sets[3].0);
    assert!(sets[0].1.len() > 3);
    for (_, outcomes) in &sets {
        assert_eq!(outcomes, &sets[0].1);
    }
}

fn free(connector: Connector) -> Done {
    Box::pin(async move {
        let mut connection = connector.open().unwrap();
        command("SET stock 0")
            .exec_async(&mut connection)
            .await
            .unwrap();
    })
}

async fn take_lock(connection: &mut Connection, token: usize) -> bool {
    let set = cmd("SET")
        .arg("lock")
        .arg(token)
        .arg("NX")
        .arg("PX")
        .arg(1000)
        .take();
    let taken: Option<String> = set.query_async(connection).await.unwrap();
    taken.is_some()
}

/// Adds one under a lock that ends by itself.
fn add_under_lock(client: Clients) -> Done {
    Box::pin(async move {
        let mut connection = client.connect().await.unwrap();
        if !take_lock(&mut connection, client.index()).await {
            return;
        }
        let added = async {
            let stock: i64 = command("GET stock")
                .query_async(&mut connection)
                .await
                .unwrap();
            let set = cmd("SET").arg("stock").arg(stock + 1).take();
            set.exec_async(&mut connection).await.unwrap();
            "added".to_owned()
        };
        client.operation((), added).await;
        command("DEL lock")
            .exec_async(&mut connection)
            .await
            .unwrap();
    })
}

/// The same, but the one that writes looks whether it still has the lock.
fn add_with_token(client: Clients) -> Done {
    Box::pin(async move {
        let mut connection = client.connect().await.unwrap();
        if !take_lock(&mut connection, client.index()).await {
            return;
        }
        let source = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end redis.call('DEL', KEYS[1]) return redis.call('INCR', KEYS[2])";
        let eval = cmd("EVAL")
            .arg(source)
            .arg(2)
            .arg("lock")
            .arg("stock")
            .take();
        let eval = eval.clone().arg(client.index()).take();
        let added: i64 = eval.query_async(&mut connection).await.unwrap();
        if added > 0 {
            client.operation((), async { "added".to_owned() }).await;
        }
    })
}

fn each_counted(run: &Run<(), String>) -> Result<(), Violation> {
    let stock = run.call(["GET", "stock"]).unwrap();
    let added = run
        .history
        .iter()
        .filter(|one| one.returned.is_some())
        .count();
    if stock == Value::BulkString(added.to_string().into_bytes()) {
        return Ok(());
    }
    Err(Violation::new("stock", format!("added {added}, {stock:?}")))
}

#[test]
fn a_lock_that_ends_too_early_is_found_when_its_time_is_up() {
    let wrong = Script {
        name: "lock",
        prepare: free,
        clients: &[add_under_lock, add_under_lock],
        check: each_counted,
    };
    count(wrong, Faults::at_most(1).flush_scripts().failover(0));
    assert_eq!(
        broken(wrong, Faults::at_most(1).expire()),
        "aa(expire 0)bbbbaa"
    );
    assert_eq!(
        broken(wrong, Faults::at_most(1).advance(2 * SECOND)),
        "aa(+2000ms)bbbbaa"
    );
    let right = Script {
        name: "lock with token",
        clients: &[add_with_token, add_with_token],
        ..wrong
    };
    for faults in [
        Faults::at_most(2).expire(),
        Faults::at_most(2).advance(2 * SECOND),
    ] {
        count(right, faults);
    }
}

/// Says what it wrote and reads it, on a new connection if need be.
fn write_and_read(client: Clients) -> Done {
    Box::pin(async move {
        let mut connection = client.connect().await.unwrap();
        let written = command("SET k v").exec_async(&mut connection).await;
        if written.is_err() {
            return;
        }
        let read = async {
            loop {
                let read: RedisResult<Option<String>> =
                    command("GET k").query_async(&mut connection).await;
                match read {
                    Ok(read) => return format!("{read:?}"),
                    Err(_) => connection = client.connect().await.unwrap(),
                }
            }
        };
        client.operation((), read).await;
    })
}

fn own_write(run: &Run<(), String>) -> Result<(), Violation> {
    match run.history.first().and_then(|one| one.output.as_deref()) {
        None | Some("Some(\"v\")") => Ok(()),
        read => Err(Violation::new("read your write", format!("{read:?}"))),
    }
}

#[test]
fn a_write_that_a_failover_loses_is_found_by_a_failover_only() {
    let script = Script {
        name: "write and read",
        prepare: nothing,
        clients: &[write_and_read],
        check: own_write,
    };
    let others = Faults::at_most(2).drop_before().lose_reply().restart();
    count(script, others.advance(SECOND).flush_scripts());
    assert_eq!(
        broken(script, Faults::at_most(1).failover(3)),
        "a(failover 1)a"
    );
    assert_eq!(
        broken(script, Faults::at_most(1).restart_empty()),
        "a(restart empty)a"
    );
}

/// Adds one, and once more if the answer takes long.
fn impatient(client: Clients) -> Done {
    Box::pin(async move {
        let mut connection = client.connect().await.unwrap();
        for _ in 0..2 {
            let incr = command("INCR stock");
            let call = incr.query_async::<i64>(&mut connection);
            if tokio::time::timeout(SECOND / 2, call).await.is_ok() {
                client.operation((), async { "added".to_owned() }).await;
                return;
            }
        }
    })
}

#[test]
fn a_call_given_up_too_early_is_found_when_time_passes() {
    let script = Script {
        name: "impatient",
        prepare: free,
        clients: &[impatient],
        check: each_counted,
    };
    let others = Faults::at_most(2).flush_scripts().expire();
    count(script, others);
    // The time-out comes after half a second, and the second attempt waits for the rest of it.
    assert_eq!(
        broken(script, Faults::at_most(1).advance(SECOND * 3 / 4)),
        "(+750ms)aa"
    );
}

#[test]
fn functions_and_keys_outlive_a_restart_and_a_failover_and_scripts_do_not() {
    fn load(connector: Connector) -> Done {
        Box::pin(async move {
            let mut connection = connector.open().unwrap();
            let code = "#!lua name=l\nredis.register_function('f', function() return 7 end)";
            let load = cmd("FUNCTION").arg("LOAD").arg(code).take();
            load.exec_async(&mut connection).await.unwrap();
            command("SET k v EX 100")
                .exec_async(&mut connection)
                .await
                .unwrap();
        })
    }
    fn look(client: Clients) -> Done {
        Box::pin(async move {
            let eval = cmd("EVAL").arg("return 1").arg(0).take();
            let mut connection = client.connect().await.unwrap();
            let _ = eval.exec_async(&mut connection).await;
            let set = command("SET k w").exec_async(&mut connection).await;
            let asked = command("SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
            let mut again = client.connect().await.unwrap();
            let exists = asked
                .query_async::<Vec<i64>>(&mut again)
                .await
                .unwrap_or_default();
            let said = format!("{} {exists:?}", set.is_ok());
            client.operation((), async { said }).await;
        })
    }
    fn check(run: &Run<(), String>) -> Result<(), Violation> {
        let seven = run.call(["FCALL", "f", "0"]).unwrap();
        let key = run.call(["GET", "k"]).unwrap();
        let deadline = run.call(["TTL", "k"]).unwrap();
        let said = run.history[0].output.as_deref();
        let before = (Value::BulkString(b"v".to_vec()), Value::Int(100));
        let after = (Value::BulkString(b"w".to_vec()), Value::Int(-1));
        let state = (key, deadline);
        let choices: String = run.choices.iter().map(ToString::to_string).collect();
        let right = seven == Value::Int(7)
            && match choices.as_str() {
                "aaa" | "bba" => said == Some("true [1]") && state == after,
                _ if choices.contains("failover 1)") => state == before,
                _ if choices.contains("(restart)") => said
                    .is_some_and(|said| !said.ends_with("[1]") || !choices.ends_with("(restart)a")),
                _ => true,
            };
        let details = format!("{choices}: {seven:?} {said:?} {state:?}");
        if right {
            Ok(())
        } else {
            Err(Violation::new("outlives", details))
        }
    }
    let script = Script {
        name: "outlives",
        prepare: load,
        clients: &[look],
        check,
    };
    count(script, Faults::at_most(1).restart().failover(1));
}
