//! A commit in one script: compare, then write everything.

use redis::{Cmd, ServerError, Value, cmd};

use super::{
    Batch, Operation, Replies, Step, Writes, over, protocol_error,
    reply::{self, CORRUPT_MARKER},
    script::{By, COMMIT},
    writes::Lifetime,
};
use crate::{Attempt, Commit, Committed, Document, Seq, Settings, StoreError, Version, codec};

/// What the script puts before the version that it found; the server puts `ERR` before that.
const CONFLICT_MARKER: &str = "STM_CONFLICT:";
/// How often the row is looked at. Each time the script must have met a row that it can not read and that was at the
/// expected version a moment later, so that a second time already means that others keep writing such rows.
const LOOKS_MAX: usize = 2;

/// One `EVALSHA`, and one `EVAL` if the server does not know the script.
///
/// The script compares the version, looks at the type of every key and at every counter and only then writes, so that an
/// error of the server means that nothing was written. It is sent once: the same request again would conflict with its own
/// write. A row that the script can not read (numbers beyond doubles, halves of surrogate pairs, deep nesting) is read here,
/// and the script is told how the row must end.
#[derive(Debug)]
pub struct CommitByScript {
    writes: Writes,
    keys: Vec<Part>,
    /// How the stored row must end, if that is known.
    tail: String,
    looks: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    ByHash,
    BySource,
    Looking,
    Over,
}

/// A key of the commit, and what it must hold.
#[derive(Debug)]
struct Part {
    key: String,
    holds: &'static str,
}

impl CommitByScript {
    /// Of this document, with these effects.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for input that can not be stored without breaking a guarantee.
    pub fn new<D: Document>(
        settings: &Settings,
        document: &D,
        commit: &Commit,
    ) -> Result<Self, StoreError> {
        Writes::new(settings, document, commit).map(Self::of)
    }

    /// Of writes that are spelled already.
    pub fn of(writes: Writes) -> Self {
        // A row that must not be there has no end.
        let tail = writes.tail.at(writes.expected);
        let tail = tail.filter(|_| !writes.is_creation).unwrap_or_default();
        Self {
            tail: tail.to_owned(),
            keys: parts(&writes),
            writes,
            looks: 0,
            state: State::Start,
        }
    }

    /// What is needed to find out later whether it landed, if the call itself does not get to say so.
    pub fn attempt(&self) -> Attempt {
        self.writes.attempt(self.writes.landed())
    }

    fn send(&mut self, state: State) -> Step<Committed> {
        self.state = state;
        Step::Send(Batch::shared([self.call()]))
    }

    fn call(&self) -> Cmd {
        let writes = &self.writes;
        let by = match self.state {
            State::BySource => By::Source,
            _ => By::Hash,
        };
        let keys = self.keys.iter().map(|part| &*part.key);
        // All but the row and its end is short.
        let len = writes.row.len() + self.tail.len() + 512;
        let mut call = COMMIT.call(by, keys, 24, len);
        call.arg(&writes.row).arg(writes.next.get());
        if writes.is_creation {
            call.arg("");
        } else {
            call.arg(writes.expected.get());
        }
        call.arg(&self.tail)
            .arg(usize::from(writes.processed_event_id.is_some()))
            .arg(writes.outbox.len())
            .arg(writes.spawns.len())
            .arg(writes.timers.len());
        // The first step that the trace keeps, as `LTRIM` takes it.
        match (&writes.trace, writes.trace_max) {
            (None, _) => call.arg(""),
            (Some(_), 0) => call.arg("all"),
            (Some(_), steps) => call.arg(-steps),
        };
        if let Some(id) = &writes.processed_event_id {
            call.arg(id);
        }
        for value in writes.outbox.iter().chain(&writes.spawns) {
            call.arg(value);
        }
        for timer in &writes.timers {
            let score = timer.score.as_deref().unwrap_or_default();
            call.arg(score).arg(&timer.member);
        }
        if let Some(step) = &writes.trace {
            call.arg(&step.before).arg(&step.behind);
        }
        if writes.is_indexed || writes.lifetime != Lifetime::Untouched {
            let listed = if writes.is_indexed { &*writes.id } else { "" };
            call.arg(usize::from(writes.is_indexed)).arg(listed);
            match writes.lifetime {
                Lifetime::Untouched => call.arg(""),
                Lifetime::Unlimited => call.arg(0),
                Lifetime::Milliseconds(ms) => call.arg(ms),
            };
        }
        call
    }

    fn answered(&mut self, replies: Replies) -> Step<Committed> {
        let reply = match replies {
            Replies::Received(values) => match <[Value; 1]>::try_from(values) {
                Ok([reply]) => reply,
                Err(_) => return self.unclear("wrong number of replies"),
            },
            Replies::Lost(source) => {
                let error = self.writes.indeterminate(self.writes.landed(), source);
                return self.end(Err(error));
            }
            other => return self.end(Err(other.failure())),
        };
        match reply {
            Value::ServerError(error) => self.refused(&error),
            reply => match self.committed(reply) {
                Some(committed) => self.end(Ok(committed)),
                None => self.unclear("unexpected reply to EVALSHA"),
            },
        }
    }

