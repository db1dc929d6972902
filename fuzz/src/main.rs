//! Finds out how many schedules there are.
fn main() {
    use fakeserver::explore::*;
    use fuzz::scenario::*;
    let args: Vec<String> = std::env::args().collect();
    for scenario in Scenario::ALL {
        if let Some(name) = args.get(1) && name != "all" && name != scenario.name() { continue; }
        for (clients, faults) in [(2, 0), (2, 1), (3, 0), (3, 1)] {
            let start = std::time::Instant::now();
            let mut explorer = Explorer::new().faults(Hunt::faults(faults));
            if let Some(url) = args.get(2) { explorer = explorer.on(redis::Client::open(url.as_str()).unwrap()); }
            let found = explorer.explore(&Hunt::new(scenario, clients), Box::new(Exhaustive::new(Reduction::SleepSets)), Budget::schedules(1_000_000).while_true(|_| start.elapsed().as_secs() < 10));
            match found {
                Ok(found) => {
                    eprintln!("{} {clients} {faults}: {} + {} {} {:?}", scenario.name(), found.schedules, found.pruned, found.coverage, start.elapsed());
                    if let Some(c) = found.counterexample { eprintln!("{c}"); }
                }
                Err(error) => eprintln!("{} {clients} {faults}: {error}", scenario.name()),
            }
        }
    }
}
