//! Pairs of commands on random worlds, in both orders.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use fakeserver::command::Row;
use tests::program::{Single, runnable_rows, singles, states};

use crate::mutants::Mutant;
use crate::world::{Act, Who, Words, World};

/// Rows that are not run, each with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "client|pause",
        "holds back whoever comes next until time passes",
    ),
    (
        "client|reply",
        "a reply that is not sent cannot be compared",
    ),
    (
        "debug",
        "reaches into the server, sleeps and ends it; it conflicts with everything",
    ),
    ("shutdown", "ends the server"),
    (
        "time",
        "tells the time of day; it conflicts with acts that move it",
    ),
];

/// Pairs after which a world is filled anew.
const PAIRS_OF_A_WORLD: usize = 60;

/// What somebody may listen to, channels mostly.
const SUBSCRIPTIONS: [&str; 4] = [
    "SUBSCRIBE news sport",
    "SUBSCRIBE news",
    "PSUBSCRIBE *",
    "SUBSCRIBE __keyevent@0__:del",
];

/// Faults that are shown at most.
const FAULTS_MAX: usize = 20;

/// Of cases in which two commands conflict so many are left out: they are run to make worlds that others do not make.
const CONFLICTS_ONE_IN: u8 = 8;

/// Words of commands that the grammar does not know.
const ANY_WORDS: &[&str] = &["h0", "s0", "t0", "z0", "l0", "x0", "1", "0", "g0", "a"];

/// What can take part in a pair.
#[derive(Clone, Debug)]
enum Item {
    Form(Single),
    /// A row without a grammar: any words.
    Row(&'static Row),
    Advance,
}

/// What came of a search.
#[derive(Debug)]
pub(crate) enum Found {
    Fault(String),
    /// So many cases in which two commands changed places.
    Nothing(Tally),
}

/// What was tried.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    cases: usize,
    swapped: usize,
    pairs: BTreeSet<(usize, usize)>,
    swapped_pairs: BTreeSet<(usize, usize)>,
}

/// What a pair is tried in.
#[derive(Debug)]
struct Case {
    before: Vec<(Who, Act)>,
    pair: [Act; 2],
    probes: bool,
}

pub(crate) struct Check {
    rng: fastrand::Rng,
    items: Vec<(String, Rc<[Item]>)>,
    mutant: Option<&'static Mutant>,
    /// The world's commands so far, so that a difference can be looked into on a new one.
    log: Vec<(Who, Option<Act>, i64)>,
    worlds: [World; 2],
    left: usize,
    serial: usize,
    pub(crate) cases: usize,
}

fn items() -> Vec<(String, Rc<[Item]>)> {
    let mut items: BTreeMap<String, Vec<Item>> = BTreeMap::new();
    for single in singles() {
        items
            .entry(single.row())
            .or_default()
            .push(Item::Form(single));
    }
    for row in runnable_rows() {
        items
            .entry(row.full_name().to_owned())
            .or_insert_with(|| vec![Item::Row(row)]);
    }
    for (name, _) in LEFT_OUT {
        assert!(items.remove(*name).is_some(), "{name} is not there");
    }
    items.insert("(advance)".to_owned(), vec![Item::Advance]);
    let items = items.into_iter();
    items.map(|(name, items)| (name, items.into())).collect()
}

impl Check {
    pub(crate) fn new(seed: u64) -> Check {
        Check {
            rng: fastrand::Rng::with_seed(seed),
            items: items(),
            mutant: None,
            log: Vec::new(),
            worlds: [World::new(), World::new()],
            left: 0,
            serial: 0,
            cases: 0,
        }
    }

    pub(crate) fn with_mutant(mut self, mutant: &'static Mutant) -> Check {
        self.mutant = Some(mutant);
        self
    }

    /// All pairs so often, or every n-th pair of them.
    fn all(&mut self, rounds: usize, step: usize) -> Found {
        let mut pair = 0;
        let (mut tally, mut faults) = (Tally::default(), Vec::new());
        for _ in 0..rounds {
            for first in 0..self.items.len() {
                for second in 0..=first {
                    pair += 1;
                    if pair % step != 0 {
                        continue;
                    }
                    let fault = self.try_pair([first, second], &mut tally);
                    if let Some(fault) = &fault {
                        eprintln!("{fault}");
                    }
                    faults.extend(fault);
                    if faults.len() >= FAULTS_MAX {
                        return Found::Fault(faults.join("\n"));
                    }
                }
            }
        }
        if !faults.is_empty() {
            return Found::Fault(faults.join("\n"));
        }
        Found::Nothing(tally)
    }

