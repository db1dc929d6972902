//! Two servers, one program: where do their replies differ?

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::frame::{Frame, printable};
use crate::mutants::{Memory, Mutant};
use crate::program::{CLIENTS, Program, Step, Target};
use crate::raw::{PATIENCE, Raw, Received};
use crate::server::Backend;

/// A key that falls due within a millisecond is due for certain after this.
const PAUSE: Duration = Duration::from_millis(6);

/// A server with the program's connections to it.
#[derive(Debug)]
pub struct Side<'a> {
    backend: &'a Backend,
    clients: Vec<Raw>,
    mutant: Option<(&'static Mutant, Memory)>,
}

impl<'a> Side<'a> {
    /// A server as it is. It is to be empty.
    pub fn new(backend: &'a Backend) -> Side<'a> {
        Side {
            backend,
            clients: (0..CLIENTS).map(|_| backend.raw()).collect(),
            mutant: None,
        }
    }

    /// A server with one fault.
    pub fn mutated(backend: &'a Backend, mutant: &'static Mutant) -> Side<'a> {
        Side {
            mutant: Some((mutant, Memory::new(backend.raw()))),
            ..Side::new(backend)
        }
    }

    fn greet(&mut self, client: usize, protocol: &str) {
        let reply = self.clients[client].call(&["HELLO", protocol]);
        assert!(!reply.is_error(), "HELLO {protocol}: {reply:?}");
    }

    fn reconnect(&mut self, client: usize) {
        self.clients[client] = self.backend.raw();
    }

    fn call(&mut self, step: &Step) -> Received {
        let raw = &mut self.clients[step.client];
        if let Some((mutant, memory)) = &mut self.mutant {
            return mutant.call(raw, memory, step);
        }
        raw.request(&step.words);
        raw.receive(PATIENCE)
    }
}

/// Where two servers differ.
#[derive(Clone, Debug)]
pub struct Difference {
    step: usize,
    /// The program, for whoever is to understand it.
    pub program: Program,
    want: Received,
    got: Received,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = &self.program.steps[self.step];
        let words: Vec<String> = step.words.iter().map(|word| printable(word)).collect();
        writeln!(
            f,
            "command {} of client {}: {}",
            self.step + 1,
            step.client,
            words.join(" ")
        )?;
        writeln!(f, "  wanted ({:?}) {:?}", step.order, shown(&self.want))?;
        writeln!(f, "  got    {:?}", shown(&self.got))?;
        write!(f, "of the program\n{:?}", self.program)
    }
}

fn shown(received: &Received) -> String {
    match received {
        Received::Frame(frame) => printable(&frame.to_bytes()),
        other => format!("{other:?}"),
    }
}

/// Runs a program on both servers, command by command, up to the first difference.
pub fn compare(
    program: &Program,
    reference: &mut Side<'_>,
    subject: &mut Side<'_>,
    coverage: &mut Coverage,
) -> Result<(), Box<Difference>> {
    for client in 0..CLIENTS {
        reference.greet(client, program.protocols[client]);
        subject.greet(client, program.protocols[client]);
    }
    let mut queues: Vec<Vec<&Step>> = vec![Vec::new(); CLIENTS];
    for (at, step) in program.steps.iter().enumerate() {
        let (want, got) = (reference.call(step), subject.call(step));
        let queue = &mut queues[step.client];
        if !same(step, queue, &want, &got) {
            return Err(Box::new(Difference {
                step: at,
                program: program.clone(),
                want,
                got,
            }));
        }
        coverage.note(step, queue, &want);
        follow(step, queue, &want);
        if step.pause {
            std::thread::sleep(PAUSE);
        }
        if step.command == "quit" || want == Received::Closed {
            reference.reconnect(step.client);
            subject.reconnect(step.client);
        }
    }
    Ok(())
}

fn same(step: &Step, queue: &[&Step], want: &Received, got: &Received) -> bool {
    let (Received::Frame(want), Received::Frame(got)) = (want, got) else {
        return want == got && *want == Received::Closed;
    };
    match (executed(step, queue, want), executed(step, queue, got)) {
        (Some(want), Some(got)) => queue
            .iter()
            .zip(want.iter().zip(got))
            .all(|(queued, (want, got))| queued.order.matches(want, got)),
        // An answer that puts the command off is the same for every command.
        _ if *want == queued() => want == got,
        _ => step.order.matches(want, got),
    }
}

