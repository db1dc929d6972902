//! [`BrokenCommit`]: the store's commit over WATCH, MULTI and EXEC with one place changed.
//!
//! It is put together from the real one's parts ([`Writes`]), step for step the same; each [`Flaw`] changes what one step
//! does, and is named there.

use redis::{Arg, Cmd, Value, cmd};
use store::op::{Batch, Numbers, Operation, Replies, Step, Writes, reply};
use store::{Commit, Committed, Execution, Settings, StoreError};

use super::Flaw;
use super::single::misused;

/// A commit with a flaw.
#[derive(Debug)]
pub struct BrokenCommit {
    settings: Settings,
    execution: Execution,
    commit: Commit,
    writes: Writes,
    flaw: Flaw,
    outbox_key: String,
    spawns_key: String,
    trace_key: String,
    shared_counter: String,
    numbers: Option<Numbers>,
    state: State,
}

#[derive(Debug)]
enum State {
    Start,
    Counting,
    /// A part of the writes is on its way, before the transaction.
    Early,
    Watching,
    Unwatching(StoreError),
    Executing(Committed),
    /// The rest of the writes is on its way, after the transaction.
    Late(Committed),
    Over,
}

impl BrokenCommit {
    /// Of this execution, with these effects. `kept` are numbers of an earlier attempt.
    ///
    /// # Errors
    /// As for the real one.
    pub fn new(
        settings: &Settings,
        execution: &Execution,
        commit: &Commit,
        flaw: Flaw,
        kept: Option<Numbers>,
    ) -> Result<BrokenCommit, StoreError> {
        let keys = settings.keys();
        let mut writes = Writes::new(settings, execution, commit)?;
        if flaw == Flaw::BumpTwice {
            let mut ahead = execution.clone();
            ahead.version = writes.next;
            let expected = writes.expected;
            writes = Writes::new(settings, &ahead, commit)?;
            writes.expected = expected;
        }
        Ok(BrokenCommit {
            settings: settings.clone(),
            execution: execution.clone(),
            commit: commit.clone(),
            writes,
            flaw,
            outbox_key: keys.outbox(),
            spawns_key: keys.spawns(),
            trace_key: keys.trace(&execution.id),
            shared_counter: keys.outbox_seq(),
            numbers: kept,
            state: State::Start,
        })
    }

    /// The numbers that it drew.
    pub fn numbers(&self) -> Option<Numbers> {
        self.numbers.clone()
    }

    fn counters(&mut self) -> Step<Committed> {
        let counters = self.writes.counters();
        // Flaw: with numbers of an earlier attempt at hand it draws none.
        if counters.is_empty() || self.numbers.is_some() {
            return self.early();
        }
        self.state = State::Counting;
        Step::Send(Batch::shared(counters))
    }

    /// Flaw: a part of the writes goes out before anything is checked.
    fn early(&mut self) -> Step<Committed> {
        let early = self.part(BrokenCommit::is_early);
        if early.is_empty() {
            return self.watch();
        }
        self.state = State::Early;
        Step::Send(Batch::shared(early))
    }

    fn watch(&mut self) -> Step<Committed> {
        self.state = State::Watching;
        let [watch, get] = self.writes.watch();
        Step::Send(match self.flaw {
            Flaw::NoWatch => Batch::pinned([get]),
            Flaw::WatchAfterGet => Batch::pinned([get, watch]),
            Flaw::WatchTooMuch => {
                let mut both = watch;
                both.arg(&self.shared_counter);
                Batch::pinned([both, get])
            }
            _ => Batch::pinned([watch, get]),
        })
    }

    fn watched(&mut self, replies: Replies) -> Step<Committed> {
        let values = match replies {
            Replies::Received(values) => values,
            other => return Step::Done(other.harmless::<0>().and(Err(misused()))),
        };
        let row_at = match self.flaw {
            Flaw::NoWatch | Flaw::WatchAfterGet => 0,
            _ => 1,
        };
        let row = values.into_iter().nth(row_at).unwrap_or(Value::Nil);
        let checked = match self.flaw {
            Flaw::NoVersionCheck => Ok(()),
            Flaw::Rebase => self.rebased(row),
            _ => self.writes.check(row),
        };
        match checked {
            Ok(()) => self.execute(),
            Err(error) => {
                self.state = State::Unwatching(error);
                Step::Send(Batch::pinned([cmd("UNWATCH")]))
            }
        }
    }

