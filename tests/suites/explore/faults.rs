//! Lost connections: what the server keeps, what the client sees, and that a blind retry is found.

use std::future::Future;
use std::pin::Pin;

use fakeserver::explore::{
    Budget, Client, Connector, Exhaustive, Explorer, Faults, Reduction, Replayed, Run, Violation,
    Workload,
};
use redis::{Cmd, RedisResult, cmd, pipe};

/// What a client does when a reply does not come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Retry {
    /// Says that it does not know.
    No,
    /// Does it again.
    Blind,
}

/// Clients that each push one element, once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Push(pub(crate) Retry);

async fn push(connector: &Connector, client: usize) -> RedisResult<()> {
    let mut connection = connector.open()?;
    let mut transaction = pipe();
    let key = format!("pushed:{client}");
    transaction.atomic().cmd("SET").arg(key).arg("once");
    cmd("WATCH").arg("lock").exec_async(&mut connection).await?;
    let done: RedisResult<Option<Vec<redis::Value>>> =
        transaction.query_async(&mut connection).await;
    // The connection stays dead, and says so at once.
    if done.is_err() {
        let again: RedisResult<()> = cmd("PING").exec_async(&mut connection).await;
        assert!(again.unwrap_err().is_io_error());
    }
    done.map(drop)
}

impl Workload for Push {
    type Input = ();
    type Output = u32;

    fn description(&self) -> String {
        format!("{self:?}")
    }

    fn clients(&self) -> usize {
        2
    }

    fn prepare(&self, connector: Connector) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut connection = connector.open().unwrap();
            let set: Cmd = cmd("SET").arg("lock").arg("free").take();
            set.exec_async(&mut connection).await.unwrap();
        })
    }

    fn client(&self, client: Client<(), u32>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let Push(retry) = *self;
        Box::pin(async move {
            let (connector, index) = (client.connector(), client.index());
            let pushes = async {
                let mut pushes = 1;
                if push(&connector, index).await.is_err() && retry == Retry::Blind {
                    push(&connector, index).await.unwrap();
                    pushes += 1;
                }
                pushes
            };
            client.operation((), pushes).await;
        })
    }

    fn check(&self, run: &Run<(), u32>) -> Result<(), Violation> {
        assert_eq!(
            run.call(["GET", "lock"]).unwrap(),
            redis::Value::BulkString(b"free".to_vec())
        );
        for operation in &run.history {
            let key = format!("pushed:{}", operation.client);
            let landed = run.call(["GET", &key]).unwrap() != redis::Value::Nil;
            let faults = run.choices.iter().any(|choice| choice.is_fault());
            if operation.output == Some(2) && landed {
                // Only the trace tells whether the first one had landed.
                let lost = run
                    .choices
                    .iter()
                    .any(|choice| choice.act == fakeserver::explore::Act::LoseReply);
                if lost {
                    return Err(Violation::new("once", format!("{key} was set twice")));
                }
            }
            if !landed && !faults {
                return Err(Violation::new("lost", key));
            }
        }
        Ok(())
    }
}

pub(crate) fn explorer() -> Explorer {
    Explorer::new().faults(Faults::at_most(1).drop_before().lose_reply())
}

#[test]
fn without_a_retry_a_fault_does_no_harm() {
    for reduction in [
        Reduction::None,
        Reduction::LocalFirst,
        Reduction::SleepSets,
        Reduction::SourceDpor,
    ] {
        let strategy = Box::new(Exhaustive::new(reduction));
        let exploration = explorer()
            .explore(&Push(Retry::No), strategy, Budget::schedules(100_000))
            .unwrap();
        assert!(exploration.counterexample.is_none());
        assert!(exploration.schedules > 1);
    }
}

#[test]
fn a_blind_retry_is_found_with_one_fault_and_no_preemption() {
    let strategy = Box::new(Exhaustive::new(Reduction::None));
    let exploration = explorer()
        .explore(&Push(Retry::Blind), strategy, Budget::schedules(100_000))
        .unwrap();
    let found = exploration.counterexample.unwrap();
    assert_eq!((found.faults, found.preemptions), (1, 0), "{found}");
    let Replayed::Breaks(again) = explorer()
        .replay(&Push(Retry::Blind), &found.schedule)
        .unwrap()
    else {
        panic!("replayed without a violation");
    };
    assert_eq!(again.to_string(), found.to_string());
}
