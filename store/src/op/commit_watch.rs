//! A commit with effects: counters first, then the row under `WATCH`, then all writes in one transaction.

use redis::{Cmd, Value, cmd};

use super::{
    Batch, Operation, Replies, Step, Writes, over, protocol_error, reply, trace, writes::Lifetime,
};
use crate::{
    Attempt, Commit, Committed, Document, FailedCommand, Seq, Settings, StoreError, Version, codec,
};

/// `INCR` for each number that is needed; `WATCH` and `GET` of the row; `UNWATCH` if the version moved, else `MULTI`, all
/// writes and `EXEC` in one write.
///
/// Numbers drawn for a commit that does not land stay unused. `WATCH` to `EXEC` are pinned to one connection; on every
/// other way out the watch is taken back first.
#[derive(Debug)]
pub struct CommitByWatch {
    writes: Writes,
    state: State,
}

#[derive(Debug)]
enum State {
    Counting,
    Watching(Numbers),
    Unwatching(StoreError),
    Executing(Committed),
    Over,
}

impl CommitByWatch {
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
        Self {
            writes,
            state: State::Counting,
        }
    }

    /// What is needed to find out later whether it landed, if the call itself does not get to say so.
    pub fn attempt(&self) -> Attempt {
        self.writes.attempt(self.writes.landed())
    }

    fn watch(&mut self, numbers: Numbers) -> Step<Committed> {
        self.state = State::Watching(numbers);
        Step::Send(Batch::pinned(self.writes.watch()))
    }

    fn watched(&mut self, numbers: &Numbers, replies: Replies) -> Step<Committed> {
        let checked = match replies.harmless() {
            Ok([watch, row]) => match reply::accepted(watch, "WATCH", &self.writes.row_key) {
                Ok(_) => self.writes.check(row),
                Err(refused) => return Step::Done(Err(refused)),
            },
            // The connection is gone, and its watch with it.
            Err(lost) => return Step::Done(Err(lost)),
        };
        match checked {
            Ok(()) => {
                self.state = State::Executing(self.writes.committed(numbers));
                let transaction = [cmd("MULTI")]
                    .into_iter()
                    .chain(self.writes.commands(numbers))
                    .chain([cmd("EXEC")]);
                Step::Send(Batch::pinned(transaction))
            }
            Err(error) => {
                self.state = State::Unwatching(error);
                Step::Send(Batch::pinned([cmd("UNWATCH")]))
            }
        }
    }
}

impl Operation for CommitByWatch {
    const NAME: &'static str = "commit";

    type Output = Committed;

    fn name(&self) -> &'static str {
        self.writes.name()
    }

    fn expected(&self) -> Option<Version> {
        Some(self.writes.expected)
    }

    fn step(&mut self, replies: Replies) -> Step<Committed> {
        match (std::mem::replace(&mut self.state, State::Over), replies) {
            (State::Counting, Replies::Start) => {
                let counters = self.writes.counters();
                if counters.is_empty() {
                    return self.watch(Numbers::default());
                }
                self.state = State::Counting;
                Step::Send(Batch::shared(counters))
            }
            (State::Counting, replies) => match self.writes.numbers(replies) {
                Ok(numbers) => self.watch(numbers),
                Err(error) => Step::Done(Err(error)),
            },
            (State::Watching(numbers), replies) => self.watched(&numbers, replies),
            // What is wrong with the row is known, whatever became of the UNWATCH.
            (State::Unwatching(error), _) => Step::Done(Err(error)),
            (State::Executing(committed), replies) => {
                let result = self.writes.executed(replies, &committed);
                Step::Done(result.map(|()| committed))
            }
            (State::Over, _) => over(),
        }
    }
}

/// Numbers that the counters handed out for one commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Numbers {
    /// One for each emitted event.
    pub outbox: Vec<Seq>,
    /// One for each spawn intent.
    pub spawns: Vec<Seq>,
    /// Index of the trace step, if there is one.
    pub trace_index: Option<i64>,
}

impl Writes {
    /// An `INCR` for each number: outbox, spawns, trace.
    pub fn counters(&self) -> Vec<Cmd> {
        self.counter_keys()
            .iter()
            .map(|key| cmd("INCR").arg(key).take())
            .collect()
    }

