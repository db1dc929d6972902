//! Commits on both paths.

use serde_json::Map;

use super::*;
use crate::{CommitPath, Committed, FailedCommand, Seq, Settings, Strictness};

fn by_watch(version: i64) -> CommitByWatch {
    CommitByWatch::new(&Settings::default(), &execution(version), &everything()).unwrap()
}

/// A commit that has drawn its numbers and sent `WATCH`, `GET`.
fn watching(version: i64) -> CommitByWatch {
    let mut commit = by_watch(version);
    sent(commit.step(Replies::Start));
    sent(commit.step(received(&[":7\n", ":8\n", ":3\n", ":1\n"])));
    commit
}

/// A commit that has sent its transaction: ten commands with `MULTI` and `EXEC`.
fn executing() -> CommitByWatch {
    let mut commit = watching(0);
    sent(commit.step(received(&["+OK\n", "$-1\n"])));
    commit
}

/// Replies to a transaction of which `EXEC` answers this.
fn transaction(exec: &str) -> Vec<&str> {
    let mut replies = vec!["+QUEUED\n"; 11];
    replies[0] = "+OK\n";
    replies[10] = exec;
    replies
}

#[test]
fn a_commit_with_effects_sends_counters_then_the_watch_then_one_transaction() {
    let mut commit = by_watch(0);
    let (channel, commands) = sent(commit.step(Replies::Start));
    assert_eq!(channel, Channel::Shared);
    assert_eq!(
        commands,
        [
            "INCR stm:outbox:seq",
            "INCR stm:outbox:seq",
            "INCR stm:spawns:seq",
            "INCR stm:trace:seq:a"
        ]
    );
    let (channel, commands) = sent(commit.step(received(&[":7\n", ":8\n", ":3\n", ":1\n"])));
    assert_eq!(
        (channel, commands),
        (
            Channel::Pinned,
            vec!["WATCH stm:exe:a".into(), "GET stm:exe:a".into()]
        )
    );
    let (channel, commands) = sent(commit.step(received(&["+OK\n", "$-1\n"])));
    assert_eq!(channel, Channel::Pinned);
    let starts = [
        "MULTI",
        "SET stm:exe:a {\"id\":\"a\"",
        "HSET stm:outbox 7 {\"t\": \"t\"",
        "HSET stm:outbox 8 {\"t\": null",
        "SADD stm:processed:a e",
        "HSET stm:spawns 3 {\"p\": \"a\", \"c\": \"c\", \"r\": \"R\", \"x\": {}}",
        "ZADD stm:timers 1e+16 a\0P",
        "ZREM stm:timers a\0Q",
        "RPUSH stm:trace:a {\"k\": 1, \"index\": 0}",
        "LTRIM stm:trace:a -200 -1",
        "EXEC",
    ];
    assert_eq!(commands.len(), starts.len());
    for (command, start) in commands.iter().zip(starts) {
        assert!(command.starts_with(start), "{command}");
    }
    assert!(commands[1].contains("\"version\":1,"));
    let committed = done(commit.step(received(&transaction(
        "*9\n+OK\n:1\n:1\n:1\n:1\n:1\n:0\n:1\n+OK\n",
    ))))
    .unwrap();
    let expected = Committed {
        outbox: vec![Seq::new(7), Seq::new(8)],
        spawns: vec![Seq::new(3)],
        ..Committed::state_only(Version::new(1))
    };
    assert_eq!(committed, expected);
    assert!(done(commit.step(received(&[]))).is_err());
}

#[test]
fn a_commit_without_numbers_starts_with_the_watch() {
    let commit = Commit::for_event("e").timer(TimerOp::cancel("P"));
    let mut commit = CommitByWatch::new(&Settings::default(), &execution(1), &commit).unwrap();
    assert_eq!(
        sent(commit.step(Replies::Start)).1,
        ["WATCH stm:exe:a", "GET stm:exe:a"]
    );
}

#[test]
fn a_version_that_moved_is_unwatched_before_it_is_a_conflict() {
    for (version, row, found) in [
        (1, "$13\n{\"version\":2}\n", Some(2)),
        (0, "$13\n{\"version\":2}\n", Some(2)),
        (3, "$-1\n", None),
        (3, "_\n", None),
    ] {
        let mut commit = watching(version);
        let (channel, commands) = sent(commit.step(received(&["+OK\n", row])));
        assert_eq!(
            (channel, commands),
            (Channel::Pinned, vec!["UNWATCH".to_owned()])
        );
        let error = done(commit.step(received(&["+OK\n"]))).unwrap_err();
        let StoreError::Conflict {
            id,
            expected,
            found: seen,
        } = error
        else {
            panic!("{error}")
        };
        let seen = seen.map(Version::get);
        assert_eq!((id.as_str(), expected.get(), seen), ("a", version, found));
    }
    let mut commit = watching(1);
    sent(commit.step(received(&["+OK\n", "$-1\n"])));
    assert!(matches!(
        done(commit.step(lost())),
        Err(StoreError::Conflict { .. })
    ));
}