    /// Pairs of one of these rows and one of those, or any, at most so many cases.
    pub(crate) fn find(&mut self, rows: &[&str], with: &[&str], cases: usize) -> Found {
        let mut tally = Tally::default();
        let of = |rows: &[&str]| -> Vec<usize> {
            let is = |name: &str| {
                rows.is_empty() || rows.contains(&name.split('|').next().unwrap_or_default())
            };
            (0..self.items.len())
                .filter(|at| is(&self.items[*at].0))
                .collect()
        };
        let (own, others) = (of(rows), of(with));
        for _ in 0..cases {
            let first = own[self.rng.usize(..own.len())];
            let second = others[self.rng.usize(..others.len())];
            if let Some(fault) = self.try_pair([first, second], &mut tally) {
                return Found::Fault(fault);
            }
        }
        Found::Nothing(tally)
    }

    fn try_pair(&mut self, pair: [usize; 2], tally: &mut Tally) -> Option<String> {
        if self.left == 0 {
            self.fill();
        }
        self.left -= 1;
        let case = self.case(pair);
        tally.cases += 1;
        self.cases += 1;
        tally.pairs.insert((pair[0], pair[1]));
        if !case.probes && self.rng.u8(..CONFLICTS_ONE_IN) > 0 && self.conflicts(&case) {
            return None;
        }
        self.begin(&case);
        let commute = self.run(&case);
        if commute {
            tally.swapped += 1;
            tally.swapped_pairs.insert((pair[0], pair[1]));
        }
        let seen = self.worlds.each_mut().map(World::look);
        if seen[0].is(&seen[1]) {
            self.note(&case);
            return None;
        }
        self.left = 0;
        // Orders that no footprint keeps may differ between the worlds by now: on equal ones it counts.
        if commute { self.again(&case) } else { None }
    }

    /// Two new worlds, filled alike.
    fn fill(&mut self) {
        self.worlds = [World::new(), World::new()];
        self.log.clear();
        self.left = PAIRS_OF_A_WORLD;
        let states = states();
        let state = &states[usize::from(self.rng.u8(..4) == 0)];
        for words in state.clone() {
            self.log(Who::Control, Act::Command(words));
        }
    }

    /// Runs an act in both worlds.
    fn log(&mut self, who: Who, act: Act) {
        for world in &mut self.worlds {
            world.run(who, &act, None);
        }
        self.log.push((who, Some(act), 0));
    }

    fn note(&mut self, case: &Case) {
        self.log.push((Who::Control, None, 0));
        let before = case.before.iter().cloned();
        self.log
            .extend(before.map(|(who, act)| (who, Some(act), 0)));
        let [a, b] = case.pair.clone();
        self.log.push((Who::A, Some(a), 0));
        self.log.push((Who::B, Some(b), i64::from(case.probes)));
    }

    /// Whether the commands conflict wherever they run; what came before can only add to it.
    fn conflicts(&mut self, case: &Case) -> bool {
        let [world, _] = &mut self.worlds;
        world.forget();
        let [a, b] = &case.pair;
        let a = world.predict(Who::A, a, self.mutant);
        a.conflicts(&world.predict(Who::B, b, self.mutant))
    }

    fn begin(&mut self, case: &Case) {
        for world in &mut self.worlds {
            begin(world, case, self.mutant);
        }
    }

    /// Runs the pair, in the second world the other way round if the footprints say so.
    fn run(&mut self, case: &Case) -> bool {
        let [first, second] = &mut self.worlds;
        let commute = run(first, case, [0, 1], self.mutant);
        let order = if commute { [1, 0] } else { [0, 1] };
        run(second, case, order, self.mutant);
        commute
    }

    /// The case in both orders on two worlds that are equal to the last.
    fn again(&mut self, case: &Case) -> Option<String> {
        let mut worlds = [World::new(), World::new()];
        for world in &mut worlds {
            for (who, act, probes) in &self.log {
                match act {
                    Some(act) => {
                        world.run(*who, act, None);
                    }
                    None => world.renew(),
                }
                if *probes > 0 {
                    world.probe();
                }
            }
            begin(world, case, self.mutant);
        }
        let [first, second] = &mut worlds;
        if !run(first, case, [0, 1], self.mutant) {
            return None;
        }
        run(second, case, [1, 0], self.mutant);
        let seen = worlds.each_mut().map(World::look);
        (!seen[0].is(&seen[1])).then(|| {
            let mut text = String::new();
            for (who, act) in &case.before {
                let _ = writeln!(text, "{who:?}: {}", spell(act));
            }
            let [a, b] = &case.pair;
            let _ = writeln!(text, "A: {}\nB: {}", spell(a), spell(b));
            text.push_str(&seen[0].difference(&seen[1]));
            text
        })
    }

