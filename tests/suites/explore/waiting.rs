//! Clients that wait in the server, speak RESP3, or leave what is under control.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fakeserver::explore::{
    Budget, Exhaustive, ExploreError, Explorer, Faults, Reduction, Run, Violation,
};
use redis::{PushKind, Value, cmd};

use crate::script::{Clients, Done, Script, count};

const SECOND: Duration = Duration::from_secs(1);

/// Waits for an element, at most five seconds.
fn pop(client: Clients) -> Done {
    Box::pin(async move {
        let mut connection = client.connect().await.unwrap();
        let pop = cmd("BLPOP").arg("list").arg(5).take();
        let popped: Option<(String, String)> = pop.query_async(&mut connection).await.unwrap();
        client.operation((), async { format!("{popped:?}") }).await;
    })
}

/// Pushes one, the client's number of seconds times three later.
fn push(client: Clients) -> Done {
    Box::pin(async move {
        let mut connection = client.connect().await.unwrap();
        tokio::time::sleep(SECOND * 3 * client.index() as u32).await;
        let push = cmd("RPUSH").arg("list").arg(client.index()).take();
        push.exec_async(&mut connection).await.unwrap();
    })
}

#[test]
fn the_time_of_a_blocked_client_is_over_in_virtual_time() {
    let mut script = Script::new("pops", &[pop]);
    script.check = |run| {
        assert_eq!(run.history[0].output.as_deref(), Some("None"));
        assert_eq!(run.elapsed, 5 * SECOND);
        Ok(())
    };
    assert_eq!(count(script, Faults::none()), 1);
}

#[test]
fn a_blocked_client_is_served_by_who_comes_in_time() {
    // After three seconds, and after six: the second one is late.
    let mut script = Script::new("served", &[pop, push, push]);
    script.check = |run| {
        assert_eq!(
            run.history[0].output.as_deref(),
            Some("Some((\"list\", \"1\"))")
        );
        assert_eq!(run.elapsed, 6 * SECOND);
        Ok(())
    };
    assert_eq!(count(script, Faults::none()), 1);
    script.clients = &[pop, |_| Box::pin(async {}), push];
    script.check = |run| {
        let popped = if run.choices[0].is_fault() {
            "Some((\"list\", \"2\"))"
        } else {
            "None"
        };
        assert_eq!(run.history[0].output.as_deref(), Some(popped));
        Ok(())
    };
    assert_eq!(count(script, Faults::none()), 1);
    // Unless no command runs for a while: then both are at the gate, and the order is open.
    assert_eq!(count(script, Faults::at_most(1).advance(10 * SECOND)), 4);
}

fn subscribe(client: Clients) -> Done {
    Box::pin(async move {
        let mut connection = client.connector().open_resp3().unwrap();
        let subscribe = cmd("SUBSCRIBE").arg("news").take();
        subscribe.exec_async(&mut connection).await.unwrap();
        let confirmed = connection.next_push().await.unwrap();
        assert_eq!(confirmed.kind, PushKind::Subscribe);
        let heard = tokio::time::timeout(SECOND, connection.next_push()).await;
        let heard = heard.map(|push| push.unwrap().data);
        client.operation((), async { format!("{heard:?}") }).await;
    })
}

fn publish(client: Clients) -> Done {
    Box::pin(async move {
        let mut connection = client.connect().await.unwrap();
        let publish = cmd("PUBLISH").arg("news").arg("hi").take();
        let heard: i64 = publish.query_async(&mut connection).await.unwrap();
        client.operation((), async { heard.to_string() }).await;
    })
}

#[test]
fn messages_come_to_a_connection_that_speaks_resp3() {
    let mut script = Script::new("news", &[subscribe, publish]);
    script.check = |run: &Run<(), String>| {
        let said = |client| {
            let mut own = run.history.iter().filter(move |one| one.client == client);
            own.next().unwrap().output.clone().unwrap()
        };
        let in_time = said(1) == "1";
        if in_time == said(0).contains("bulk-string('\"hi\"')") {
            return Ok(());
        }
        Err(Violation::new("news", format!("{} {}", said(0), said(1))))
    };
    assert_eq!(count(script, Faults::none()), 2);
}

#[test]
fn replies_are_those_of_the_protocol_that_the_connection_speaks() {
    fn ask(client: Clients) -> Done {
        Box::pin(async move {
            let mut old = client.connect().await.unwrap();
            let mut new = client.connector().open_resp3().unwrap();
            let set = cmd("HSET").arg("h").arg("f").arg("v").take();
            set.exec_async(&mut old).await.unwrap();
            let get = cmd("HGETALL").arg("h").take();
            let [old_reply, new_reply]: [Value; 2] = [
                get.query_async(&mut old).await.unwrap(),
                get.query_async(&mut new).await.unwrap(),
            ];
            assert!(matches!(old_reply, Value::Array(_)), "{old_reply:?}");
            assert!(matches!(new_reply, Value::Map(_)), "{new_reply:?}");
            // The client may also ask for it.
            cmd("HELLO").arg(3).exec_async(&mut old).await.unwrap();
            let old_reply: Value = get.query_async(&mut old).await.unwrap();
            assert!(matches!(old_reply, Value::Map(_)), "{old_reply:?}");
        })
    }
    assert_eq!(count(Script::new("protocols", &[ask]), Faults::none()), 1);
}

