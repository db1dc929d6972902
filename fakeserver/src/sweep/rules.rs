//! [`Rules`]: where two outcomes differ, and what the comparison leaves out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::outcome::{Compare, End, Outcome};
use super::report::Difference;
use super::schedule::Role;
use crate::remote::snapshot::{Entry, Place, Value, quoted, shown_value};
use crate::value::glob;

/// Which parts of two outcomes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Everything.
    Whole,
    /// Everything but keys that go by themselves soon: the program succeeded although a connection broke.
    Healed,
    /// Not how the interrupted program ended, since it was killed or failed; and no keys that go by themselves soon.
    Remains { of: Role },
}

/// A part of outcomes that says nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Noise {
    /// A key's value.
    Value(Place),
    /// In which order its parts stand.
    Order(Place),
    /// The value of one of its fields.
    Field(Place, Vec<u8>),
    /// Whether it has a time to live.
    Ttl(Place),
    /// Keys whose names begin and end so.
    Keys(usize, Vec<u8>, Vec<u8>),
    /// What a program prints.
    Output(Role),
    /// One line of it.
    Line(Role, usize),
}

/// A clause of the judge, which tests take away to see what escapes then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code, reason = "only tests take one away"))]
pub(super) enum Clause {
    /// How programs end counts.
    Status,
    /// What programs print counts.
    Output,
    /// Which keys there are counts.
    Keys,
    /// Values count.
    Values,
    /// Whether a key expires counts.
    TimeToLive,
    /// Only what goes by itself soon may be left behind.
    Healing,
    /// Tokens have owners.
    Owners,
    /// A dead or failed program may have done nothing or everything, and nothing else.
    AllOrNothing,
    /// A program that succeeded has done everything.
    Done,
    /// Expired keys make a difference at the borders only.
    Expiry,
    /// Only places between which nothing conflicts are the same.
    Conflicts,
    /// What comes of two programs side by side comes of them one after the other too.
    Serial,
}

/// What the comparison leaves out.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    #[cfg(test)]
    pub(super) without: Option<Clause>,
    pub(super) compare: Compare,
    /// Whether what the programs print is compared.
    pub(super) output: bool,
    /// Keys that the user wants ignored.
    pub(super) ignored_keys: Vec<Vec<u8>>,
    /// Fields that the user wants ignored: pattern of keys, pattern of fields.
    pub(super) ignored_fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// What has a shorter time to live goes by itself.
    pub(super) heals_within: Duration,
    noise: BTreeSet<Noise>,
}

/// A place where two outcomes differ.
#[derive(Clone, Debug)]
pub(super) struct Mismatch {
    pub(super) at: String,
    pub(super) left: String,
    pub(super) right: String,
    noise: Option<Noise>,
}

impl Rules {
    /// Rules without anything learned.
    pub(super) fn new(compare: Compare, output: bool, heals_within: Duration) -> Rules {
        Rules {
            #[cfg(test)]
            without: None,
            compare,
            output,
            ignored_keys: Vec::new(),
            ignored_fields: Vec::new(),
            heals_within,
            noise: BTreeSet::new(),
        }
    }

