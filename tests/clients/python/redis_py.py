#!/usr/bin/env python3
"""redis-py in both protocols: usage: redis_py.py URL"""
import threading
import time

import redis
from redis.backoff import ConstantBackoff
from redis.exceptions import LockError, LockNotOwnedError
from redis.retry import Retry

from checks import check, each_protocol, eventually, main, raises


def connect(url, protocol=3, **options):
    return redis.Redis.from_url(url, protocol=protocol, decode_responses=True, **options)


@each_protocol
def values_of_each_type(url, protocol):
    client = connect(url, protocol)
    assert client.ping()
    assert client.set("k", "v", ex=100) and client.get("k") == "v" and 0 < client.ttl("k") <= 100
    assert client.get("missing") is None
    assert client.set("k", "w", nx=True) is None and client.set("k", "w", get=True) == "v"
    assert client.incrbyfloat("f", 1.5) == 1.5
    assert client.hset("h", mapping={"f": 1, "g": 2}) == 2 and client.hgetall("h") == {"f": "1", "g": "2"}
    assert client.hmget("h", "f", "missing") == ["1", None]
    assert client.zadd("z", {"a": 1.5, "b": 2}) == 2
    scores = client.zrange("z", 0, -1, withscores=True)
    assert [tuple(pair) for pair in scores] == [("a", 1.5), ("b", 2.0)], scores
    assert client.zadd("z", {"a": 1}, incr=True) == 2.5 and client.zscore("z", "missing") is None
    assert client.zmscore("z", ["a", "missing"]) == [2.5, None]
    assert client.rpush("l", 1, 2, 3) == 3 and client.lrange("l", 0, -1) == ["1", "2", "3"]
    assert client.lpos("l", "2") == 1 and client.lmpop(1, "l", direction="LEFT") == ["l", ["1"]]
    assert client.sadd("s", "x", "y") == 2 and client.smembers("s") == {"x", "y"}
    assert client.smismember("s", ["x", "z"]) == [1, 0]
    assert client.bitfield("b").set("u8", 0, 255).incrby("u8", 0, 1).execute() == [0, 0]
    assert client.sort("l", desc=True) == ["3", "2"]
    assert client.exists("k", "k", "missing") == 2 and client.type("z") == "zset"
    assert client.object("encoding", "h") == "listpack"
    assert client.copy("k", "k2") and client.rename("k2", "k3") and client.get("k3") == "w"
    payload = redis.Redis.from_url(url, protocol=protocol).dump("z")
    assert client.restore("z2", 0, payload) and client.zcard("z2") == 2


@each_protocol
def bytes_stay_as_they_are(url, protocol):
    client = redis.Redis.from_url(url, protocol=protocol)
    value = bytes(range(256)) * 300
    assert client.set(b"\x00\xff\r\n", value) and client.get(b"\x00\xff\r\n") == value
    assert client.keys() == [b"\x00\xff\r\n"]
    big = b"x" * 3_000_000
    assert client.append("big", big) == len(big) and client.get("big") == big


@each_protocol
def scans_meet_every_element(url, protocol):
    client = connect(url, protocol)
    with client.pipeline(transaction=False) as pipe:
        for n in range(1000):
            pipe.set("k:%d" % n, n).hset("h", "f:%d" % n, n).sadd("s", n).zadd("z", {"m:%d" % n: n})
        assert len(pipe.execute()) == 4000
    assert set(client.scan_iter(match="k:*", count=50)) == {"k:%d" % n for n in range(1000)}
    assert set(client.scan_iter(_type="zset")) == {"z"}
    assert dict(client.hscan_iter("h")) == {"f:%d" % n: str(n) for n in range(1000)}
    assert set(client.sscan_iter("s")) == {str(n) for n in range(1000)}
    assert dict(client.zscan_iter("z")) == {"m:%d" % n: float(n) for n in range(1000)}


