//! Reports of runs that are made up: their text, their page, and the pages for the browser's test.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use redis::{Cmd, Value};

use super::{Cause, Confirmation, ExploreReport};
use crate::explore::{
    Client, Connector, Counterexample, Explorer, Replayed, Run, Schedule, Violation, Workload,
    WorkloadHash,
};

/// Clients that each send what is written down; whatever comes of it is called a violation.
struct Lines {
    name: &'static str,
    setup: Vec<String>,
    clients: Vec<Vec<String>>,
    violation: (&'static str, &'static str),
}

/// Words are parted by blanks; a blank inside of one is a `_`.
fn command(line: &str) -> Cmd {
    let mut command = Cmd::new();
    for word in line.split(' ') {
        command.arg(word.replace('_', " "));
    }
    command
}

impl Workload for Lines {
    type Input = ();
    type Output = ();

    fn description(&self) -> String {
        self.name.to_owned()
    }

    fn clients(&self) -> usize {
        self.clients.len()
    }

    fn prepare(&self, connector: Connector) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let setup = self.setup.clone();
        Box::pin(async move {
            let mut connection = connector.open().unwrap();
            for line in setup {
                command(&line).exec_async(&mut connection).await.unwrap();
            }
        })
    }

    fn client(&self, client: Client<(), ()>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let lines = self.clients[client.index()].clone();
        Box::pin(async move {
            let mut connection = client.connect().await.unwrap();
            for line in lines {
                if let Some(ms) = line.strip_prefix("sleep ") {
                    tokio::time::sleep(Duration::from_millis(ms.parse().unwrap())).await;
                    continue;
                }
                let answered: redis::RedisResult<Value> =
                    command(&line).query_async(&mut connection).await;
                if answered.is_err_and(|error| error.is_io_error()) {
                    connection = client.connect().await.unwrap();
                }
            }
        })
    }

    fn check(&self, _: &Run<(), ()>) -> Result<(), Violation> {
        let (property, details) = self.violation;
        Err(Violation::new(property, details))
    }
}

fn lines(text: &str) -> Vec<String> {
    text.split('|').map(|line| line.trim().to_owned()).collect()
}

/// What breaks when the clients run in this order.
fn found(workload: &Lines, order: &str) -> Counterexample {
    let hash = WorkloadHash::of(&workload.description());
    let schedule: Schedule = format!("v1:{hash}:{order}").parse().unwrap();
    match Explorer::new().replay(workload, &schedule).unwrap() {
        Replayed::Breaks(found) => *found,
        Replayed::Holds(trace) => panic!("holds:\n{trace}"),
    }
}

fn report(workload: &Lines, order: &str) -> ExploreReport {
    ExploreReport::of(&found(workload, order), workload.name)
}

fn same() -> Confirmation {
    Confirmation {
        server_version: "redis-server 7.0.15".to_owned(),
        same: true,
        first_difference: None,
        by_type_only: 0,
    }
}

/// A lost update between clients and keys with hostile names.
fn lost_update() -> ExploreReport {
    let key = "</script><img_src=x_onerror=\"alert(1)\">&'";
    let client = format!("GET stock | SET stock 4 | SADD {key} \u{202e}\x07");
    let workload = Lines {
        name: "two buyers </title><script>alert(2)</script>",
        setup: vec![
            "SET stock 5".to_owned(),
            "HSET item:1 name apple".to_owned(),
        ],
        clients: vec![lines(&client), lines(&client)],
        violation: ("serializable", "two items were sold, <b>one</b> is gone"),
    };
    let report = report(&workload, "abbaab").clients_named(&["buyer 1", "buyer 2"]);
    report
        .claimed("the 2nd schedule of an exhaustive search (source-DPOR) breaks it")
        .replayed_by("cargo test \"buyers <i>\" && exit")
        .caused_by(Cause {
            key: "\"stock\"".to_owned(),
            read: 0,
            written: 2,
            overwritten: Some(3),
        })
        .confirmed(same())
        .noted("2 schedules were run")
}

/// A lost reply, a connection that comes back, a command that waits, and time that passes.
fn faults() -> ExploreReport {
    let workload = Lines {
        name: "a worker, a feeder and a clock",
        setup: vec!["SET lease a PX 900".to_owned()],
        clients: vec![
            lines("MULTI | INCR done | EXEC | INCR done | EVAL return_1 0 | GET done"),
            lines("BLPOP queue 0 | SET got one"),
            lines("sleep 1000 | GET lease | RPUSH queue one two | BLPOP never 0"),
        ],
        violation: ("once", "done is 2"),
    };
    let mut confirmation = same();
    confirmation.same = false;
    confirmation.first_difference = Some("step 3, a's INCR done: 2 here, and 1 there".to_owned());
    let mut found = found_without_an_end(&workload, "baa~aaa(flush)accbc");
    found.shrunk = Some(super::Shrunk {
        preemptions: 17,
        commands: 23,
        reruns: 9,
    });
    ExploreReport::of(&found, workload.name).confirmed(confirmation)
}

/// The last client waits for ever, which is a deadlock.
fn found_without_an_end(workload: &Lines, order: &str) -> Counterexample {
    let found = found(workload, order);
    assert_eq!(found.violation.property, "deadlock");
    found
}