    /// The numbers that the counters answered.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the replies were lost: numbers may stay unused, nothing else happened.
    pub fn numbers(&self, replies: Replies) -> Result<Numbers, StoreError> {
        let keys = self.counter_keys();
        let values = match replies {
            Replies::Received(values) if values.len() == keys.len() => values,
            Replies::Received(_) => return Err(protocol_error("wrong number of replies").into()),
            other => return Err(other.failure()),
        };
        let mut numbers = Numbers::default();
        for (index, (value, key)) in values.into_iter().zip(&keys).enumerate() {
            let value = reply::accepted(value, "INCR", key)?;
            let number = reply::integer(&value).ok_or_else(|| reply::unexpected("INCR"))?;
            if index < self.outbox.len() {
                numbers.outbox.push(Seq::new(number));
            } else if index < self.outbox.len() + self.spawns.len() {
                numbers.spawns.push(Seq::new(number));
            } else {
                numbers.trace_index = Some(number.saturating_sub(1));
            }
        }
        Ok(numbers)
    }

    /// `WATCH` and `GET` of the row.
    pub fn watch(&self) -> [Cmd; 2] {
        [
            cmd("WATCH").arg(&self.row_key).take(),
            cmd("GET").arg(&self.row_key).take(),
        ]
    }

    /// Whether the row that `GET` answered is at the expected version; no row is version 0.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if it is at another, [`StoreError::AlreadyExists`] if there must be none,
    /// [`StoreError::Corrupt`] if it is none.
    pub fn check(&self, row: Value) -> Result<(), StoreError> {
        let found = match reply::accepted(row, "GET", &self.row_key)? {
            Value::Nil if self.expected == Version::NEW => return Ok(()),
            Value::Nil => None,
            row => {
                let row = reply::bytes(row).ok_or_else(|| reply::unexpected("GET"))?;
                let version = codec::decode_version(&row);
                Some(version.map_err(|reason| self.corrupt(reason))?)
            }
        };
        if found == Some(self.expected) && !self.is_creation {
            Ok(())
        } else {
            Err(self.conflict(found))
        }
    }

    /// The writes, as they stand between `MULTI` and `EXEC`.
    pub fn commands(&self, numbers: &Numbers) -> Vec<Cmd> {
        let mut commands = vec![cmd("SET").arg(&self.row_key).arg(&self.row).take()];
        commands.extend(hset_each(
            &self.keys.outbox(),
            &numbers.outbox,
            &self.outbox,
        ));
        if let Some(event_id) = &self.processed_event_id {
            commands.push(
                cmd("SADD")
                    .arg(self.keys.processed(&self.id))
                    .arg(event_id)
                    .take(),
            );
        }
        commands.extend(hset_each(
            &self.keys.spawns(),
            &numbers.spawns,
            &self.spawns,
        ));
        commands.extend(self.timers.iter().map(|timer| {
            let (name, score) = (
                if timer.score.is_some() {
                    "ZADD"
                } else {
                    "ZREM"
                },
                &timer.score,
            );
            cmd(name)
                .arg(self.keys.timers())
                .arg(score)
                .arg(&timer.member)
                .take()
        }));
        if let (Some(step), Some(index)) = (&self.trace, numbers.trace_index) {
            let key = self.keys.trace(&self.id);
            let step = format!("{}{index}{}", step.before, step.behind);
            commands.push(cmd("RPUSH").arg(&key).arg(step).take());
            commands.extend(trace::trim(&key, self.trace_max));
        }
        commands.extend(self.upkeep());
        commands
    }

    /// The index and the times to live. A transaction can not ask for the time: what it adds to the index comes before all
    /// that has one.
    fn upkeep(&self) -> Vec<Cmd> {
        let mut commands = Vec::new();
        if self.is_indexed {
            let mut add = cmd("ZADD");
            add.arg(self.keys.index()).arg("NX").arg(0).arg(&self.id);
            commands.push(add);
        }
        let companions = self.companions();
        match self.lifetime {
            Lifetime::Untouched => {}
            // SET has taken the row's own away.
            Lifetime::Unlimited => {
                commands.extend(companions.map(|key| cmd("PERSIST").arg(key).take()));
            }
            Lifetime::Milliseconds(ms) => {
                let keys = [self.row_key.clone()].into_iter().chain(companions);
                commands.extend(keys.map(|key| cmd("PEXPIRE").arg(key).arg(ms).take()));
            }
        }
        commands
    }

