use super::*;
use crate::sweep::cause::cause;
use crate::sweep::samples::steps;

/// The rule that speaks for a finding of this kind, with the cause that the steps show.
fn rule(kind: &str, script: &str) -> Option<String> {
    let steps = steps(script);
    let cause = cause(&steps);
    repair(kind, &steps, cause.as_ref()).map(|repair| repair.rule)
}

/// The rule speaks for the first and is silent about the second.
fn speaks(name: &str, kind: &str, faulty: &str, other: &str) {
    assert_eq!(rule(kind, faulty).as_deref(), Some(name), "{faulty}");
    assert_ne!(rule(kind, other).as_deref(), Some(name), "{other}");
}

#[test]
fn a_token_that_is_read_and_deleted_wants_getdel() {
    speaks(
        "getdel",
        "isolation",
        "a GET token -> u1 | b GET token -> u1 | b DEL token -> 1 | a DEL token -> 0",
        "a GET token -> nil | b SET token u1 -> OK | a DEL token -> 1",
    );
}

#[test]
fn a_check_for_absence_before_set_wants_set_nx() {
    speaks(
        "set-nx-ex",
        "isolation",
        "a EXISTS guard -> 0 | b EXISTS guard -> 0 | b SET guard b -> OK | a SET guard a -> OK",
        "a EXISTS guard -> 0 | b SET guard b -> OK | a SET guard a NX EX 9 -> nil | a SET other 1 -> OK",
    );
    assert_eq!(
        rule(
            "isolation",
            "a GET guard -> nil | b SET guard b -> OK | a SETEX guard 9 a -> OK"
        )
        .as_deref(),
        Some("set-nx-ex")
    );
}

#[test]
fn setnx_and_then_expire_want_one_command() {
    speaks(
        "set-nx-ex",
        "crash",
        "a SETNX lock a -> 1 | server crash | -a EXPIRE lock 9",
        "a SET lock a NX EX 9 -> OK | server crash | -a EXPIRE other 9",
    );
}

#[test]
fn a_counter_and_its_expiry_want_one_script() {
    speaks(
        "incr-expire",
        "crash",
        "a INCR hits -> 1 | server crash | -a EXPIRE hits 60",
        "a INCR hits -> 1 | server crash | -a EXPIRE other 60",
    );
    speaks(
        "incr-expire",
        "expiry",
        "a INCR hits -> 3 | server expire hits | a EXPIRE hits 60 -> 0",
        "a EVAL script 1 hits -> 3 | server expire hits | a EVAL script 1 hits -> 1",
    );
}

#[test]
fn a_limiter_that_looks_first_wants_to_count_first() {
    speaks(
        "incr-expire",
        "isolation",
        "a GET hits -> \"9\" | b GET hits -> \"9\" | b INCR hits -> 10 | a INCR hits -> 11",
        "a GET stock -> \"9\" | b INCR stock -> 10 | a SET stock 8 -> OK",
    );
}

#[test]
fn a_lock_released_without_a_look_wants_a_script() {
    speaks(
        "compare-and-delete",
        "expiry",
        "a SET lock a NX PX 9 -> OK | server expire lock | b SET lock b NX PX 9 -> OK | a DEL lock -> 1",
        "a GET token -> a | b GET token -> a | b DEL token -> 1 | a DEL token -> 0",
    );
}

#[test]
fn a_lock_released_by_get_and_del_wants_a_script() {
    speaks(
        "compare-and-delete",
        "expiry",
        "a SET lock a NX PX 9 -> OK | a GET lock -> a | server expire lock | b SET lock b NX PX 9 -> OK | a DEL lock -> 1",
        "a SET lock a NX PX 9 -> nil | b DEL lock -> 1 | a SET stock 1 -> OK",
    );
}

#[test]
fn a_lock_that_ends_before_its_work_wants_a_fencing_token() {
    speaks(
        "fencing-token",
        "expiry",
        "a SET lock a NX PX 9 -> OK | a GET stock -> 5 | server expire lock | b SET lock b NX PX 9 -> OK | b SET stock 4 -> OK | a SET stock 4 -> OK",
        "a SET lock a NX PX 9 -> OK | server expire lock | a EVAL release 1 lock -> 0",
    );
}

#[test]
fn a_string_that_is_read_and_written_wants_watch() {
    speaks(
        "watch",
        "isolation",
        "a GET stock -> \"5\" | b GET stock -> \"5\" | b SET stock 4 -> OK | a SET stock 4 -> OK",
        "a EVAL script 1 stock -> 5 | b SET stock 4 -> OK | a EVAL script 1 stock -> 3",
    );
}

