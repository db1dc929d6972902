//! Sweeps of small programs: each clause of the judge has one that only it catches.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use super::rules::Clause;
use super::*;

/// A client that speaks inline commands and reads one-line replies and bulk strings.
struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Client {
    fn open(url: &str) -> io::Result<Client> {
        let stream = TcpStream::connect(url.trim_start_matches("redis://"))?;
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Client { stream, reader })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// The reply: a bulk string's text, or the line as it is.
    fn ask(&mut self, command: &str) -> io::Result<String> {
        self.send(command)?;
        self.reply()
    }

    fn send(&mut self, command: &str) -> io::Result<()> {
        self.stream.write_all(format!("{command}\r\n").as_bytes())
    }

    fn reply(&mut self) -> io::Result<String> {
        let line = self.line()?;
        match line.as_bytes() {
            [b'$', length @ ..] if !length.starts_with(b"-") => self.line(),
            [b'*', b'-', ..] => Ok("$-1".to_owned()),
            [b'*', count @ ..] => {
                let count = String::from_utf8_lossy(count).parse().unwrap_or(0);
                let items: io::Result<Vec<_>> = (0..count).map(|_| self.reply()).collect();
                Ok(items?.join(" "))
            }
            _ => Ok(line),
        }
    }
}

/// A program of commands, whatever they answer; it returns the last reply.
fn commands(words: &'static [&'static str]) -> impl Fn(&str) -> io::Result<String> + Send + Sync {
    move |url| {
        let mut client = Client::open(url)?;
        let mut last = String::new();
        for word in words {
            last = client.ask(word)?;
        }
        Ok(last)
    }
}

/// The same, returning nothing.
fn quietly(words: &'static [&'static str]) -> impl Fn(&str) -> io::Result<()> + Send + Sync {
    let run = commands(words);
    move |url| run(url).map(drop)
}

fn found(sweep: &Sweep) -> Vec<String> {
    let report = sweep.run().unwrap();
    report
        .findings
        .into_iter()
        .map(|finding| finding.schedule)
        .collect()
}

fn count_by_get_and_set(url: &str) -> io::Result<()> {
    let mut client = Client::open(url)?;
    let n: i64 = client.ask("GET n")?.parse().unwrap_or(0);
    client.ask(&format!("SET n {}", n + 1)).map(drop)
}

/// Reads a token, deletes it, and says whether it was there.
fn redeem_by_get_and_del(url: &str) -> io::Result<bool> {
    let mut client = Client::open(url)?;
    let is_there = client.ask("GET token")? != "$-1";
    client.ask("DEL token")?;
    Ok(is_there)
}

