//! A second execution that goes on from where a first one stands.

use redis::{Value, cmd};

use super::{Batch, Call, Operation, Replies, Step, over, reply, script::FORK, validate};
use crate::{Execution, Forkable, RowTail, Settings, StoreError, Version};

/// The version of a copy.
const FIRST: Version = Version::new(1);

/// `GET`, then one script: the execution as it stands, stored under a new id, if it still stands so and the new id is free.
///
/// The copy is a new execution at version 1 with the definition, status, state, history, context, deferred events, counts
/// and times of the first. What ties an execution to others is not copied, since it belongs to the first one: timers,
/// outbox and spawn entries (they would happen twice), its children (they report to the first), its parent (it waits for
/// one child of that name, not for two), dedupe marks (an event that is addressed to the copy is new to it) and the trace.
/// A copy that is to wait for a time or for children of its own gets them with its next commit.
#[derive(Debug)]
pub struct Fork<D = Execution> {
    settings: Settings,
    id: String,
    new_id: String,
    state: State<D>,
}

#[derive(Debug)]
enum State<D> {
    Reading,
    Copying {
        copy: Box<D>,
        read: Version,
        call: Call,
    },
    Over,
}

impl Fork {
    /// Of the execution with the first id, under the second.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a new id whose keys could be another's.
    pub fn new(settings: &Settings, id: &str, new_id: &str) -> Result<Self, StoreError> {
        Self::of(settings, id, new_id)
    }
}

impl<D: Forkable> Fork<D> {
    /// Of the document with the first id, under the second.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a new id whose keys could be another's.
    pub fn of(settings: &Settings, id: &str, new_id: &str) -> Result<Self, StoreError> {
        validate::execution_id(settings, "new id", new_id)?;
        Ok(Self {
            settings: settings.clone(),
            id: id.to_owned(),
            new_id: new_id.to_owned(),
            state: State::Reading,
        })
    }

    fn copy(&mut self, replies: Replies) -> Result<Option<Batch>, StoreError> {
        let keys = self.settings.keys();
        let (source, target) = (keys.execution(&self.id), keys.execution(&self.new_id));
        let [row] = replies.harmless()?;
        let row = match reply::accepted(row, "GET", &source)? {
            Value::Nil => return Ok(None),
            row => reply::bytes(row).ok_or_else(|| reply::unexpected("GET"))?,
        };
        let corrupt = |reason| StoreError::Corrupt {
            key: source.clone(),
            field: None,
            reason,
        };
        let source_document = D::decode(&row, &self.settings).map_err(corrupt)?;
        if source_document.id() != self.id {
            return Err(corrupt(format!("holds execution {}", source_document.id())));
        }
        let read = source_document.version();
        let mut copy = source_document.forked(&self.new_id);
        copy.set_version(FIRST);
        // A row that is nested too deeply to be written can be read, but not copied.
        copy.validate(&self.settings)?;
        let text = copy.encode(FIRST, &self.settings)?;
        copy.remember(RowTail::of(text.as_bytes(), FIRST));
        let retention = self.settings.retention_ms();
        let lifetime = retention.filter(|_| copy.is_finished());
        let mut names = vec![source, target];
        names.extend(self.settings.is_indexed().then(|| keys.index()));
        let arguments = [
            row,
            text.into_bytes(),
            self.new_id.clone().into_bytes(),
            lifetime.map_or_else(Vec::new, |ms| ms.to_string().into_bytes()),
        ];
        let mut call = Call::new(&FORK, names, arguments);
        let batch = call.by_hash();
        self.state = State::Copying {
            copy: Box::new(copy),
            read,
            call,
        };
        Ok(Some(batch))
    }

    fn copied(&self, read: Version, replies: Replies) -> Result<(), StoreError> {
        let reply = match replies {
            Replies::Lost(source) => {
                return Err(StoreError::Indeterminate {
                    operation: "fork",
                    id: self.new_id.clone(),
                    expected: None,
                    attempt: None,
                    source,
                });
            }
            other => {
                let [reply] = other.harmless()?;
                reply::accepted(reply, "EVALSHA", &self.settings.keys().index())?
            }
        };
        match reply::integer(&reply) {
            Some(1) => Ok(()),
            Some(0) => Err(StoreError::AlreadyExists {
                id: self.new_id.clone(),
            }),
            Some(_) => Err(StoreError::Conflict {
                id: self.id.clone(),
                expected: read,
                found: None,
            }),
            None => Err(reply::unexpected("EVALSHA")),
        }
    }
}

impl<D: Forkable> Operation for Fork<D> {
    const NAME: &'static str = "fork";

    type Output = Option<D>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        match (std::mem::replace(&mut self.state, State::Over), replies) {
            (State::Reading, Replies::Start) => {
                self.state = State::Reading;
                let key = self.settings.keys().execution(&self.id);
                Step::Send(Batch::shared([cmd("GET").arg(key).take()]))
            }
            (State::Reading, replies) => match self.copy(replies) {
                Ok(Some(batch)) => Step::Send(batch),
                Ok(None) => Step::Done(Ok(None)),
                Err(error) => Step::Done(Err(error)),
            },
            (
                State::Copying {
                    copy,
                    read,
                    mut call,
                },
                replies,
            ) => {
                if let Some(batch) = call.next(&replies) {
                    self.state = State::Copying { copy, read, call };
                    return Step::Send(batch);
                }
                Step::Done(self.copied(read, replies).map(|()| Some(*copy)))
            }
            (State::Over, _) => over(),
        }
    }
}