#[test]
fn hashes_and_lists_that_are_read_and_written_want_watch() {
    let hash = "a HGETALL h -> [f, 1] | b HSET h f 2 -> 0 | a HSET h f 2 -> 0";
    assert_eq!(rule("isolation", hash).as_deref(), Some("watch"));
    let list = "a LRANGE l 0 -1 -> [x, y] | b RPUSH l z -> 3 | a EXEC [DEL l; RPUSH l x] -> [1, 1]";
    assert_eq!(rule("isolation", list).as_deref(), Some("watch"));
    let read_only = "a LRANGE l 0 -1 -> [x, y] | b RPUSH l z -> 3";
    assert_eq!(rule("isolation", read_only), None);
}

#[test]
fn a_check_before_sadd_hset_or_zadd_wants_their_own_reply() {
    speaks(
        "own-reply",
        "isolation",
        "a SISMEMBER seen x -> 0 | b SISMEMBER seen x -> 0 | b SADD seen x -> 1 | a SADD seen x -> 0",
        "a SISMEMBER seen x -> 0 | b SADD seen x -> 1 | a SET done x -> OK",
    );
    speaks(
        "own-reply",
        "isolation",
        "a HEXISTS h f -> 0 | b HSET h f 1 -> 1 | a HSET h f 2 -> 0",
        "a HGET h f -> \"1\" | b HSET h f 2 -> 0 | a HSET h f 2 -> 0",
    );
    speaks(
        "own-reply",
        "isolation",
        "a ZSCORE z m -> nil | b ZADD z 1 m -> 1 | a ZADD z 2 m -> 0",
        "a ZSCORE z m -> nil | b ZADD z 1 m -> 1 | a ZADD z NX 2 m -> 0",
    );
    speaks(
        "own-reply",
        "isolation",
        "a ZRANGEBYSCORE z 0 9 -> [m] | b ZRANGEBYSCORE z 0 9 -> [m] | b ZREM z m -> 1 | a ZREM z m -> 0",
        "a ZRANGEBYSCORE z 0 9 -> [m] | b ZREM z m -> 1 | a LPUSH ready m -> 1",
    );
}

#[test]
fn a_member_removed_and_added_again_wants_zadd_xx() {
    speaks(
        "zadd-xx",
        "crash",
        "a ZREM timers m -> 1 | server crash | -a ZADD timers 9 m",
        "a ZREM timers m -> 1 | server crash | -a ZADD timers 9 other",
    );
    speaks(
        "zadd-xx",
        "isolation",
        "a ZREM timers m -> 1 | b ZADD timers 5 m -> 1 | a ZADD timers 9 m -> 0",
        "b ZADD timers 5 m -> 1 | a ZREM timers m -> 1 | a ZADD timers 9 m -> 1",
    );
}

#[test]
fn a_rival_that_finds_nothing_between_wants_zadd_xx() {
    let script = "a ZREM timers m -> 1 | b ZREM timers m -> 0 | a ZADD timers 9 m -> 1";
    assert_eq!(rule("isolation", script).as_deref(), Some("zadd-xx"));
}

#[test]
fn a_balance_that_is_looked_at_and_taken_from_wants_watch() {
    let script = "a GET ada -> \"50\" | b DECRBY ada 40 -> 10 | a DECRBY ada 40 -> -30";
    assert_eq!(rule("isolation", script).as_deref(), Some("watch"));
}

#[test]
fn a_marker_before_its_job_wants_a_transaction() {
    speaks(
        "marker",
        "crash",
        "a SET unique:1 1 NX EX 9 -> OK | server crash | -a LPUSH jobs 1",
        "a SET unique:1 1 NX EX 9 -> nil | server crash | -a LPUSH jobs 1",
    );
}

#[test]
fn writes_that_belong_together_want_a_transaction() {
    speaks(
        "multi",
        "crash",
        "a HSET order:1 state new -> 1 | server crash | -a LPUSH orders 1",
        "a GET order:1 -> 1 | server crash | -a LPUSH orders 1",
    );
    let gave_up = "a HSET order:1 state new -> 1 | server lost-reply";
    assert_eq!(rule("lost-reply", gave_up).as_deref(), Some("multi"));
    let went_on = "a HSET order:1 state new -> 1 | server lost-reply | a LPUSH orders 1 -> 1";
    assert_eq!(rule("lost-reply", went_on), None);
    assert_eq!(
        rule("isolation", "a HSET order:1 state new -> 1 | b GET x -> 1"),
        None
    );
}

