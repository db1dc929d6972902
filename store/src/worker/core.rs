//! The turns of a worker, for either twin.

use std::{future::Future, marker::PhantomData, time::Duration};

use super::{
    Admission, Conduct, Handling, Trouble, Turn, Verdict, WorkerOptions,
    tenure::{Tenure, park},
    territory::Territory,
};
use crate::{
    Commit, Committed, Document, OutboxEntry, Resolution, Seq, Settings, SpawnEntry, StoreError,
    codec,
    entry::Stored,
    op::{CommitOperation, LoadForEvent, Operation, Resolve},
    relay::{Continuation, Delivered, RepairCounters},
    retry::Host,
    transport::Claim,
};

/// A host with somebody who decides.
pub(super) trait Crew<D: Document>: Host {
    type Conduct: Conduct<D>;

    fn conduct(&mut self) -> &mut Self::Conduct;

    /// Hands the document back with the verdict; none if the lease was lost meanwhile.
    fn decide(
        &mut self,
        tenure: &Tenure,
        document: D,
    ) -> impl Future<Output = (D, Option<Verdict>)> + Send;
}

/// A host and a handler.
pub(super) struct Shift<'a, H, A, D> {
    pub(super) host: H,
    pub(super) handler: &'a mut A,
    pub(super) document: PhantomData<fn() -> D>,
}

impl<H: Host, A, D> Host for Shift<'_, H, A, D> {
    fn run<O>(
        &mut self,
        at: &Settings,
        operation: O,
    ) -> impl Future<Output = Result<O::Output, StoreError>> + Send
    where
        O: Operation + Send,
        O::Output: Send,
    {
        self.host.run(at, operation)
    }

    fn sleep(&mut self, pause: Duration) -> impl Future<Output = ()> + Send {
        self.host.sleep(pause)
    }

    fn retried(&mut self) {
        self.host.retried();
    }

    fn now(&mut self) -> Duration {
        self.host.now()
    }

    fn draw(&mut self) -> u64 {
        self.host.draw()
    }
}

/// A worker at one store, which may be a partition of several.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) settings: Settings,
    pub(super) territory: Territory,
    pub(super) options: WorkerOptions,
    /// Whether counters were looked at since the start.
    repaired: bool,
    pub(super) swept_at: Option<Duration>,
    /// Something waits that this worker knows of.
    pub(super) unfinished: bool,
    pub(super) places: Places,
}

/// Where the next sweep goes on.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) outbox: Option<Continuation>,
    pub(super) spawns: Option<Continuation>,
    pub(super) timers: Option<Continuation>,
}

impl Core {
    pub(super) fn new(settings: Settings, territory: Territory, options: WorkerOptions) -> Self {
        Self {
            settings,
            territory,
            options,
            repaired: false,
            swept_at: None,
            unfinished: false,
            places: Places::default(),
        }
    }