@each_protocol
def pipelines_and_transactions(url, protocol):
    client = connect(url, protocol)
    with client.pipeline() as pipe:
        pipe.watch("n")
        assert pipe.get("n") is None
        pipe.multi()
        pipe.set("n", 1).incr("n").get("n")
        assert pipe.execute() == [True, 2, "2"]
        pipe.watch("n")
        client.incr("n")
        pipe.multi()
        pipe.get("n")
        raises(redis.WatchError, "Watched variable changed", pipe.execute)
    with client.pipeline() as pipe:
        pipe.set("s", "x").lpush("s", 1).set("t", "y")
        results = pipe.execute(raise_on_error=False)
        assert results[0] is True and str(results[1]).startswith("WRONGTYPE") and results[2] is True
        pipe.set("u", "x").execute_command("NOSUCH")
        raises(redis.ResponseError, "Command # 2 (NOSUCH) of pipeline caused error: unknown command", pipe.execute)
        assert client.exists("u") == 0
    assert client.transaction(lambda pipe: (pipe.multi(), pipe.incr("n"))[1], "n") == [4]


@each_protocol
def errors_keep_their_kind(url, protocol):
    client = connect(url, protocol)
    client.set("k", "v")
    raises(redis.ResponseError, "WRONGTYPE Operation against", client.lpush, "k", 1)
    raises(redis.ResponseError, "value is not an integer or out of range", client.incr, "k")
    raises(redis.ResponseError, "wrong number of arguments for 'get' command", client.execute_command, "GET")
    raises(redis.exceptions.NoScriptError, "No matching script", client.evalsha, "0" * 40, 0)
    raises(redis.ResponseError, "DB index is out of range", client.execute_command, "SELECT", 99)
    raises(redis.ResponseError, "no such key", client.rename, "missing", "k")


@each_protocol
def scripts_are_loaded_when_they_are_missing(url, protocol):
    client = connect(url, protocol)
    client.script_flush()
    add = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    assert client.script_exists(add.sha) == [False]
    assert add(keys=["n"], args=[5]) == 5 and add(keys=["n"], args=[5]) == 10
    assert client.script_exists(add.sha) == [True]
    client.script_flush()
    with client.pipeline() as pipe:
        add(keys=["n"], args=[1], client=pipe)
        pipe.get("n")
        assert pipe.execute() == [11, "11"]
    fail = client.register_script("return redis.error_reply('MYCODE it failed')")
    raises(redis.ResponseError, "MYCODE it failed", fail)
    raises(redis.ResponseError, "user_script:1: Script attempted to access nonexistent global variable 'x'",
           client.eval, "return x", 0)
    assert client.eval("return {1, 2.9, 'x', false, {true}}", 0) == [1, 2, "x", None, [1]]
    assert client.eval_ro("return redis.call('GET', KEYS[1])", 1, "n") == "11"


@each_protocol
def blocked_clients_are_served(url, protocol):
    client, other = connect(url, protocol), connect(url, protocol)
    got = []
    calls = [
        lambda: other.blpop(["a", "b"], timeout=10),
        lambda: other.brpoplpush("b", "c", timeout=10),
        lambda: other.blmove("b", "c", 10, "LEFT", "RIGHT"),
        lambda: other.bzpopmin("z", timeout=10),
        lambda: other.xread({"st": "$"}, block=10_000),
    ]
    pushes = [lambda: client.rpush("b", "x")] * 3 + [lambda: client.zadd("z", {"m": 1}), lambda: client.xadd("st", {"f": 1}, id="5-1")]
    for call, push in zip(calls, pushes):
        thread = threading.Thread(target=lambda call=call: got.append(call()))
        thread.start()
        eventually(lambda: client.info("clients")["blocked_clients"] == 1, what="a blocked client")
        push()
        thread.join(10)
    assert list(got[0]) == ["b", "x"] and got[1:3] == ["x", "x"], got
    assert list(got[3]) == ["z", "m", 1.0], got
    entries = got[4]["st"] if isinstance(got[4], dict) else got[4][0][1]
    assert str(entries).count("5-1") == 1, got
    started = time.monotonic()
    assert client.blpop("nothing", timeout=0.2) is None and 0.15 < time.monotonic() - started < 5


