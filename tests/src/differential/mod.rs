//! Two servers, one program: where do their replies differ?
//!
//! Each server runs the whole program on its own ([`Side`]); what its connections saw ([`Trace`]) is compared afterwards.

mod coverage;
mod remains;
mod side;
mod trace;

use std::fmt;

use crate::frame::{Frame, printable};
use crate::program::{CLIENTS, Program, Step};
use crate::raw::Received;

pub use coverage::Coverage;
pub use remains::{Remains, exchange};
pub use side::Side;
pub use trace::{Seen, Trace, What};

/// Where two servers differ.
#[derive(Clone, Debug)]
pub struct Difference {
    step: usize,
    client: usize,
    /// The program, for whoever is to understand it.
    pub program: Program,
    want: Option<What>,
    got: Option<What>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, order) = match self.program.steps.get(self.step) {
            Some(step) => {
                let words: Vec<String> = step.words.iter().map(|word| printable(word)).collect();
                (words.join(" "), format!("{:?}", step.order))
            }
            None => ("(the end)".to_owned(), "Exact".to_owned()),
        };
        writeln!(
            f,
            "connection {}, command {}: {words}",
            self.client,
            self.step + 1,
        )?;
        writeln!(f, "  wanted ({order}) {:?}", shown(self.want.as_ref()))?;
        writeln!(f, "  got    {:?}", shown(self.got.as_ref()))?;
        write!(f, "of the program\n{:?}", self.program)
    }
}

fn shown(what: Option<&What>) -> String {
    match what {
        None => "nothing".to_owned(),
        Some(What::Received(Received::Frame(frame))) => printable(&frame.to_bytes()),
        Some(What::Received(other)) => format!("{other:?}"),
        Some(What::Skipped) => "the connection was still blocked".to_owned(),
        Some(What::Waits) => "still blocked at the end".to_owned(),
    }
}

/// Finds the first difference of what two servers said to a program.
pub fn compare(
    program: &Program,
    want: &Trace,
    got: &Trace,
    coverage: &mut Coverage,
) -> Result<(), Box<Difference>> {
    let differences = (0..CLIENTS).filter_map(|client| {
        let (want, got) = (&want.streams[client], &got.streams[client]);
        let (step, want, got) = compare_streams(program, want, got, coverage)?;
        Some(Difference {
            step,
            client,
            program: program.clone(),
            want,
            got,
        })
    });
    // Later ones are mostly its consequences.
    match differences.min_by_key(|difference| difference.step) {
        Some(difference) if !difference.is_owed_to_errno() => Err(Box::new(difference)),
        _ => Ok(()),
    }
}

/// What `SORT` says of elements that are no numbers.
const NO_NUMBERS: &[u8] = b"-ERR One or more scores can't be converted into double";

impl Difference {
    /// Whether redis-server took an error that something before it had left behind for one of its own: `sortCommandGeneric`
    /// looks at `errno` and does not clear it, so that numbers are refused after a script has read `1e400`. What comes of that in
    /// the rest of the program is no fault of the other side either.
    fn is_owed_to_errno(&self) -> bool {
        let Some(What::Received(Received::Frame(want))) = &self.want else {
            return false;
        };
        let Some(What::Received(Received::Frame(got))) = &self.got else {
            return false;
        };
        let is = |step: &Step| step.command == "sort" || step.command == "sort_ro";
        let step = self.program.steps.get(self.step);
        let (wants, gots): (Vec<&Frame>, Vec<&Frame>) = match (want, got) {
            (Frame::Items(b'*', wants), Frame::Items(b'*', gots)) if wants.len() == gots.len() => {
                let sorts = self.program.steps.iter().take(self.step).any(is);
                if !sorts || step.is_none_or(|step| step.command != "exec") {
                    return false;
                }
                let pairs = wants.iter().zip(gots);
                pairs.filter(|(want, got)| want != got).unzip()
            }
            _ if step.is_some_and(is) => (vec![want], vec![got]),
            _ => return false,
        };
        let refuses = |want: &&Frame| matches!(want, Frame::Line(line) if line == NO_NUMBERS);
        wants.first().is_some_and(refuses) && gots.first().is_some_and(|got| is_sorted_numbers(got))
    }
}

/// Whether this is what `SORT` says of numbers, or how many it has stored.
fn is_sorted_numbers(reply: &Frame) -> bool {
    let is_number = |item: &Frame| {
        let bytes = item.to_bytes();
        let text = String::from_utf8_lossy(&bytes);
        let word = text.trim_end().rsplit("\r\n").next().unwrap_or_default();
        word.parse::<f64>().is_ok()
    };
    match reply {
        Frame::Items(b'*', items) => items.iter().all(is_number),
        Frame::Line(line) => line.starts_with(b":"),
        _ => false,
    }
}

