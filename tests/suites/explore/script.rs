//! Workloads of a few lines: what each client does, and what must hold.

use std::future::Future;
use std::pin::Pin;

use fakeserver::explore::{
    Budget, Client, Connector, Coverage, Exhaustive, Exploration, Explorer, Faults, Reduction,
    Replayed, Run, Violation, Workload,
};

pub(crate) type Clients = Client<(), String>;
pub(crate) type Done = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Clients by what they do.
#[derive(Clone, Copy)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) prepare: fn(Connector) -> Done,
    pub(crate) clients: &'static [fn(Clients) -> Done],
    pub(crate) check: fn(&Run<(), String>) -> Result<(), Violation>,
}

/// Nothing to prepare.
pub(crate) fn nothing(_: Connector) -> Done {
    Box::pin(async {})
}

/// Anything is right.
pub(crate) fn anything(_: &Run<(), String>) -> Result<(), Violation> {
    Ok(())
}

impl Script {
    /// What these clients do, whatever comes of it.
    pub(crate) fn new(name: &'static str, clients: &'static [fn(Clients) -> Done]) -> Script {
        Script {
            name,
            prepare: nothing,
            clients,
            check: anything,
        }
    }
}

impl Workload for Script {
    type Input = ();
    type Output = String;

    fn description(&self) -> String {
        self.name.to_owned()
    }

    fn clients(&self) -> usize {
        self.clients.len()
    }

    fn prepare(&self, connector: Connector) -> Done {
        (self.prepare)(connector)
    }

    fn client(&self, client: Clients) -> Done {
        self.clients[client.index()](client)
    }

    fn check(&self, run: &Run<(), String>) -> Result<(), Violation> {
        (self.check)(run)
    }
}

/// All schedules with these faults.
pub(crate) fn explore(script: Script, faults: Faults, reduction: Reduction) -> Exploration {
    let strategy = Box::new(Exhaustive::new(reduction));
    let explorer = Explorer::new().faults(faults);
    let exploration = explorer.explore(&script, strategy, Budget::schedules(50_000));
    exploration.unwrap()
}

/// How many schedules there are; none may break anything.
pub(crate) fn count(script: Script, faults: Faults) -> u64 {
    let exploration = explore(script, faults, Reduction::None);
    if let Some(found) = exploration.counterexample {
        panic!("{found}");
    }
    assert_eq!(exploration.coverage, Coverage::Exhaustive);
    exploration.schedules
}

/// The choices of the shortest schedule that breaks something, which must break it again when it is repeated, without faults
/// being asked for.
pub(crate) fn broken(script: Script, faults: Faults) -> String {
    let found = explore(script, faults, Reduction::LocalFirst).counterexample;
    let found = found.unwrap_or_else(|| panic!("{} with {faults:?}: nothing found", script.name));
    let text = found.schedule.to_string();
    match Explorer::new().replay(&script, &text.parse().unwrap()) {
        Ok(Replayed::Breaks(again)) => assert_eq!(again.to_string(), found.to_string()),
        other => panic!("{text} again: {other:?}"),
    }
    let (_, choices) = text.rsplit_once(':').unwrap();
    choices.to_owned()
}