#[test]
fn what_is_not_answered_once_is_refused_and_says_why() {
    fn ask(client: Clients) -> Done {
        Box::pin(async move {
            let mut connection = client.connect().await.unwrap();
            for (words, hint) in [
                ("subscribe news", "open_resp3"),
                ("PSUBSCRIBE news", "open_resp3"),
                ("MONITOR", "no MONITOR"),
                ("CLIENT REPLY OFF", "no CLIENT REPLY"),
            ] {
                let mut words = words.split(' ');
                let mut command = cmd(words.next().unwrap());
                words.for_each(|word| {
                    command.arg(word);
                });
                let error = command.exec_async(&mut connection).await.unwrap_err();
                assert!(error.to_string().contains(hint), "{error}");
            }
            cmd("PING").exec_async(&mut connection).await.unwrap();
        })
    }
    assert_eq!(count(Script::new("refused", &[ask]), Faults::none()), 1);
}

#[test]
fn a_client_that_waits_learns_that_another_has_closed_its_connection() {
    fn wait(client: Clients) -> Done {
        Box::pin(async move {
            let mut connection = client.connect().await.unwrap();
            let pop = cmd("BLPOP").arg("list").arg(0).take();
            let popped: redis::RedisResult<Value> = pop.query_async(&mut connection).await;
            assert!(popped.is_err_and(|error| error.is_connection_dropped()));
        })
    }
    fn kill(client: Clients) -> Done {
        Box::pin(async move {
            let mut connection = client.connect().await.unwrap();
            let kill = cmd("CLIENT").arg("KILL").arg("SKIPME").arg("yes").take();
            kill.exec_async(&mut connection).await.unwrap();
        })
    }
    // In front of the wait, or during it.
    assert_eq!(count(Script::new("kill", &[wait, kill]), Faults::none()), 2);
}

fn escapes(script: Script) -> String {
    let strategy = Box::new(Exhaustive::new(Reduction::None));
    match Explorer::new().explore(&script, strategy, Budget::schedules(100)) {
        Err(ExploreError::Escaped(escape)) => escape.to_string(),
        other => panic!("{other:?}"),
    }
}

async fn ping(client: &Clients) {
    let mut connection = client.connect().await.unwrap();
    cmd("PING").exec_async(&mut connection).await.unwrap();
}

#[test]
fn work_for_the_blocking_pool_is_refused_with_its_line() {
    let line = line!() + 6;
    let said = escapes(Script::new(
        "pool",
        &[|client| {
            Box::pin(async move {
                ping(&client).await;
                tokio::task::spawn_blocking(|| {}).await.unwrap();
            })
        }],
    ));
    assert!(
        said.contains("blocking pool") && said.contains("after a,"),
        "{said}"
    );
    assert!(
        said.contains(&format!("explore/waiting.rs:{line}")),
        "{said}"
    );
}

#[test]
fn a_connection_on_another_thread_is_refused_with_its_name() {
    let said = escapes(Script::new(
        "thread",
        &[|client| {
            Box::pin(async move {
                ping(&client).await;
                let mut connection = client.connect().await.unwrap();
                let work = move || {
                    let call = cmd("PING");
                    let call = call.exec_async(&mut connection);
                    let error = futures_util::FutureExt::now_or_never(call)
                        .unwrap()
                        .unwrap_err();
                    assert!(error.to_string().contains("elsewhere"), "{error}");
                };
                let thread = std::thread::Builder::new().name("elsewhere".to_owned());
                thread.spawn(work).unwrap().join().unwrap();
                // What it does now does not count.
                std::future::pending::<()>().await;
            })
        }],
    ));
    assert!(
        said.contains("thread \"elsewhere\" uses connection a"),
        "{said}"
    );
}

#[test]
fn a_socket_of_the_programs_own_is_refused() {
    let said = escapes(Script::new(
        "socket",
        &[|client| {
            Box::pin(async move {
                ping(&client).await;
                let _ = tokio::net::TcpStream::connect("127.0.0.1:43399").await;
            })
        }],
    ));
    assert!(said.contains("client 0 uses a socket"), "{said}");
}

#[test]
fn a_wait_for_something_that_never_comes_is_a_deadlock() {
    let script = Script::new(
        "forever",
        &[|client| {
            Box::pin(async move {
                ping(&client).await;
                std::future::pending::<()>().await;
            })
        }],
    );
    let strategy = Box::new(Exhaustive::new(Reduction::None));
    let exploration = Explorer::new().explore(&script, strategy, Budget::schedules(100));
    let found = exploration.unwrap().counterexample.unwrap();
    assert_eq!(found.violation.property, "deadlock");
    assert!(
        found.violation.details.contains("not under control"),
        "{found}"
    );
}

/// Counts how many of it are alive.
struct Counted;

static ALIVE: AtomicUsize = AtomicUsize::new(0);

impl Counted {
    fn new() -> Counted {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn a_run_leaves_nothing_of_its_clients_behind() {
    fn leave(client: Clients) -> Done {
        Box::pin(async move {
            let counted = Counted::new();
            ping(&client).await;
            // A task that nobody waits for, with a call that is never answered.
            tokio::spawn(async move {
                let mut connection = client.connect().await.unwrap();
                let pop = cmd("BLPOP").arg("list").arg(0).take();
                let _ = pop.query_async::<Value>(&mut connection).await;
                drop(counted);
            });
        })
    }
    let schedules = count(Script::new("leaves", &[leave, leave]), Faults::none());
    assert!(schedules > 1);
    assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
}