/// Where two streams of one connection differ: the step and what either side saw there.
fn compare_streams(
    program: &Program,
    want: &[Seen],
    got: &[Seen],
    coverage: &mut Coverage,
) -> Option<(usize, Option<What>, Option<What>)> {
    let mut queue: Vec<&Step> = Vec::new();
    for at in 0..want.len().max(got.len()) {
        let (Some(wanted), Some(found)) = (want.get(at), got.get(at)) else {
            let seen = want.get(at).or(got.get(at))?;
            let what = |stream: &[Seen]| stream.get(at).map(|seen| seen.what.clone());
            return Some((seen.step, what(want), what(got)));
        };
        let same = match (&wanted.what, &found.what) {
            (What::Received(Received::Frame(want)), What::Received(Received::Frame(got))) => {
                let step = program.steps.get(wanted.step);
                let same = match step {
                    Some(step) if !want.is_message() => {
                        same(step, &queue, want, got)
                            || is_pushed_out(program, wanted.step, want, got)
                    }
                    _ => want == got,
                };
                if let Some(step) = step.filter(|_| same && !want.is_message()) {
                    coverage.note(step, &queue, want);
                    follow(step, &mut queue, want);
                }
                same
            }
            (want, got) => want == got,
        };
        if !same {
            let (want, got) = (wanted.what.clone(), found.what.clone());
            return Some((wanted.step, Some(want), Some(got)));
        }
        if wanted.what == What::Received(Received::Closed) {
            queue.clear();
        }
    }
    None
}

fn same(step: &Step, queue: &[&Step], want: &Frame, got: &Frame) -> bool {
    match (executed(step, queue, want), executed(step, queue, got)) {
        (Some(wanted), Some(found)) => {
            messages(want) == messages(got)
                && queue
                    .iter()
                    .zip(wanted.iter().zip(found))
                    .all(|(queued, (want, got))| queued.order.matches(want, got))
        }
        // An answer that puts the command off is the same for every command.
        _ if *want == queued() => want == got,
        _ => step.order.matches(want, got),
    }
}

/// Whether these are the same replies of a transaction in which messages take the places of replies, for a command that has
/// several (`PUNSUBSCRIBE`): what they push out comes behind EXEC's array. Whose a reply is cannot be told then.
fn is_pushed_out(program: &Program, at: usize, want: &Frame, got: &Frame) -> bool {
    let Some(exec) = program.steps.get(at).filter(|step| step.command == "exec") else {
        return false;
    };
    let before = program.steps.iter().take(at).rev();
    let queued: Vec<&Step> = before
        .filter(|step| step.client == exec.client)
        .take_while(|step| step.command != "multi")
        .collect();
    let fits = |want: &Frame, got: &Frame| {
        let may_differ = || queued.iter().any(|one| one.order.matches(want, got));
        want == got || !want.is_message() && may_differ()
    };
    match (want, got) {
        (Frame::Items(b'*', wants), Frame::Items(b'*', gots)) => {
            let has_pushes = wants
                .iter()
                .any(|item| matches!(item, Frame::Items(b'>', _)));
            let mut pairs = wants.iter().zip(gots);
            has_pushes && wants.len() == gots.len() && pairs.all(|(want, got)| fits(want, got))
        }
        _ => fits(want, got),
    }
}

/// The replies of the commands that EXEC has run.
fn executed<'f>(step: &Step, queue: &[&Step], reply: &'f Frame) -> Option<Vec<&'f Frame>> {
    let Frame::Items(b'*', items) = reply else {
        return None;
    };
    let own: Vec<&Frame> = items.iter().filter(|item| !item.is_message()).collect();
    (step.command == "exec" && own.len() == queue.len()).then_some(own)
}

/// The messages in the middle of a reply, each with its place.
fn messages(reply: &Frame) -> Vec<(usize, &Frame)> {
    let Frame::Items(_, items) = reply else {
        return Vec::new();
    };
    let all = items.iter().enumerate();
    all.filter(|(_, item)| item.is_message()).collect()
}

/// Keeps the queue of a transaction, by what the server says of it.
fn follow<'p>(step: &'p Step, queue: &mut Vec<&'p Step>, reply: &Frame) {
    if *reply == queued() {
        queue.push(step);
    } else if ["exec", "discard", "reset", "quit"].contains(&step.command.as_str()) {
        queue.clear();
    }
}