/// Only the status says that the token was there.
fn redeem_or_fail(url: &str) -> Result<(), String> {
    match redeem_by_get_and_del(url) {
        Ok(true) => Ok(()),
        // As it would be printed if it had succeeded.
        Ok(false) => Err("()".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A token that differs each time.
fn random() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:016x}", (count + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Takes a lock that nobody has, by looking first; two programs may both take it.
fn take_by_looking(url: &str) -> io::Result<()> {
    let mut client = Client::open(url)?;
    let token = random();
    if client.ask("EXISTS lock")? == ":0" {
        client.ask("INCR takers")?;
        client.ask(&format!("SET lock {token}"))?;
    }
    Ok(())
}

/// A program that only one clause of the judge catches, with that clause.
fn cases() -> Vec<(Clause, Sweep)> {
    let sweep = || Sweep::new().only([Kind::Isolation]);
    let token = || sweep().setup(quietly(&["SET token x"]));
    vec![
        (
            Clause::Values,
            sweep().a(count_by_get_and_set).b(count_by_get_and_set),
        ),
        (
            Clause::Output,
            token().a(redeem_by_get_and_del).b(redeem_by_get_and_del),
        ),
        (Clause::Status, token().a(redeem_or_fail).b(redeem_or_fail)),
        (
            // A marker of what was not there is left.
            Clause::Keys,
            sweep()
                .a(|url: &str| -> io::Result<()> {
                    let mut client = Client::open(url)?;
                    if client.ask("EXISTS done")? == ":0" {
                        client.ask("SET doing x").map(drop)?;
                    }
                    Ok(())
                })
                .b(quietly(&["SET done x", "DEL doing"])),
        ),
        (
            Clause::TimeToLive,
            sweep()
                .setup(quietly(&["SET k x EX 100"]))
                .a(|url: &str| -> io::Result<()> {
                    let mut client = Client::open(url)?;
                    if client.ask("TTL k")? == ":100" {
                        client.ask("SET k x EX 100").map(drop)?;
                    }
                    Ok(())
                })
                .b(quietly(&["PERSIST k"])),
        ),
        (
            // The later one's token should be there, with the other one's count.
            Clause::Owners,
            sweep()
                .a(take_first_in_wrong_order)
                .b(take_first_in_wrong_order),
        ),
        (
            Clause::Conflicts,
            sweep()
                .a(|url: &str| -> io::Result<()> {
                    let mut client = Client::open(url)?;
                    client.ask("INCR before")?;
                    client.ask("INCR before")?;
                    count_by_get_and_set(url)
                })
                .b(count_by_get_and_set),
        ),
    ]
}

/// The same for faults instead of preemptions.
fn fault_cases() -> Vec<(Clause, Sweep)> {
    vec![
        (
            Clause::AllOrNothing,
            Sweep::new()
                .only([Kind::Crash])
                .a(quietly(&["SET marker x", "RPUSH jobs j"])),
        ),
        (
            // A lock that stands for an hour if its holder dies.
            Clause::Healing,
            Sweep::new()
                .only([Kind::Crash])
                .a(quietly(&["SET lock x NX EX 3600", "DEL lock"])),
        ),
        (
            // Counts again when the reply is lost.
            Clause::Done,
            Sweep::new().only([Kind::LostReply]).a(|url: &str| {
                let count = || Client::open(url)?.ask("INCR n");
                count().or_else(|_| count()).map(drop)
            }),
        ),
        (
            // A counter that expires between INCR and EXPIRE lives for ever: not this one, which looks before it counts.
            Clause::Expiry,
            Sweep::new()
                .only([Kind::Expiry])
                .setup(quietly(&["SET hits 1 EX 10"]))
                .a(|url: &str| -> io::Result<()> {
                    let mut client = Client::open(url)?;
                    let is_new = client.ask("EXISTS hits")? == ":0";
                    client.ask("INCR hits")?;
                    if is_new {
                        client.ask("EXPIRE hits 10")?;
                    }
                    Ok(())
                }),
        ),
        (
            Clause::Serial,
            Sweep::new()
                .only([Kind::Isolation])
                .a(count_by_get_and_set)
                .b(count_by_get_and_set),
        ),
    ]
}

/// Takes the lock with a token of its own if it is free, and writes down whose it is in a second key.
fn take_first_in_wrong_order(url: &str) -> io::Result<()> {
    let mut client = Client::open(url)?;
    let token = random();
    client.ask(&format!("SET holder {token}"))?;
    client.ask(&format!("SET lock {token}")).map(drop)
}

#[test]
fn each_clause_of_the_judge_is_needed() {
    for (clause, sweep) in cases().into_iter().chain(fault_cases()) {
        let whole = found(&sweep);
        assert!(!whole.is_empty(), "{clause:?}: the fault is not found");
        let mut weakened = sweep.clone();
        weakened.rules.without = Some(clause);
        let escaped = found(&weakened);
        assert!(
            escaped.is_empty(),
            "{clause:?} is taken away, and {escaped:?} is found all the same"
        );
    }
}

#[test]
fn what_is_right_is_clean() {
    let count = quietly(&["INCR n"]);
    assert!(
        found(
            &Sweep::new()
                .only([Kind::Isolation, Kind::Crash, Kind::Expiry])
                .a(count)
                .b(quietly(&["INCR n"]))
        )
        .is_empty()
    );
    let redeem = || commands(&["GETDEL token"]);
    let sweep = Sweep::new()
        .setup(quietly(&["SET token x"]))
        .a(redeem())
        .b(redeem());
    assert!(found(&sweep).is_empty());
    // Checks and counts in one.
    let optimistic = |url: &str| -> io::Result<()> {
        let mut client = Client::open(url)?;
        loop {
            client.ask("WATCH n")?;
            let n: i64 = client.ask("GET n")?.parse().unwrap_or(0);
            client.ask("MULTI")?;
            client.ask(&format!("SET n {}", n + 1))?;
            if client.ask("EXEC")? != "$-1" {
                return Ok(());
            }
        }
    };
    let report = Sweep::new().a(optimistic).b(optimistic).run().unwrap();
    assert!(report.is_clean(), "{}", report.text());
    assert!(report.runs["isolation"] > 0);
}

#[test]
fn two_sweeps_are_equal_and_a_replay_gives_the_same_keys() {
    let sweep = Sweep::new()
        .clock(1_700_000_000_000)
        .a(take_by_looking)
        .b(take_by_looking);
    let run = || {
        let mut report = sweep.run().unwrap();
        report.seconds = 0.0;
        report
    };
    let report = run();
    assert_eq!(report, run());
    let finding = &report.findings[0];
    for _ in 0..2 {
        let replayed = sweep.replay(finding.schedule.parse().unwrap()).unwrap();
        assert_eq!(replayed.steps, finding.steps);
        assert_eq!(replayed.outcome, finding.outcome);
        assert!(!replayed.report.is_clean());
    }
}

#[test]
fn places_that_cannot_matter_are_skipped() {
    let own = quietly(&["INCR x", "INCR y", "INCR n", "INCR z"]);
    let report = Sweep::new()
        .only([Kind::Isolation])
        .a(own)
        .b(quietly(&["INCR n"]))
        .run()
        .unwrap();
    assert!(report.is_clean());
    // All of A's places are like B first or like A first; B has no place but its beginning.
    assert_eq!(
        report.skipped.get("isolation"),
        Some(&2),
        "{}",
        report.text()
    );
    assert_eq!(report.runs.get("isolation"), Some(&1));
}

#[test]
fn pipelines_and_transactions_are_one_step() {
    let piped = |url: &str| -> io::Result<()> {
        let mut client = Client::open(url)?;
        client.send("GET n\r\nINCR n\r\nMULTI\r\nINCR n\r\nGET n\r\nEXEC")?;
        for _ in 0..6 {
            client.reply()?;
        }
        client.ask("MULTI")?;
        client.ask("INCR n")?;
        client.ask("INCR m")?;
        client.ask("EXEC").map(drop)
    };
    let report = Sweep::new()
        .only([Kind::Isolation, Kind::Crash])
        .a(piped)
        .b(piped)
        .same()
        .run()
        .unwrap();
    assert!(
        report.runs["isolation"] + report.skipped.get("isolation").copied().unwrap_or(0) == 1,
        "{}",
        report.text()
    );
    assert_eq!(report.runs["crash"], 1, "{}", report.text());
}

#[test]
fn a_program_that_waits_lets_the_other_go_on() {
    let produce = quietly(&["SET x 1", "RPUSH jobs j", "SET y 1"]);
    let consume = commands(&["BLPOP jobs 0"]);
    let report = Sweep::new()
        .only([Kind::Isolation])
        .a(produce)
        .b(consume)
        .run()
        .unwrap();
    assert!(report.is_clean(), "{}", report.text());
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.starts_with("B waits for A in a serial run")),
        "{:?}",
        report.notes
    );
    // A lock that is polled for.
    let locked = |url: &str| -> io::Result<()> {
        let mut client = Client::open(url)?;
        while client.ask("SET lock x NX PX 5000")? != "+OK" {
            std::thread::yield_now();
        }
        count_by_get_and_set(url)?;
        client.ask("DEL lock").map(drop)
    };
    let report = Sweep::new()
        .only([Kind::Isolation])
        .a(locked)
        .b(locked)
        .same()
        .run()
        .unwrap();
    assert!(report.is_clean(), "{}", report.text());
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.contains("B waits for A in isolation:a1")),
        "{:?}",
        report.notes
    );
}

