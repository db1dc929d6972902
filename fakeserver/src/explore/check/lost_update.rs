//! Lost updates in a trace: a client reads, another writes, and the first overwrites what it has not seen.

use std::collections::BTreeMap;

use super::access::{self, Effect, Touch};
use crate::explore::Violation;
use crate::explore::report::Cause;
use crate::explore::schedule::{Act, Lane};
use crate::explore::trace::{Step, Trace, in_words};
use crate::remote::snapshot::quoted;

/// The name of the property.
pub(in crate::explore) const LOST_UPDATE: &str = "no lost updates";

/// The first lost update of a trace.
///
/// It is a warning: a client that overwrites without regard to what it has read loses nothing. A script counts as one step that
/// knows what it overwrites; what it reads is not taken for what its client knows. A transaction that WATCH has aborted wrote
/// nothing.
pub(in crate::explore) fn find(trace: &Trace) -> Result<(), Violation> {
    let mut finder = Finder::new(trace);
    let first = finder.first();
    first.map_err(|lost| Violation::new(LOST_UPDATE, finder.describe(&lost)))
}

/// The same for a reader of the trace: who read, who wrote between, who overwrote.
pub(in crate::explore) fn cause(trace: &Trace) -> Option<Cause> {
    let lost = Finder::new(trace).first().err()?;
    Some(Cause {
        key: quoted(&lost.place.0),
        read: lost.read,
        written: lost.written,
        overwritten: Some(lost.overwritten),
    })
}

/// Steps of a lost update.
struct Lost {
    place: Place,
    read: usize,
    written: usize,
    overwritten: usize,
}

/// A key, or an element of it.
type Place = (Vec<u8>, Option<Vec<u8>>);

#[derive(Clone, Debug)]
struct Write {
    step: usize,
    client: usize,
    place: Place,
}

struct Finder<'t> {
    trace: &'t Trace,
    /// When each client last read a place.
    last_reads: BTreeMap<(usize, Place), usize>,
    writes: Vec<Write>,
    /// Commands that wait for EXEC, by lane.
    queues: BTreeMap<Lane, Vec<usize>>,
}

impl<'t> Finder<'t> {
    fn new(trace: &'t Trace) -> Finder<'t> {
        Finder {
            trace,
            last_reads: BTreeMap::new(),
            writes: Vec::new(),
            queues: BTreeMap::new(),
        }
    }

    fn first(&mut self) -> Result<(), Lost> {
        (0..self.trace.steps.len()).try_for_each(|at| self.step(at))
    }

    fn step(&mut self, at: usize) -> Result<(), Lost> {
        let step = &self.trace.steps[at];
        let client = self.client_of(step.choice.lane);
        if step.choice.act == Act::DropBefore {
            self.queues.remove(&step.choice.lane);
            return Ok(());
        }
        let queued = match access::effect(&step.request) {
            Effect::Begins => {
                self.queues.insert(step.choice.lane, Vec::new());
                return Ok(());
            }
            Effect::Discards => {
                self.queues.remove(&step.choice.lane);
                return Ok(());
            }
            Effect::Commits => self.queues.remove(&step.choice.lane),
            Effect::None => match self.queues.get_mut(&step.choice.lane) {
                Some(queue) => {
                    queue.push(at);
                    return Ok(());
                }
                None => None,
            },
        };
        let touches = match queued {
            Some(queue) => self.committed(step, &queue),
            None => access::touches(&step.request, step.reply.as_ref()),
        };
        if step.choice.act == Act::LoseReply {
            self.queues.remove(&step.choice.lane);
        }
        self.take(at, client, &touches, step.choice.act != Act::LoseReply)
    }

    fn committed(&self, step: &Step, queue: &[usize]) -> Vec<Touch> {
        let Some(redis::Value::Array(replies)) = &step.reply else {
            return Vec::new();
        };
        let commands = queue.iter().map(|at| &self.trace.steps[*at].request);
        commands
            .zip(replies)
            .flat_map(|(request, reply)| access::touches(request, Some(reply)))
            .collect()
    }

    fn take(
        &mut self,
        at: usize,
        client: usize,
        touches: &[Touch],
        heard: bool,
    ) -> Result<(), Lost> {
        for touch in touches.iter().filter(|touch| touch.overwrites) {
            self.check(at, client, touch)?;
        }
        for touch in touches {
            let place = (touch.key.clone(), touch.element.clone());
            if touch.writes {
                self.writes.push(Write {
                    step: at,
                    client,
                    place,
                });
            } else if heard {
                self.last_reads.insert((client, place), at);
            }
        }
        Ok(())
    }

    /// Whether somebody else wrote since this client has read what it overwrites.
    fn check(&self, at: usize, client: usize, touch: &Touch) -> Result<(), Lost> {
        let place = (touch.key.clone(), touch.element.clone());
        let reads = self.last_reads.iter();
        let read = reads
            .filter(|((reader, read), _)| *reader == client && meets(read, &place))
            .map(|(_, step)| *step)
            .max();
        let Some(read) = read else {
            return Ok(());
        };
        let mut since = self
            .writes
            .iter()
            .filter(|write| write.step > read && meets(&write.place, &place));
        let lost = since.clone().rfind(|write| write.client != client);
        // What it has written itself it overwrites without having read it: it does not rely on the read any more.
        let relies = since.all(|write| write.client != client);
        match lost.filter(|_| relies) {
            None => Ok(()),
            Some(lost) => Err(Lost {
                place: lost.place.clone(),
                read,
                written: lost.step,
                overwritten: at,
            }),
        }
    }

    fn describe(&self, lost: &Lost) -> String {
        let (key, element) = &lost.place;
        let mut place = key.escape_ascii().to_string();
        if let Some(element) = element {
            place = format!("{place}, element {}", element.escape_ascii());
        }
        let say = |step: usize| {
            let text = in_words(&self.trace.steps[step].request);
            let text: String = text.chars().take(80).collect();
            let client = self.client_of(self.trace.steps[step].choice.lane);
            let client = Lane::new(client).map_or_else(String::new, |lane| lane.to_string());
            (client, format!("step {step}, {text}"))
        };
        let (reader, read) = say(lost.read);
        let (writer, written) = say(lost.written);
        let (_, overwritten) = say(lost.overwritten);
        format!(
            "{place}: {reader} read it ({read}), {writer} wrote it ({written}), {reader} overwrote that unseen ({overwritten})"
        )
    }

    fn client_of(&self, lane: Lane) -> usize {
        self.trace
            .clients
            .get(lane.index())
            .copied()
            .unwrap_or(lane.index())
    }
}

/// Whether two places overlap: a key is all of its elements.
fn meets(one: &Place, other: &Place) -> bool {
    one.0 == other.0
        && match (&one.1, &other.1) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
}
