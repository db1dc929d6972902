//! Every other call.

use serde_json::Map;

use super::*;
use crate::{CommitPath, ListFilter, Seq, Settings, Unfit, Version};

#[test]
fn load_for_event_reads_the_row_before_the_set() {
    let mut load = LoadForEvent::new(&Settings::default(), "a", "e");
    assert_eq!(
        sent(load.step(Replies::Start)),
        (
            Channel::Shared,
            vec!["GET stm:exe:a".into(), "SISMEMBER stm:processed:a e".into()]
        )
    );
    assert_eq!(done(load.step(received(&["$-1\n", ":1\n"]))).unwrap(), None);
}

#[test]
fn scores_and_pairs_are_read_from_both_protocol_versions() {
    for reply in ["*2\n$3\na\0P\n$3\n1.5\n", "*1\n*2\n$3\na\0P\n,1.5\n"] {
        let mut due = DueTimers::new(&Settings::default(), 2.0).unwrap();
        assert_eq!(
            sent(due.step(Replies::Start)).1,
            ["ZRANGEBYSCORE stm:timers -inf 2.0 WITHSCORES"]
        );
        let due = done(due.step(received(&[reply]))).unwrap();
        assert_eq!(
            (due.len(), due[0].fire_at_s, &*due[0].path),
            (1, 1.5, "P"),
            "{reply}"
        );
    }
    for reply in ["*2\n$1\n7\n$2\n{}\n", "%1\n$1\n7\n$2\n{}\n"] {
        let mut pending = PendingOutbox::new(&Settings::default());
        sent(pending.step(Replies::Start));
        assert!(
            matches!(
                done(pending.step(received(&[reply]))),
                Err(StoreError::Corrupt { .. })
            ),
            "{reply}"
        );
    }
}

#[test]
fn a_timer_is_deleted_by_one_script_with_the_score_as_python_spells_it() {
    let mut delete = DeleteTimer::new(&Settings::default(), "a", "P", 0.00001).unwrap();
    let start = format!(
        "EVALSHA {} 1 stm:timers a\0P 1e-05",
        script::DELETE_TIMER.hash()
    );
    assert_eq!(sent(delete.step(Replies::Start)).1, [start]);
    assert!(sent(delete.step(received(&["-NOSCRIPT no\n"]))).1[0].starts_with("EVAL "));
    assert!(done(delete.step(received(&[":1\n"]))).unwrap());
}

#[test]
fn a_trace_step_takes_its_number_first_and_is_not_repeated() {
    let step = Map::new();
    let mut append = AppendTrace::new(&Settings::default().trace_max(3), "a", &step).unwrap();
    assert_eq!(
        sent(append.step(Replies::Start)).1,
        ["INCR stm:trace:seq:a"]
    );
    let (_, commands) = sent(append.step(received(&[":5\n"])));
    assert_eq!(
        commands,
        [
            "RPUSH stm:trace:a {\"index\": 4}",
            "LTRIM stm:trace:a -3 -1"
        ]
    );
    assert!(matches!(
        done(append.step(lost())),
        Err(StoreError::Indeterminate { expected: None, .. })
    ));
    let mut append = AppendTrace::new(&Settings::default().trace_max(0), "a", &step).unwrap();
    sent(append.step(Replies::Start));
    assert_eq!(
        sent(append.step(received(&[":5\n"]))).1,
        ["RPUSH stm:trace:a {\"index\": 4}"]
    );
    done(append.step(received(&[":1\n"]))).unwrap();
}

#[test]
fn a_listing_scans_with_an_escaped_pattern_and_skips_an_empty_batch() {
    let settings = Settings::new("s*").unwrap();
    let mut list = ListExecutions::new(&settings, ListFilter::default(), 5, None);
    assert_eq!(
        sent(list.step(Replies::Start)).1,
        ["SCAN 0 MATCH s\\*:exe:* COUNT 20"]
    );
    let foreign = "*2\n$20\n18446744073709551615\n*1\n$9\nstm:exe:1\n";
    for count in [40, 80, 160, 320, 640, 1000, 1000] {
        assert_eq!(
            sent(list.step(received(&[foreign]))).1,
            [format!(
                "SCAN 18446744073709551615 MATCH s\\*:exe:* COUNT {count}"
            )]
        );
    }
    let page = (7..16).find_map(|_| match list.step(received(&[foreign])) {
        Step::Done(page) => Some(page.unwrap()),
        Step::Send(_) => None,
    });
    let page = page.expect("a page after sixteen scans");
    assert_eq!(
        (
            page.items.len(),
            page.next_cursor.unwrap().to_string().as_str()
        ),
        (0, "18446744073709551615")
    );
    let mut list = ListExecutions::new(&settings, ListFilter::default(), 100, page.next_cursor);
    assert_eq!(
        sent(list.step(Replies::Start)).1,
        ["SCAN 18446744073709551615 MATCH s\\*:exe:* COUNT 100"]
    );
    let (_, commands) = sent(list.step(received(&["*2\n$1\n0\n*2\n$8\ns*:exe:1\n$8\ns*:exe:1\n"])));
    assert_eq!(commands, ["MGET s*:exe:1"]);
    let page = done(list.step(received(&["*1\n$-1\n"]))).unwrap();
    assert_eq!((page.items, page.next_cursor), (vec![], None));
}

