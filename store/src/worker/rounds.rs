//! [`Rounds`]: the turns of a worker over all stores that it works at, one after the other.

use std::time::Duration;

use super::{
    Conduct, StopHandle, Swept, Turn, WorkerOptions,
    core::{Core, Crew},
    handler::Trouble,
    territory::Territory,
};
use crate::{Document, Settings, StoreError, retry::Tries, transport::Tokens};

#[derive(Debug)]
pub(super) struct Rounds {
    pub(super) options: WorkerOptions,
    pub(super) tokens: Tokens,
    territory: Territory,
    cores: Vec<Core>,
    /// Whose turn is next.
    at: usize,
    idle: Idle,
}

/// The turns in a row that found nothing to do.
#[derive(Debug)]
struct Idle {
    turns: usize,
    /// The shortest pause that one of them asked for.
    wait: Duration,
}

impl Idle {
    const NONE: Self = Self {
        turns: 0,
        wait: Duration::MAX,
    };
}

impl Rounds {
    /// Beginning at the store of this number.
    pub(super) fn new(territory: Territory, at: usize, options: WorkerOptions) -> Self {
        let cores = territory
            .iter()
            .map(|settings| Core::new(settings.clone(), territory.clone(), options.clone()));
        Self {
            cores: cores.collect(),
            tokens: Tokens::random(),
            idle: Idle::NONE,
            territory,
            options,
            at,
        }
    }

    /// Where the execution with this id lies.
    pub(super) fn home(&self, id: &str) -> &Settings {
        self.territory.of(id)
    }

    pub(super) async fn run<D, C>(
        &mut self,
        crew: &mut C,
        stop: &StopHandle,
    ) -> Result<(), StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        let mut tries = Tries::new(&self.options.policy, crew.now());
        while !stop.is_stopped() {
            let pause = match self.turn(crew).await {
                Ok(turn) => {
                    tries = Tries::new(&self.options.policy, crew.now());
                    turn.wait
                }
                Err(error) => {
                    crew.conduct().trouble(&Trouble::Failed(&error));
                    let (now, random) = (crew.now(), crew.draw());
                    tries.next(now, random).ok_or(error)?
                }
            };
            if !pause.is_zero() {
                crew.sleep(pause).await;
            }
        }
        Ok(())
    }

    /// A turn at the next store. There is a pause only when all of them had nothing to do, one after the other.
    pub(super) async fn turn<D, C>(&mut self, crew: &mut C) -> Result<Turn, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        let token = self.tokens.token(&self.options.name);
        let count = self.cores.len();
        let at = self.at % count;
        self.at = at + 1;
        let Some(core) = self.cores.get_mut(at) else {
            return Ok(Turn::default());
        };
        let mut turn = core.turn(crew, token).await?;
        if !turn.is_idle() {
            self.idle = Idle::NONE;
            return Ok(turn);
        }
        self.idle.turns += 1;
        self.idle.wait = self.idle.wait.min(turn.wait);
        turn.wait = if self.idle.turns < count {
            Duration::ZERO
        } else {
            std::mem::replace(&mut self.idle, Idle::NONE).wait
        };
        Ok(turn)
    }

    /// Sweeps all of them until nothing moves any more: what is moved out of one may leave something in another.
    pub(super) async fn sweep_all<D, C>(&mut self, crew: &mut C) -> Result<Swept, StoreError>
    where
        D: Document + Send,
        C: Crew<D>,
    {
        let mut total = Swept::default();
        loop {
            let mut round = Swept::default();
            for core in &mut self.cores {
                round.add(core.sweep_all(crew).await?);
            }
            total.add(Swept { left: 0, ..round });
            if round.moved() == 0 || self.cores.len() == 1 {
                total.left = round.left;
                return Ok(total);
            }
        }
    }
}