    fn draw(&mut self, item: &Item, key: usize) -> (Vec<Words>, Act) {
        match item {
            Item::Form(single) => {
                self.serial += 1;
                let mut words = single.draw(key, self.serial, &mut self.rng);
                let last = words.pop().unwrap_or_default();
                (words, Act::Command(self.filled_in(last)))
            }
            Item::Row(row) => {
                let mut words: Words = row
                    .full_name()
                    .split('|')
                    .map(|word| word.as_bytes().to_vec())
                    .collect();
                let least = row.arity().unsigned_abs() as usize;
                while words.len() < least {
                    let any = self.rng.choice(ANY_WORDS).map(|word| word.as_bytes());
                    words.push(any.unwrap_or_default().to_vec());
                }
                (Vec::new(), Act::Command(words))
            }
            Item::Advance => (Vec::new(), Act::Advance(self.rng.i64(1..3000))),
        }
    }

    /// Clients' numbers in place of their names.
    fn filled_in(&mut self, mut words: Words) -> Words {
        for word in &mut words {
            if word.starts_with(tests::program::ID_OF_CLIENT) {
                let of = [Who::A, Who::B, Who::Waiter, Who::Listener];
                // The sessions are renewed before the case begins.
                let id = self.worlds[0].id(of[self.rng.usize(..of.len())]).0 + 5;
                *word = id.to_string().into_bytes();
            }
        }
        words
    }

    fn any(&mut self, wanted: impl Fn(&Single) -> bool, key: usize) -> Vec<Words> {
        let items = self.items.iter().flat_map(|(_, items)| items.iter());
        let forms: Vec<&Item> = items
            .filter(|item| matches!(item, Item::Form(single) if wanted(single)))
            .collect();
        let form = forms[self.rng.usize(..forms.len())].clone();
        let (mut words, act) = self.draw(&form, key);
        if let Act::Command(last) = act {
            words.push(last);
        }
        words
    }

    /// A pair of commands of these rows, and what comes before.
    fn case(&mut self, pair: [usize; 2]) -> Case {
        let key = self.rng.usize(..6);
        let mut before = Vec::new();
        if self.rng.u8(..3) == 0 {
            for line in self.brittle() {
                before.push((Who::Control, command(&line)));
            }
        }
        if self.rng.u8(..4) == 0 {
            before.push((Who::Control, Act::Advance(self.rng.i64(0..2000))));
        }
        self.listen(&mut before);
        if self.rng.u8(..4) == 0 {
            let words = self.any(Single::blocks, key);
            before.extend(
                words
                    .into_iter()
                    .map(|words| (Who::Waiter, Act::Command(words))),
            );
        }
        let mut probes = false;
        let mut acts = Vec::new();
        for (who, at) in [Who::A, Who::B].into_iter().zip(pair) {
            let (name, items) = self.items[at].clone();
            let item = &items[self.rng.usize(..items.len())];
            let (loads, act) = self.draw(item, key);
            before.extend(
                loads
                    .into_iter()
                    .map(|words| (Who::Control, Act::Command(words))),
            );
            let is_exec = name == "exec";
            if is_exec || self.rng.u8(..8) == 0 {
                probes = true;
                self.begin_transaction(who, key, is_exec, &mut before);
            }
            probes |= name == "watch";
            acts.push((name, act));
        }
        if self.rng.u8(..4) == 0 {
            share_key(&mut acts);
        }
        let acts: Vec<Act> = acts.into_iter().map(|(_, act)| act).collect();
        let [a, b] = <[Act; 2]>::try_from(acts).expect("two of them");
        Case {
            before,
            pair: [a, b],
            probes,
        }
    }

    /// Somebody may listen to channels, or to events of keys.
    fn listen(&mut self, before: &mut Vec<(Who, Act)>) {
        if self.rng.u8(..4) > 0 {
            return;
        }
        let events = if self.rng.bool() { "KEA" } else { "" };
        let line = format!("CONFIG SET notify-keyspace-events {events}");
        before.push((Who::Control, command(&line)));
        let line = SUBSCRIPTIONS[self.rng.usize(..SUBSCRIPTIONS.len())];
        before.push((Who::Listener, command(line)));
    }

