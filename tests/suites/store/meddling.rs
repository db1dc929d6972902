//! A connection that does to one batch what networks and rivals do.

use std::{collections::BTreeMap, fmt, io};

use redis::{Cmd, ConnectionLike, Pipeline, RedisError, RedisFuture, RedisResult, Value, aio};

/// What happens to a batch.
pub(crate) enum Fault {
    /// It does not reach the server.
    DropBefore,
    /// It reaches the server; the reply does not come back.
    LoseReply,
    /// The connection never answers, neither with a reply nor with an error.
    Hang,
    /// Something else happens first.
    Before(Box<dyn FnMut() + Send>),
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DropBefore => "drop before",
            Self::LoseReply => "lose reply",
            Self::Hang => "hang",
            Self::Before(_) => "before",
        })
    }
}

/// What happens to which batch, counted from 0.
#[derive(Debug, Default)]
pub(crate) struct Plan(BTreeMap<usize, Fault>);

impl Plan {
    pub(crate) fn none() -> Self {
        Self(BTreeMap::new())
    }

    pub(crate) fn at(batch: usize, fault: Fault) -> Self {
        Self(BTreeMap::from([(batch, fault)]))
    }

    /// One more fault.
    pub(crate) fn and(mut self, batch: usize, fault: Fault) -> Self {
        self.0.insert(batch, fault);
        self
    }

    /// A rival's turn just before a batch.
    pub(crate) fn before(batch: usize, rival: impl FnMut() + Send + 'static) -> Self {
        Self::at(batch, Fault::Before(Box::new(rival)))
    }
}

/// The connection.
#[derive(Debug)]
pub(crate) struct Meddling<C> {
    inner: C,
    plan: Plan,
    batch: usize,
}

impl<C> Meddling<C> {
    pub(crate) fn new(inner: C, plan: Plan) -> Self {
        Self {
            inner,
            plan,
            batch: 0,
        }
    }

    /// The fault of the next batch.
    fn next(&mut self) -> Option<Fault> {
        let fault = self.plan.0.remove(&self.batch);
        self.batch += 1;
        fault
    }
}

fn lost() -> RedisError {
    io::Error::new(
        io::ErrorKind::ConnectionReset,
        "the test cut the connection",
    )
    .into()
}

impl<C: ConnectionLike> ConnectionLike for Meddling<C> {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        self.req_packed_commands(command, 0, 1)
            .map(|mut values| values.remove(0))
    }

    fn req_packed_commands(
        &mut self,
        commands: &[u8],
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        match self.next() {
            Some(Fault::DropBefore) => return Err(lost()),
            Some(Fault::LoseReply) => {
                self.inner.req_packed_commands(commands, offset, count)?;
                return Err(lost());
            }
            Some(Fault::Hang) => panic!("a blocking call can not be abandoned"),
            Some(Fault::Before(mut rival)) => rival(),
            None => {}
        }
        self.inner.req_packed_commands(commands, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.inner.get_db()
    }

    fn check_connection(&mut self) -> bool {
        self.inner.check_connection()
    }

    fn is_open(&self) -> bool {
        self.inner.is_open()
    }
}

impl<C: aio::ConnectionLike + Send> aio::ConnectionLike for Meddling<C> {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let mut single = Pipeline::new();
            single.add_command(command.clone());
            let values = self.req_packed_commands(&single, 0, 1).await?;
            values.into_iter().next().unwrap().extract_error()
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            match self.next() {
                Some(Fault::DropBefore) => return Err(lost()),
                Some(Fault::LoseReply) => {
                    self.inner
                        .req_packed_commands(pipeline, offset, count)
                        .await?;
                    return Err(lost());
                }
                Some(Fault::Hang) => {
                    self.inner
                        .req_packed_commands(pipeline, offset, count)
                        .await?;
                    std::future::pending::<()>().await;
                }
                Some(Fault::Before(mut rival)) => rival(),
                None => {}
            }
            self.inner
                .req_packed_commands(pipeline, offset, count)
                .await
        })
    }

    fn get_db(&self) -> i64 {
        self.inner.get_db()
    }
}
