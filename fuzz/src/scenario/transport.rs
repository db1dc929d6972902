//! [`Duel`]: workers on one queue, as the explorer runs them.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use fakeserver::explore::{Client, Connector, Run, Violation, Workload};
use redis::Value;
use store::transport::{AsyncRedisTransport, Lease, Priority, Tokens};
use store::{Event, Settings};

use super::GatedConnections;
use crate::control::{InTurn, TransportFlaw};

/// What two or three workers do to one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bout {
    /// One gives its lease back; the lease ends meanwhile, and others claim.
    NackAgainstExpiry,
    /// One acknowledges; the lease ends meanwhile, and another claims.
    AckAgainstExpiry,
    /// One acknowledges while others claim.
    AckAgainstClaim,
    /// One acknowledges the only event while another is published.
    AckAgainstPublish,
    /// All claim.
    Claims,
}

impl Bout {
    /// All of them.
    pub const ALL: [Bout; 5] = [
        Bout::NackAgainstExpiry,
        Bout::AckAgainstExpiry,
        Bout::AckAgainstClaim,
        Bout::AckAgainstPublish,
        Bout::Claims,
    ];
}

impl TransportFlaw {
    /// Where it shows.
    pub fn bout(self) -> Bout {
        match self {
            TransportFlaw::NackInFour => Bout::NackAgainstExpiry,
            TransportFlaw::AckUnfenced => Bout::AckAgainstExpiry,
            TransportFlaw::DrainUnguarded => Bout::AckAgainstPublish,
            TransportFlaw::ClaimInTwo => Bout::Claims,
        }
    }
}

/// A bout, on the transport or on a broken one.
#[derive(Clone, Copy, Debug)]
pub struct Duel {
    /// What the workers do.
    pub bout: Bout,
    /// How many there are, two at least.
    pub workers: usize,
    /// What is broken, if something is.
    pub flaw: Option<TransportFlaw>,
}

/// What a worker marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It claims a lease that it gives back or acknowledges.
    Claim,
    /// It claims a lease that it keeps: nothing ends it.
    Hold,
    /// It acknowledges; the answer is the event if the transport says that it did.
    Ack,
}

/// Token and event of a lease; none if there was none, or if the reply was lost.
pub type Held = Option<(String, String)>;

type Transport = AsyncRedisTransport<GatedConnections>;

const GROUP: &str = "g";
const PREFIX: &str = "duel";
const LONG: Duration = Duration::from_secs(30);

impl Duel {
    /// On the transport that is shipped.
    pub fn new(bout: Bout, workers: usize) -> Duel {
        Duel {
            bout,
            workers,
            flaw: None,
        }
    }

    /// Where a broken transport shows.
    pub fn control(flaw: TransportFlaw) -> Duel {
        Duel {
            bout: flaw.bout(),
            workers: 2,
            flaw: Some(flaw),
        }
    }

    fn settings() -> Settings {
        Settings::new(PREFIX).unwrap_or_default()
    }

    fn transport(connector: Connector, worker: usize) -> Transport {
        let mut count = worker as u128 * 1_000;
        let tokens = Tokens::new(move || {
            count += 1;
            count
        });
        let connections = GatedConnections::new(connector);
        AsyncRedisTransport::with_connections(connections, Duel::settings()).tokens(tokens)
    }

