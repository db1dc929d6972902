//! [`OnThread`]: blocking code as a client. Its connections are [`redis::ConnectionLike`], so that code which is generic over
//! that, scripts and `redis::transaction` run unmodified.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use redis::{Cmd, RedisResult, Value};
use tokio::runtime::Handle;

use super::coroutine::{Coroutine, Refusal, Resumed};
use crate::explore::connection::{Connection, Connector, request_of};
use crate::explore::escape::Escape;
use crate::explore::gate::{Gate, closed};
use crate::explore::history::Recorder;
use crate::explore::schedule::Lane;
use crate::explore::trace::in_words;
use crate::explore::{Client, LANES_MAX};
use crate::redis_client::{answers, requests};
use crate::wire::Request;

/// How long a client's thread may be away from the gate. No decision depends on it: it only ends what would never end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest text of a command in a message.
const COMMAND_LEN_MAX: usize = 60;

impl<I: Send + 'static, O: Send + 'static> Client<I, O> {
    /// Runs blocking code of this client on a thread of its own, under the control of the schedule: exact, as asynchronous code
    /// is. The thread runs only while no other client's code does, and waits whenever it waits for a reply.
    ///
    /// `std::thread::sleep` takes real time in which nothing else happens; [`BlockingClient::sleep`] takes virtual time. A
    /// client that waits for another one outside of the server (a lock that is held across a command, a channel) never comes
    /// back: after ten seconds of real time the run is refused, with the name of the client and its last command.
    ///
    /// ```
    /// # #[cfg(feature = "explore")] {
    /// use fakeserver::explore::Client;
    ///
    /// fn add_one(connection: &mut impl redis::ConnectionLike) -> redis::RedisResult<()> {
    ///     let count: i64 = redis::cmd("GET").arg("n").query(connection)?;
    ///     redis::cmd("SET").arg("n").arg(count + 1).exec(connection)
    /// }
    ///
    /// // What `Workload::client` returns, boxed.
    /// async fn client(client: Client<(), ()>) {
    ///     client.on_thread(|client| add_one(&mut client.connect().unwrap()).unwrap()).await
    /// }
    /// # }
    /// ```
    pub fn on_thread<T, F>(&self, run: F) -> OnThread<T>
    where
        T: Send + 'static,
        F: FnOnce(BlockingClient<I, O>) -> T + Send + 'static,
    {
        let (index, connector, recorder) = (self.index(), self.connector(), self.recorder());
        let gate = Arc::clone(&connector.gate);
        let begin = move |coroutine: Arc<Coroutine>| {
            let connector = BlockingConnector {
                connector,
                coroutine,
            };
            connector.connector.gate.adopt_thread();
            run(BlockingClient {
                index,
                connector,
                recorder,
            })
        };
        OnThread {
            gate,
            client: index,
            patience: PATIENCE,
            state: Stage::Ready(Box::new(begin)),
        }
    }
}

type Begin<T> = Box<dyn FnOnce(Arc<Coroutine>) -> T + Send>;
type Outcome<T> = Arc<Mutex<Option<Result<T, Box<dyn Any + Send>>>>>;

enum Stage<T> {
    Ready(Begin<T>),
    Running(Arc<Coroutine>, Outcome<T>),
    /// It is somewhere else than at the gate.
    Gone(Arc<Coroutine>),
    Done,
}

/// Blocking code on a thread, made by [`Client::on_thread`]. Nothing runs before it is awaited; dropping it ends the code at
/// its next command by unwinding.
#[must_use = "nothing runs unless it is awaited"]
pub struct OnThread<T> {
    gate: Arc<Gate>,
    client: usize,
    patience: Duration,
    state: Stage<T>,
}

impl<T> fmt::Debug for OnThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnThread(client {})", self.client)
    }
}

impl<T: Send + 'static> OnThread<T> {
    /// For how long of real time the code may be away from the server, ten seconds by default.
    pub fn patience(mut self, patience: Duration) -> OnThread<T> {
        self.patience = patience;
        self
    }

    fn begin(&mut self, begin: Begin<T>) -> std::io::Result<()> {
        let runtime = Handle::try_current().map_err(std::io::Error::other)?;
        let coroutine = Coroutine::new(runtime);
        let (own, outcome) = (Arc::clone(&coroutine), Outcome::<T>::default());
        let slot = Arc::clone(&outcome);
        let finish = move |result| {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        };
        coroutine.start(name(self.client), move || begin(own), finish)?;
        self.state = Stage::Running(coroutine, outcome);
        Ok(())
    }
}

fn name(client: usize) -> String {
    match Lane::new(client) {
        Some(lane) => format!("client {lane}"),
        None => format!("client {client} (of at most {LANES_MAX})"),
    }
}