@each_protocol
def messages_reach_subscribers(url, protocol):
    client = connect(url, protocol)
    got = []
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe(**{"news": lambda message: got.append(message["data"])})
    pubsub.psubscribe(**{"n?*": lambda message: got.append((message["channel"], message["pattern"]))})
    thread = pubsub.run_in_thread(sleep_time=0.05)
    try:
        eventually(lambda: client.pubsub_numpat() == 1)
        assert client.publish("news", "hello") == 2 and client.pubsub_channels() == ["news"]
        assert [tuple(pair) for pair in client.pubsub_numsub("news", "none")] == [("news", 1), ("none", 0)]
        eventually(lambda: len(got) == 2)
        assert sorted(got, key=str) == [("news", "n?*"), "hello"], got
    finally:
        thread.stop()
        thread.join(10)
    eventually(lambda: client.pubsub_numpat() == 0)
    with client.pubsub() as shard:
        shard.ssubscribe("part")
        assert eventually(lambda: shard.get_sharded_message(timeout=1))["type"] == "ssubscribe"
        assert client.spublish("part", "x") == 1
        assert eventually(lambda: shard.get_sharded_message(timeout=1))["data"] == "x"


@each_protocol
def keyspace_events_are_sent(url, protocol):
    client = connect(url, protocol)
    before = client.config_get("notify-keyspace-events")["notify-keyspace-events"]
    client.config_set("notify-keyspace-events", "KEA")
    try:
        with client.pubsub(ignore_subscribe_messages=True) as pubsub:
            pubsub.psubscribe("__keyevent@0__:*")
            pubsub.get_message(timeout=1)
            client.set("k", "v", px=30)
            events = []
            def expired():
                message = pubsub.get_message(timeout=0.1)
                if message:
                    events.append(message["channel"].rpartition(":")[2])
                return "expired" in events
            eventually(expired)
            assert events == ["set", "expire", "expired"], events
    finally:
        client.config_set("notify-keyspace-events", before)


@each_protocol
def locks_have_one_owner(url, protocol):
    client = connect(url, protocol)
    lock, other = client.lock("lock", timeout=10), client.lock("lock", timeout=10)
    assert lock.acquire() and lock.locked() and lock.owned()
    assert not other.acquire(blocking=False) and not other.acquire(blocking_timeout=0.1)
    assert lock.extend(20) and 20 < client.ttl("lock") <= 30 and lock.reacquire() and client.ttl("lock") <= 10
    raises(LockError, "Cannot release a lock that's not owned", other.release)
    lock.release()
    assert not lock.locked() and other.acquire()
    client.set("lock", "stolen")
    raises(LockNotOwnedError, "Cannot release a lock that's no longer owned", other.release)
    client.delete("lock")
    total = []
    def add():
        with connect(url, protocol).lock("lock", timeout=10, sleep=0.005):
            n = int(client.get("n") or 0)
            time.sleep(0.002)
            client.set("n", n + 1)
            total.append(n)
    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(total) == list(range(8)), total


@each_protocol
def groups_share_a_stream(url, protocol):
    client = connect(url, protocol)
    ids = [client.xadd("s", {"n": n}) for n in range(4)]
    assert client.xgroup_create("s", "g", id="0")
    raises(redis.ResponseError, "BUSYGROUP", client.xgroup_create, "s", "g")
    def read(consumer, count):
        reply = client.xreadgroup("g", consumer, {"s": ">"}, count=count)
        entries = reply["s"] if isinstance(reply, dict) else reply[0][1]
        while entries and isinstance(entries[0], list):
            entries = entries[0]
        return [entry[0] for entry in entries]
    assert read("a", 3) == ids[:3] and read("b", 5) == ids[3:]
    pending = client.xpending("s", "g")
    assert pending["pending"] == 4 and pending["min"] == ids[0], pending
    assert [row["message_id"] for row in client.xpending_range("s", "g", "-", "+", 10, consumername="b")] == ids[3:]
    assert client.xack("s", "g", ids[0]) == 1
    claimed = client.xautoclaim("s", "g", "c", min_idle_time=0, count=2)
    assert [entry[0] for entry in claimed[1]] == ids[1:3] and claimed[0] == ids[3], claimed
    client.xdel("s", ids[3])
    claimed = client.xautoclaim("s", "g", "c", min_idle_time=0, start_id=ids[3])
    assert claimed[0] == "0-0" and claimed[1] == [] and claimed[2] == [ids[3]], claimed
    assert client.xclaim("s", "g", "d", 0, [ids[1]], justid=True) == [ids[1]]
    group = client.xinfo_groups("s")[0]
    assert (group["name"], group["consumers"], group["pending"], group["lag"]) == ("g", 4, 2, 0), group
    info = client.xinfo_stream("s")
    assert info["length"] == 3 and info["entries-added"] == 4 and info["max-deleted-entry-id"] == ids[3], info
    assert client.xinfo_stream("s", full=True)["groups"][0]["pel-count"] == 2
    assert client.xtrim("s", maxlen=1, approximate=False) == 2 and len(client.xrange("s")) == 1


