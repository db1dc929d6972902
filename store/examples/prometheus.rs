//! Serves the metrics of a store to Prometheus, and prints what a scrape shows.
//!
//! `cargo run -p store --features metrics --example prometheus -- redis://127.0.0.1:6379/` (or `REDIS_URL`).

use std::{
    env,
    error::Error,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::ExitCode,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use store::{Commit, Event, Execution, Observer, RedisStore, Settings, describe_metrics};

/// The bounds of the histogram, in seconds: a round trip to a near server is well below a millisecond.
const BUCKETS_S: [f64; 8] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.1, 1.0, 5.0];
/// A scraper that sends more than this before the end of its request is none.
const REQUEST_LEN_MAX: u64 = 16_384;
const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let Some(url) = env::args().nth(1).or_else(|| env::var("REDIS_URL").ok()) else {
        eprintln!("usage: prometheus REDIS_URL");
        return ExitCode::from(2);
    };
    match run(&url) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("prometheus: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(url: &str) -> Result<(), Box<dyn Error>> {
    let recorder = PrometheusBuilder::new()
        .set_buckets(&BUCKETS_S)?
        .install_recorder()?;
    describe_metrics();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || serve(&listener, &recorder));

    let mut store = RedisStore::from_url(url)?
        .settings(Settings::new("example")?)
        .observed(Observer::named("orders"));
    work(&mut store)?;

    let mut shown = io::stdout().lock();
    for line in scrape(address)?.lines() {
        if !line.is_empty() && !line.starts_with('#') {
            writeln!(shown, "{line}")?;
        }
    }
    Ok(())
}

fn work<P: store::sync::Connections>(store: &mut RedisStore<P>) -> Result<(), Box<dyn Error>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let mut order = Execution::new(format!("order-{}", now.as_nanos()), "order");
    let mut stale = order.clone();
    let paid = Event::new(format!("paid-{}", now.as_nanos()), "Paid");
    store.create(&mut order, &Commit::new().emit(None, paid))?;
    // Somebody who has not loaded it conflicts; that is counted, too.
    if store.save(&mut stale).is_ok() {
        return Err("a stale write was accepted".into());
    }
    store.record_backlog(now.as_secs_f64())?;
    Ok(())
}

/// Answers every request with the metrics. A thread of its own is all that it takes.
fn serve(listener: &TcpListener, recorder: &PrometheusHandle) {
    for stream in listener.incoming() {
        // A scraper that went away is no reason to stop.
        let answered = stream.and_then(|stream| answer(stream, recorder));
        if let Err(error) = answered {
            eprintln!("prometheus: {error}");
        }
    }
}

fn answer(mut stream: TcpStream, recorder: &PrometheusHandle) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = BufReader::new(stream.try_clone()?).take(REQUEST_LEN_MAX);
    for line in request.lines() {
        if line?.is_empty() {
            break;
        }
    }
    recorder.run_upkeep();
    let body = recorder.render();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

/// What Prometheus would see.
fn scrape(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    body.ok_or_else(|| io::Error::other("no body"))
}