    fn events(self) -> &'static [&'static str] {
        match self.bout {
            Bout::AckAgainstPublish => &["e1"],
            _ => &["e1", "e2"],
        }
    }

    async fn first(self, transport: &mut Transport, client: &Client<Act, Held>) {
        let Some(lease) = self.claim(transport, client, Act::Claim).await else {
            return;
        };
        let settings = Duel::settings();
        let event = (lease.token.clone(), lease.event.id.clone());
        match (self.bout, self.flaw) {
            (Bout::NackAgainstExpiry, Some(_)) => {
                let _ = transport.run(InTurn::nack(&settings, &lease)).await;
            }
            (Bout::NackAgainstExpiry, None) => {
                let _ = transport.nack(&lease, Duration::ZERO).await;
            }
            (_, flaw) => {
                let ack = async {
                    let done = match flaw {
                        Some(TransportFlaw::DrainUnguarded) => {
                            transport.run(InTurn::drain(&settings, &lease)).await
                        }
                        Some(_) => transport.run(InTurn::ack(&settings, &lease)).await,
                        None => transport.ack(&lease).await,
                    };
                    done.is_ok_and(|done| done).then_some(event)
                };
                client.operation(Act::Ack, ack).await;
            }
        }
    }

    async fn rival(self, transport: &mut Transport, client: &Client<Act, Held>) {
        let expires = matches!(self.bout, Bout::NackAgainstExpiry | Bout::AckAgainstExpiry);
        if self.bout == Bout::AckAgainstPublish {
            let event = Event::new(format!("p{}", client.index()), "K");
            let _ = transport.publish(GROUP, &event, Priority::MIN).await;
            return;
        }
        if expires && client.index() == 1 {
            let _ = transport
                .run(InTurn::expire(&Duel::settings(), GROUP))
                .await;
            self.claim(transport, client, Act::Hold).await;
        } else {
            self.claim(transport, client, Act::Claim).await;
        }
    }

    async fn claim(
        self,
        transport: &mut Transport,
        client: &Client<Act, Held>,
        act: Act,
    ) -> Option<Lease> {
        let mut lease = None;
        let claim = async {
            if self.flaw == Some(TransportFlaw::ClaimInTwo) {
                let token = format!("t{}", client.index());
                let locks = InTurn::claim(&Duel::settings(), GROUP, &token);
                let locked = transport.run(locks).await.is_ok_and(|free| free);
                return locked.then(|| (token, "e1".to_owned()));
            }
            let claimed = transport.claim("w", LONG, Priority::MIN).await;
            lease = claimed.ok().and_then(|claimed| claimed.lease);
            let lease = lease.as_ref()?;
            Some((lease.token.clone(), lease.event.id.clone()))
        };
        client.operation(act, claim).await;
        lease
    }

    fn judge(self, run: &Run<Act, Held>, left: &Left) -> Result<(), Violation> {
        let wrong = |property: &str| Err(Violation::new(property, format!("{left:?}")));
        let reachable = left.ready && left.prioritised;
        if !left.queue.is_empty() && !reachable {
            return wrong("stranded");
        }
        let held = |act| {
            let marks = run.history.iter().filter(move |mark| mark.input == act);
            marks.filter_map(|mark| mark.output.clone().flatten())
        };
        for (token, event) in held(Act::Hold) {
            if left.lock.as_ref() != Some(&token) {
                return wrong("fenced");
            }
            if left.queue.first() != Some(&event) {
                return wrong("kept");
            }
        }
        if self.bout == Bout::Claims && held(Act::Claim).count() > 1 {
            return wrong("exclusive");
        }
        let mut acked: Vec<String> = held(Act::Ack).map(|(_, event)| event).collect();
        acked.retain(|event| left.queue.contains(event));
        if !acked.is_empty() {
            return wrong("acknowledged");
        }
        Ok(())
    }
}

/// What the run left.
#[derive(Debug)]
struct Left {
    lock: Option<String>,
    queue: Vec<String>,
    ready: bool,
    prioritised: bool,
}

impl Left {
    fn read(run: &Run<Act, Held>) -> redis::RedisResult<Left> {
        let keys = Duel::settings().keys().clone();
        let read = |words: &[&str]| run.call(words);
        let range = read(&["LRANGE", &keys.queue(GROUP), "0", "-1"])?;
        let events: Vec<String> = redis::from_redis_value(range)?;
        let id = |event: &String| {
            let event: serde_json::Value = serde_json::from_str(event).unwrap_or_default();
            event["id"].as_str().unwrap_or_default().to_owned()
        };
        let score = read(&["ZSCORE", &keys.ready(Priority::MIN), GROUP])?;
        let priority = read(&["HGET", &keys.priorities(), GROUP])?;
        Ok(Left {
            lock: redis::from_redis_value(read(&["GET", &keys.lock(GROUP)])?)?,
            queue: events.iter().map(id).collect(),
            ready: score != Value::Nil,
            prioritised: priority != Value::Nil,
        })
    }
}

impl Workload for Duel {
    type Input = Act;
    type Output = Held;

    fn description(&self) -> String {
        format!("{self:?}")
    }

    fn clients(&self) -> usize {
        self.workers
    }

    fn prepare(&self, connector: Connector) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let events = self.events();
        Box::pin(async move {
            let mut transport = Duel::transport(connector, 100);
            // The server gets to know all scripts.
            for id in ["warm"].iter().chain(events) {
                let event = Event::new(*id, "K");
                let published = transport.publish(GROUP, &event, Priority::MIN).await;
                published.expect("an empty queue takes events");
                if *id == "warm" {
                    let claimed = transport.claim("w", LONG, Priority::MIN).await;
                    let lease = claimed.ok().and_then(|claimed| claimed.lease);
                    let lease = lease.expect("there is an event");
                    transport.ack(&lease).await.expect("the lease holds");
                }
            }
        })
    }

    fn client(&self, client: Client<Act, Held>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let duel = *self;
        Box::pin(async move {
            let mut transport = Duel::transport(client.connector(), client.index());
            if client.index() == 0 && duel.bout != Bout::Claims {
                duel.first(&mut transport, &client).await;
            } else {
                duel.rival(&mut transport, &client).await;
            }
        })
    }

    fn check(&self, run: &Run<Act, Held>) -> Result<(), Violation> {
        let left =
            Left::read(run).map_err(|error| Violation::new("readable", error.to_string()))?;
        self.judge(run, &left)
    }
}
