//! One schedule again, found by the workload that its text names.

use fakeserver::explore::{ExploreError, Explorer, Replayed, Schedule, Workload, WorkloadHash};

use crate::control::Flaw;
use crate::scenario::{Hunt, Scenario};

/// Most clients of a workload whose schedules can be told apart by name.
pub const CLIENTS_MAX: usize = 26;

/// The workload that a schedule belongs to; none if no scenario, number of clients and broken store has this hash.
pub fn workload_of(schedule: &Schedule) -> Option<Hunt> {
    let stores = [None].into_iter().chain(Flaw::ALL.map(Some));
    let hunts = Scenario::ALL
        .into_iter()
        .flat_map(|scenario| (1..=CLIENTS_MAX).map(move |clients| Hunt::new(scenario, clients)));
    let mut all = stores.flat_map(|flaw| hunts.clone().map(move |hunt| Hunt { flaw, ..hunt }));
    all.find(|hunt| WorkloadHash::of(&hunt.description()) == schedule.workload())
}

/// Runs a schedule again.
///
/// # Errors
/// If it is not a schedule of this workload.
pub fn replay(hunt: &Hunt, schedule: &Schedule) -> Result<Replayed, ExploreError> {
    Explorer::new().replay(hunt, schedule)
}

/// What a replayed schedule prints.
pub fn text(hunt: &Hunt, replayed: &Replayed) -> String {
    let description = hunt.description();
    match replayed {
        Replayed::Breaks(found) => format!("{description}\n{found}\n"),
        Replayed::Holds(trace) => format!("{description}\nnothing is violated\n{trace}\n"),
    }
}