#[test]
fn a_row_that_can_not_be_read_is_unwatched_too() {
    for row in [
        "$8\nnot json\n",
        "$2\n{}\n",
        "-WRONGTYPE Operation\n",
        ":1\n",
    ] {
        let mut commit = watching(1);
        assert_eq!(
            sent(commit.step(received(&["+OK\n", row]))).1,
            ["UNWATCH"],
            "{row}"
        );
        assert!(
            matches!(
                done(commit.step(received(&["+OK\n"]))),
                Err(StoreError::Corrupt { .. })
            ),
            "{row}"
        );
    }
    let mut commit = watching(1);
    assert_eq!(
        sent(commit.step(received(&["+OK\n", "-LOADING wait\n"]))).1,
        ["UNWATCH"]
    );
    assert!(matches!(
        done(commit.step(received(&["+OK\n"]))),
        Err(StoreError::Refused { .. })
    ));
    let refused = done(watching(1).step(received(&["-NOPERM no\n", "$-1\n"]))).unwrap_err();
    assert!(matches!(refused, StoreError::Refused { command, .. } if command == "WATCH"));
}

#[test]
fn a_reply_lost_before_the_transaction_is_io_and_lost_with_it_indeterminate() {
    let mut counting = by_watch(0);
    sent(counting.step(Replies::Start));
    assert!(matches!(
        done(counting.step(lost())),
        Err(StoreError::Io { .. })
    ));
    assert!(matches!(
        done(watching(0).step(lost())),
        Err(StoreError::Io { .. })
    ));
    assert!(matches!(
        done(watching(0).step(unsent())),
        Err(StoreError::Io { .. })
    ));
    assert!(matches!(
        done(executing().step(unsent())),
        Err(StoreError::Io { .. })
    ));
    let error = done(executing().step(lost())).unwrap_err();
    assert!(matches!(
        error,
        StoreError::Indeterminate {
            operation: "commit",
            expected: Some(Version::NEW),
            ..
        }
    ));
}

#[test]
fn what_exec_answers_decides() {
    for null in ["*-1\n", "_\n", "$-1\n"] {
        let error = done(executing().step(received(&transaction(null)))).unwrap_err();
        assert!(
            matches!(error, StoreError::Conflict { found: None, .. }),
            "{error}"
        );
    }
    let mut refused = transaction("-EXECABORT Transaction discarded because of previous errors.\n");
    refused[2] = "-OOM command not allowed\n";
    let error = done(executing().step(received(&refused))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "EXEC was refused: OOM command not allowed"
    );
    let odd = done(executing().step(received(&transaction("+OK\n")))).unwrap_err();
    assert!(matches!(odd, StoreError::Indeterminate { .. }), "{odd}");
}

#[test]
fn errors_inside_exec_name_command_and_key() {
    let results = "*9\n+OK\n-WRONGTYPE no\n-WRONGTYPE no\n:1\n:1\n-ERR value is not a valid float\n:0\n:1\n+OK\n";
    let error = done(executing().step(received(&transaction(results)))).unwrap_err();
    let StoreError::Partial { failed, .. } = error else {
        panic!("{error}")
    };
    let named: Vec<_> = failed
        .iter()
        .map(
            |FailedCommand {
                 position,
                 command,
                 key,
                 ..
             }| (*position, &**command, &**key),
        )
        .collect();
    assert_eq!(
        named,
        [
            (1, "HSET", "stm:outbox"),
            (2, "HSET", "stm:outbox"),
            (5, "ZADD", "stm:timers")
        ]
    );
    assert_eq!(failed[0].message, "WRONGTYPE no");
}

#[test]
fn a_refused_multi_means_that_each_write_ran_on_its_own() {
    let mut ran = transaction("-ERR EXEC without MULTI\n");
    ran[0] = "-NOPERM no\n";
    ran[3] = "-WRONGTYPE no\n";
    let error = done(executing().step(received(&ran))).unwrap_err();
    assert!(
        matches!(&error, StoreError::Partial { failed, .. } if failed.len() == 1 && failed[0].position == 2),
        "{error}"
    );
    let error = done(executing().step(received(&["-LOADING wait\n"; 11]))).unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
}

