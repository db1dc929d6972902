//! [`Outcome`]: what a run gave, in a form in which two runs can be compared.

use std::collections::{BTreeMap, BTreeSet};

use super::labels::Labels;
use super::report::{Ending, Shown, ShownKey, Status};
use super::schedule::Role;
use crate::remote::snapshot::{Entry, Place, Snapshot, Value, quoted, shown_value};

/// How closely values are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compare {
    /// Types and values.
    #[default]
    Content,
    /// Types and sizes.
    Shape,
}

/// A program's end, its output with random parts named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) status: Status,
    pub(super) output: Vec<u8>,
}

/// What a run gave, with random parts named and keys of the same name, once random parts are named, side by side.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) ends: [Option<End>; Role::ALL.len()],
    pub(super) keys: BTreeMap<Place, Vec<Entry>>,
    pub(super) labels: BTreeSet<String>,
}

impl Outcome {
    /// Names the random parts of what a run gave.
    pub(super) fn new(
        endings: &[Option<Ending>; Role::ALL.len()],
        snapshot: &Snapshot,
        run_labels: BTreeSet<String>,
        labels: &Labels,
    ) -> Outcome {
        let end = |ending: &Option<Ending>| {
            let ending = ending.as_ref()?;
            Some(End {
                status: ending.status.clone(),
                output: labels.apply(ending.output.as_bytes()),
            })
        };
        let mut keys: BTreeMap<Place, Vec<Entry>> = BTreeMap::new();
        for ((db, key), entry) in snapshot {
            let place = (*db, labels.apply(key));
            let entry = Entry {
                value: named(&entry.kind, &entry.value, labels),
                ..entry.clone()
            };
            keys.entry(place).or_default().push(entry);
        }
        // In which order random keys come is random too.
        for entries in keys.values_mut() {
            entries.sort_by(|l, r| l.value.cmp(&r.value));
        }
        let mut ends = endings.each_ref().map(end);
        if let Some(setup) = ends.first_mut() {
            *setup = None;
        }
        Outcome {
            ends,
            keys,
            labels: run_labels,
        }
    }

    /// How a role ended.
    pub(super) fn end(&self, role: Role) -> Option<&End> {
        self.ends.get(role.index())?.as_ref()
    }

    /// The outcome for readers.
    pub(super) fn shown(&self) -> Shown {
        let ending = |role| {
            let end: &End = self.end(role)?;
            Some(Ending {
                status: end.status.clone(),
                output: String::from_utf8_lossy(&end.output).into_owned(),
            })
        };
        let keys = self.keys.iter().flat_map(|((db, key), entries)| {
            entries.iter().map(move |entry| ShownKey {
                db: *db,
                key: quoted(key),
                r#type: entry.kind.clone(),
                value: shown_value(&entry.value),
                ttl: entry.ttl.is_some(),
            })
        });
        Shown {
            a: ending(Role::A),
            b: ending(Role::B),
            more: Role::PROGRAMS
                .into_iter()
                .skip(2)
                .filter_map(|role| Some((role.name().to_owned(), ending(role)?)))
                .collect(),
            after: ending(Role::After),
            keys: keys.collect(),
            labels: self.labels.iter().cloned().collect(),
        }
    }
}

fn named(kind: &str, value: &Value, labels: &Labels) -> Value {
    match value {
        Value::Text(text) => Value::Text(labels.apply(text)),
        Value::Items(items) => {
            let mut items: Vec<_> = items.iter().map(|item| labels.apply(item)).collect();
            if kind == "set" {
                items.sort_unstable();
            }
            Value::Items(items)
        }
        Value::Pairs(pairs) => {
            let name =
                |(left, right): &(Vec<u8>, Vec<u8>)| (labels.apply(left), labels.apply(right));
            let mut pairs: Vec<_> = pairs.iter().map(name).collect();
            if kind == "hash" {
                pairs.sort_unstable();
            }
            Value::Pairs(pairs)
        }
    }
}