impl<T: Send + 'static> Future for OnThread<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match std::mem::replace(&mut self.state, Stage::Done) {
            Stage::Ready(begin) => {
                if let Err(error) = self.begin(begin) {
                    let whose = name(self.client);
                    refuse(&self.gate, format!("no thread for {whose}: {error}"));
                }
            }
            other => self.state = other,
        }
        let Stage::Running(coroutine, outcome) = &self.state else {
            return Poll::Pending;
        };
        match coroutine.resume(cx.waker(), self.patience) {
            Resumed::Waits => Poll::Pending,
            Resumed::Ended => {
                let result = outcome
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                self.state = Stage::Done;
                match result {
                    Some(Ok(output)) => Poll::Ready(output),
                    Some(Err(panic)) => resume_unwind(panic),
                    None => Poll::Pending,
                }
            }
            Resumed::Gone(last) => {
                let coroutine = Arc::clone(coroutine);
                self.state = Stage::Gone(coroutine);
                let since = last.map_or("it began".to_owned(), |last| format!("its {last}"));
                let what = format!(
                    "{} has not come back to the server for {:?} since {since}: it waits for another client outside of the server \
                     (a lock held across a command, a channel), or takes long by itself",
                    name(self.client),
                    self.patience
                );
                refuse(&self.gate, what);
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for OnThread<T> {
    fn drop(&mut self) {
        match &self.state {
            Stage::Running(coroutine, _) => {
                coroutine.give_up(self.patience);
            }
            // It may go on once another client has been given up, and ends then.
            Stage::Gone(coroutine) => {
                coroutine.give_up(Duration::ZERO);
            }
            Stage::Ready(_) | Stage::Done => {}
        }
    }
}

/// One client of a run, on a thread of its own.
pub struct BlockingClient<I, O> {
    index: usize,
    connector: BlockingConnector,
    recorder: Recorder<I, O>,
}

impl<I, O> fmt::Debug for BlockingClient<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockingClient({})", self.index)
    }
}

impl<I, O> BlockingClient<I, O> {
    /// Its number, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// A connection to the server.
    ///
    /// # Errors
    /// As for [`Connector::open`].
    pub fn connect(&self) -> RedisResult<BlockingConnection> {
        self.connector.open()
    }

    /// Opens connections, also after one was lost.
    pub fn connector(&self) -> BlockingConnector {
        self.connector.clone()
    }

    /// Where it marks its operations.
    pub fn recorder(&self) -> Recorder<I, O> {
        self.recorder.clone()
    }

    /// Marks an operation around a call.
    pub fn operation(&self, input: I, call: impl FnOnce() -> O) -> O
    where
        O: Clone,
    {
        let id = self.recorder.begin(self.index, input);
        let output = call();
        self.recorder.end(id, output.clone());
        output
    }

    /// Waits in virtual time, which costs nothing and lets others go on.
    pub fn sleep(&self, duration: Duration) {
        // Only a run that is given up ends it early, and then this thread unwinds.
        let _ = self.connector.wait(tokio::time::sleep, duration);
    }
}

/// Opens connections for one client on a thread.
#[derive(Clone)]
pub struct BlockingConnector {
    connector: Connector,
    coroutine: Arc<Coroutine>,
}

impl BlockingConnector {
    /// A new connection.
    ///
    /// # Errors
    /// As for [`Connector::open`].
    pub fn open(&self) -> RedisResult<BlockingConnection> {
        Ok(BlockingConnection {
            connection: self.connector.open()?,
            connector: self.clone(),
            commands: 0,
        })
    }

    /// Waits for what the function makes of the argument; made on this thread, where the runtime's timers are at hand.
    fn wait<A, F: Future>(&self, make: impl FnOnce(A) -> F, argument: A) -> RedisResult<F::Output> {
        let future = async move { make(argument).await };
        self.coroutine.block_on(future).map_err(|refusal| {
            if refusal == Refusal::Foreign {
                let whose = name(self.connector.client);
                let what = format!("{whose} uses its connection on another thread than its own");
                refuse(&self.connector.gate, what);
            }
            closed()
        })
    }
}

impl fmt::Debug for BlockingConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockingConnector(client {})", self.connector.client)
    }
}

/// A client's connection for blocking code. Each command of a write waits for its own turn, so that others can come in between.
///
/// Once it was lost every call on it fails; a new one comes from the [`BlockingConnector`].
pub struct BlockingConnection {
    connection: Connection,
    connector: BlockingConnector,
    commands: usize,
}

impl fmt::Debug for BlockingConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blocking{:?}", self.connection)
    }
}

impl BlockingConnection {
    fn exchange(&mut self, requests: Vec<Request>) -> RedisResult<Vec<Value>> {
        if let Some(last) = requests.last() {
            self.commands += requests.len();
            let text = spell(last);
            let note = format!("command {}, {text}", self.commands);
            self.connector.coroutine.note(note);
        }
        let exchange = |requests: Vec<Request>| self.connection.exchange(requests.into_iter());
        Ok(self.connector.wait(exchange, requests)??.into_vec())
    }
}

impl redis::ConnectionLike for BlockingConnection {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        let last = self.exchange(requests(command)?)?.pop();
        last.ok_or_else(|| (redis::ErrorKind::Client, "empty command").into())
    }

    fn req_packed_commands(
        &mut self,
        commands: &[u8],
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        answers(self.exchange(requests(commands)?)?, offset, count)
    }

    fn req_command(&mut self, command: &Cmd) -> RedisResult<Value> {
        let mut replies = self.exchange(vec![request_of(command)])?;
        replies.pop().ok_or_else(closed)
    }

    fn get_db(&self) -> i64 {
        0
    }

    fn check_connection(&mut self) -> bool {
        redis::cmd("PING").exec(self).is_ok()
    }

    fn is_open(&self) -> bool {
        self.connection.is_open()
    }
}

/// Gives up the run, since a client does what cannot be put under control.
fn refuse(gate: &Gate, what: String) {
    gate.escape(Escape::of_client(what, gate.progress()));
}

fn spell(request: &Request) -> String {
    let mut text = in_words(request);
    // Escapes are ASCII, so that every place is a border of characters.
    text.truncate(COMMAND_LEN_MAX);
    text
}