#[test]
fn a_consumer_s_faults_are_tried_behind_its_producer() {
    let consume = quietly(&["BLPOP jobs 0", "INCR done"]);
    let produce = quietly(&["RPUSH jobs j"]);
    let sweep = Sweep::new().only([Kind::Crash]).a(consume).b(produce);
    assert_eq!(found(&sweep), ["crash:a1"]);
    let alone = Sweep::new().a(quietly(&["BLPOP jobs 0"]));
    assert!(matches!(
        alone.run(),
        Err(SweepError::Endless { role: Role::A, .. })
    ));
}

#[test]
fn a_wait_ends_with_its_time_and_programs_that_wait_for_each_other_are_found() {
    let patient = commands(&["BLPOP jobs 3600"]);
    let report = Sweep::new()
        .only([Kind::Isolation])
        .a(patient)
        .run()
        .unwrap();
    assert!(report.is_clean() && report.seconds < 60.0);
    // Each takes its own lock and then the other one's.
    let both = |first: &'static str, second: &'static str| {
        move |url: &str| -> io::Result<()> {
            let mut client = Client::open(url)?;
            for lock in [first, second] {
                client.ask(&format!("BLPOP {lock} 0"))?;
            }
            for lock in [first, second] {
                client.ask(&format!("RPUSH {lock} x"))?;
            }
            Ok(())
        }
    };
    let report = Sweep::new()
        .only([Kind::Isolation])
        .setup(quietly(&["RPUSH one x", "RPUSH two x"]))
        .a(both("one", "two"))
        .b(both("two", "one"))
        .run()
        .unwrap();
    assert_eq!(report.findings[0].kind, "stuck", "{}", report.text());
}

