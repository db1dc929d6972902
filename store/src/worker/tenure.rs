//! [`Tenure`]: the time in which an event is a worker's.

use std::time::Duration;

use super::{Conduct, Handling, Trouble, WorkerOptions, core::Crew};
use crate::{
    Document, Settings, StoreError,
    retry::Host,
    transport::{Lease, Settle},
};

/// A lease, and what it takes to end or to prolong it.
#[derive(Debug)]
pub(super) struct Tenure {
    pub(super) lease: Lease,
    pub(super) settings: Settings,
    pub(super) options: WorkerOptions,
    /// When it was last known to begin anew.
    renewed: Duration,
}

impl Tenure {
    /// Of a lease that was claimed after this moment.
    pub(super) fn new(
        lease: Lease,
        settings: &Settings,
        options: &WorkerOptions,
        now: Duration,
    ) -> Self {
        Self {
            lease,
            settings: settings.clone(),
            options: options.clone(),
            renewed: now,
        }
    }

    /// How often to prolong it: two attempts may fail before it ends.
    pub(super) fn interval(&self) -> Duration {
        self.options.visibility / 3
    }

    pub(super) fn extend(&self) -> Result<Settle, StoreError> {
        let Self {
            lease,
            settings,
            options,
            ..
        } = self;
        Settle::extend(settings, options.clock, lease, options.visibility)
    }

    /// Between two steps: prolongs it if a third of it has gone. False: it was lost.
    pub(super) async fn keep<H: Host>(&mut self, host: &mut H) -> Result<bool, StoreError> {
        let now = host.now();
        if now.saturating_sub(self.renewed) < self.interval() {
            return Ok(true);
        }
        self.renewed = now;
        host.run(&self.settings, self.extend()?).await
    }

    pub(super) async fn ack<H: Host>(
        &self,
        host: &mut H,
        handling: Handling,
    ) -> Result<Handling, StoreError> {
        let ack = Settle::ack(&self.settings, self.options.clock, &self.lease);
        host.run(&self.settings, ack).await.map(|_| handling)
    }

    /// Of an event that nothing is wrong with.
    pub(super) async fn postpone<H: Host>(
        &self,
        host: &mut H,
        pause: Duration,
        handling: Handling,
    ) -> Result<Handling, StoreError> {
        let (settings, clock) = (&self.settings, self.options.clock);
        let postpone = Settle::postpone(settings, clock, &self.lease, pause)?;
        host.run(&self.settings, postpone).await.map(|_| handling)
    }

    pub(super) async fn nack<H: Host>(
        &self,
        host: &mut H,
        pause: Duration,
        handling: Handling,
    ) -> Result<Handling, StoreError> {
        let nack = Settle::nack(&self.settings, self.options.clock, &self.lease, pause)?;
        host.run(&self.settings, nack).await.map(|_| handling)
    }
}

/// An event that trying again at once does not help. A connection that failed is the turn's failure: the lease ends by itself.
pub(super) async fn park<D, C>(
    crew: &mut C,
    tenure: &Tenure,
    error: StoreError,
) -> Result<Handling, StoreError>
where
    D: Document + Send,
    C: Crew<D>,
{
    let lease = &tenure.lease;
    if let StoreError::Io { .. } | StoreError::Indeterminate { .. } | StoreError::Refused { .. } =
        error
    {
        // Sooner than the lease would end, if the connection is there again.
        let _ = tenure.postpone(crew, Duration::ZERO, Handling::Again).await;
        return Err(error);
    }
    crew.conduct().trouble(&Trouble::Parked {
        lease,
        error: &error,
    });
    tenure
        .nack(crew, tenure.options.trouble_pause, Handling::Parked)
        .await
}