    /// Whether a clause was taken away.
    #[cfg_attr(
        not(test),
        allow(clippy::unused_self, reason = "only tests take clauses away")
    )]
    pub(super) fn lacks(&self, clause: Clause) -> bool {
        #[cfg(test)]
        return self.without == Some(clause);
        #[cfg(not(test))]
        {
            let _ = clause;
            false
        }
    }

    /// Learns from two outcomes of the same schedule: what differs between them says nothing.
    pub(super) fn learn(&mut self, one: &Outcome, other: &Outcome) {
        // Several rounds, since a key's order is looked at only if its value is not ignored.
        for _ in 0..3 {
            let found = self.mismatches(one, other, Scope::Whole);
            let before = self.noise.len();
            self.noise
                .extend(found.into_iter().filter_map(|mismatch| mismatch.noise));
            if self.noise.len() == before {
                return;
            }
        }
    }

    /// What was learned, for readers.
    pub(super) fn left_out(&self) -> Vec<String> {
        let tell = |noise: &Noise| {
            let what = match noise {
                Noise::Value(at) => format!("the value of {}", named(at)),
                Noise::Order(at) => format!("the order of {}", named(at)),
                Noise::Field(at, field) => format!("field {} of {}", quoted(field), named(at)),
                Noise::Ttl(at) => format!("the time to live of {}", named(at)),
                Noise::Keys(_, start, end) => {
                    format!("keys {}", quoted(&[start, &b"*"[..], end].concat()))
                }
                Noise::Output(role) => format!("the output of {role}"),
                Noise::Line(role, at) => format!("line {} of the output of {role}", at + 1),
            };
            format!("{what}: differs between two equal runs")
        };
        self.noise.iter().map(tell).collect()
    }

    /// Where an outcome differs from a reference.
    pub(super) fn mismatches(
        &self,
        left: &Outcome,
        right: &Outcome,
        scope: Scope,
    ) -> Vec<Mismatch> {
        let mut found = Vec::new();
        for role in Role::PROGRAMS.into_iter().chain([Role::After]) {
            if scope != (Scope::Remains { of: role }) {
                self.compare_ends(role, left.end(role), right.end(role), &mut found);
            }
        }
        let places: BTreeSet<&Place> = left.keys.keys().chain(right.keys.keys()).collect();
        for place in places {
            if self.ignores_key(place) {
                continue;
            }
            let entries = |outcome: &Outcome| -> Vec<Entry> {
                let entries = outcome.keys.get(place).into_iter().flatten();
                let stays = |entry: &&Entry| scope == Scope::Whole || !self.heals(entry);
                entries.filter(stays).cloned().collect()
            };
            self.compare_entries(place, &entries(left), &entries(right), &mut found);
        }
        pair_up(&mut found);
        found
    }

    fn heals(&self, entry: &Entry) -> bool {
        let ttl = entry.ttl.and_then(|millis| u64::try_from(millis).ok());
        if self.lacks(Clause::Healing) {
            return ttl.is_some();
        }
        ttl.is_some_and(|millis| Duration::from_millis(millis) <= self.heals_within)
    }

    fn ignores_key(&self, (db, key): &Place) -> bool {
        let by_user = |pattern: &Vec<u8>| glob::matches(pattern, key, false);
        let by_habit = |noise: &Noise| match noise {
            Noise::Keys(of, start, end) => {
                of == db
                    && key.len() >= start.len() + end.len()
                    && key.starts_with(start)
                    && key.ends_with(end)
            }
            _ => false,
        };
        self.ignored_keys.iter().any(by_user) || self.noise.iter().any(by_habit)
    }

    fn ignores_field(&self, place: &Place, field: &[u8]) -> bool {
        let by_user = |(keys, fields): &(Vec<u8>, Vec<u8>)| {
            glob::matches(keys, &place.1, false) && glob::matches(fields, field, false)
        };
        self.ignored_fields.iter().any(by_user)
            || self
                .noise
                .contains(&Noise::Field(place.clone(), field.to_vec()))
    }

    fn compare_ends(
        &self,
        role: Role,
        left: Option<&End>,
        right: Option<&End>,
        found: &mut Vec<Mismatch>,
    ) {
        let status =
            |end: Option<&End>| end.map_or("did not run".to_owned(), |end| end.status.to_string());
        let (one, other) = (status(left), status(right));
        if one != other && !self.lacks(Clause::Status) {
            found.push(Mismatch {
                at: format!("status of {role}"),
                left: one,
                right: other,
                noise: None,
            });
        }
        let (Some(left), Some(right)) = (left, right) else {
            return;
        };
        if !self.output
            || left.output == right.output
            || self.lacks(Clause::Output)
            || self.noise.contains(&Noise::Output(role))
        {
            return;
        }
        let lines = |end: &End| -> Vec<Vec<u8>> {
            let lines = end.output.split(|byte| *byte == b'\n');
            lines.map(<[u8]>::to_vec).collect()
        };
        let (lefts, rights) = (lines(left), lines(right));
        if lefts.len() != rights.len() {
            found.push(Mismatch {
                at: format!("output of {role}"),
                left: quoted(&left.output),
                right: quoted(&right.output),
                noise: Some(Noise::Output(role)),
            });
            return;
        }
        for (at, (left, right)) in lefts.iter().zip(&rights).enumerate() {
            let noise = Noise::Line(role, at);
            if left != right && !self.noise.contains(&noise) {
                let at = match lefts.len() {
                    ..=2 => format!("output of {role}"),
                    _ => format!("output of {role}, line {}", at + 1),
                };
                found.push(Mismatch {
                    at,
                    left: quoted(left),
                    right: quoted(right),
                    noise: Some(noise),
                });
            }
        }
    }

    fn compare_entries(
        &self,
        place: &Place,
        left: &[Entry],
        right: &[Entry],
        found: &mut Vec<Mismatch>,
    ) {
        let at = format!("key {}", named(place));
        if left.len() != right.len() && self.lacks(Clause::Keys) {
            return;
        }
        if left.len() != right.len() {
            let count = |entries: &[Entry]| match entries {
                [] => "missing".to_owned(),
                [entry] => format!("{} {}", entry.kind, shown_value(&entry.value)),
                more => format!("{} keys of this form", more.len()),
            };
            found.push(Mismatch {
                at,
                left: count(left),
                right: count(right),
                noise: Some(Noise::Keys(place.0, place.1.clone(), Vec::new())),
            });
            return;
        }
        for (left, right) in left.iter().zip(right) {
            self.compare_entry(place, &at, left, right, found);
        }
    }

    fn compare_entry(
        &self,
        place: &Place,
        at: &str,
        left: &Entry,
        right: &Entry,
        found: &mut Vec<Mismatch>,
    ) {
        self.compare_ttl(place, at, left, right, found);
        let value = Noise::Value(place.clone());
        let mut push = |left: String, right: String, noise| {
            found.push(Mismatch {
                at: at.to_owned(),
                left,
                right,
                noise: Some(noise),
            });
        };
        if left.kind != right.kind {
            return push(left.kind.clone(), right.kind.clone(), value);
        }
        if left.value == right.value || self.lacks(Clause::Values) || self.noise.contains(&value) {
            return;
        }
        if self.compare == Compare::Shape {
            let told = |entry: &Entry| format!("{} of size {}", entry.kind, entry.value.len());
            let (left, right) = (told(left), told(right));
            if left != right {
                push(left, right, value);
            }
            return;
        }
        match (&left.value, &right.value) {
            (Value::Pairs(lefts), Value::Pairs(rights))
                if left.kind == "hash" || left.kind == "zset" =>
            {
                self.compare_fields(place, at, lefts, rights, found);
            }
            (Value::Items(lefts), Value::Items(rights)) if same_items(lefts, rights) => {
                let order = Noise::Order(place.clone());
                if !self.noise.contains(&order) {
                    push(shown_value(&left.value), shown_value(&right.value), order);
                }
            }
            (left, right) => push(shown_value(left), shown_value(right), value),
        }
    }

    fn compare_ttl(
        &self,
        place: &Place,
        at: &str,
        left: &Entry,
        right: &Entry,
        found: &mut Vec<Mismatch>,
    ) {
        let noise = Noise::Ttl(place.clone());
        if left.ttl.is_some() == right.ttl.is_some()
            || self.lacks(Clause::TimeToLive)
            || self.noise.contains(&noise)
        {
            return;
        }
        let told = |entry: &Entry| match entry.ttl {
            Some(_) => "has one".to_owned(),
            None => "has none: it never expires".to_owned(),
        };
        found.push(Mismatch {
            at: format!("time to live of {at}"),
            left: told(left),
            right: told(right),
            noise: Some(noise),
        });
    }

    fn compare_fields(
        &self,
        place: &Place,
        at: &str,
        left: &[(Vec<u8>, Vec<u8>)],
        right: &[(Vec<u8>, Vec<u8>)],
        found: &mut Vec<Mismatch>,
    ) {
        let value = |pairs: &[(Vec<u8>, Vec<u8>)], field: &[u8]| {
            let pair = pairs.iter().find(|(name, _)| name == field);
            pair.map_or("missing".to_owned(), |(_, value)| quoted(value))
        };
        let fields: BTreeSet<&Vec<u8>> = left.iter().chain(right).map(|(field, _)| field).collect();
        for field in fields {
            let (one, other) = (value(left, field), value(right, field));
            if one != other && !self.ignores_field(place, field) {
                found.push(Mismatch {
                    at: format!("{at}, field {}", quoted(field)),
                    left: one,
                    right: other,
                    noise: Some(Noise::Field(place.clone(), field.clone())),
                });
            }
        }
    }
}

