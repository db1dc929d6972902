//! A request's words walked along its command's [`Syntax`]: which of the ways to use the command it shows.
//!
//! The walk takes every word, or the request counts for nothing. A word counts as an option only where the option may stand, so
//! a value that is spelled like a token counts as the value. Where several readings take all the words, the first counts: tokens
//! go before values, and repetitions are as few as can be. Options that stand side by side come in any order, as in Redis.

use std::collections::BTreeSet;

use super::syntax::{Kind, Node, Syntax, Usage};

/// The ways to use a command that a request shows, or nothing if its words do not follow the syntax. `words` are those behind
/// the command's name.
pub fn walk(syntax: &Syntax, words: &[Vec<u8>]) -> Option<BTreeSet<Usage>> {
    let mut start = Reading::default();
    start.used.insert(Usage::Called);
    if syntax.open {
        return Some(start.used);
    }
    let readings = Walk { words }.sequence(&syntax.nodes, start);
    readings
        .into_iter()
        .find(|reading| reading.at == words.len())
        .map(|reading| reading.used)
}

/// How far a walk has come, and what it met.
#[derive(Clone, Debug, Default)]
struct Reading {
    at: usize,
    used: BTreeSet<Usage>,
    /// The number of keys that the words have announced.
    numkeys: Option<usize>,
}

impl Reading {
    fn with(mut self, usage: Usage) -> Reading {
        self.used.insert(usage);
        self
    }
}

struct Walk<'a> {
    words: &'a [Vec<u8>],
}

impl Walk<'_> {
    /// All readings of arguments one after the other, the most likely first.
    fn sequence(&self, nodes: &[Node], from: Reading) -> Vec<Reading> {
        let mut readings = vec![from];
        let mut rest = nodes;
        while let Some((first, others)) = rest.split_first() {
            let free = rest.iter().take_while(|node| node.is_free()).count();
            if free == 0 {
                readings = each(readings, |reading| self.in_place(first, reading));
                rest = others;
                continue;
            }
            let (run, others) = rest.split_at(free);
            readings = each(readings, |reading| self.any_order(run, reading));
            rest = others;
        }
        readings
    }

    /// Readings of an argument at its place; it may be left out.
    fn in_place(&self, node: &Node, from: Reading) -> Vec<Reading> {
        let mut readings = self.present(node, from.clone());
        if node.optional {
            readings.push(from.with(Usage::LeftOut(node.id)));
        }
        readings
    }

    /// Readings of options in any order, of which each may be left out.
    fn any_order(&self, run: &[Node], from: Reading) -> Vec<Reading> {
        let mut readings = Vec::new();
        for node in run {
            let again = from.used.contains(&Usage::Given(node.id));
            for mut reading in self.present(node, from.clone()) {
                if again && node.multiple {
                    reading.used.insert(Usage::Repeated(node.id));
                }
                readings.extend(self.any_order(run, reading));
            }
        }
        let end = run.iter().fold(from, |reading, node| {
            if reading.used.contains(&Usage::Given(node.id)) {
                reading
            } else {
                reading.with(Usage::LeftOut(node.id))
            }
        });
        readings.push(end);
        readings
    }

    /// Readings of an argument that is there.
    fn present(&self, node: &Node, from: Reading) -> Vec<Reading> {
        let readings = match (&node.token, node.multiple) {
            (_, false) => self.once(node, from),
            (Some(token), true) if !node.multiple_token => match self.token(token, from) {
                Some(reading) => self.repeated(reading, |reading| self.value(node, reading), node),
                None => Vec::new(),
            },
            (_, true) => self.repeated(from, |reading| self.once(node, reading), node),
        };
        each(readings, |reading| {
            vec![reading.with(Usage::Given(node.id))]
        })
    }

    /// Readings of one repetition after the other, the shortest first; of keys as many as were announced.
    fn repeated(
        &self,
        from: Reading,
        once: impl Fn(Reading) -> Vec<Reading>,
        node: &Node,
    ) -> Vec<Reading> {
        let announced = match node.kind {
            Kind::Key => from.numkeys,
            _ => None,
        };
        let max = announced.unwrap_or(self.words.len());
        let mut readings = Vec::new();
        let mut last = vec![from];
        for count in 1..=max {
            last = each(last, |reading| {
                let at = reading.at;
                let mut next = once(reading);
                next.retain(|next| next.at > at);
                next
            });
            if count > 1 {
                last = each(last, |reading| vec![reading.with(Usage::Repeated(node.id))]);
            }
            if last.is_empty() {
                break;
            }
            if announced.is_none_or(|announced| announced == count) {
                readings.extend(last.iter().cloned());
            }
        }
        readings
    }

    fn once(&self, node: &Node, from: Reading) -> Vec<Reading> {
        match &node.token {
            Some(token) => match self.token(token, from) {
                Some(reading) => self.value(node, reading),
                None => Vec::new(),
            },
            None => self.value(node, from),
        }
    }

    fn token(&self, token: &str, mut from: Reading) -> Option<Reading> {
        let word = self.words.get(from.at)?;
        from.at += 1;
        word.eq_ignore_ascii_case(token.as_bytes()).then_some(from)
    }

    /// Readings of an argument without its token.
    fn value(&self, node: &Node, mut from: Reading) -> Vec<Reading> {
        match &node.kind {
            Kind::Token => vec![from],
            Kind::Block(nodes) => match nodes.as_slice() {
                [first, second] if first.multiple && second.multiple => {
                    self.in_pairs(first, second, from)
                }
                nodes => self.sequence(nodes, from),
            },
            Kind::OneOf(branches) => {
                let readings = branches
                    .iter()
                    .flat_map(|branch| self.present(branch, from.clone()));
                readings.collect()
            }
            Kind::Key | Kind::Text | Kind::Number => {
                let Some(word) = self.words.get(from.at) else {
                    return Vec::new();
                };
                if matches!(node.kind, Kind::Number) && !is_number(word) {
                    return Vec::new();
                }
                if node.name == "numkeys" {
                    from.numkeys = std::str::from_utf8(word)
                        .ok()
                        .and_then(|word| word.parse().ok());
                }
                from.at += 1;
                vec![from]
            }
        }
    }

    /// Two arguments that are repeated equally often, one kind behind the other: the keys and IDs of XREAD.
    fn in_pairs(&self, first: &Node, second: &Node, from: Reading) -> Vec<Reading> {
        let start = from.at;
        let firsts = self.present(first, from);
        each(firsts, |reading| {
            let end = reading.at + (reading.at - start);
            let mut readings = self.present(second, reading);
            readings.retain(|reading| reading.at == end);
            readings
        })
    }
}