#[test]
fn replies_of_any_shape_are_errors_and_never_panics() {
    let odd = [
        "+OK\n",
        ":1\n",
        "$-1\n",
        "$1\nx\n",
        "*0\n",
        "*1\n:1\n",
        "*2\n:1\n:1\n",
        "%1\n:1\n:1\n",
        "#t\n",
        ",1.5\n",
        "-ERR no\n",
        "*1\n*1\n:1\n",
    ];
    let settings = Settings::default();
    for depth in 0..odd.len() {
        feed(Load::new(&settings, "a"), &odd, depth);
        feed(LoadForEvent::new(&settings, "a", "e"), &odd, depth);
        feed(IsProcessed::new(&settings, "a", "e"), &odd, depth);
        feed(PendingOutbox::new(&settings), &odd, depth);
        feed(PendingSpawns::new(&settings), &odd, depth);
        feed(AckOutbox::new(&settings, Seq::new(1)), &odd, depth);
        feed(DueTimers::new(&settings, 1.0).unwrap(), &odd, depth);
        feed(
            DeleteTimer::new(&settings, "a", "P", 1.0).unwrap(),
            &odd,
            depth,
        );
        feed(
            AppendTrace::new(&settings, "a", &Map::new()).unwrap(),
            &odd,
            depth,
        );
        feed(ReadTrace::new(&settings, "a").unwrap(), &odd, depth);
        feed(
            ListExecutions::new(&settings, ListFilter::default(), 1, None),
            &odd,
            depth,
        );
        feed(
            CommitByWatch::new(&settings, &execution(0), &everything()).unwrap(),
            &odd,
            depth,
        );
        feed(
            CommitByScript::new(&settings, &execution(0), &Commit::new()).unwrap(),
            &odd,
            depth,
        );
    }
}

fn feed<O: Operation>(mut operation: O, odd: &[&str], depth: usize) {
    let mut step = operation.step(Replies::Start);
    for reply in odd.iter().cycle().skip(depth).take(4) {
        let Step::Send(batch) = step else { return };
        step = operation.step(received(&vec![*reply; batch.len()]));
    }
}

#[test]
fn a_check_names_what_makes_a_server_unfit() {
    // Each line ends in two characters on the wire.
    let info = |text: &str| format!("${}\n{text}\n", text.len() + text.matches('\n').count());
    let memory = |policy: &str| info(&format!("# Memory\nmaxmemory_policy:{policy}\nx:1"));
    let replication = |role: &str| info(&format!("# Replication\nrole:{role}\nmaster_host:h"));
    let (good, master) = (memory("noeviction"), replication("master"));
    let denied = "-NOPERM no\n";
    let check = |settings: &Settings, replies: &[&str]| {
        let mut check = Check::new(settings);
        let (_, commands) = sent(check.step(Replies::Start));
        assert_eq!(
            commands,
            ["INFO memory", "INFO replication", "EVAL return 1 0"]
        );
        done(check.step(received(replies)))
    };
    let default = Settings::default();
    check(&default, &[&good, &master, ":1\n"]).unwrap();
    let unfit = |replies: &[&str]| match check(&default, replies) {
        Err(StoreError::Unfit { reason, found }) => (reason, found),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        unfit(&[&memory("allkeys-lfu"), &master, ":1\n"]),
        (Unfit::Evicting, "allkeys-lfu".to_owned())
    );
    assert_eq!(
        unfit(&[&good, &replication("slave"), ":1\n"]),
        (Unfit::Replica, "slave of h".to_owned())
    );
    assert_eq!(
        unfit(&[&good, &master, denied]),
        (Unfit::WithoutScripts, "NOPERM no".to_owned())
    );
    let watching = Settings::default().commit_path(CommitPath::Watch);
    check(&watching, &[&good, &master, denied]).unwrap();
    assert!(matches!(
        check(&default, &[denied, denied, denied]),
        Err(StoreError::Refused { .. })
    ));
}

#[test]
fn the_script_of_a_purge_gets_what_it_removes_and_nothing_else() {
    let mut purge = Purge::new(&Settings::default(), "a*", Version::new(3)).unwrap();
    assert_eq!(
        sent(purge.step(Replies::Start)).1,
        ["ZSCAN stm:timers 0 MATCH a\\*\0* COUNT 1000"]
    );
    let (_, outbox) = sent(purge.step(received(&[
        "*2\n$1\n0\n*4\n$4\na*\0P\n$1\n1\n$4\nab\0P\n$1\n1\n",
    ])));
    assert_eq!(outbox, ["HSCAN stm:outbox 0 COUNT 1000"]);
    let own = r#"{"t": "a*"}"#;
    let page = format!("*2\n$1\n0\n*4\n$1\n7\n$11\n{own}\n$1\n8\n$8\nnot json\n");
    let (_, spawns) = sent(purge.step(received(&[&page])));
    assert_eq!(spawns, ["HSCAN stm:spawns 0 COUNT 1000"]);
    let (channel, script) = sent(purge.step(received(&["*2\n$1\n0\n*0\n"])));
    assert_eq!(channel, Channel::Shared);
    let names = "stm:exe:a* stm:timers stm:outbox stm:spawns stm:processed:a* stm:trace:a* stm:trace:seq:a*";
    assert!(
        script[0].ends_with(&format!(" 7 {names} 3 1 1 0 a*\0P 7 {own} a*")),
        "{script:?}"
    );
    assert!(done(purge.step(received(&[":1\n"]))).unwrap());
}
