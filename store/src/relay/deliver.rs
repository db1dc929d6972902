//! From outbox and timers into the queues.

use serde_json::{Map, Number, Value as Json};

use super::{Entry, Origin};
use crate::{
    DueTimer, Event, OutboxEntry, Settings, StoreError, codec,
    op::{Call, Operation, Replies, Script, Step, reply, validate},
    transport::Priority,
};

static DELIVER: Script = Script::new(concat!(
    include_str!("../transport/lua/prelude.lua"),
    include_str!("lua/deliver.lua")
));

/// What became of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delivered {
    /// It is in its queue, and no longer where it waited.
    Done,
    /// It did not wait any more, or is another one by now: somebody else was faster.
    Gone,
    /// It still waits: a key of its group holds what is not ours.
    Blocked,
}

/// One script: puts each event into the queue of its group and takes it off, if it still waits; what became of each.
///
/// Whatever goes wrong with the connection is [`StoreError::Io`]: a repetition finds [`Delivered::Gone`] what the first one
/// has delivered.
#[derive(Debug)]
pub struct Deliver {
    call: Call,
    count: usize,
}

impl Deliver {
    /// Of entries of the outbox, each with the priority of a group that has no events yet. An entry without a target is taken
    /// off only.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for an entry whose target is no id of an execution, or whose event could not be read back.
    pub fn outbox(
        settings: &Settings,
        entries: &[(OutboxEntry, Priority)],
    ) -> Result<Self, StoreError> {
        let mut this = Items::new(settings, Origin::Outbox, "hash");
        for (entry, priority) in entries {
            entry.check(settings)?;
            let event = entry
                .target_id
                .as_deref()
                .map(|target| (target, &entry.event, *priority));
            let seq = entry.seq.to_string().into_bytes();
            this.add(settings, seq, entry.stored().to_vec(), event);
        }
        Ok(this.finish())
    }

    /// Of due timers: each group gets a [`timeout_event`].
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a timer whose execution's id is none, or whose time is not finite.
    pub fn timers(
        settings: &Settings,
        timers: &[(DueTimer, Priority)],
    ) -> Result<Self, StoreError> {
        let mut this = Items::new(settings, Origin::Timers, "zset");
        for (timer, priority) in timers {
            validate::execution_id(settings, "execution id", &timer.execution_id)?;
            validate::time("time of a timer", timer.fire_at_s)?;
            let event = timeout_event(timer);
            let keys = settings.keys();
            let member = keys.timer_member(&timer.execution_id, &timer.path);
            let score = codec::python_float(timer.fire_at_s).into_bytes();
            let event = Some((timer.execution_id.as_str(), &event, *priority));
            this.add(settings, member.into_bytes(), score, event);
        }
        Ok(this.finish())
    }

    fn outcomes(&self, replies: Replies) -> Result<Vec<Delivered>, StoreError> {
        let [answer] = replies.harmless()?;
        let answer = reply::items(self.call.accepted(answer)?);
        let outcomes = answer.and_then(|outcomes| {
            let outcomes = outcomes
                .iter()
                .map(|outcome| match reply::integer(outcome)? {
                    1 => Some(Delivered::Done),
                    0 => Some(Delivered::Gone),
                    -1 => Some(Delivered::Blocked),
                    _ => None,
                });
            outcomes.collect::<Option<Vec<_>>>()
        });
        outcomes
            .filter(|outcomes| outcomes.len() == self.count)
            .ok_or_else(|| reply::unexpected("EVALSHA"))
    }
}

impl Operation for Deliver {
    const NAME: &'static str = "deliver";

    type Output = Vec<Delivered>;

    fn step(&mut self, replies: Replies) -> Step<Self::Output> {
        if self.count == 0 {
            return Step::Done(Ok(Vec::new()));
        }
        match self.call.next(&replies) {
            Some(batch) => Step::Send(batch),
            None => Step::Done(self.outcomes(replies)),
        }
    }
}

struct Items {
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
    count: usize,
}

impl Items {
    fn new(settings: &Settings, origin: Origin, kind: &str) -> Self {
        let keys = settings.keys();
        let mut names = vec![origin.key(keys), keys.priorities()];
        names.extend(Priority::all().map(|priority| keys.ready(priority)));
        Self {
            keys: names,
            arguments: vec![kind.as_bytes().to_vec()],
            count: 0,
        }
    }

    fn add(
        &mut self,
        settings: &Settings,
        name: Vec<u8>,
        seen: Vec<u8>,
        event: Option<(&str, &Event, Priority)>,
    ) {
        self.count += 1;
        self.arguments.extend([name, seen]);
        let Some((group, event, priority)) = event else {
            self.arguments.extend([Vec::new(), Vec::new(), Vec::new()]);
            return;
        };
        self.keys.push(settings.keys().queue(group));
        self.arguments.extend([
            group.as_bytes().to_vec(),
            codec::encode_event(event).into_bytes(),
            priority.get().to_string().into_bytes(),
        ]);
    }

    fn finish(self) -> Deliver {
        Deliver {
            call: Call::new(&DELIVER, self.keys, self.arguments),
            count: self.count,
        }
    }
}

/// The event that a due timer causes: kind `Timeout`, with an id by which two sweepers' events are the same one, in every
/// language. Its data are `path` and `fire_at`.
pub fn timeout_event(timer: &DueTimer) -> Event {
    let mut event = Event::new(timer.event_id(), "Timeout");
    let fire_at = Number::from_f64(timer.fire_at_s).map_or(Json::Null, Json::Number);
    event.data = Map::from_iter([
        ("path".to_owned(), Json::from(timer.path.as_str())),
        ("fire_at".to_owned(), fire_at),
    ]);
    event
}
