//! What a worker sweeps up: outbox, spawns, due timers, a page of each.

use std::collections::BTreeMap;

use super::{
    Conduct, Swept, Trouble,
    core::{Core, Crew},
};
use crate::{
    Document, DueTimer, OutboxEntry, Settings, SpawnEntry, StoreError,
    op::{CommitOperation, Load},
    relay::{
        AckEntry, Continuation, Deliver, Delivered, Entry, EntryPage, Origin, PageStart, Poison,
        Probe, Quarantine, TimersPage, timeout_event,
    },
    transport::{Clock, Priority},
};

impl Core {
    /// A page of everything that waits; what it costs does not depend on how much that is.
    pub(super) async fn sweep<D, C>(&mut self, crew: &mut C) -> Result<Swept, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        self.repair(crew).await?;
        let waiting = crew.run(&self.settings, Probe::new(&self.settings)).await?;
        self.unfinished = false;
        let mut swept = Swept::default();
        let now_s = match self.options.clock {
            Clock::Fixed(now_ms) => now_ms as f64 / 1000.0,
            Clock::Server => waiting.now_s,
        };
        if waiting.next_timer_s.is_some_and(|timer_s| timer_s <= now_s) {
            swept.add(self.sweep_timers(crew, now_s).await?);
        }
        if waiting.spawns > 0 {
            swept.add(self.sweep_spawns(crew).await?);
        }
        if waiting.outbox > 0 {
            swept.add(self.sweep_outbox(crew).await?);
        }
        self.swept_at = Some(crew.now());
        Ok(swept)
    }

    /// Sweeps until nothing moves any more, whatever is left.
    pub(super) async fn sweep_all<D, C>(&mut self, crew: &mut C) -> Result<Swept, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        let mut total = Swept::default();
        loop {
            let swept = self.sweep(crew).await?;
            let (is_still, is_round) = (swept.moved() == 0, self.places.is_at_start());
            total.add(Swept { left: 0, ..swept });
            if is_still && is_round {
                total.left = swept.left;
                return Ok(total);
            }
        }
    }

    async fn sweep_outbox<D, C>(&mut self, crew: &mut C) -> Result<Swept, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        let start = start(self.places.outbox.take());
        let page = EntryPage::<OutboxEntry>::new(&self.settings, start, self.options.page);
        let page = crew.run(&self.settings, page).await?;
        self.go_on(page.next);
        self.places.outbox = page.next;
        let quarantined = set_aside(&self.settings, crew, &page.poison).await?;
        let outcomes = self.deliver(crew, &self.settings, page.entries).await?;
        let (delivered, left) = tally(crew, &outcomes);
        Ok(Swept {
            delivered,
            quarantined,
            left,
            ..Swept::default()
        })
    }

    async fn sweep_timers<D, C>(&mut self, crew: &mut C, now_s: f64) -> Result<Swept, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        let start = start(self.places.timers.take());
        let page = TimersPage::new(&self.settings, now_s, start, self.options.page)?;
        let page = crew.run(&self.settings, page).await?;
        self.go_on(page.next);
        let quarantined = set_aside(&self.settings, crew, &page.poison).await?;
        let timers: Vec<(DueTimer, Priority)> = page
            .entries
            .into_iter()
            .map(|timer| {
                let event = timeout_event(&timer);
                let priority = crew.conduct().priority(&timer.execution_id, &event);
                (timer, priority)
            })
            .collect();
        let deliver = Deliver::timers(&self.settings, &timers)?;
        let outcomes = crew.run(&self.settings, deliver).await?;
        let ids = timers.into_iter().map(|(timer, _)| timer.execution_id);
        let (fired, left) = tally(crew, &ids.zip(outcomes).collect::<Vec<_>>());
        // What was fired is gone; only what is left has to be stepped over.
        self.places.timers = page.next.filter(|_| fired + quarantined == 0);
        Ok(Swept {
            fired,
            quarantined,
            left,
            ..Swept::default()
        })
    }

    async fn sweep_spawns<D, C>(&mut self, crew: &mut C) -> Result<Swept, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        let start = start(self.places.spawns.take());
        let page = EntryPage::<SpawnEntry>::new(&self.settings, start, self.options.page);
        let page = crew.run(&self.settings, page).await?;
        self.go_on(page.next);
        self.places.spawns = page.next;
        let mut swept = Swept {
            quarantined: set_aside(&self.settings, crew, &page.poison).await?,
            ..Swept::default()
        };
        let mut parents: BTreeMap<String, Option<D>> = BTreeMap::new();
        for entry in &page.entries {
            if !parents.contains_key(&entry.parent_id) {
                let load = Load::<D>::of(&self.settings, &entry.parent_id);
                let parent = match crew.run(&self.settings, load).await {
                    Ok(parent) => parent,
                    Err(error) => {
                        passable(crew, &entry.child_id, error)?;
                        swept.left += 1;
                        continue;
                    }
                };
                parents.insert(entry.parent_id.clone(), parent);
            }
            let Some(Some(parent)) = parents.get(&entry.parent_id) else {
                swept.quarantined += set_aside(&self.settings, crew, &[orphan(entry)]).await?;
                continue;
            };
            match self.start(crew, parent, entry).await {
                Ok(true) => swept.started += 1,
                Ok(false) => swept.left += 1,
                Err(error) => {
                    passable(crew, &entry.child_id, error)?;
                    swept.left += 1;
                }
            }
        }
        Ok(swept)
    }

    /// Creates a child and takes its entry off; whether that is done. A child that is there already was created by somebody
    /// who did not come to take the entry off.
    pub(super) async fn start<D, C>(
        &mut self,
        crew: &mut C,
        parent: &D,
        entry: &SpawnEntry,
    ) -> Result<bool, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        let Some((child, commit)) = crew.conduct().child(parent, entry) else {
            return Ok(false);
        };
        if child.id() != entry.child_id {
            return Err(StoreError::Invalid {
                what: "id of a child",
                reason: crate::Rejection::OtherDocument,
            });
        }
        let home = self.territory.of(&entry.child_id).clone();
        let create = CommitOperation::creating(&home, &child, &commit)?;
        match crew.run(&home, create).await {
            Ok(committed) => {
                self.unfinished |= !commit.spawns.is_empty();
                self.deliver_own(crew, &home, &commit, &committed).await;
            }
            Err(StoreError::AlreadyExists { .. }) => {}
            Err(error) => return Err(error),
        }
        crew.run(&self.settings, AckEntry::new(&self.settings, entry))
            .await?;
        Ok(true)
    }

    fn go_on(&mut self, next: Option<Continuation>) {
        self.unfinished |= next.is_some();
    }
}