/// A state-only commit that has been sent.
fn by_script() -> CommitByScript {
    let mut commit =
        CommitByScript::new(&Settings::default(), &execution(5), &Commit::for_event("e")).unwrap();
    let (channel, commands) = sent(commit.step(Replies::Start));
    let start = format!(
        "EVALSHA {} 2 stm:exe:a stm:processed:a {{\"id\":\"a\"",
        script::COMMIT.hash()
    );
    assert_eq!((channel, commands.len()), (Channel::Shared, 1));
    assert!(
        commands[0].starts_with(&start) && commands[0].ends_with("} 6 5  1 0 0 0  e"),
        "{}",
        commands[0]
    );
    commit
}

/// The script's answer to it.
const DONE: &str = "*1\n$1\n6\n";

#[test]
fn a_state_only_commit_is_one_script_call() {
    let committed = done(by_script().step(received(&[DONE]))).unwrap();
    assert_eq!(committed, Committed::state_only(Version::new(6)));
}

#[test]
fn a_commit_of_everything_is_one_script_call_with_all_of_its_keys() {
    let mut commit =
        CommitByScript::new(&Settings::default(), &execution(0), &everything()).unwrap();
    let (_, commands) = sent(commit.step(Replies::Start));
    let keys = "9 stm:exe:a stm:processed:a stm:outbox:seq stm:outbox stm:spawns:seq stm:spawns stm:timers stm:trace:seq:a \
                stm:trace:a {\"id\"";
    let [command] = &*commands else {
        panic!("{commands:?}")
    };
    assert!(command.contains(keys), "{command}");
    let effects = "} 1 0  1 2 1 2 -200 e {\"t\": \"t\"";
    assert!(command.contains(effects), "{command}");
    assert!(
        command.ends_with("1e+16 a\0P  a\0Q {\"k\": 1, \"index\":  }"),
        "{command}"
    );
    let reply = "*4\n$1\n1\n$1\n7\n$1\n8\n$16\n9007199254740993\n";
    let committed = done(commit.step(received(&[reply]))).unwrap();
    let expected = Committed {
        outbox: vec![Seq::new(7), Seq::new(8)],
        spawns: vec![Seq::new(9_007_199_254_740_993)],
        ..Committed::state_only(Version::new(1))
    };
    assert_eq!(committed, expected);
}

#[test]
fn a_document_that_knows_its_end_sends_it_and_one_at_another_version_does_not() {
    let row = crate::codec::encode_execution(&execution(5), Version::new(5));
    let tail = crate::RowTail::of(row.as_bytes(), Version::new(5));
    for (version, is_sent) in [(5, true), (6, false)] {
        let mut execution = execution(version);
        execution.tail = tail.clone();
        let mut commit =
            CommitByScript::new(&Settings::default(), &execution, &Commit::new()).unwrap();
        let (_, commands) = sent(commit.step(Replies::Start));
        let end = format!(" {version} ,\"version\":5,\"priority\":0");
        assert_eq!(commands[0].contains(&end), is_sent, "{}", commands[0]);
    }
}

fn bulk(text: &str) -> String {
    format!("${}\n{text}\n", text.len())
}

