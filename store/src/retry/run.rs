//! Load, decide, commit, and again after a conflict.

use super::{Decision, Host, Retried, RetryPolicy, Round, Tries};
use crate::{
    Attempt, Committed, Document, Resolution, Settings, StoreError,
    op::{CommitOperation, Load, Resolve},
};

/// See `with_retry` of either store.
pub(crate) async fn with_retry<H, D, F>(
    host: &mut H,
    settings: &Settings,
    id: &str,
    policy: &RetryPolicy,
    mut decide: F,
) -> Result<Retried<D>, StoreError>
where
    H: Host,
    D: Document + Send,
    F: FnMut(&mut D, &Round) -> Decision,
{
    let mut flow = Flow {
        settings,
        tries: Tries::new(policy, host.now()),
        doubtful: Vec::new(),
        last_error: None,
    };
    loop {
        let error = match flow.round(host, id, &mut decide).await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let again = matches!(
            error,
            StoreError::Conflict { .. }
                | StoreError::Io { .. }
                | StoreError::Indeterminate {
                    attempt: Some(_),
                    ..
                }
        );
        let pause = if again {
            let (now, random) = (host.now(), host.draw());
            flow.tries.next(now, random)
        } else {
            None
        };
        let Some(pause) = pause else {
            return Err(flow.verdict(error));
        };
        flow.last_error = Some(error);
        host.sleep(pause).await;
        host.retried();
    }
}

struct Flow<'a> {
    settings: &'a Settings,
    tries: Tries,
    /// Commits whose reply was lost and that may still land, with the errors that said so; all at one version, so that one of
    /// them at most does.
    doubtful: Vec<(Attempt, StoreError)>,
    last_error: Option<StoreError>,
}

impl Flow<'_> {
    /// One round. An error is that of the round; whether there is another one is the caller's to say.
    async fn round<H, D, F>(
        &mut self,
        host: &mut H,
        id: &str,
        decide: &mut F,
    ) -> Result<Retried<D>, StoreError>
    where
        H: Host,
        D: Document + Send,
        F: FnMut(&mut D, &Round) -> Decision,
    {
        let loaded = host
            .run(self.settings, Load::<D>::of(self.settings, id))
            .await?;
        if let Some(done) = self.settle(host, loaded.as_ref()).await? {
            return match done {
                Settled::Landed(document, committed) => Ok(Retried::Committed(document, committed)),
                Settled::Overtaken => {
                    // What was loaded may be older than what was found out.
                    let loaded = host
                        .run(self.settings, Load::<D>::of(self.settings, id))
                        .await?;
                    Ok(loaded.map_or(Retried::Missing, Retried::Overtaken))
                }
            };
        }
        let Some(mut document) = loaded else {
            return Ok(Retried::Missing);
        };
        let round = Round {
            number: self.tries.number(),
            last_error: self.last_error.clone(),
        };
        let commit = match decide(&mut document, &round) {
            Decision::Commit(commit) => commit,
            Decision::Leave => return self.left(document),
        };
        let operation = CommitOperation::new(self.settings, &document, &commit)?;
        match host.run(self.settings, operation).await {
            Ok(committed) => {
                committed.note(&mut document);
                Ok(Retried::Committed(document, committed))
            }
            Err(error) => {
                if let StoreError::Indeterminate {
                    attempt: Some(attempt),
                    ..
                } = &error
                {
                    self.doubtful.push((attempt.clone(), error.clone()));
                }
                Err(error)
            }
        }
    }

    /// Leaving a document is no answer while a commit of ours may still land.
    fn left<D>(&self, document: D) -> Result<Retried<D>, StoreError> {
        match self.doubtful.last() {
            Some((_, error)) => Err(error.clone()),
            None => Ok(Retried::Left(document)),
        }
    }

    /// What became of the commits whose reply was lost, now that a row was loaded. None: none of them has landed, and if one
    /// still can, then only at the version that was loaded, so that a commit of this round rules it out.
    async fn settle<H, D>(
        &mut self,
        host: &mut H,
        loaded: Option<&D>,
    ) -> Result<Option<Settled<D>>, StoreError>
    where
        H: Host,
        D: Document + Send,
    {
        let version = loaded.map(Document::version);
        let mut open = Vec::new();
        for (attempt, error) in std::mem::take(&mut self.doubtful) {
            let resolve = Resolve::new(self.settings, &attempt);
            let resolution = host.run(self.settings, resolve).await;
            let resolution = match resolution {
                Ok(resolution) => resolution,
                Err(failed) => {
                    self.doubtful.push((attempt, error));
                    self.doubtful.append(&mut open);
                    return Err(failed);
                }
            };
            match resolution {
                Resolution::Landed(committed) => {
                    let row = D::decode(attempt.row(), self.settings);
                    let mut document = row.map_err(|reason| StoreError::Corrupt {
                        key: self.settings.keys().execution(attempt.id()),
                        field: None,
                        reason,
                    })?;
                    committed.note(&mut document);
                    return Ok(Some(Settled::Landed(document, committed)));
                }
                Resolution::Overtaken {
                    is_event_processed: Some(true),
                    ..
                } => return Ok(Some(Settled::Overtaken)),
                // Nothing is left by which to tell.
                Resolution::Overtaken { .. } => {
                    self.tries.exhaust();
                    return Err(error);
                }
                Resolution::NotLanded { is_final: true, .. } => {}
                Resolution::NotLanded { .. } => open.push((attempt, error)),
            }
        }
        // A row that has moved between the two reads says nothing about those that were open at the first.
        let moved = open
            .iter()
            .any(|(attempt, _)| version != Some(attempt.expected()));
        self.doubtful = open;
        match (moved, self.doubtful.first()) {
            (true, Some((_, error))) => Err(error.clone()),
            _ => Ok(None),
        }
    }

    /// What the caller hears: a commit that may still land outweighs whatever came after it.
    fn verdict(&mut self, error: StoreError) -> StoreError {
        match self.doubtful.pop() {
            Some((_, doubt)) => doubt,
            None => error,
        }
    }
}

enum Settled<D> {
    Landed(D, Committed),
    Overtaken,
}