/// How many were still there. (Not a method: a worker that is shared between threads while it waits would be no task.)
async fn set_aside<D, C>(
    settings: &Settings,
    crew: &mut C,
    poison: &[Poison],
) -> Result<u64, StoreError>
where
    D: Document + Send,
    C: Crew<D>,
{
    let mut count = 0;
    for poison in poison {
        if crew
            .run(settings, Quarantine::new(settings, poison))
            .await?
        {
            count += 1;
            crew.conduct().trouble(&Trouble::Quarantined(poison));
        }
    }
    Ok(count)
}

impl super::core::Places {
    fn is_at_start(&self) -> bool {
        self.outbox.is_none() && self.spawns.is_none() && self.timers.is_none()
    }
}

fn start(place: Option<Continuation>) -> PageStart {
    place.map_or(PageStart::Anywhere, PageStart::At)
}

/// How many are done, and how many could not be.
fn tally<D, C>(crew: &mut C, outcomes: &[(String, Delivered)]) -> (u64, u64)
where
    D: Document,
    C: Crew<D>,
{
    let (mut done, mut left) = (0, 0);
    for (id, outcome) in outcomes {
        match outcome {
            Delivered::Done => done += 1,
            Delivered::Gone => {}
            Delivered::Blocked => {
                left += 1;
                crew.conduct().trouble(&Trouble::Left { id, error: None });
            }
        }
    }
    (done, left)
}

/// Whether the sweep can go on with the next entry.
fn passable<D, C>(crew: &mut C, id: &str, error: StoreError) -> Result<(), StoreError>
where
    D: Document,
    C: Crew<D>,
{
    if let StoreError::Io { .. } | StoreError::Refused { .. } = error {
        return Err(error);
    }
    let error = Some(&error);
    crew.conduct().trouble(&Trouble::Left { id, error });
    Ok(())
}

/// A spawn intent whose parent is gone: nobody can say any more which definition the child runs.
fn orphan(entry: &SpawnEntry) -> Poison {
    let gone = StoreError::Corrupt {
        key: String::new(),
        field: None,
        reason: format!("its parent {} is gone", entry.parent_id),
    };
    let field = entry.seq.to_string().into_bytes();
    Poison::new(Origin::Spawns, field, entry.stored().to_vec(), &gone)
}