/// The replies of the commands that EXEC has run.
fn executed<'f>(step: &Step, queue: &[&Step], reply: &'f Frame) -> Option<&'f [Frame]> {
    match reply {
        Frame::Items(b'*', items) if step.command == "exec" && items.len() == queue.len() => {
            Some(items)
        }
        _ => None,
    }
}

/// Keeps the queue of a transaction, by what the server says of it.
fn follow<'p>(step: &'p Step, queue: &mut Vec<&'p Step>, reply: &Received) {
    match reply {
        Received::Frame(frame) if *frame == queued() => queue.push(step),
        Received::Frame(_)
            if ["exec", "discard", "reset", "quit"].contains(&step.command.as_str()) =>
        {
            queue.clear();
        }
        _ => {}
    }
}

fn queued() -> Frame {
    Frame::Line(b"+QUEUED".to_vec())
}

/// What programs have reached: by command and option, what was replied and how often.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    reached: BTreeMap<(String, &'static str), BTreeMap<String, usize>>,
    succeeded: usize,
    failed: usize,
}

/// Of an error's text so much is told; behind it stands what the client sent.
const ERROR_LEN_MAX: usize = 48;

impl Coverage {
    fn note(&mut self, step: &Step, queue: &[&Step], reply: &Received) {
        let Received::Frame(reply) = reply else {
            return;
        };
        if reply.is_error() {
            self.failed += 1;
        } else {
            self.succeeded += 1;
        }
        self.add(step, reply);
        for (queued, reply) in queue
            .iter()
            .zip(executed(step, queue, reply).unwrap_or_default())
        {
            self.add(queued, reply);
        }
    }

    fn add(&mut self, step: &Step, reply: &Frame) {
        let kind = kind(reply);
        for option in [""].iter().chain(&step.options) {
            let kinds = self
                .reached
                .entry((step.command.clone(), option))
                .or_default();
            *kinds.entry(kind.clone()).or_default() += 1;
        }
    }

    /// Commands that did not fail, of a hundred.
    pub fn success_rate(&self) -> usize {
        100 * self.succeeded / (self.succeeded + self.failed).max(1)
    }

    /// Commands that were compared.
    pub fn commands(&self) -> usize {
        self.succeeded + self.failed
    }

    /// Whether a row and option were reached as they are to be: with a reply that is no error and no `QUEUED`.
    pub fn has(&self, target: &Target) -> bool {
        let reached = self.reached.get(&(target.command.clone(), target.option));
        reached.is_some_and(|kinds| {
            let counts =
                |kind: &String| target.fails || !(kind.starts_with('-') || kind == "queued");
            kinds.keys().any(counts)
        })
    }

    /// A line for each command and option: what was replied, how often.
    pub fn table(&self) -> Vec<String> {
        let line = |((command, option), kinds): (&(String, &str), &BTreeMap<String, usize>)| {
            let kinds: Vec<String> = kinds
                .iter()
                .map(|(kind, n)| format!("{kind} x{n}"))
                .collect();
            format!("{command:<18} {option:<14} {}", kinds.join(", "))
        };
        self.reached.iter().map(line).collect()
    }
}

fn kind(reply: &Frame) -> String {
    match reply {
        reply if *reply == queued() => "queued".to_owned(),
        Frame::Line(line) if line.starts_with(b"-") => {
            printable(&line[..line.len().min(ERROR_LEN_MAX)])
        }
        Frame::Line(line) if matches!(line.as_slice(), b"$-1" | b"*-1" | b"_") => printable(line),
        reply => (reply.kind() as char).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Order;

    fn step(command: &str, order: Order) -> Step {
        Step {
            client: 0,
            words: vec![command.as_bytes().to_vec()],
            order,
            command: command.to_owned(),
            options: Vec::new(),
            pause: false,
            follows: false,
        }
    }

    fn frame(bytes: &str) -> Received {
        Received::Frame(Frame::parse(bytes.as_bytes()).unwrap().unwrap().0)
    }

    #[test]
    fn each_reply_of_a_transaction_is_compared_in_its_commands_order() {
        let (keys, get, exec) = (
            step("keys", Order::Set),
            step("lrange", Order::Exact),
            step("exec", Order::Exact),
        );
        let want = frame("*2\r\n*2\r\n:1\r\n:2\r\n*2\r\n:1\r\n:2\r\n");
        let turned = frame("*2\r\n*2\r\n:2\r\n:1\r\n*2\r\n:1\r\n:2\r\n");
        assert!(same(&exec, &[&keys, &get], &want, &turned));
        assert!(!same(&exec, &[&get, &keys], &want, &turned));
        assert!(!same(&exec, &[&keys, &get], &want, &frame("*-1\r\n")));
    }
}
