//! The trace ring outside of commits.

use redis::{Cmd, cmd};
use serde_json::{Map, Value};

use super::{Batch, Operation, Replies, Step, over, reply, validate};
use crate::{Settings, StoreError, codec};

/// `INCR`, then `RPUSH` and `LTRIM`: adds a step that belongs to no commit. The execution need not exist.
///
/// The step's own `index` is kept if it has one; else it gets the next of the execution.
#[derive(Debug)]
pub struct AppendTrace {
    id: String,
    key: String,
    counter: String,
    step: Map<String, Value>,
    trace_max: i64,
    state: Appending,
}

#[derive(Debug)]
enum Appending {
    Counting,
    Pushing,
    Over,
}

impl AppendTrace {
    /// To the trace of the execution with this id.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for an id that would share a key, or a step nested too deeply.
    pub fn new(
        settings: &Settings,
        id: &str,
        step: &Map<String, Value>,
    ) -> Result<Self, StoreError> {
        validate::execution_id(settings, "execution id", id)?;
        validate::depth("trace step", codec::object_depth(step))?;
        Ok(Self {
            id: id.to_owned(),
            key: settings.keys().trace(id),
            counter: settings.keys().trace_seq(id),
            step: step.clone(),
            trace_max: settings.trace_max_steps(),
            state: Appending::Counting,
        })
    }

    fn counted(&mut self, replies: Replies) -> Result<Batch, StoreError> {
        let [count] = replies.harmless()?;
        let count = reply::accepted(count, "INCR", &self.counter)?;
        let count = reply::integer(&count).ok_or_else(|| reply::unexpected("INCR"))?;
        let index = self
            .step
            .get("index")
            .cloned()
            .unwrap_or_else(|| Value::from(count.saturating_sub(1)));
        let step = codec::encode_trace_step(&self.step, &index);
        let push = cmd("RPUSH").arg(&self.key).arg(step).take();
        Ok(Batch::shared(
            [push].into_iter().chain(trim(&self.key, self.trace_max)),
        ))
    }

    fn pushed(&self, replies: Replies) -> Result<(), StoreError> {
        match replies {
            // Not harmless: a repetition would add the step twice.
            Replies::Lost(source) => Err(StoreError::Indeterminate {
                operation: "append_trace",
                id: self.id.clone(),
                expected: None,
                attempt: None,
                source,
            }),
            Replies::Received(values) => values
                .into_iter()
                .try_for_each(|value| reply::accepted(value, "RPUSH", &self.key).map(drop)),
            other => Err(other.failure()),
        }
    }
}

impl Operation for AppendTrace {
    const NAME: &'static str = "append_trace";

    type Output = ();

    fn step(&mut self, replies: Replies) -> Step<()> {
        match (&self.state, replies) {
            (Appending::Counting, Replies::Start) => {
                Step::Send(Batch::shared([cmd("INCR").arg(&self.counter).take()]))
            }
            (Appending::Counting, replies) => match self.counted(replies) {
                Ok(batch) => {
                    self.state = Appending::Pushing;
                    Step::Send(batch)
                }
                Err(error) => self.end(Err(error)),
            },
            (Appending::Pushing, replies) => {
                let result = self.pushed(replies);
                self.end(result)
            }
            (Appending::Over, _) => over(),
        }
    }
}

impl AppendTrace {
    fn end(&mut self, result: Result<(), StoreError>) -> Step<()> {
        self.state = Appending::Over;
        Step::Done(result)
    }
}

/// The command that keeps the ring at its size; none if it has no limit.
pub(super) fn trim(key: &str, trace_max: i64) -> Option<Cmd> {
    (trace_max != 0).then(|| cmd("LTRIM").arg(key).arg(-trace_max).arg(-1).take())
}

/// `LRANGE`: all steps that the ring still holds, in the order of the list.
#[derive(Debug)]
pub struct ReadTrace {
    key: String,
}

impl ReadTrace {
    /// Of the execution with this id.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for an id whose trace would be another's counter.
    pub fn new(settings: &Settings, id: &str) -> Result<Self, StoreError> {
        validate::execution_id(settings, "execution id", id)?;
        Ok(Self {
            key: settings.keys().trace(id),
        })
    }
}

impl Operation for ReadTrace {
    const NAME: &'static str = "read_trace";

    type Output = Vec<Map<String, Value>>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        if let Replies::Start = replies {
            return Step::Send(Batch::shared([cmd("LRANGE")
                .arg(&self.key)
                .arg(0)
                .arg(-1)
                .take()]));
        }
        Step::Done(replies.harmless().and_then(|[steps]| {
            let steps = reply::accepted(steps, "LRANGE", &self.key)?;
            let steps = reply::items(steps).ok_or_else(|| reply::unexpected("LRANGE"))?;
            let decode = |step| {
                let step = reply::bytes(step).ok_or_else(|| reply::unexpected("LRANGE"))?;
                codec::decode_trace_step(&self.key, &step)
            };
            steps.into_iter().map(decode).collect()
        }))
    }
}
