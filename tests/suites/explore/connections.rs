//! Clients that leave a call, hold two connections, or give one up with commands on their way.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use fakeserver::explore::{
    Budget, Client, Coverage, Exhaustive, Exploration, Explorer, Reduction, Run, Violation,
    Workload,
};
use redis::{Value, cmd};

#[derive(Clone, Copy, Debug)]
enum Habit {
    /// Waits for an element that nobody pushes, and leaves the call after a second.
    LeavesACall,
    /// Sends on two connections at the same time.
    HoldsTwo,
    /// Waits for an element that nobody pushes, for ever.
    WaitsForEver,
    /// Waits for an element that the other client pushes.
    IsServed,
}

#[derive(Clone, Copy, Debug)]
struct Habits(Habit);

impl Workload for Habits {
    type Input = ();
    type Output = ();

    fn description(&self) -> String {
        format!("{self:?}")
    }

    fn clients(&self) -> usize {
        2
    }

    fn client(&self, client: Client<(), ()>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let Habits(habit) = *self;
        Box::pin(async move {
            let mut one = client.connect().await.unwrap();
            let mut two = client.connect().await.unwrap();
            let mine = format!("list{}", client.index());
            let wait = cmd("BLPOP").arg(&mine).arg(0).take();
            match habit {
                Habit::LeavesACall => {
                    let call = wait.query_async::<Value>(&mut one);
                    let left = tokio::time::timeout(Duration::from_secs(1), call).await;
                    assert!(left.is_err());
                    cmd("SET")
                        .arg("left")
                        .arg(1)
                        .exec_async(&mut two)
                        .await
                        .unwrap();
                }
                Habit::HoldsTwo => {
                    let [first, second] = ["first", "second"]
                        .map(|key| cmd("RPUSH").arg(key).arg(client.index()).take());
                    let (first, second) =
                        tokio::join!(first.exec_async(&mut one), second.exec_async(&mut two));
                    first.and(second).unwrap();
                }
                Habit::WaitsForEver => {
                    wait.query_async::<Value>(&mut one).await.unwrap();
                }
                Habit::IsServed => {
                    let theirs = format!("list{}", 1 - client.index());
                    let push = cmd("RPUSH").arg(theirs).arg("element").take();
                    let (popped, pushed) = tokio::join!(
                        wait.query_async::<Value>(&mut one),
                        push.exec_async(&mut two)
                    );
                    assert!(matches!(popped, Ok(Value::Array(_))), "{popped:?}");
                    pushed.unwrap();
                }
            }
        })
    }

    fn check(&self, _: &Run<(), ()>) -> Result<(), Violation> {
        Ok(())
    }
}

fn explore(habit: Habit) -> Exploration {
    let strategy = Box::new(Exhaustive::new(Reduction::None));
    let exploration = Explorer::new().explore(&Habits(habit), strategy, Budget::schedules(10_000));
    exploration.unwrap()
}

#[test]
fn a_call_can_be_left_by_a_time_out() {
    let exploration = explore(Habit::LeavesACall);
    assert!(exploration.counterexample.is_none());
    // Two orders of the calls, two of the writes.
    assert_eq!(
        (exploration.schedules, exploration.coverage),
        (4, Coverage::Exhaustive)
    );
}

#[test]
fn commands_on_two_connections_of_a_client_come_in_any_order() {
    let exploration = explore(Habit::HoldsTwo);
    assert!(exploration.counterexample.is_none());
    assert_eq!(exploration.schedules, 24);
}

#[test]
fn clients_that_wait_for_nothing_are_a_deadlock() {
    let found = explore(Habit::WaitsForEver).counterexample.unwrap();
    assert_eq!(found.violation.property, "deadlock");
    assert!(
        found.violation.details.contains("a waits in BLPOP"),
        "{found}"
    );
}

#[test]
fn a_blocked_client_goes_on_when_it_is_served() {
    let exploration = explore(Habit::IsServed);
    assert!(exploration.counterexample.is_none());
    assert_eq!(
        (exploration.schedules, exploration.coverage),
        (24, Coverage::Exhaustive)
    );
}