#[test]
fn a_row_that_the_script_can_not_read_is_read_here() {
    let look = |row: &str| {
        let mut commit = by_script();
        let (_, commands) = sent(commit.step(received(&["-ERR STM_CORRUPT:1\n"])));
        assert_eq!(commands, ["GET stm:exe:a"]);
        commit.step(received(&[row]))
    };
    let (_, commands) = sent(look(&bulk(r#"{"x":"\ud800","version":"5"}"#)));
    assert!(
        commands[0].contains(" 5 ,\"version\":\"5\"} 1 0"),
        "{commands:?}"
    );
    let conflict = done(look(&bulk(r#"{"version":9007199254740993}"#))).unwrap_err();
    let found = "stale write to a: expected version 5, found 9007199254740993";
    assert_eq!(conflict.to_string(), found);
    for corrupt in ["$2\n{}\n", "$0\n\n", "-WRONGTYPE x\n"] {
        let error = done(look(corrupt)).unwrap_err();
        assert!(
            matches!(&error, StoreError::Corrupt { key, .. } if key == "stm:exe:a"),
            "{error}"
        );
    }
    // Gone: a commit of version 5 conflicts, which is for the script to say.
    let (_, commands) = sent(look("$-1\n"));
    assert!(commands[0].contains(" 6 5  1 0"), "{commands:?}");
}

#[test]
fn a_row_that_keeps_changing_under_the_script_is_a_conflict_in_the_end() {
    let mut commit = by_script();
    let row = &bulk(r#"{"version":"5"}"#);
    for _ in 0..2 {
        sent(commit.step(received(&["-ERR STM_CORRUPT:1\n"])));
        sent(commit.step(received(&[row])));
    }
    sent(commit.step(received(&["-ERR STM_CORRUPT:1\n"])));
    let error = done(commit.step(received(&[row]))).unwrap_err();
    assert!(
        matches!(error, StoreError::Conflict { found: None, .. }),
        "{error}"
    );
}

#[test]
fn an_unknown_script_is_sent_as_source_once() {
    let mut commit = by_script();
    let no_script = "-NOSCRIPT No matching script. Please use EVAL.\n";
    let (_, commands) = sent(commit.step(received(&[no_script])));
    assert!(commands[0].starts_with(&format!("EVAL {} 2 ", script::COMMIT.source())));
    assert!(matches!(
        done(commit.step(received(&[no_script]))),
        Err(StoreError::Refused { .. })
    ));
    let mut commit = by_script();
    sent(commit.step(received(&[no_script])));
    assert!(matches!(
        done(commit.step(lost())),
        Err(StoreError::Indeterminate { .. })
    ));
}

#[test]
fn what_the_script_says_no_with_is_told_apart() {
    for (reply, found) in [
        ("-ERR STM_CONFLICT:6\n", Some(6)),
        ("-STM_CONFLICT:-6\n", Some(-6)),
        ("-ERR STM_CONFLICT:none\n", None),
    ] {
        let error = done(by_script().step(received(&[reply]))).unwrap_err();
        let StoreError::Conflict {
            expected,
            found: seen,
            ..
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!((expected.get(), seen.map(Version::get)), (5, found));
    }
    for (reply, key) in [
        ("-ERR STM_CORRUPT:2\n", "stm:processed:a"),
        (
            "-WRONGTYPE Operation against a key script: x\n",
            "stm:exe:a",
        ),
    ] {
        let error = done(by_script().step(received(&[reply]))).unwrap_err();
        assert!(
            matches!(&error, StoreError::Corrupt { key: corrupt, .. } if corrupt == key),
            "{error}"
        );
    }
    let error = done(by_script().step(received(&["-OOM command not allowed\n"]))).unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    for odd in [
        received(&[":2\n"]),
        received(&["*0\n"]),
        received(&["*2\n$1\n6\n$1\n1\n"]),
        received(&[]),
        lost(),
    ] {
        assert!(matches!(
            done(by_script().step(odd)),
            Err(StoreError::Indeterminate { .. })
        ));
    }
    assert!(matches!(
        done(by_script().step(unsent())),
        Err(StoreError::Io { .. })
    ));
}

#[test]
fn the_path_follows_the_settings_and_the_commit() {
    let on = |path| Settings::default().commit_path(path);
    let traced = Commit::new().trace(Map::new());
    for (settings, commit, script) in [
        (Settings::default(), traced.clone(), true),
        (Settings::default(), Commit::for_event("e"), true),
        (on(CommitPath::Mixed), Commit::for_event("e"), true),
        (on(CommitPath::Mixed), traced, false),
        (on(CommitPath::Watch), Commit::new(), false),
    ] {
        let operation = CommitOperation::new(&settings, &execution(0), &commit).unwrap();
        assert_eq!(
            matches!(operation, CommitOperation::Script(_)),
            script,
            "{commit:?}"
        );
    }
}

#[test]
fn an_empty_event_id_is_left_out_by_the_script_and_recorded_by_the_transaction() {
    let settings = Settings::default().strictness(Strictness::Lenient);
    let mut commit =
        CommitOperation::new(&settings, &execution(0), &Commit::for_event("")).unwrap();
    assert!(sent(commit.step(Replies::Start)).1[0].ends_with("} 1 0  0 0 0 0 "));
    let traced = Commit::for_event("").trace(Map::new());
    let mut commit = CommitOperation::new(&settings, &execution(0), &traced).unwrap();
    let (_, commands) = sent(commit.step(Replies::Start));
    assert!(commands[0].contains(" stm:processed:a "), "{commands:?}");
    let mut commit = CommitByWatch::new(&settings, &execution(0), &Commit::for_event("")).unwrap();
    sent(commit.step(Replies::Start));
    assert!(
        sent(commit.step(received(&["+OK\n", "$-1\n"])))
            .1
            .contains(&"SADD stm:processed:a ".to_owned())
    );
}
