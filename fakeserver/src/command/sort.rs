//! SORT (sort.c).

use std::cmp::Ordering;
use std::ops::Range;

use super::{
    Access, Args, Caller, Command, CommandResult, ControlCall, Family, Flag, Group, KeySpec, Words,
    WriteCall,
};
use crate::config::Config;
use crate::error::CommandError;
use crate::keyspace::{Event, Keyspace, Typed, Value};
use crate::value::{Blob, Hash, List, ListLimits, Member, StringValue, number};
use crate::wire::{Reply, Request};
use Flag::*;

#[rustfmt::skip]
pub(super) const FAMILY: Family = Family::new(Group::Generic, &[
    //               name       arity  flags                     keys                          handler
    Command::write  ("SORT",    -2,    &[DenyOom, MovableKeys],  KeySpec::Custom(sort_keys),    sort),
    Command::control("SORT_RO", -2,    &[MovableKeys, ReadOnly], KeySpec::Custom(sort_ro_keys), sort_ro).since("7.0.0"),
]);

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] [STORE destination]`: replies
/// with an array of the elements of a list, set or sorted set in order, or of what the GET patterns lead to (null where to
/// nothing); with STORE keeps them as a list and replies with its length.
///
/// Errors: syntax; not an integer; `WRONGTYPE`; an element or weight that is no number, without ALPHA.
fn sort(call: &mut WriteCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let options = Options::parse(args, true, call.reads_any_key)?;
    let sorted = options.run(call.keyspace, key, call.caller)?;
    let Some(destination) = options.store else {
        return Ok(reply(sorted));
    };
    let elements = sorted.into_iter().map(Option::unwrap_or_default);
    // The nodes of a list that SORT makes do not look at `list-max-listpack-size`.
    let limits = ListLimits {
        fill: Config::default().list_max_listpack_size,
        ..ListLimits::of(call.config)
    };
    let list = List::of(elements, limits);
    let len = list.len();
    if len > 0 {
        call.keyspace.set(destination, list.into_value());
        call.keyspace
            .changed(destination, Event::list("sortstore").counting(len));
    } else if call.keyspace.remove(destination).is_some() {
        call.keyspace.changed(destination, Event::generic("del"));
    }
    Ok(Reply::count(len))
}

/// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]`: as [`sort`].
///
/// It is no `read` handler since it changes the encoding of a small sorted set, which is all that it changes.
fn sort_ro(call: &mut ControlCall<'_>) -> CommandResult {
    let mut args = call.args();
    let key = args.next()?;
    let (row, request) = (call.row, call.request);
    let reads_any_key = call.engine.may_read_any_key(call.session, row, request);
    let options = Options::parse(args, false, reads_any_key)?;
    let sorted = options.run(&mut call.engine.keyspace, key, call.caller)?;
    Ok(reply(sorted))
}

fn reply(sorted: Vec<Option<Blob>>) -> Reply {
    let bulk = |element: Option<Blob>| element.map_or(Reply::Null, Reply::Bulk);
    Reply::Array(sorted.into_iter().map(bulk).collect())
}

/// The key to sort, and the last destination; the values of options are no options.
fn sort_keys(request: &Request) -> Vec<(usize, Access)> {
    let (mut at, mut store) = (2, None);
    while let Some(word) = request.get(at) {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        at += if is("LIMIT") {
            3
        } else if is("GET") || is("BY") {
            2
        } else if is("STORE") {
            store = (at + 1 < request.len()).then_some(at + 1).or(store);
            2
        } else {
            1
        };
    }
    let store = store.map(|at| (at, Access::Write));
    sort_ro_keys(request).into_iter().chain(store).collect()
}

fn sort_ro_keys(request: &Request) -> Vec<(usize, Access)> {
    let key = (request.len() > 1).then_some((1, Access::Read));
    key.into_iter().collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Ascending,
    Descending,
}

/// What elements are compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Numbers,
    Texts,
}

#[derive(Debug)]
struct Options<'a> {
    direction: Direction,
    comparison: Comparison,
    offset: i64,
    /// Negative: all.
    count: i64,
    by: Option<&'a [u8]>,
    get: Vec<&'a [u8]>,
    store: Option<&'a [u8]>,
}

/// An element, and what it is compared by.
#[derive(Debug)]
struct Weighed {
    element: Blob,
    weight: Weight,
}