fn each(readings: Vec<Reading>, next: impl Fn(Reading) -> Vec<Reading>) -> Vec<Reading> {
    readings.into_iter().flat_map(next).collect()
}

/// A number as some command takes it: also infinite, `(1.5` for a range without its end, `#3` for an offset in whole integers.
fn is_number(word: &[u8]) -> bool {
    let word = match word {
        [b'(' | b'#', digits @ ..] => digits,
        word => word,
    };
    std::str::from_utf8(word).is_ok_and(|word| word.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(syntax: &Syntax, request: &str) -> Option<Vec<String>> {
        let words: Vec<Vec<u8>> = request
            .split_whitespace()
            .map(|word| word.as_bytes().to_vec())
            .collect();
        let used = walk(syntax, &words)?;
        let choices = syntax.choices();
        let shown = choices
            .iter()
            .filter(|choice| used.contains(&choice.usage) && choice.usage != Usage::Called);
        Some(shown.map(|choice| choice.label.clone()).collect())
    }

    #[test]
    fn a_value_that_is_spelled_like_a_token_is_the_value() {
        let set = Syntax::parse(
            &json!([
                {"name": "key", "type": "key"},
                {"name": "value", "type": "string"},
                {"name": "get", "type": "pure-token", "token": "GET", "flags": ["optional"]},
                {"name": "expiration", "type": "oneof", "flags": ["optional"], "arguments": [
                    {"name": "seconds", "type": "integer", "token": "EX"},
                    {"name": "keepttl", "type": "pure-token", "token": "KEEPTTL"}]},
            ]),
            -3,
        )
        .unwrap();
        let found = |request| shown(&set, request);
        let without = vec![
            "without GET".to_owned(),
            "without [EX seconds|KEEPTTL]".into(),
        ];
        assert_eq!(found("GET KEEPTTL"), Some(without));
        assert_eq!(
            found("k v keepttl get"),
            Some(vec!["GET".into(), "KEEPTTL".into()])
        );
        assert_eq!(
            found("k v EX 1"),
            Some(vec!["without GET".into(), "EX seconds".into()])
        );
        assert_eq!(found("k v EX GET"), None);
        assert_eq!(found("k"), None);
    }

    #[test]
    fn keys_are_as_many_as_announced_and_ids_as_many_as_keys() {
        let eval = json!([
            {"name": "numkeys", "type": "integer"},
            {"name": "key", "type": "key", "flags": ["optional", "multiple"]},
            {"name": "arg", "type": "string", "flags": ["optional", "multiple"]},
        ]);
        let eval = Syntax::parse(&eval, -2).unwrap();
        assert_eq!(
            shown(&eval, "1 a b"),
            Some(vec!["[key]".into(), "[arg]".into()])
        );
        assert_eq!(
            shown(&eval, "0 a b"),
            Some(vec![
                "without [key]".into(),
                "[arg]".into(),
                "[arg] ...".into()
            ])
        );
        let streams = json!([{"name": "streams", "type": "block", "token": "STREAMS", "arguments": [
            {"name": "key", "type": "key", "flags": ["multiple"]},
            {"name": "id", "type": "string", "flags": ["multiple"]}]}]);
        let streams = Syntax::parse(&streams, -3).unwrap();
        let twice = ["STREAMS key ...", "STREAMS id ..."];
        assert_eq!(
            shown(&streams, "STREAMS a b 0 0"),
            Some(twice.map(str::to_owned).to_vec())
        );
        assert_eq!(shown(&streams, "STREAMS a b 0"), None);
    }
}