#[test]
fn a_value_copied_and_deleted_wants_rename() {
    speaks(
        "rename",
        "isolation",
        "a GET v:1 -> x | a SET v:2 x -> OK | b SET v:1 y -> OK | a DEL v:1 -> 1",
        "a GET v:1 -> x | a SET log seen -> OK | b SET v:1 y -> OK | a DEL v:1 -> 1",
    );
    let copied = "a COPY v:1 v:2 -> 1 | b SET v:1 y -> OK | a DEL v:1 -> 1";
    assert_eq!(rule("isolation", copied).as_deref(), Some("rename"));
}

#[test]
fn a_command_sent_again_wants_an_idempotency_key() {
    speaks(
        "idempotency-key",
        "lost-reply",
        "a INCRBY balance 5 -> 5 | a2 INCRBY balance 5 -> 10",
        "a INCRBY balance 5 -> 5 | a2 GET balance -> \"5\"",
    );
    let crash = "a INCRBY balance 5 -> 5 | server crash | -a INCRBY balance 5";
    assert_ne!(rule("crash", crash).as_deref(), Some("idempotency-key"));
}

#[test]
fn a_marker_of_its_own_that_refuses_a_retry_is_recognised() {
    speaks(
        "own-marker",
        "lost-reply",
        "a SET mailed 1 NX EX 9 -> OK | a2 SET mailed 1 NX EX 9 -> nil",
        "a SET mailed 1 NX EX 9 -> OK | a2 SET mailed 1 NX EX 9 -> OK",
    );
}

#[test]
fn a_value_looked_for_before_its_guard_wants_another_look() {
    speaks(
        "look-again",
        "isolation",
        "a GET page -> nil | b GET page -> nil | b SET guard b NX -> OK | b SET page x EX 9 -> OK | b DEL guard -> 1 | a SET guard a NX -> OK | a SET page x EX 9 -> OK",
        "a GET page -> nil | b SET page x EX 9 -> OK | a SET page x EX 9 -> OK",
    );
}

#[test]
fn a_limiter_by_get_and_set_wants_one_script() {
    speaks(
        "incr-expire",
        "isolation",
        "a GET window -> \"1\" | b SET window 2 EX 60 -> OK | a SET window 2 EX 60 -> OK",
        "a GET window -> \"7\" | b SET window 2 EX 60 -> OK | a SET window 2 EX 60 -> OK",
    );
}

#[test]
fn a_document_is_not_a_marker() {
    let script = "a GET list -> nil | b SET list [1] -> OK | a SET list {2} -> OK";
    assert_eq!(rule("isolation", script).as_deref(), Some("watch"));
}

#[test]
fn lost_data_is_no_fault_of_the_program() {
    let script = "a SET mailed 1 NX EX 9 -> OK | server restart mailed | a LPUSH mails x -> 1";
    assert_eq!(rule("restart", script), None);
}

#[test]
fn a_digest_without_its_script_wants_a_fallback() {
    speaks(
        "noscript",
        "restart",
        "a EVALSHA d 1 k -> 1 | server restart | a EVALSHA d 1 k -> NOSCRIPT",
        "a EVALSHA d 1 k -> 1 | server restart | a EVALSHA d 1 k -> NOSCRIPT | a EVAL script 1 k -> 2",
    );
}

#[test]
fn a_watch_that_did_not_protect_wants_a_connection_of_its_own() {
    speaks(
        "dedicated-connection",
        "isolation",
        "a WATCH k -> OK | a GET k -> \"1\" | a UNWATCH -> OK | b SET k 2 -> OK | a EXEC [SET k 3] -> [OK]",
        "a GET k -> \"1\" | b SET k 2 -> OK | a EXEC [SET k 3] -> [OK]",
    );
    let two = "a WATCH k -> OK | a GET k -> \"1\" | b SET k 2 -> OK | a2 EXEC [SET k 3] -> [OK]";
    let steps = steps(two);
    let found = repair("isolation", &steps, cause(&steps).as_ref()).unwrap();
    assert!(found.text.contains("another connection"), "{}", found.text);
}

#[test]
fn advice_names_the_key() {
    let steps = steps("a GET token -> u1 | b GETDEL token -> u1 | a DEL token -> 0");
    let found = repair("isolation", &steps, cause(&steps).as_ref()).unwrap();
    assert!(
        found.text.starts_with("Use GETDEL token instead"),
        "{}",
        found.text
    );
}

#[test]
fn no_rule_speaks_about_nothing() {
    for kind in [
        "isolation",
        "crash",
        "lost-reply",
        "expiry",
        "restart",
        "stuck",
    ] {
        assert_eq!(rule(kind, ""), None, "{kind}");
        assert_eq!(rule(kind, "b PING -> OK | server crash"), None, "{kind}");
    }
}
