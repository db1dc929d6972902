//! Transcripts: `.resp` files of requests and the raw replies that redis-server 7.0.15 gives to them, run on every backend.
//!
//! | line | meaning |
//! |---|---|
//! | `> WORD "WORD" ...` | a request, words quoted as redis-cli does; its reply lines follow, up to a blank line |
//! | `< ` | reads a further reply, which follows, on the current connection |
//! | `~ set`, `~ map`, `~ any`, `~ none` | the reply's items, or pairs, come in any order; only its type counts; there is none yet |
//! | `@b` | goes on on connection `b`; a file begins on `a` |
//! | `! resp2`, `! resp3`, `! flush` | changes the protocol; empties the server |
//! | `# ...` | a comment |
//!
//! Reply lines are as on the wire, each CRLF a line end, with bytes that do not print as `\xHH`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use fakeserver::wire::request::split_words;

use crate::compare::Order;
use crate::frame::Frame;
use crate::raw::{PATIENCE, Raw, Received};
use crate::server::Backend;

/// How long a connection must stay silent to count as blocked.
const SILENCE: Duration = Duration::from_millis(40);

/// Failures shown per file; what follows the first ones is often their consequence.
const FAILURES_MAX: usize = 20;

/// The connection that a file begins on.
const FIRST_CONNECTION: char = 'a';

/// A `.resp` file, taken apart.
#[derive(Clone, Debug)]
pub struct Transcript {
    name: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
struct Step {
    /// Number of the line in the file, and the line.
    at: usize,
    line: String,
    action: Action,
    /// The line that says how the replies are compared, if there is one.
    order_line: Option<String>,
    order: Order,
    want: Vec<Frame>,
}

/// A request of a transcript with all that the server answered to it.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Number of the request's line.
    pub at: usize,
    /// The request.
    pub words: Vec<Vec<u8>>,
    /// Its replies, those included that came later; none if it was still blocked in the end or is answered by silence.
    pub replies: Vec<Frame>,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    /// A comment or a blank line.
    Keep,
    Connection(char),
    Protocol(&'static str),
    Flush,
    Request(Vec<Vec<u8>>),
    Receive,
}

impl Transcript {
    /// Takes a file's text apart. Errors: a line that the format does not know, with its number.
    pub fn parse(name: &str, text: &str) -> Result<Transcript, String> {
        let lines: Vec<&str> = text.lines().collect();
        let mut steps = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            let line = lines[at];
            let number = at + 1;
            let fail = |why: String| format!("{name}:{number}: {why}: {line:?}");
            let action = parse_action(line).ok_or_else(|| fail("not understood".into()))?;
            let mut step = Step {
                at: number,
                line: line.to_owned(),
                action,
                order_line: None,
                order: Order::Exact,
                want: Vec::new(),
            };
            at += 1;
            if matches!(step.action, Action::Request(_) | Action::Receive) {
                if let Some(order) = lines.get(at).and_then(|line| line.strip_prefix("~ ")) {
                    step.order = match order.trim() {
                        "set" => Order::Set,
                        "map" => Order::Map,
                        "any" => Order::Kind,
                        "none" => Order::Silence,
                        _ => return Err(fail(format!("no such order as {order:?}"))),
                    };
                    step.order_line = Some(lines[at].to_owned());
                    at += 1;
                }
                let mut rest = lines[at..].iter().copied();
                while !ends_replies(rest.clone().next()) {
                    let frame = Frame::from_lines(&mut rest).map_err(|error| fail(error.0))?;
                    step.want.push(frame);
                }
                at = lines.len() - rest.len();
            }
            steps.push(step);
        }
        let name = name.to_owned();
        Ok(Transcript { name, steps })
    }

