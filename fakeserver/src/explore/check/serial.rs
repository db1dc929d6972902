//! Whether a history has an order that a specification allows: depth first over operations that can come next, with a memory of
//! what was tried (Wing and Gong's search, with Lowe's memory).

use std::collections::{BTreeMap, HashSet};
use std::fmt::{self, Write as _};

use foldhash::fast::FixedState;

use super::spec::Spec;
use crate::explore::Operation;

/// Which operations must keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Whatever returned before another was called comes before it, no matter who called: linearizable.
    RealTime,
    /// The same, for operations of one client only: serializable, with each client's operations in its own order.
    PerClient,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Order::RealTime => "linearizable",
            Order::PerClient => "serializable",
        })
    }
}

/// Pairs of a set of operations and a state that a search may come to, unless told otherwise.
pub const SEARCH_MAX: usize = 1_000_000;

/// What came of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serial {
    /// There is an order.
    Explained,
    /// There is none; in words.
    Unexplained(String),
    /// The search was given up.
    Undecided {
        /// How many operations there were.
        operations: usize,
        /// How many pairs were looked at.
        looked_at: usize,
    },
}

/// Looks for an order of the operations that the specification allows. Those that never returned may have happened at any time
/// since their call, or not at all.
pub fn search<S: Spec>(
    spec: &S,
    order: Order,
    history: &[Operation<S::Input, S::Output>],
    most: usize,
) -> Serial {
    let mut looked_at = 0;
    for group in groups(spec, order, history) {
        let mut search = Search::new(spec, order, group, most.saturating_sub(looked_at));
        match search.run() {
            Some(true) => looked_at += search.seen.len(),
            Some(false) => return Serial::Unexplained(search.explain()),
            None => {
                return Serial::Undecided {
                    operations: history.len(),
                    looked_at: most,
                };
            }
        }
    }
    Serial::Explained
}

/// Operations, each with the part of the state that it has to do with.
type Group<'h, S> = Vec<(
    &'h Operation<<S as Spec>::Input, <S as Spec>::Output>,
    String,
)>;

/// Operations that can be searched without the others. Parts of the state are independent of each other in real time; an order
/// per client ties all parts together that one client has to do with.
fn groups<'h, S: Spec>(
    spec: &S,
    order: Order,
    history: &'h [Operation<S::Input, S::Output>],
) -> Vec<Group<'h, S>> {
    let parts: Vec<String> = history.iter().map(|one| spec.part(&one.input)).collect();
    let mut group_of: Vec<usize> = (0..history.len()).collect();
    for (at, operation) in history.iter().enumerate() {
        for (before, other) in history.iter().enumerate().take(at) {
            let tied = order == Order::PerClient && other.client == operation.client;
            if tied || parts[before] == parts[at] {
                let (old, new) = (group_of[at], group_of[before]);
                for group in &mut group_of {
                    *group = if *group == old { new } else { *group };
                }
            }
        }
    }
    let mut groups: BTreeMap<usize, Group<'h, S>> = BTreeMap::new();
    for ((group, operation), part) in group_of.iter().zip(history).zip(parts) {
        groups.entry(*group).or_default().push((operation, part));
    }
    groups.into_values().collect()
}

/// A set of operations by their places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Places(Vec<u64>);

impl Places {
    fn with_room_for(len: usize) -> Places {
        Places(vec![0; len.div_ceil(64)])
    }

    fn has(&self, at: usize) -> bool {
        self.0[at / 64] & (1 << (at % 64)) != 0
    }

    fn flip(&mut self, at: usize) {
        self.0[at / 64] ^= 1 << (at % 64);
    }
}

/// What can come next at a point of the search, and which operation led there.
struct Branch<T> {
    next: std::vec::IntoIter<(usize, T)>,
    by: Option<usize>,
}

/// The states of all parts, in the order of their names.
type States<S> = Vec<<S as Spec>::State>;

struct Search<'s, S: Spec> {
    spec: &'s S,
    order: Order,
    operations: Vec<&'s Operation<S::Input, S::Output>>,
    /// The names of the parts, and which one each operation has to do with.
    parts: Vec<String>,
    part_of: Vec<usize>,
    most: usize,
    placed: Places,
    seen: HashSet<(Places, States<S>), FixedState>,
    /// The longest order found, and the states that it leads to.
    longest: (Vec<usize>, States<S>),
}

