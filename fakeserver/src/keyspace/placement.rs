//! Where a command's reply stands among the events of its keys, which a client that listens to itself can see.

use super::Keyspace;

/// Where a reply stands among the events that were recorded since the command began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    /// So many events are in front of it; without a number all are.
    pub before: Option<usize>,
    /// They are not in front of the reply but inside of it, in front of the element that these indexes lead to.
    pub within: &'static [usize],
    /// The next event is the last one in front.
    is_open: bool,
}

impl Keyspace {
    /// The running command has answered: what it tells from now on comes behind its reply.
    pub(crate) fn answer_here(&mut self) {
        let before = self.events.get_mut().len();
        self.placement.set(Placement {
            before: Some(before),
            ..Placement::default()
        });
    }

    /// The running command answers as soon as it has told of one more event.
    pub(crate) fn answer_behind_next(&mut self) {
        self.answer_around_next(&[]);
    }

    /// The running command tells of one more event while it answers, in front of the element that the indexes lead to.
    pub(crate) fn answer_around_next(&mut self, within: &'static [usize]) {
        self.placement.set(Placement {
            before: None,
            within,
            is_open: true,
        });
    }

    /// Does what may tell something more, in front of the reply if all that was told so far is.
    pub(super) fn before_answer(&mut self, tell: impl FnOnce(&mut Keyspace)) {
        let before = self.events.get_mut().len();
        tell(self);
        let placement = self.placement.get();
        if placement.before == Some(before) {
            let before = Some(self.events.get_mut().len());
            self.placement.set(Placement {
                before,
                ..placement
            });
        }
    }

    /// Notes that there was an event, wanted or not.
    pub(super) fn note_event(&self) {
        let placement = self.placement.get();
        if placement.is_open {
            self.placement.set(Placement {
                before: Some(self.events.borrow().len()),
                is_open: false,
                ..placement
            });
        }
    }

    /// Where the reply of the command that has run stands.
    pub(crate) fn take_placement(&mut self) -> Placement {
        self.placement.take()
    }
}
