//! Counterexamples become short: the trace's normal form first, then greedily.

use std::future::Future;
use std::pin::Pin;

use fakeserver::explore::{
    Act, Budget, Client, Connector, Counterexample, Explorer, Faults, RandomWalk, Run, Violation,
    Workload,
};
use redis::{Cmd, Value, cmd};

/// A client removes a timer that is due, in two commands, while another one moves it; all three have much of their own to do.
#[derive(Clone, Copy, Debug)]
struct Deep {
    private: usize,
}

const CLIENTS: usize = 3;

impl Deep {
    fn commands(self, index: usize) -> Vec<Cmd> {
        let private = (0..self.private).map(|_| {
            let mut one = cmd("INCR");
            one.arg(format!("private:{index}"));
            one
        });
        private.collect()
    }
}

impl Workload for Deep {
    type Input = ();
    type Output = bool;

    fn description(&self) -> String {
        format!("{self:?}")
    }

    fn clients(&self) -> usize {
        CLIENTS
    }

    fn prepare(&self, connector: Connector) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut connection = connector.open().unwrap();
            let due = cmd("ZADD").arg("timers").arg(100).arg("m").take();
            due.exec_async(&mut connection).await.unwrap();
        })
    }

    fn client(&self, client: Client<(), bool>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (deep, index) = (*self, client.index());
        Box::pin(async move {
            // A client that lost its connection gives up.
            let Ok(mut connection) = client.connect().await else {
                return;
            };
            for one in deep.commands(index) {
                if one.exec_async(&mut connection).await.is_err() {
                    return;
                }
            }
            match index {
                0 => {
                    let look = cmd("ZSCORE").arg("timers").arg("m").take();
                    let due: Option<i64> = look.query_async(&mut connection).await.unwrap_or(None);
                    if due == Some(100) {
                        let remove = cmd("ZREM").arg("timers").arg("m").take();
                        let _ = remove.exec_async(&mut connection).await;
                    }
                }
                1 => {
                    let later = cmd("ZADD").arg("timers").arg(200).arg("m").take();
                    let moved = async { later.exec_async(&mut connection).await.is_ok() };
                    client.operation((), moved).await;
                }
                _ => {}
            }
        })
    }

    fn check(&self, run: &Run<(), bool>) -> Result<(), Violation> {
        let moved = run.history.iter().any(|one| one.output == Some(true));
        match run.call(["ZSCORE", "timers", "m"]).unwrap() {
            Value::Nil if moved => Err(Violation::new("lost timer", "it was moved, and is gone")),
            _ => Ok(()),
        }
    }
}

/// The first seed whose walk breaks the property with many preemptions.
fn found(workload: Deep, explorer: &Explorer, preemptions: usize) -> Counterexample {
    let seeds = 0..200;
    let mut found = seeds.filter_map(|seed| {
        let walk = Box::new(RandomWalk::new(seed));
        let budget = Budget::schedules(40);
        let exploration = explorer.explore(&workload, walk, budget).unwrap();
        exploration.counterexample
    });
    let enough = |one: &Counterexample| one.shrunk.unwrap().preemptions >= preemptions;
    found.find(enough).unwrap()
}

#[test]
fn a_deep_race_shrinks_to_one_preemption_in_a_handful_of_runs() {
    let deep = Deep { private: 50 };
    let found = found(deep, &Explorer::new(), 90);
    let shrunk = found.shrunk.unwrap();
    assert_eq!(shrunk.commands, 153);
    assert_eq!((found.preemptions, found.faults), (1, 0), "{found}");
    assert!(shrunk.reruns <= 8, "{shrunk:?}");
}

#[test]
fn faults_that_do_not_matter_go_first() {
    let deep = Deep { private: 8 };
    let explorer = Explorer::new().faults(Faults::at_most(2).drop_before().lose_reply());
    let lost = (0..200).find_map(|seed| {
        let walk = Box::new(RandomWalk::new(seed));
        let exploration = explorer.explore(&deep, walk, Budget::schedules(100));
        exploration.unwrap().counterexample
    });
    let lost = lost.unwrap();
    let acts = lost.schedule.choices().iter().map(|choice| choice.act);
    assert_eq!(lost.faults, acts.filter(|act| *act != Act::Execute).count());
    assert_eq!(lost.faults, 0, "{lost}");
}
