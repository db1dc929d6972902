//! What relays and sweepers ask.

use crate::{
    DueTimer, OutboxEntry, RedisStore, SpawnEntry, StoreError,
    relay::{
        AckEntry, Deliver, Delivered, Entry, EntryPage, PageStart, Poison, Probe, Quarantine,
        RelayPage, RepairCounters, Repaired, TimersPage, Waiting,
    },
    sync::Connections,
    transport::Priority,
};

impl<P: Connections> RedisStore<P> {
    /// How much waits, for a fixed price.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Io`]; it only reads.
    pub fn waiting(&mut self) -> Result<Waiting, StoreError> {
        let operation = Probe::new(&self.settings);
        self.run(operation)
    }

    /// A page of the events that wait for delivery.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if there is no outbox in its place; [`StoreError::Io`]; it only reads.
    pub fn outbox_page(
        &mut self,
        start: PageStart,
        limit: u32,
    ) -> Result<RelayPage<OutboxEntry>, StoreError> {
        let operation = EntryPage::new(&self.settings, start, limit);
        self.run(operation)
    }

    /// A page of the executions that wait to be started.
    ///
    /// # Errors
    /// As for [`outbox_page`](Self::outbox_page).
    pub fn spawns_page(
        &mut self,
        start: PageStart,
        limit: u32,
    ) -> Result<RelayPage<SpawnEntry>, StoreError> {
        let operation = EntryPage::new(&self.settings, start, limit);
        self.run(operation)
    }

    /// A page of the timers whose time has come at this moment (seconds since the epoch).
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for NaN; else as for [`outbox_page`](Self::outbox_page).
    pub fn due_timers_page(
        &mut self,
        now_s: f64,
        start: PageStart,
        limit: u32,
    ) -> Result<RelayPage<DueTimer>, StoreError> {
        let operation = TimersPage::new(&self.settings, now_s, start, limit);
        let operation = self.link.built(operation)?;
        self.run(operation)
    }

    /// Takes an entry of outbox or spawns off, if it is still the one that was read; whether it was. See [`AckEntry`].
    ///
    /// # Errors
    /// [`StoreError::Refused`], [`StoreError::Io`]: try again.
    pub fn ack_entry<E: Entry>(&mut self, entry: &E) -> Result<bool, StoreError> {
        let operation = AckEntry::new(&self.settings, entry);
        self.run(operation)
    }

    /// Puts events of the outbox into the queues of the transport on the same Redis and takes them off, in one step; what
    /// became of each. See [`Deliver`].
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::Corrupt`] and [`StoreError::Refused`], nothing was delivered;
    /// [`StoreError::Io`]: try again.
    pub fn deliver(
        &mut self,
        entries: &[(OutboxEntry, Priority)],
    ) -> Result<Vec<Delivered>, StoreError> {
        let operation = Deliver::outbox(&self.settings, entries)?;
        self.run(operation)
    }

    /// As [`deliver`](Self::deliver), of due timers: each causes a [`timeout_event`](crate::relay::timeout_event).
    ///
    /// # Errors
    /// As for [`deliver`](Self::deliver).
    pub fn fire(&mut self, timers: &[(DueTimer, Priority)]) -> Result<Vec<Delivered>, StoreError> {
        let operation = Deliver::timers(&self.settings, timers)?;
        self.run(operation)
    }

    /// Sets an entry aside that nobody can work off; whether it still was what was read. See [`Quarantine`].
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Refused`]; [`StoreError::Io`]: try again.
    pub fn quarantine(&mut self, poison: &Poison) -> Result<bool, StoreError> {
        let operation = Quarantine::new(&self.settings, poison);
        self.run(operation)
    }

    /// Raises counters that are behind what waits; to be called before the first commit after a start. See
    /// [`RepairCounters`].
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Refused`]; [`StoreError::Io`]: try again.
    pub fn repair_counters(&mut self) -> Result<Repaired, StoreError> {
        let operation = RepairCounters::new(&self.settings);
        self.run(operation)
    }
}