    /// Flaw: the writes are made anew on the version that is stored.
    fn rebased(&mut self, row: Value) -> Result<(), StoreError> {
        let stale = match self.writes.check(row) {
            Err(StoreError::Conflict {
                found: Some(found), ..
            }) => found,
            other => return other,
        };
        self.execution.version = stale;
        self.writes = Writes::new(&self.settings, &self.execution, &self.commit)?;
        Ok(())
    }

    fn execute(&mut self) -> Step<Committed> {
        let writes = self.part(|this, key| !this.is_early(key) && !this.is_late(key));
        let numbers = self.numbers.clone().unwrap_or_default();
        self.state = State::Executing(self.writes.committed(&numbers));
        Step::Send(Batch::pinned(transaction(writes)))
    }

    fn executed(&mut self, replies: Replies, committed: Committed) -> Step<Committed> {
        if let (Flaw::LostIsConflict, Replies::Lost(_)) = (self.flaw, &replies) {
            return Step::Done(Err(StoreError::Conflict {
                id: self.writes.id.clone(),
                expected: self.writes.expected,
                found: None,
            }));
        }
        if let Err(error) = self.writes.executed(replies, &committed) {
            return Step::Done(Err(error));
        }
        let late = match self.flaw {
            Flaw::RowWrittenTwice => {
                let (key, row) = (&self.writes.row_key, &self.writes.row);
                vec![cmd("SET").arg(key).arg(row).take()]
            }
            _ => self.part(BrokenCommit::is_late),
        };
        if late.is_empty() {
            return Step::Done(Ok(committed));
        }
        self.state = State::Late(committed);
        Step::Send(Batch::pinned(transaction(late)))
    }

    /// The writes to the keys that `wanted` names.
    fn part(&self, wanted: fn(&BrokenCommit, &[u8]) -> bool) -> Vec<Cmd> {
        let numbers = self.numbers.clone().unwrap_or_default();
        let mut commands = self.writes.commands(&numbers);
        commands.retain(|command| match command.args_iter().nth(1) {
            Some(Arg::Simple(key)) => wanted(self, key),
            _ => false,
        });
        commands
    }

    fn is_early(&self, key: &[u8]) -> bool {
        match self.flaw {
            Flaw::OutboxOutside => key == self.outbox_key.as_bytes(),
            Flaw::SpawnsOutside => key == self.spawns_key.as_bytes(),
            Flaw::TraceOutside => key == self.trace_key.as_bytes(),
            _ => false,
        }
    }

    fn is_late(&self, key: &[u8]) -> bool {
        let effects = key == self.outbox_key.as_bytes() || key == self.spawns_key.as_bytes();
        self.flaw == Flaw::TwoTransactions && effects
    }
}

impl Operation for &mut BrokenCommit {
    type Output = Committed;

    fn step(&mut self, replies: Replies) -> Step<Committed> {
        match (std::mem::replace(&mut self.state, State::Over), replies) {
            (State::Start, Replies::Start) => self.counters(),
            (State::Counting, replies) => match self.writes.numbers(replies) {
                Ok(numbers) => {
                    self.numbers = Some(numbers);
                    self.early()
                }
                Err(error) => Step::Done(Err(error)),
            },
            (State::Early, Replies::Received(_)) => self.watch(),
            (State::Early, replies) => Step::Done(replies.harmless::<0>().and(Err(misused()))),
            (State::Watching, replies) => self.watched(replies),
            (State::Unwatching(error), _) => Step::Done(Err(error)),
            (State::Executing(committed), replies) => self.executed(replies, committed),
            (State::Late(committed), replies) => Step::Done(self.finished(replies, committed)),
            (State::Start | State::Over, _) => Step::Done(Err(misused())),
        }
    }
}

impl BrokenCommit {
    fn finished(&self, replies: Replies, committed: Committed) -> Result<Committed, StoreError> {
        match replies {
            Replies::Received(values) => {
                for value in values {
                    reply::accepted(value, "EXEC", &self.writes.row_key)?;
                }
                Ok(committed)
            }
            other => Err(match other.harmless::<0>() {
                Err(StoreError::Io { source }) => StoreError::Indeterminate {
                    operation: "commit",
                    id: self.writes.id.clone(),
                    expected: Some(self.writes.expected),
                    attempt: None,
                    source,
                },
                _ => misused(),
            }),
        }
    }
}

fn transaction(writes: Vec<Cmd>) -> impl Iterator<Item = Cmd> {
    [cmd("MULTI")]
        .into_iter()
        .chain(writes)
        .chain([cmd("EXEC")])
}