@each_protocol
def connections_are_restored(url, protocol):
    admin = connect(url, protocol)
    client = connect(url, protocol, client_name="victim", health_check_interval=1, retry=Retry(ConstantBackoff(0.01), 3))
    assert client.client_getname() == "victim" and client.client_info()["name"] == "victim"
    first = client.client_id()
    assert admin.client_kill_filter(_id=first) == 1
    assert client.client_getname() == "victim" and client.client_id() > first
    pings = admin.info("commandstats").get("cmdstat_ping", {"calls": 0})["calls"]
    time.sleep(1.1)
    assert client.get("k") is None
    eventually(lambda: admin.info("commandstats").get("cmdstat_ping", {"calls": 0})["calls"] > pings, what="a health check")
    pubsub = client.pubsub()
    pubsub.subscribe("c")
    assert pubsub.get_message(timeout=5)["type"] == "subscribe"
    assert admin.client_kill_filter(_type="pubsub") == 1
    eventually(lambda: (pubsub.get_message(timeout=0.1) or {}).get("type") == "subscribe")
    assert admin.publish("c", "again") == 1
    assert eventually(lambda: pubsub.get_message(timeout=0.1))["data"] == "again"
    pubsub.close()


@each_protocol
def pools_bound_their_connections(url, protocol):
    pool = redis.BlockingConnectionPool.from_url(url, protocol=protocol, max_connections=2, timeout=0.2)
    client = redis.Redis(connection_pool=pool)
    first, second = pool.get_connection(), pool.get_connection()
    raises(redis.ConnectionError, "No connection available", client.ping)
    pool.release(second)
    assert client.ping()
    pool.release(first)
    threads = [threading.Thread(target=lambda: [client.incr("n") for _ in range(50)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert client.get("n") == b"100"
    pool.disconnect()


@each_protocol
def databases_and_settings(url, protocol):
    client, second = connect(url, protocol), connect(url, protocol, db=1)
    client.set("k", "a")
    second.set("k", "b")
    assert client.get("k") == "a" and second.get("k") == "b" and client.move("k", 1) is False
    assert client.swapdb(0, 1) and client.get("k") == "b"
    info = client.info()
    assert info["redis_version"] == "7.0.15" and info["db0"]["keys"] == 1 and info["role"] == "master", info
    assert client.config_get("maxmemory*")["maxmemory-policy"] == "noeviction"
    assert client.command_count() > 200 and client.command_getkeys("MSET", "a", 1, "b", 2) == ["a", "b"]
    assert client.command()["get"]["arity"] == 2
    assert client.slowlog_reset() and client.slowlog_get() == []
    assert client.memory_usage("k") > 0 and client.time()[0] > 1_600_000_000
    assert client.role()[0] in ("master", b"master") and client.lastsave() is not None
    assert [row["addr"] for row in client.client_list() if row["id"] == str(client.client_id())]
    assert client.client_no_evict("ON") in ("OK", True) and client.echo("x") == "x"


@check
def monitors_see_commands(url):
    client = connect(url)
    with client.monitor() as monitor:
        client.set("seen", "a b")
        row = eventually(lambda: next((row for row in [monitor.next_command()] if row["command"].startswith("SET ")), None))
        assert row["command"] == "SET seen a b" and row["db"] == 0 and row["client_type"] == "tcp", row


@check
def passwords_are_required(url):
    admin = connect(url)
    admin.config_set("requirepass", "secret")
    try:
        raises(redis.AuthenticationError, "Authentication required", connect(url, 2).ping)
        raises(redis.AuthenticationError, "HELLO must be called with the client already authenticated", connect(url).ping)
        raises(redis.AuthenticationError, "", connect(url, password="wrong").ping)
        for protocol in (2, 3):
            assert connect(url, protocol, password="secret").ping()
            assert connect(url, protocol, username="default", password="secret").ping()
    finally:
        admin.config_set("requirepass", "")
    assert connect(url).ping()


if __name__ == "__main__":
    main()