#[derive(Debug)]
enum Weight {
    Number(f64),
    Text(Blob),
    /// The BY pattern leads to nothing.
    Missing,
}

impl<'a> Options<'a> {
    fn parse(
        mut args: Args<'a>,
        may_store: bool,
        reads_any_key: bool,
    ) -> Result<Options<'a>, CommandError> {
        let denied = |option| Err(CommandError::NoPermissionToDereference(option));
        let mut options = Options {
            direction: Direction::Ascending,
            comparison: Comparison::Numbers,
            offset: 0,
            count: -1,
            by: None,
            get: Vec::new(),
            store: None,
        };
        while !args.is_empty() {
            if args.keyword("ASC") {
                options.direction = Direction::Ascending;
            } else if args.keyword("DESC") {
                options.direction = Direction::Descending;
            } else if args.keyword("ALPHA") {
                options.comparison = Comparison::Texts;
            } else if args.len() > 2 && args.keyword("LIMIT") {
                (options.offset, options.count) = (args.integer()?, args.integer()?);
            } else if may_store && args.keyword("STORE") {
                options.store = Some(args.next()?);
            } else if args.keyword("BY") {
                let pattern = args.next()?;
                if pattern.contains(&b'*') && !reads_any_key {
                    return denied("BY");
                }
                options.by = Some(pattern);
            } else if args.keyword("GET") {
                let pattern = args.next()?;
                if !reads_any_key {
                    return denied("GET");
                }
                options.get.push(pattern);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    fn run(
        &self,
        keyspace: &mut Keyspace,
        key: &[u8],
        caller: Caller,
    ) -> Result<Vec<Option<Blob>>, CommandError> {
        if matches!(keyspace.value(key), Some(Value::SortedSet(_))) {
            keyspace.enlarge_sorted_set(key);
        }
        let Some(value) = keyspace.read_any(key) else {
            return Ok(Vec::new());
        };
        let len = match value {
            Value::List(_) | Value::Set(_) | Value::SortedSet(_) => value.len(),
            _ => return Err(CommandError::WrongType),
        };
        let range = self.range(len);
        // A pattern without a star is the same weight for all, so that nothing is to be sorted; but what is stored of a set, or
        // seen by a script, must not depend on its hash table, so Redis sorts it by its texts.
        let by = self.by.filter(|by| by.contains(&b'*'));
        let is_plain = self.by.is_some() && by.is_none();
        let must_not_vary = self.store.is_some() || caller == Caller::Script;
        let is_stored_set = matches!(value, Value::Set(_)) && must_not_vary;
        let elements = if is_plain && !is_stored_set {
            unsorted(value, self.direction, range)
        } else {
            let comparison = if is_plain {
                Comparison::Texts
            } else {
                self.comparison
            };
            let mut elements = weigh(keyspace, elements(value), by, comparison)?;
            elements.sort_by(|a, b| self.compare(a, b));
            let elements = elements.into_iter().map(|weighed| weighed.element);
            elements.skip(range.start).take(range.len()).collect()
        };
        Ok(self.project(keyspace, elements))
    }

    /// The indexes that LIMIT leaves of `len` elements.
    fn range(&self, len: usize) -> Range<usize> {
        let start = (self.offset.max(0) as usize).min(len);
        let count = usize::try_from(self.count).unwrap_or(len);
        start..start.saturating_add(count).min(len)
    }

    fn compare(&self, a: &Weighed, b: &Weighed) -> Ordering {
        let texts = |a: &[u8], b: &[u8]| match self.store {
            // Replies are in the order of the C locale, for which a text ends at its first NUL.
            None => until_nul(a).cmp(until_nul(b)),
            Some(_) => a.cmp(b),
        };
        let order = match (&a.weight, &b.weight) {
            (Weight::Number(one), Weight::Number(other)) => one
                .partial_cmp(other)
                .unwrap_or(Ordering::Equal)
                .then_with(|| a.element.cmp(&b.element)),
            (Weight::Text(one), Weight::Text(other)) => texts(one, other),
            (Weight::Missing, Weight::Missing) => Ordering::Equal,
            (Weight::Missing, _) => Ordering::Less,
            (_, Weight::Missing) => Ordering::Greater,
            (Weight::Number(_), Weight::Text(_)) => Ordering::Less,
            (Weight::Text(_), Weight::Number(_)) => Ordering::Greater,
        };
        match self.direction {
            Direction::Ascending => order,
            Direction::Descending => order.reverse(),
        }
    }

    /// The elements themselves, or what the GET patterns lead to from each.
    fn project(&self, keyspace: &Keyspace, elements: Vec<Blob>) -> Vec<Option<Blob>> {
        if self.get.is_empty() {
            return elements.into_iter().map(Some).collect();
        }
        let mut found = Vec::with_capacity(elements.len());
        for element in &elements {
            let patterns = self.get.iter();
            found.extend(patterns.map(|pattern| dereference(keyspace, pattern, element)));
        }
        found
    }
}

/// All elements, in the value's own order.
fn elements(value: &Value) -> Vec<Blob> {
    match value {
        Value::List(list) => list.iter().cloned().collect(),
        Value::Set(set) => set.iter().map(Member::to_blob).collect(),
        Value::SortedSet(set) => set.iter().map(|item| item.member.clone()).collect(),
        _ => Vec::new(),
    }
}

/// A range of the elements in the value's own order, or in the reverse one; a set has only one.
fn unsorted(value: &Value, direction: Direction, range: Range<usize>) -> Vec<Blob> {
    let (len, reversed) = (value.len(), direction == Direction::Descending);
    let from_front = if reversed {
        len - range.end..len - range.start
    } else {
        range.clone()
    };
    let mut elements: Vec<_> = match value {
        Value::List(list) => list.range(from_front).cloned().collect(),
        Value::SortedSet(set) => {
            let items = set.range(from_front);
            items.map(|item| item.member.clone()).collect()
        }
        Value::Set(set) => {
            let members = set.iter().skip(range.start).take(range.len());
            return members.map(Member::to_blob).collect();
        }
        _ => Vec::new(),
    };
    if reversed {
        elements.reverse();
    }
    elements
}

/// Finds what each element is compared by. Errors: one that is no number.
fn weigh(
    keyspace: &Keyspace,
    elements: Vec<Blob>,
    by: Option<&[u8]>,
    comparison: Comparison,
) -> Result<Vec<Weighed>, CommandError> {
    let weigh = |element: Blob| {
        let text = match by {
            Some(pattern) => dereference(keyspace, pattern, &element),
            None => Some(element.clone()),
        };
        let weight = match (text, comparison) {
            (Some(text), Comparison::Texts) => Weight::Text(text),
            (None, Comparison::Texts) => Weight::Missing,
            (Some(text), Comparison::Numbers) => Weight::Number(parse_weight(&text)?),
            (None, Comparison::Numbers) => Weight::Number(0.0),
        };
        Ok(Weighed { element, weight })
    };
    // All of them are looked at, even behind one that is no number: what is missing is told of.
    let weighed: Vec<_> = elements.into_iter().map(weigh).collect();
    weighed.into_iter().collect()
}

/// Reads what C's `strtod` takes: blanks in front are allowed, nothing at all is 0, a NUL ends it. Errors: anything else.
fn parse_weight(text: &[u8]) -> Result<f64, CommandError> {
    let text = until_nul(text);
    if text.is_empty() {
        return Ok(0.0);
    }
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = text.iter().position(|byte| !is_blank(byte));
    start
        .and_then(|start| number::parse_float(&text[start..]))
        .filter(|value| *value == 0.0 || value.abs() >= f64::MIN_POSITIVE)
        .ok_or(CommandError::SortWeightNotAFloat)
}

fn until_nul(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}

/// What a pattern leads to: `#` to the element, `prefix*suffix` to the string of the key in which the element stands for the
/// star, `prefix*suffix->field` to a hash's field.
fn dereference(keyspace: &Keyspace, pattern: &[u8], element: &Blob) -> Option<Blob> {
    if pattern == b"#" {
        return Some(element.clone());
    }
    let star = memchr::memchr(b'*', pattern)?;
    let (prefix, rest) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = rest.windows(2).position(|pair| pair == b"->");
    let (suffix, field) = match arrow {
        // An arrow at the very end belongs to the key.
        Some(at) if at + 2 < rest.len() => (&rest[..at], Some(&rest[at + 2..])),
        _ => (rest, None),
    };
    let key = [prefix, element, suffix].concat();
    let value = keyspace.read_any(&key)?;
    match field {
        Some(field) => Hash::of(value)?.get(field).cloned(),
        None => StringValue::of(value).map(StringValue::to_blob),
    }
}