    /// Keys may be watched, and commands queued.
    fn begin_transaction(
        &mut self,
        who: Who,
        key: usize,
        queues: bool,
        before: &mut Vec<(Who, Act)>,
    ) {
        if self.rng.bool() {
            let words = self.any(|single| single.row() == "watch", key);
            before.extend(words.into_iter().map(|words| (who, Act::Command(words))));
        }
        if queues || self.rng.bool() {
            before.push((who, command("MULTI")));
            for _ in 0..self.rng.usize(0..3) {
                let words = self.any(|single| !single.blocks(), key);
                let words = words.into_iter().last();
                before.extend(words.map(|words| (who, Act::Command(words))));
            }
        }
    }

    /// Keys with one element, a time to live, or none at all.
    fn brittle(&mut self) -> Vec<String> {
        let key = |name: &str| format!("{name}{}", 0);
        let (hash, set, zset, list) = (key("h"), key("t"), key("z"), key("l"));
        let mut lines = vec![format!("DEL {hash} {set} {zset} {list}")];
        if self.rng.bool() {
            let [field, member] =
                [["f0", "f1", "n0"], ["a", "b", "1"]].map(|words| words[self.rng.usize(..3)]);
            lines.push(format!("HSET {hash} {field} 1"));
            lines.push(format!("SADD {set} {member}"));
            lines.push(format!("ZADD {zset} 1 {member}"));
            // What PFCOUNT has kept no longer holds.
            lines.push(format!("PFADD p0 {}", self.serial));
        }
        for key in [hash, set, zset, "s0".to_owned(), "c0".to_owned()] {
            if self.rng.bool() {
                lines.push(format!(
                    "PEXPIRE {key} {}",
                    [1, 1000, 100_000][self.rng.usize(..3)]
                ));
            }
        }
        lines
    }
}

/// Gives the second command what is most often the first one's key.
fn share_key(acts: &mut [(String, Act)]) {
    let [
        (first_name, Act::Command(first)),
        (second_name, Act::Command(second)),
    ] = acts
    else {
        return;
    };
    let place = |name: &str| 1 + usize::from(name.contains('|'));
    if let (Some(key), Some(other)) = (
        first.get(place(first_name)),
        second.get_mut(place(second_name)),
    ) {
        other.clone_from(key);
    }
}

fn begin(world: &mut World, case: &Case, mutant: Option<&Mutant>) {
    world.renew();
    for (who, act) in &case.before {
        world.run(*who, act, mutant);
    }
}

/// Runs a pair in an order; whether the footprints allow the other one.
fn run(world: &mut World, case: &Case, order: [usize; 2], mutant: Option<&Mutant>) -> bool {
    let whose = [Who::A, Who::B];
    let mut predicted = Vec::new();
    // A guess of the first may be wrong by what the second shows.
    world.footprints.take_change();
    for _ in 0..2 {
        predicted.clear();
        for at in order {
            predicted.push(world.predict(whose[at], &case.pair[at], mutant));
        }
    }
    world.footprints.take_change();
    let ran = order.map(|at| world.run(whose[at], &case.pair[at], mutant));
    let is_stale = world.footprints.take_change();
    if case.probes {
        world.probe();
    }
    let commute = |footprints: &[_]| match footprints {
        [first, second] => !fakeserver::explore::Footprint::conflicts(first, second),
        _ => false,
    };
    !is_stale && (commute(&predicted) || commute(&ran))
}

fn command(line: &str) -> Act {
    Act::Command(
        line.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect(),
    )
}

fn spell(act: &Act) -> String {
    match act {
        Act::Command(words) => {
            let words: Vec<_> = words
                .iter()
                .map(|word| word.escape_ascii().to_string())
                .collect();
            words.join(" ")
        }
        Act::Advance(millis) => format!("({millis} ms pass)"),
    }
}

/// How often all pairs are tried: `COMMUTATION_ROUNDS`. Without it some are, once.
fn rounds() -> Option<usize> {
    std::env::var("COMMUTATION_ROUNDS").ok()?.parse().ok()
}

/// Without a number of rounds one pair of so many is tried.
const STEP: usize = 7;

#[test]
fn commands_whose_footprints_do_not_conflict_commute() {
    let mut check = Check::new(7);
    let (rounds, step) = rounds().map_or((1, STEP), |rounds| (rounds, 1));
    match check.all(rounds, step) {
        Found::Fault(fault) => panic!("{fault}"),
        Found::Nothing(tally) => {
            eprintln!(
                "{} rows, {} pairs in {} cases; {} pairs in {} cases changed places",
                check.items.len(),
                tally.pairs.len(),
                tally.cases,
                tally.swapped_pairs.len(),
                tally.swapped
            );
            assert!(tally.swapped * 4 > tally.cases);
        }
    }
}