fn queued() -> Frame {
    Frame::Line(b"+QUEUED".to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Order;

    fn step(command: &str, order: Order) -> Step {
        Step {
            order,
            command: command.to_owned(),
            ..Step::plain(0, vec![command.as_bytes().to_vec()])
        }
    }

    fn frame(bytes: &str) -> Frame {
        Frame::parse(bytes.as_bytes()).unwrap().unwrap().0
    }

    fn seen(step: usize, bytes: &str) -> Seen {
        let what = What::Received(Received::Frame(frame(bytes)));
        Seen { step, what }
    }

    #[test]
    fn a_reply_that_messages_have_pushed_out_of_its_array_is_compared_in_its_commands_order() {
        let program = |order| Program {
            protocols: ["3"; CLIENTS],
            steps: vec![
                step("multi", Order::Exact),
                step("punsubscribe", Order::Exact),
                step("client|list", order),
                step("exec", Order::Exact),
            ],
        };
        let trace = |bytes: &str| {
            let mut trace = Trace::default();
            let message = ">3\r\n$12\r\npunsubscribe\r\n$1\r\nn\r\n:0\r\n";
            let items = format!("*2\r\n{message}{message}");
            trace.streams[0].extend([seen(3, &items), seen(3, message), seen(3, bytes)]);
            trace
        };
        let (want, got) = (trace("$4\r\nid=1\r\n"), trace("$4\r\nid=2\r\n"));
        let mut coverage = Coverage::default();
        assert!(compare(&program(Order::Kind), &want, &got, &mut coverage).is_ok());
        assert!(compare(&program(Order::Exact), &want, &got, &mut coverage).is_err());
        // In the array behind the messages it is the same.
        let inside = |bytes: &str| {
            let mut trace = Trace::default();
            let message = ">3\r\n$12\r\npunsubscribe\r\n$1\r\nn\r\n:0\r\n";
            trace.streams[0].push(seen(3, &format!("*2\r\n{message}{bytes}")));
            trace
        };
        let (want, got) = (inside("$4\r\nid=1\r\n"), inside("$4\r\nid=2\r\n"));
        assert!(compare(&program(Order::Kind), &want, &got, &mut coverage).is_ok());
        assert!(compare(&program(Order::Exact), &want, &got, &mut coverage).is_err());
    }

    #[test]
    fn numbers_that_are_refused_for_an_old_error_are_no_difference() {
        let refusal = "-ERR One or more scores can't be converted into double\r\n";
        let numbers = "*2\r\n$1\r\n1\r\n$3\r\n2.5\r\n";
        let differs = |steps: Vec<Step>, at: usize, want: &str, got: &str| {
            let program = Program {
                protocols: ["2"; CLIENTS],
                steps,
            };
            let trace = |bytes: &str| {
                let mut trace = Trace::default();
                trace.streams[0].push(seen(at, bytes));
                trace
            };
            let mut coverage = Coverage::default();
            compare(&program, &trace(want), &trace(got), &mut coverage).is_err()
        };
        let sort = || vec![step("sort", Order::Exact)];
        assert!(!differs(sort(), 0, refusal, numbers));
        assert!(!differs(sort(), 0, refusal, ":2\r\n"));
        // Words are no numbers, other errors are others, and so are other commands.
        let words = "*2\r\n$1\r\n1\r\n$3\r\ntwo\r\n";
        assert!(differs(sort(), 0, refusal, words));
        assert!(differs(sort(), 0, numbers, refusal));
        assert!(differs(sort(), 0, "-ERR syntax error\r\n", numbers));
        assert!(differs(
            vec![step("lrange", Order::Exact)],
            0,
            refusal,
            numbers
        ));
        // In a transaction the replies before it count all the same.
        let steps = || vec![step("sort_ro", Order::Exact), step("exec", Order::Exact)];
        let executed = |first: &str, reply: &str| format!("*2\r\n{first}{reply}");
        let want = executed("+OK\r\n", refusal);
        assert!(!differs(steps(), 1, &want, &executed("+OK\r\n", numbers)));
        assert!(differs(steps(), 1, &want, &executed("+NO\r\n", numbers)));
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

    #[test]
    fn a_missing_push_a_turned_order_and_a_longer_wait_are_differences() {
        let program = Program {
            protocols: ["2"; CLIENTS],
            steps: vec![step("get", Order::Exact)],
        };
        let push = |text: &str| seen(0, &format!(">2\r\n+{text}\r\n:1\r\n"));
        let whole = vec![push("a"), push("b"), seen(0, ":1\r\n")];
        let found = |got: &[Seen]| {
            compare_streams(&program, &whole, got, &mut Coverage::default()).is_some()
        };
        assert!(!found(&whole));
        assert!(found(&whole[..2]));
        assert!(found(&whole[1..]));
        assert!(found(&[push("b"), push("a"), seen(0, ":1\r\n")]));
        assert!(found(&[push("a"), push("b"), seen(0, ":2\r\n")]));
        let waits = Seen {
            step: 0,
            what: What::Waits,
        };
        assert!(found(&[push("a"), push("b"), waits]));
    }
}