    /// What the caller gets if all of it landed.
    pub fn committed(&self, numbers: &Numbers) -> Committed {
        Committed {
            outbox: numbers.outbox.clone(),
            spawns: numbers.spawns.clone(),
            ..self.landed()
        }
    }

    /// Whether `MULTI`, the writes and `EXEC` took effect; `committed` is what they were to make.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if `EXEC` found the row changed, [`StoreError::Indeterminate`] if its reply was lost,
    /// [`StoreError::Refused`] if a command was refused while queueing, [`StoreError::Partial`] if one failed later.
    pub fn executed(&self, replies: Replies, committed: &Committed) -> Result<(), StoreError> {
        let mut values = match replies {
            Replies::Received(values) => values,
            Replies::Lost(source) => return Err(self.indeterminate(committed.clone(), source)),
            other => return Err(other.failure()),
        };
        let shape = || {
            self.indeterminate(
                committed.clone(),
                protocol_error("unexpected reply to EXEC"),
            )
        };
        let exec = values.pop().ok_or_else(shape)?;
        if let Some(Value::ServerError(refused)) = values.first() {
            // Without MULTI the server ran each of the writes at once.
            let ran = values
                .iter()
                .skip(1)
                .any(|value| !matches!(value, Value::ServerError(_)));
            if ran {
                return Err(self.partial(values.iter().skip(1)));
            }
            return Err(reply::refusal(refused, "MULTI", &self.row_key));
        }
        match exec {
            Value::Nil => Err(self.conflict(None)),
            Value::Array(results)
                if results
                    .iter()
                    .any(|result| matches!(result, Value::ServerError(_))) =>
            {
                Err(self.partial(results.iter()))
            }
            Value::Array(_) => Ok(()),
            Value::ServerError(aborted) => {
                let cause = values.iter().find_map(|value| match value {
                    Value::ServerError(error) => Some(error),
                    _ => None,
                });
                let message = reply::error_text(cause.unwrap_or(&aborted));
                Err(StoreError::Refused {
                    command: "EXEC".to_owned(),
                    message,
                })
            }
            _ => Err(shape()),
        }
    }

    fn counter_keys(&self) -> Vec<String> {
        let outbox = self.outbox.iter().map(|_| self.keys.outbox_seq());
        let spawns = self.spawns.iter().map(|_| self.keys.spawns_seq());
        let trace = self.trace.iter().map(|_| self.keys.trace_seq(&self.id));
        outbox.chain(spawns).chain(trace).collect()
    }

    fn partial<'v>(&self, results: impl Iterator<Item = &'v Value>) -> StoreError {
        // Numbers play no part in the names of commands and keys.
        let numbers = Numbers {
            outbox: vec![Seq::new(0); self.outbox.len()],
            spawns: vec![Seq::new(0); self.spawns.len()],
            trace_index: Some(0),
        };
        let failed = results.zip(self.commands(&numbers)).enumerate().filter_map(
            |(position, (result, command))| {
                let Value::ServerError(error) = result else {
                    return None;
                };
                let mut words = command.args_iter().map(|word| match word {
                    redis::Arg::Simple(word) => String::from_utf8_lossy(word).into_owned(),
                    _ => String::new(),
                });
                let (command, key) = (
                    words.next().unwrap_or_default(),
                    words.next().unwrap_or_default(),
                );
                Some(FailedCommand {
                    position,
                    command,
                    key,
                    message: reply::error_text(error),
                })
            },
        );
        StoreError::Partial {
            id: self.id.clone(),
            failed: failed.collect(),
        }
    }
}

fn hset_each(key: &str, numbers: &[Seq], values: &[String]) -> Vec<Cmd> {
    let pairs = numbers.iter().zip(values);
    pairs
        .map(|(number, value)| cmd("HSET").arg(key).arg(number.get()).arg(value).take())
        .collect()
}