/// A race behind 150 commands that matter to nobody.
fn deep() -> ExploreReport {
    let private = |client: usize| vec![format!("INCR private:{client}"); 50];
    let with = |client: usize, end: &str| {
        let end = if end.is_empty() {
            Vec::new()
        } else {
            lines(end)
        };
        [private(client), end].concat()
    };
    let workload = Lines {
        name: "deep",
        setup: vec!["ZADD timers 100 m".to_owned()],
        clients: vec![
            with(0, "ZSCORE timers m | ZREM timers m"),
            with(1, "ZADD timers 200 m"),
            with(2, ""),
        ],
        violation: ("lost timer", "it was moved, and is gone"),
    };
    let order = [
        "a".repeat(51),
        "b".repeat(51),
        "a".to_owned(),
        "c".repeat(50),
    ]
    .concat();
    report(&workload, &order)
}

/// Six clients, 300 commands in no order at all, many of which meet.
fn long() -> ExploreReport {
    let client = |client: usize| {
        let commands = (0..50).map(|at| match (at + client) % 5 {
            0 => format!("HINCRBY shared:{} field:{client} 1", at % 3),
            1 => format!("GET own:{client}"),
            2 => format!("SET own:{client} {at}"),
            3 => format!("LPUSH list:{client} element-{at}-of-client-{client}"),
            _ => format!("HGETALL shared:{}", at % 3),
        });
        commands.collect::<Vec<String>>()
    };
    let workload = Lines {
        name: "long",
        setup: Vec::new(),
        clients: (0..6).map(client).collect(),
        violation: (
            "linearizable",
            "no order of the 300 operations explains their results",
        ),
    };
    let mut letters: Vec<char> = "abcdef".repeat(50).chars().collect();
    fastrand::Rng::with_seed(1).shuffle(&mut letters);
    report(&workload, &letters.into_iter().collect::<String>())
}

fn path(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/explore/report/samples");
    PathBuf::from(folder).join(name)
}

#[test]
fn reports_are_told_as_written_down() {
    let told = [
        (lost_update(), "lost_update.txt"),
        (faults(), "faults.txt"),
        (deep(), "deep.txt"),
    ];
    for (report, name) in told {
        let text = report.text();
        if std::env::var_os("RECORD").is_some() {
            std::fs::write(path(name), &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(path(name)).unwrap(), "{name}");
    }
}

#[test]
fn lines_are_printable_and_short_but_for_what_is_copied() {
    for report in [lost_update(), faults(), deep(), long()] {
        for line in report.text().lines() {
            let printable = |character: char| character == ' ' || character.is_ascii_graphic();
            assert!(line.chars().all(printable), "{line}");
            let whole = line.starts_with("  replay ") || line.starts_with("VIOLATED ");
            assert!(line.len() <= 110 || whole, "{}: {line}", line.len());
        }
    }
}

#[test]
fn a_page_holds_its_report_and_nothing_foreign() {
    let report = lost_update();
    let page = report.html();
    assert_eq!(page.matches("<script").count(), 2);
    for markup in [
        "<img",
        "</title><",
        "\u{202e}",
        "\u{7}",
        "http:",
        "https:",
        "src=\"",
    ] {
        assert!(!page.contains(markup), "{markup:?}");
    }
    let (_, rest) = page.split_once("id=\"report\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    assert_eq!(serde_json::from_str::<ExploreReport>(json).unwrap(), report);
}

#[test]
fn steps_say_what_they_changed_and_what_they_wait_for() {
    let report = lost_update();
    let changed = |at: usize| -> Vec<(&str, Option<&str>, Option<&str>)> {
        let changes = report.steps[at].changes.iter();
        changes
            .map(|one| {
                (
                    one.key.as_str(),
                    one.before.as_deref(),
                    one.after.as_deref(),
                )
            })
            .collect()
    };
    assert_eq!(changed(0), []);
    assert_eq!(
        changed(2),
        [("\"stock\"", Some("string \"5\""), Some("string \"4\""))]
    );
    // It writes what is there already.
    assert_eq!(changed(3), []);
    let after: Vec<&[usize]> = report
        .steps
        .iter()
        .map(|step| step.after.as_slice())
        .collect();
    assert_eq!(after, [&[][..], &[], &[0], &[2], &[], &[4]]);
    let faults = faults();
    let notes: Vec<Option<&str>> = faults
        .steps
        .iter()
        .map(|step| step.note.as_deref())
        .collect();
    assert_eq!(notes[0], Some("waits until step 9"), "{notes:?}");
    assert_eq!(notes[3], Some("the reply is lost"));
    assert_eq!(faults.steps[4].connection, 2);
    assert_eq!(faults.steps[6].command, "the script cache is emptied");
    assert_eq!((faults.lanes.len(), faults.steps[6].lane.as_str()), (3, ""));
    assert_eq!(notes[8], Some("1000 ms later"));
    assert_eq!(notes[11], Some("waits to the end"));
}

#[test]
fn what_many_clients_do_stands_beside_their_bars() {
    let text = long().text();
    assert!(text.contains("        a b c d e f\n"), "{text}");
    assert!(text.contains("* | | | | |  a "), "{text}");
}

/// The browser's test looks at these; `REPORT_PAGES` says where it wants them.
#[test]
fn pages_are_written_where_they_are_asked_for() {
    let Some(folder) = std::env::var_os("REPORT_PAGES") else {
        return;
    };
    let folder = PathBuf::from(folder);
    let pages = [
        ("lost-update.html", lost_update()),
        ("faults.html", faults()),
        ("deep.html", deep()),
        ("long.html", long()),
    ];
    for (name, report) in pages {
        std::fs::write(folder.join(name), report.html()).unwrap();
    }
}