    /// The requests in the file's order.
    pub fn exchanges(&self) -> Vec<Exchange> {
        let mut exchanges: Vec<Exchange> = Vec::new();
        let mut last: BTreeMap<char, usize> = BTreeMap::new();
        let mut current = FIRST_CONNECTION;
        for step in &self.steps {
            match &step.action {
                Action::Connection(name) => current = *name,
                Action::Request(words) => {
                    last.insert(current, exchanges.len());
                    exchanges.push(Exchange {
                        at: step.at,
                        words: words.clone(),
                        replies: step.want.clone(),
                    });
                }
                Action::Receive => {
                    if let Some(exchange) = last.get(&current).and_then(|at| exchanges.get_mut(*at))
                    {
                        exchange.replies.extend(step.want.iter().cloned());
                    }
                }
                Action::Keep | Action::Protocol(_) | Action::Flush => {}
            }
        }
        exchanges
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs the transcript on a fresh server; what differs, one text per difference.
    pub fn run(&self, backend: &Backend) -> Vec<String> {
        let mut failures = Vec::new();
        let mut clients = Clients::new(backend);
        for step in &self.steps {
            let got = match step.order {
                Order::Silence => clients.act(&step.action, Replies::None),
                _ => clients.act(&step.action, Replies::Count(step.want.len())),
            };
            if matches(step, &got) {
                continue;
            }
            failures.push(self.failure(backend, step, &got));
            // Without the reply that was due, all later ones would be taken for others.
            if failures.len() == FAILURES_MAX || !got.iter().all(is_frame) {
                break;
            }
        }
        failures
    }

    /// The transcript's text with the replies that this server gives; a reply that is still right stays as it is written.
    pub fn record(&self, backend: &Backend) -> String {
        let mut text = String::new();
        let mut clients = Clients::new(backend);
        for step in &self.steps {
            let _ = writeln!(text, "{}", step.line);
            let _ = step
                .order_line
                .iter()
                .try_for_each(|line| writeln!(text, "{line}"));
            let replies = match (step.order, step.want.len()) {
                (Order::Silence, _) => Replies::None,
                // Only what was never recorded has to be waited for to its end.
                (_, 0) => Replies::All,
                (_, count) => Replies::Count(count),
            };
            let mut got = clients.act(&step.action, replies);
            if matches(step, &got) {
                got = step.want.iter().cloned().map(Received::Frame).collect();
            }
            for line in got.iter().flat_map(shown) {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }

    fn failure(&self, backend: &Backend, step: &Step, got: &[Received]) -> String {
        let want: Vec<String> = step.want.iter().flat_map(Frame::to_lines).collect();
        let got: Vec<String> = got.iter().flat_map(shown).collect();
        format!(
            "{}:{} on {:?}\n  sent   {}\n  wanted {}{}\n  got    {}",
            self.name,
            step.at,
            backend.kind(),
            step.line,
            step.order_line
                .as_ref()
                .map_or(String::new(), |line| format!("({line}) ")),
            want.join(" | "),
            got.join(" | "),
        )
    }
}

fn parse_action(line: &str) -> Option<Action> {
    if line.is_empty() || line.starts_with("# ") || line == "#" {
        return Some(Action::Keep);
    }
    if let Some(words) = line.strip_prefix("> ") {
        return split_words(words.as_bytes()).map(Action::Request);
    }
    if line == "<" || line == "< " {
        return Some(Action::Receive);
    }
    if let Some(name) = line.strip_prefix('@') {
        let mut letters = name.trim().chars();
        return letters
            .next()
            .filter(|_| letters.next().is_none())
            .map(Action::Connection);
    }
    match line.strip_prefix("! ")?.trim() {
        "resp2" => Some(Action::Protocol("2")),
        "resp3" => Some(Action::Protocol("3")),
        "flush" => Some(Action::Flush),
        _ => None,
    }
}

/// A reply's own first line never has a blank behind its type byte.
fn ends_replies(line: Option<&str>) -> bool {
    line.is_none_or(|line| {
        line.is_empty()
            || line == "#"
            || line == "<"
            || line.starts_with('@')
            || ["> ", "< ", "! ", "# "]
                .iter()
                .any(|start| line.starts_with(start))
    })
}

fn matches(step: &Step, got: &[Received]) -> bool {
    step.want.len() == got.len()
        && step.want.iter().zip(got).all(|(want, got)| match got {
            Received::Frame(got) => step.order.matches(want, got),
            _ => false,
        })
}

fn is_frame(received: &Received) -> bool {
    matches!(received, Received::Frame(_))
}

fn shown(received: &Received) -> Vec<String> {
    match received {
        Received::Frame(frame) => frame.to_lines(),
        other => vec![format!("({other:?})")],
    }
}

/// How many replies a step is to get.
#[derive(Clone, Copy)]
enum Replies {
    /// None; one that comes all the same is answered.
    None,
    /// So many.
    Count(usize),
    /// One, and whatever comes with it.
    All,
}

/// The connections of a run.
struct Clients<'a> {
    backend: &'a Backend,
    open: BTreeMap<char, Raw>,
    current: char,
}

impl Clients<'_> {
    fn new(backend: &Backend) -> Clients<'_> {
        Clients {
            backend,
            open: BTreeMap::new(),
            current: FIRST_CONNECTION,
        }
    }

    fn act(&mut self, action: &Action, replies: Replies) -> Vec<Received> {
        match action {
            Action::Keep => return Vec::new(),
            Action::Connection(name) => {
                self.current = *name;
                return Vec::new();
            }
            Action::Protocol(version) => {
                let reply = self.raw().call(&["HELLO", version]);
                assert!(!reply.is_error(), "HELLO {version}: {reply:?}");
                return Vec::new();
            }
            Action::Flush => {
                self.backend.raw().call(&["FLUSHALL"]);
                return Vec::new();
            }
            Action::Request(words) => self.raw().request(words),
            Action::Receive => {}
        }
        let raw = self.raw();
        match replies {
            Replies::None => until_silence(raw),
            Replies::Count(count) => (0..count).map(|_| raw.receive(PATIENCE)).collect(),
            Replies::All => {
                let mut got = vec![raw.receive(PATIENCE)];
                if got.iter().all(is_frame) {
                    got.extend(until_silence(raw));
                }
                got
            }
        }
    }

    fn raw(&mut self) -> &mut Raw {
        let backend = self.backend;
        self.open
            .entry(self.current)
            .or_insert_with(|| backend.raw())
    }
}

fn until_silence(raw: &mut Raw) -> Vec<Received> {
    let mut got = Vec::new();
    loop {
        match raw.receive(SILENCE) {
            Received::Silence => return got,
            received => {
                let more = is_frame(&received);
                got.push(received);
                if !more {
                    return got;
                }
            }
        }
    }
}