    /// The version, then the positions of the events and of the spawn intents.
    fn committed(&self, reply: Value) -> Option<Committed> {
        let numbers = reply::items(reply)?;
        let mut numbers = numbers.iter().map(reply::integer);
        let version = numbers.next()??;
        let seqs: Option<Vec<Seq>> = numbers.map(|number| number.map(Seq::new)).collect();
        let mut outbox = seqs?;
        let count = self.writes.outbox.len();
        let is_complete = outbox.len() == count + self.writes.spawns.len();
        if version != self.writes.next.get() || !is_complete {
            return None;
        }
        let spawns = outbox.split_off(count);
        Some(Committed {
            outbox,
            spawns,
            ..self.writes.landed()
        })
    }

    fn refused(&mut self, error: &ServerError) -> Step<Committed> {
        if self.state == State::ByHash && reply::is_no_script(error) {
            return self.send(State::BySource);
        }
        let message = reply::error_text(error);
        if let Some((_, found)) = message.split_once(CONFLICT_MARKER) {
            let found = found.parse().ok().map(Version::new);
            return self.end(Err(self.writes.conflict(found)));
        }
        let Some((_, at)) = message.split_once(CORRUPT_MARKER) else {
            let refusal = reply::refusal(error, "EVALSHA", &self.writes.row_key);
            return self.end(Err(refusal));
        };
        let at = at.parse::<usize>().ok();
        match at.and_then(|at| self.keys.get(at.checked_sub(1)?)) {
            Some(part) if at > Some(1) => {
                let corrupt = StoreError::Corrupt {
                    key: part.key.clone(),
                    field: None,
                    reason: format!("not {}", part.holds),
                };
                self.end(Err(corrupt))
            }
            _ => {
                self.state = State::Looking;
                let row = cmd("GET").arg(&self.writes.row_key).take();
                Step::Send(Batch::shared([row]))
            }
        }
    }

    /// The row that the script could not read: nothing was written, so that the script may be sent again.
    fn looked(&mut self, replies: Replies) -> Step<Committed> {
        self.looks += 1;
        match self.expected_tail(replies) {
            Ok(_) if self.looks > LOOKS_MAX => {
                let conflict = self.writes.conflict(None);
                self.end(Err(conflict))
            }
            Ok(tail) => {
                self.tail = tail;
                self.send(State::ByHash)
            }
            Err(error) => self.end(Err(error)),
        }
    }

    fn expected_tail(&self, replies: Replies) -> Result<String, StoreError> {
        let [row] = replies.harmless()?;
        let row = match reply::accepted(row, "GET", &self.writes.row_key)? {
            // Gone since.
            Value::Nil => return Ok(String::new()),
            row => reply::bytes(row).ok_or_else(|| reply::unexpected("GET"))?,
        };
        let corrupt = |reason: String| self.writes.corrupt(reason);
        let found = codec::decode_version(&row).map_err(corrupt)?;
        if found != self.writes.expected || self.writes.is_creation {
            return Err(self.writes.conflict(Some(found)));
        }
        let tail = std::str::from_utf8(&row).ok().and_then(codec::version_tail);
        tail.map(str::to_owned)
            .ok_or_else(|| corrupt("no `version`".to_owned()))
    }

    fn unclear(&mut self, what: &'static str) -> Step<Committed> {
        let error = self
            .writes
            .indeterminate(self.writes.landed(), protocol_error(what));
        self.end(Err(error))
    }

    fn end(&mut self, result: Result<Committed, StoreError>) -> Step<Committed> {
        self.state = State::Over;
        Step::Done(result)
    }
}

impl Operation for CommitByScript {
    const NAME: &'static str = "commit";

    type Output = Committed;

    fn name(&self) -> &'static str {
        self.writes.name()
    }

    fn expected(&self) -> Option<Version> {
        Some(self.writes.expected)
    }

    fn step(&mut self, replies: Replies) -> Step<Committed> {
        match (self.state, replies) {
            (State::Start, Replies::Start) => self.send(State::ByHash),
            (State::ByHash | State::BySource, replies) => self.answered(replies),
            (State::Looking, replies) => self.looked(replies),
            (State::Start | State::Over, _) => over(),
        }
    }
}

/// The keys that the commit touches, in the order of the script.
fn parts(writes: &Writes) -> Vec<Part> {
    const COUNTER: &str = "an integer that can grow";
    let (keys, id) = (&writes.keys, &*writes.id);
    let part = |key: String, holds| Part { key, holds };
    let mut parts = vec![part(
        writes.row_key.clone(),
        "an object with an integer `version`",
    )];
    // Most commits touch few keys: a name is made for what is touched only.
    if writes.processed_event_id.is_some() {
        parts.push(part(keys.processed(id), "a set"));
    }
    if !writes.outbox.is_empty() {
        parts.push(part(keys.outbox_seq(), COUNTER));
        parts.push(part(keys.outbox(), "a hash"));
    }
    if !writes.spawns.is_empty() {
        parts.push(part(keys.spawns_seq(), COUNTER));
        parts.push(part(keys.spawns(), "a hash"));
    }
    if !writes.timers.is_empty() {
        parts.push(part(keys.timers(), "a sorted set"));
    }
    if writes.trace.is_some() {
        parts.push(part(keys.trace_seq(id), COUNTER));
        parts.push(part(keys.trace(id), "a list"));
    }
    if writes.is_indexed {
        parts.push(part(keys.index(), "a sorted set"));
    }
    if writes.lifetime != Lifetime::Untouched {
        parts.extend(writes.companions().map(|key| part(key, "")));
    }
    parts
}
