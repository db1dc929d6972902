//! [`Form`]: a command's grammar, taken apart.

use super::Stage;
use crate::compare::Order;

/// A command and what its arguments look like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub name: &'static str,
    pub grammar: &'static str,
    /// How replies that are not errors are compared.
    pub order: Order,
    /// How often it is drawn, against the others.
    pub weight: u32,
    /// What it leaves behind is random: its first key is deleted next.
    pub then_delete: bool,
    /// It runs the command that is among its arguments, and answers as that does.
    pub runs: bool,
    /// It can only fail here.
    pub fails: bool,
    /// The stage on which it is drawn; those of the plain one are drawn everywhere.
    pub stage: Stage,
    /// Why it is never sent.
    pub silent: Option<&'static str>,
}

/// The least weight.
pub(super) const RARE: u32 = 1;

/// A command whose reply is compared byte by byte.
pub(super) const fn form(name: &'static str, grammar: &'static str) -> Form {
    Form {
        name,
        grammar,
        order: Order::Exact,
        weight: 4,
        then_delete: false,
        runs: false,
        fails: false,
        stage: Stage::Plain,
        silent: None,
    }
}

/// A command that is never sent, and why.
pub(super) const fn silent(name: &'static str, reason: &'static str) -> Form {
    let mut form = form(name, "");
    form.silent = Some(reason);
    form
}

impl Form {
    pub(super) const fn order(mut self, order: Order) -> Form {
        self.order = order;
        self
    }

    pub(super) const fn rare(mut self) -> Form {
        self.weight = RARE;
        self
    }

    pub(super) const fn often(mut self) -> Form {
        self.weight = 16;
        self
    }

    pub(super) const fn then_delete(mut self) -> Form {
        self.then_delete = true;
        self
    }

    pub(super) const fn runs(mut self) -> Form {
        self.runs = true;
        self
    }

    /// It is drawn where keyspace events and messages are heard.
    pub(super) const fn notified(mut self) -> Form {
        self.stage = Stage::Notified;
        self
    }

    /// It is drawn where connections block for good.
    pub(super) const fn blocking(mut self) -> Form {
        self.stage = Stage::Blocking;
        self
    }

    pub(super) const fn fails(mut self) -> Form {
        self.fails = true;
        self
    }
}

/// A part of a grammar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// A word that stands for itself.
    Literal(&'static str),
    /// A word that is drawn.
    Slot(&'static str),
    /// One of several sequences; an empty one stands for what may be left out.
    Choice(Vec<Vec<Part>>),
    /// One to three times the sequence.
    Repeat(Vec<Part>),
}

/// Takes a grammar apart. Panics if it is not well-formed: it is part of the source.
pub(super) fn parse(grammar: &'static str) -> Vec<Part> {
    let mut tokens = tokens(grammar).into_iter().peekable();
    let mut choices = parse_choices(&mut tokens, grammar);
    assert!(
        tokens.next().is_none() && choices.len() == 1,
        "unbalanced: {grammar}"
    );
    choices.remove(0)
}

type Tokens = std::iter::Peekable<std::vec::IntoIter<&'static str>>;

/// Sequences separated by `|`, up to a closing bracket.
fn parse_choices(tokens: &mut Tokens, grammar: &str) -> Vec<Vec<Part>> {
    let mut choices = vec![Vec::new()];
    while let Some(token) = tokens.peek().copied() {
        if matches!(token, ")" | "]" | "}") {
            break;
        }
        tokens.next();
        let part = match token {
            "|" => {
                choices.push(Vec::new());
                continue;
            }
            "(" => Part::Choice(parse_choices(tokens, grammar)),
            "[" => {
                let mut inner = parse_choices(tokens, grammar);
                // The empty one first: it is the simplest, so programs shrink towards it.
                inner.insert(0, Vec::new());
                Part::Choice(inner)
            }
            "{" => Part::Repeat(parse_choices(tokens, grammar).concat()),
            word if word.starts_with(|c: char| c.is_ascii_lowercase()) => Part::Slot(word),
            word => Part::Literal(word),
        };
        if matches!(token, "(" | "[" | "{") {
            assert!(tokens.next().is_some(), "unbalanced: {grammar}");
        }
        if let Some(sequence) = choices.last_mut() {
            sequence.push(part);
        }
    }
    choices
}

fn tokens(grammar: &'static str) -> Vec<&'static str> {
    let mut tokens = Vec::new();
    for word in grammar.split_whitespace() {
        let mut rest = word;
        while !rest.is_empty() {
            let is_mark = |c: char| "()[]{}|".contains(c);
            let len = match rest.find(is_mark) {
                Some(0) => 1,
                Some(at) => at,
                None => rest.len(),
            };
            tokens.push(&rest[..len]);
            rest = &rest[len..];
        }
    }
    tokens
}

/// Words of a grammar that stand for themselves: the options that are to be covered.
pub(super) fn literals(parts: &[Part], out: &mut Vec<&'static str>) {
    for part in parts {
        match part {
            Part::Literal(word) => out.push(word),
            Part::Slot(_) => {}
            Part::Choice(choices) => choices.iter().for_each(|parts| literals(parts, out)),
            Part::Repeat(parts) => literals(parts, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grammar_is_taken_apart() {
        let parts = parse("key [EX secs | KEEPTTL] {field value} (A | B)");
        assert_eq!(
            parts,
            [
                Part::Slot("key"),
                Part::Choice(vec![
                    vec![],
                    vec![Part::Literal("EX"), Part::Slot("secs")],
                    vec![Part::Literal("KEEPTTL")],
                ]),
                Part::Repeat(vec![Part::Slot("field"), Part::Slot("value")]),
                Part::Choice(vec![vec![Part::Literal("A")], vec![Part::Literal("B")]]),
            ]
        );
    }
}