/// A key for readers.
fn named((db, key): &Place) -> String {
    match db {
        0 => quoted(key),
        db => format!("{} in database {db}", quoted(key)),
    }
}

fn same_items(left: &[Vec<u8>], right: &[Vec<u8>]) -> bool {
    let sorted = |items: &[Vec<u8>]| {
        let mut items = items.to_vec();
        items.sort_unstable();
        items
    };
    sorted(left) == sorted(right)
}

/// Keys that only one side has, and that resemble keys that only the other has, are the same key under a random name: what they
/// have in common at both ends is the noise.
fn pair_up(found: &mut [Mismatch]) {
    let only = |side: fn(&Mismatch) -> &str| -> Vec<usize> {
        let is_missing = |mismatch: &Mismatch| {
            side(mismatch) == "missing" && matches!(mismatch.noise, Some(Noise::Keys(..)))
        };
        (0..found.len())
            .filter(|at| found.get(*at).is_some_and(is_missing))
            .collect()
    };
    let (lefts, rights) = (only(|m| &m.left), only(|m| &m.right));
    for (one, other) in lefts.into_iter().zip(rights) {
        let key = |at: usize| match found.get(at).and_then(|mismatch| mismatch.noise.clone()) {
            Some(Noise::Keys(db, key, _)) => (db, key),
            _ => (0, Vec::new()),
        };
        let ((db, left), (other_db, right)) = (key(one), key(other));
        let start = left.iter().zip(&right).take_while(|(l, r)| l == r).count();
        let ends = left
            .iter()
            .skip(start)
            .rev()
            .zip(right.iter().skip(start).rev());
        let end = ends.take_while(|(l, r)| l == r).count();
        if db != other_db || start == 0 {
            continue;
        }
        let noise = Noise::Keys(
            db,
            left.get(..start).unwrap_or_default().to_vec(),
            left.get(left.len() - end..).unwrap_or_default().to_vec(),
        );
        for at in [one, other] {
            if let Some(mismatch) = found.get_mut(at) {
                mismatch.noise = Some(noise.clone());
            }
        }
    }
}