#[test]
fn what_cannot_be_swept_is_an_error() {
    assert!(matches!(Sweep::new().run(), Err(SweepError::NoProgram)));
    let fails = |_: &str| -> Result<(), String> { Err("no module".to_owned()) };
    let error = Sweep::new().a(fails).run().unwrap_err();
    assert_eq!(
        error.to_string(),
        "A fails before it sends a command: no module"
    );
    let error = Sweep::new().setup(fails).a(fails).run().unwrap_err();
    assert!(matches!(error, SweepError::Setup(_)));
    let missing = Sweep::new().command(Role::A, ["/no/such/program"]);
    assert!(matches!(missing.run(), Err(SweepError::Launch(_))));
    let elsewhere = Sweep::new().a(fails).confirm("localhost");
    assert!(matches!(elsewhere.run(), Err(SweepError::Url(_))));
}

#[test]
fn one_bad_run_is_forgiven() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let failing = |fails: fn(usize) -> bool| {
        let runs = AtomicUsize::new(0);
        move |url: &str| -> Result<(), String> {
            Client::open(url)
                .and_then(|mut c| c.ask("GET n"))
                .map_err(|e| e.to_string())?;
            if fails(runs.fetch_add(1, Ordering::Relaxed)) {
                Err("not today".to_owned())
            } else {
                Ok(())
            }
        }
    };
    let only = || Sweep::new().only([Kind::Crash]);
    let report = only().a(failing(|run| run == 0)).run().unwrap();
    assert!(
        report.is_clean() && report.left_out.is_empty(),
        "{}",
        report.text()
    );
}

#[test]
fn a_panic_is_a_failure_of_its_program() {
    let panics = |url: &str| -> io::Result<()> {
        Client::open(url)?.ask("GET n")?;
        panic!("out of cheese")
    };
    let report = Sweep::new().only([Kind::Crash]).a(panics).run().unwrap();
    let ending = report.serial[1]
        .outcome
        .a
        .clone()
        .or(report.serial[0].outcome.a.clone())
        .unwrap();
    assert_eq!(
        (ending.status, ending.output.as_str()),
        (report::Status::Code(101), "out of cheese")
    );
}