impl<'s, S: Spec> Search<'s, S> {
    fn new(spec: &'s S, order: Order, mut group: Group<'s, S>, most: usize) -> Search<'s, S> {
        group.sort_by_key(|(operation, _)| operation.invoked);
        let mut parts: Vec<String> = group.iter().map(|(_, part)| part.clone()).collect();
        parts.sort_unstable();
        parts.dedup();
        let part_of = group
            .iter()
            .map(|(_, part)| parts.binary_search(part).unwrap_or_default());
        Search {
            spec,
            order,
            placed: Places::with_room_for(group.len()),
            part_of: part_of.collect(),
            operations: group.iter().map(|(operation, _)| *operation).collect(),
            most,
            seen: HashSet::default(),
            longest: (Vec::new(), vec![spec.init(); parts.len()]),
            parts,
        }
    }

    /// Whether there is an order; none if the search had to be given up.
    fn run(&mut self) -> Option<bool> {
        let init = vec![self.spec.init(); self.parts.len()];
        let mut left = self
            .operations
            .iter()
            .filter(|operation| operation.returned.is_some())
            .count();
        let mut branches = vec![Branch {
            next: self.next(&init),
            by: None,
        }];
        while left > 0 {
            let Some(branch) = branches.last_mut() else {
                return Some(false);
            };
            let Some((at, state)) = branch.next.next() else {
                if let Some(at) = branch.by {
                    self.placed.flip(at);
                    left += usize::from(self.operations[at].returned.is_some());
                }
                branches.pop();
                continue;
            };
            self.placed.flip(at);
            if !self.seen.insert((self.placed.clone(), state.clone())) {
                self.placed.flip(at);
                continue;
            }
            if self.seen.len() > self.most {
                return None;
            }
            left -= usize::from(self.operations[at].returned.is_some());
            branches.push(Branch {
                next: self.next(&state),
                by: Some(at),
            });
            if branches.len() > self.longest.0.len() + 1 {
                let order = branches.iter().filter_map(|branch| branch.by).collect();
                self.longest = (order, state);
            }
        }
        Some(true)
    }

    /// What can come next: operations with no other that must come before, and what each leads to.
    fn next(&self, states: &States<S>) -> std::vec::IntoIter<(usize, States<S>)> {
        let mut next = Vec::new();
        // The earliest return of an operation that is still to be placed, of each client: who was called later has to wait.
        let mut earliest: BTreeMap<usize, u64> = BTreeMap::new();
        let open = |at: &usize| !self.placed.has(*at);
        for at in (0..self.operations.len()).filter(open) {
            let operation = self.operations[at];
            if let Some(returned) = operation.returned {
                let first = earliest.entry(self.line_of(operation)).or_insert(returned);
                *first = returned.min(*first);
            }
        }
        for at in (0..self.operations.len()).filter(open) {
            let operation = self.operations[at];
            let first = earliest.get(&self.line_of(operation));
            if first.is_some_and(|first| *first < operation.invoked) {
                continue;
            }
            let (part, output) = (self.part_of[at], operation.output.as_ref());
            let after = self.spec.step(&states[part], &operation.input, output);
            next.extend(after.into_iter().map(|state| {
                let mut states = states.clone();
                states[part] = state;
                (at, states)
            }));
        }
        next.into_iter()
    }

    /// Operations of one line keep their order.
    fn line_of(&self, operation: &Operation<S::Input, S::Output>) -> usize {
        match self.order {
            Order::RealTime => 0,
            Order::PerClient => operation.client,
        }
    }

    fn explain(&self) -> String {
        let (order, states) = &self.longest;
        let mut text = format!("no order of these operations is {}:", self.order);
        for (at, operation) in self.operations.iter().enumerate() {
            let place = order.iter().position(|placed| *placed == at);
            let place = place.map_or("-".to_owned(), |place| (place + 1).to_string());
            let _ = write!(text, "\n  {place:>3}  {}", describe(operation));
        }
        let states: Vec<String> = self
            .parts
            .iter()
            .zip(states)
            .map(|(part, state)| {
                let colon = if part.is_empty() { "" } else { ": " };
                format!("{part}{colon}{state:?}")
            })
            .collect();
        let states = states.join(", ");
        let _ = write!(
            text,
            "\n  the longest order that is allowed is numbered; it leads to {states}, from which none of the others follows"
        );
        text
    }
}

fn describe<I: fmt::Debug, O: fmt::Debug>(operation: &Operation<I, O>) -> String {
    let client = crate::explore::Lane::new(operation.client)
        .map_or_else(|| operation.client.to_string(), |lane| lane.to_string());
    let input = &operation.input;
    match (&operation.returned, &operation.output) {
        (Some(returned), Some(output)) => format!(
            "client {client}: {input:?} -> {output:?}  (from {} to {returned})",
            operation.invoked
        ),
        _ => format!(
            "client {client}: {input:?} never returned  (from {})",
            operation.invoked
        ),
    }
}