/// Where an outcome differs from all references that it was to be equal to.
pub(super) fn differences(per_reference: &[Vec<Mismatch>]) -> Vec<Difference> {
    let mut by_place: BTreeMap<&str, Difference> = BTreeMap::new();
    for mismatch in per_reference.iter().flatten() {
        let difference = by_place.entry(&mismatch.at).or_insert_with(|| Difference {
            at: mismatch.at.clone(),
            got: mismatch.left.clone(),
            expected: Vec::new(),
        });
        if !difference.expected.contains(&mismatch.right) {
            difference.expected.push(mismatch.right.clone());
        }
    }
    by_place.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::report::Status;

    fn rules() -> Rules {
        Rules::new(Compare::Content, true, Duration::from_secs(60))
    }

    fn outcome(keys: &[(&str, Option<i64>, Value)], output: &str) -> Outcome {
        let entry = |(key, ttl, value): &(&str, Option<i64>, Value)| {
            let kind = match value {
                Value::Text(_) => "string",
                Value::Items(_) => "list",
                Value::Pairs(_) => "hash",
            };
            let entry = Entry {
                kind: kind.to_owned(),
                ttl: *ttl,
                value: value.clone(),
            };
            ((0, key.as_bytes().to_vec()), vec![entry])
        };
        let mut outcome = Outcome {
            keys: keys.iter().map(entry).collect(),
            ..Outcome::default()
        };
        outcome.ends[Role::A.index()] = Some(End {
            status: Status::Code(0),
            output: output.as_bytes().to_vec(),
        });
        outcome
    }

    fn text(value: &str) -> Value {
        Value::Text(value.as_bytes().to_vec())
    }

    fn list(items: &[&str]) -> Value {
        Value::Items(items.iter().map(|item| item.as_bytes().to_vec()).collect())
    }

    fn at(rules: &Rules, left: &Outcome, right: &Outcome, scope: Scope) -> Vec<String> {
        let found = rules.mismatches(left, right, scope);
        found.into_iter().map(|mismatch| mismatch.at).collect()
    }

    #[test]
    fn values_times_to_live_outputs_and_states_are_compared() {
        let one = outcome(&[("k", None, text("1"))], "yes\n");
        assert!(at(&rules(), &one, &one, Scope::Whole).is_empty());
        for (other, place) in [
            (outcome(&[("k", None, text("2"))], "yes\n"), "key \"k\""),
            (
                outcome(&[("k", Some(5), text("1"))], "yes\n"),
                "time to live of key \"k\"",
            ),
            (outcome(&[("k", None, list(&["1"]))], "yes\n"), "key \"k\""),
            (outcome(&[], "yes\n"), "key \"k\""),
            (outcome(&[("k", None, text("1"))], "no\n"), "output of A"),
        ] {
            assert_eq!(at(&rules(), &one, &other, Scope::Whole), [place]);
        }
    }

    #[test]
    fn what_a_dead_program_leaves_for_a_short_time_is_left_out() {
        let clean = outcome(&[], "");
        let remains = Scope::Remains { of: Role::A };
        let lock = |ttl| outcome(&[("lock", ttl, text("t"))], "killed");
        assert!(at(&rules(), &lock(Some(60_000)), &clean, remains).is_empty());
        assert_eq!(at(&rules(), &lock(Some(60_001)), &clean, remains).len(), 1);
        assert_eq!(at(&rules(), &lock(None), &clean, remains).len(), 1);
        assert_eq!(
            at(&rules(), &lock(Some(60_000)), &clean, Scope::Whole).len(),
            2
        );
    }

    #[test]
    fn what_differs_by_itself_is_learned() {
        let mut rules = rules();
        let run = |id: &str, items: &[&str]| {
            outcome(
                &[
                    (&format!("job:{id}:data"), None, text("x")),
                    ("list", None, list(items)),
                    ("t", None, text(id)),
                ],
                &format!("id {id}\nok\n\n"),
            )
        };
        rules.learn(&run("a1", &["x", "y"]), &run("b2", &["y", "x"]));
        assert!(
            at(
                &rules,
                &run("c3", &["x", "y"]),
                &run("d4", &["y", "x"]),
                Scope::Whole
            )
            .is_empty()
        );
        assert_eq!(
            at(
                &rules,
                &run("c3", &["x"]),
                &run("c3", &["x", "y"]),
                Scope::Whole
            ),
            ["key \"list\""]
        );
        assert_eq!(rules.left_out().len(), 4);
    }

    #[test]
    fn fields_and_keys_can_be_ignored() {
        let mut rules = rules();
        rules.ignored_keys.push(b"stat:*".to_vec());
        rules
            .ignored_fields
            .push((b"job:*".to_vec(), b"at".to_vec()));
        let run = |at: &str, count: &str| {
            let fields = [("at", at), ("n", "1")]
                .map(|(f, v)| (f.as_bytes().to_vec(), v.as_bytes().to_vec()));
            outcome(
                &[
                    ("job:1", None, Value::Pairs(fields.to_vec())),
                    ("stat:x", None, text(count)),
                ],
                "",
            )
        };
        assert!(at(&rules, &run("1", "2"), &run("3", "4"), Scope::Whole).is_empty());
    }

    #[test]
    fn a_shape_is_type_and_size() {
        let mut rules = rules();
        rules.compare = Compare::Shape;
        let of = |items: &[&str]| outcome(&[("l", None, list(items))], "");
        assert!(at(&rules, &of(&["a"]), &of(&["b"]), Scope::Whole).is_empty());
        assert_eq!(
            at(&rules, &of(&["a"]), &of(&["a", "b"]), Scope::Whole).len(),
            1
        );
    }
}