    /// With this token for the lease.
    pub(super) async fn turn<D, C>(
        &mut self,
        crew: &mut C,
        token: String,
    ) -> Result<Turn, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        let mut turn = Turn::default();
        if self.is_sweep_due(crew.now()) {
            turn.swept = Some(self.sweep(crew).await?);
        }
        let begun = crew.now();
        let WorkerOptions {
            clock,
            visibility,
            min_priority,
            deliveries,
            ..
        } = self.options;
        let claim = Claim::new(&self.settings, clock, token, visibility, min_priority)?;
        let claimed = crew.run(&self.settings, claim.counting(deliveries)).await?;
        for letter in &claimed.buried {
            crew.conduct().trouble(&Trouble::Buried(letter));
        }
        if let Some(lease) = claimed.lease {
            let tenure = Tenure::new(lease, &self.settings, &self.options, begun);
            turn.handled = Some(self.handle(crew, tenure).await?);
        } else if turn.swept.is_none() {
            turn.swept = Some(self.sweep(crew).await?);
        }
        if turn.is_idle() {
            let next = claimed.next_ready.map(crate::transport::NextReady::wait);
            turn.wait = self.options.idle_pause.min(next.unwrap_or(Duration::MAX));
        }
        Ok(turn)
    }

    fn is_sweep_due(&self, now: Duration) -> bool {
        self.unfinished
            || self
                .swept_at
                .is_none_or(|at| now.saturating_sub(at) >= self.options.sweep_every)
    }

    /// Before anything is committed after the start.
    pub(super) async fn repair<H: Host>(&mut self, host: &mut H) -> Result<(), StoreError> {
        if !self.repaired {
            host.run(&self.settings, RepairCounters::new(&self.settings))
                .await?;
            self.repaired = true;
        }
        Ok(())
    }

    async fn handle<D, C>(
        &mut self,
        crew: &mut C,
        mut tenure: Tenure,
    ) -> Result<Handling, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        let (group, event) = (&tenure.lease.group_id, &tenure.lease.event);
        let load = LoadForEvent::<D>::of(&self.settings, group, &event.id);
        let document = match crew.run(&self.settings, load).await {
            Ok(Some((document, false))) => document,
            Ok(Some((_, true))) => return tenure.ack(crew, Handling::Duplicate).await,
            Ok(None) => return tenure.ack(crew, Handling::Missing).await,
            Err(error) => return park(crew, &tenure, error).await,
        };
        match crew.conduct().admit(&document, event) {
            Admission::Handle => {}
            Admission::Drop => return tenure.ack(crew, Handling::Ignored).await,
            Admission::Later => {
                let pause = self.options.suspend_pause;
                return tenure.postpone(crew, pause, Handling::Postponed).await;
            }
        }
        let (document, verdict) = crew.decide(&tenure, document).await;
        match verdict {
            None => Ok(Handling::LeaseLost),
            Some(Verdict::Ignore) => tenure.ack(crew, Handling::Ignored).await,
            Some(Verdict::Later(pause)) => tenure.postpone(crew, pause, Handling::Postponed).await,
            Some(Verdict::Commit(_)) if !tenure.keep(crew).await? => Ok(Handling::LeaseLost),
            Some(Verdict::Commit(commit)) => self.commit(crew, tenure, document, commit).await,
        }
    }

    async fn commit<D, C>(
        &mut self,
        crew: &mut C,
        mut tenure: Tenure,
        mut document: D,
        mut commit: Commit,
    ) -> Result<Handling, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        let event_id = &tenure.lease.event.id;
        // An event of others without an id can not be marked.
        commit.processed_event_id = (!event_id.is_empty()).then(|| event_id.clone());
        let operation = match CommitOperation::new(&self.settings, &document, &commit) {
            Ok(operation) => operation,
            Err(error) => return park(crew, &tenure, error).await,
        };
        let leaves_something = !commit.emits.is_empty() || !commit.spawns.is_empty();
        match crew.run(&self.settings, operation).await {
            Ok(committed) => {
                committed.note(&mut document);
                self.relay(crew, &mut tenure, &document, &commit, &committed)
                    .await;
                tenure.ack(crew, Handling::Committed).await
            }
            Err(StoreError::Conflict { .. }) => {
                tenure.postpone(crew, Duration::ZERO, Handling::Again).await
            }
            Err(StoreError::Indeterminate {
                attempt: Some(attempt),
                ..
            }) => {
                // Its entries are somewhere in the outbox, if it landed.
                self.unfinished |= leaves_something;
                let resolve = Resolve::new(&self.settings, &attempt);
                match crew.run(&self.settings, resolve).await? {
                    Resolution::Landed(_)
                    | Resolution::Overtaken {
                        is_event_processed: Some(true),
                        ..
                    } => tenure.ack(crew, Handling::Committed).await,
                    // Whatever becomes of it: the event comes again, and is marked or not.
                    _ => tenure.postpone(crew, Duration::ZERO, Handling::Again).await,
                }
            }
            Err(error @ StoreError::Partial { .. }) => {
                self.unfinished = true;
                park(crew, &tenure, error).await
            }
            Err(error) => park(crew, &tenure, error).await,
        }
    }

    /// Works off what this worker's commit has left. Whatever fails is left to a sweep: the event itself is done with.
    async fn relay<D, C>(
        &mut self,
        crew: &mut C,
        tenure: &mut Tenure,
        document: &D,
        commit: &Commit,
        committed: &Committed,
    ) where
        D: Document + Send,
        C: Crew<D>,
    {
        let here = self.settings.clone();
        self.deliver_own(crew, &here, commit, committed).await;
        if committed.spawns.len() != commit.spawns.len() {
            self.unfinished = true;
            return;
        }
        for (spawn, seq) in commit.spawns.iter().zip(&committed.spawns) {
            // A lease that is lost by now costs nothing: the event is marked.
            let _ = tenure.keep(crew).await;
            let entry = SpawnEntry {
                seq: *seq,
                parent_id: document.id().to_owned(),
                child_id: spawn.child_id.clone(),
                root_path: spawn.root_path.clone(),
                context: spawn.context.clone(),
                stored: Stored::new(codec::encode_spawn(document.id(), spawn).as_bytes()),
            };
            match self.start(crew, document, &entry).await {
                Ok(true) => {}
                Ok(false) | Err(_) => self.unfinished = true,
            }
        }
    }

    /// Delivers what a commit that has just landed there emitted.
    pub(super) async fn deliver_own<D, C>(
        &mut self,
        crew: &mut C,
        at: &Settings,
        commit: &Commit,
        committed: &Committed,
    ) where
        D: Document + Send,
        C: Crew<D>,
    {
        if committed.outbox.len() != commit.emits.len() {
            self.unfinished = true;
            return;
        }
        let seqs = committed.outbox.iter();
        let entries: Vec<OutboxEntry> = commit.emits.iter().zip(seqs).map(own_entry).collect();
        if entries.is_empty() {
            return;
        }
        let delivered = self.deliver(crew, at, entries).await;
        let is_done = delivered.is_ok_and(|outcomes| {
            let mut outcomes = outcomes.iter();
            outcomes.all(|(_, outcome)| *outcome != Delivered::Blocked)
        });
        self.unfinished |= !is_done;
    }
}

fn own_entry((emit, seq): (&crate::Emit, &Seq)) -> OutboxEntry {
    OutboxEntry {
        seq: *seq,
        target_id: emit.target.clone(),
        event: emit.event.clone(),
        stored: Stored::new(codec::encode_outbox(emit).as_bytes()),
    }
}
