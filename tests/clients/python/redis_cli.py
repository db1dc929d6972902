#!/usr/bin/env python3
"""redis-cli, also in a terminal, and redis-benchmark: usage: redis_cli.py URL"""
import json
import os
import re
import subprocess
import tempfile
import threading
import urllib.parse

import redis

from checks import check, eventually, main
from terminal import Terminal


def address(url):
    """The host and port of a URL, as words for redis-cli."""
    parts = urllib.parse.urlparse(url)
    return ["-h", parts.hostname, "-p", str(parts.port)]


def run(url, *words, program="redis-cli", text=None, status=0):
    """What a program prints that is given its input at once."""
    done = subprocess.run(
        [program, *address(url), *words], input="" if text is None else text,
        capture_output=True, text=True, timeout=40, env=dict(os.environ, TERM="dumb"),
    )
    assert done.returncode == status, (words, done)
    return done.stdout + done.stderr


def terminal(url, *words):
    parts = urllib.parse.urlparse(url)
    place = re.escape("%s:%d" % (parts.hostname, parts.port))
    return Terminal(["redis-cli", *address(url), *words], r"(?:not connected|%s(?:\[\d+\])?(?:\(TX\))?)> " % place)


@check
def a_session_in_a_terminal(url):
    with terminal(url) as cli:
        cli.read_until(cli.prompt)
        answers = lambda line: cli.ask(line)[0]
        assert answers("PING") == "PONG"
        assert answers('SET k "a \\"b\\"\\n"') == "OK" and answers("GET k") == '"a \\"b\\"\\n"'
        assert answers("GET missing") == "(nil)" and answers("INCR n") == "(integer) 1"
        assert answers("LRANGE none 0 -1") == "(empty array)"
        answers("RPUSH l a b")
        assert answers("LRANGE l 0 -1") == '1) "a"\n2) "b"'
        assert answers("EVAL \"return {1, {2, 'x'}, false}\" 0") == '1) (integer) 1\n2) 1) (integer) 2\n   2) "x"\n3) (nil)'
        assert answers("LPUSH n x") == "(error) WRONGTYPE Operation against a key holding the wrong kind of value"
        assert answers("GET") == "(error) ERR wrong number of arguments for 'get' command"
        assert answers("nosuch a").startswith("(error) ERR unknown command 'nosuch', with args beginning with: 'a'")
        assert answers('SET "k') == "Invalid argument(s)"
        assert answers("3 INCR n") == "(integer) 2\n(integer) 3\n(integer) 4"
        assert re.search("redis_version:7.0.15", answers("INFO server"))
        assert cli.ask("SELECT 3")[1].endswith("[3]> ") and answers("GET k") == "(nil)"
        assert not cli.ask("SELECT 0")[1].endswith("]> ")
        assert cli.ask("SELECT 99")[0] == "(error) ERR DB index is out of range"
        assert cli.ask("hello 3")[0].startswith('1# "server" => "redis"\n2# "version" => "7.0.15"\n3# "proto" => (integer) 3')
        assert answers("HGETALL none") == "(empty hash)" and answers("SMEMBERS none") == "(empty set)"
        answers("HSET h f v")
        assert answers("HGETALL h") == '1# "f" => "v"' and answers("ZINCRBY z 1.5 m") == "(double) 1.5"
        assert answers("CLIENT GETNAME") == "(nil)"
        cli.send("quit\r")
        assert cli.ended() == 0


@check
def transactions_in_a_terminal(url):
    with terminal(url) as cli:
        cli.read_until(cli.prompt)
        assert cli.ask("MULTI")[1].endswith("(TX)> ")
        assert cli.ask("SET k v") == ("QUEUED", cli.ask("GET k")[1])
        reply, prompt = cli.ask("EXEC")
        assert reply == '1) OK\n2) "v"' and "(TX)" not in prompt, (reply, prompt)
        cli.ask("MULTI")
        assert cli.ask("GET")[0].startswith("(error) ERR wrong number")
        reply, prompt = cli.ask("EXEC")
        assert reply.startswith("(error) EXECABORT Transaction discarded") and "(TX)" not in prompt
        cli.ask("WATCH k")
        redis.Redis.from_url(url).set("k", "w")
        cli.ask("MULTI")
        cli.ask("GET k")
        assert cli.ask("EXEC")[0] == "(nil)"
        cli.ask("SELECT 2")
        assert cli.ask("MULTI")[1].endswith("[2](TX)> ") and cli.ask("DISCARD")[1].endswith("[2]> ")
        assert not cli.ask("RESET")[1].endswith("]> ")


@check
def help_and_hints_in_a_terminal(url):
    with terminal(url) as cli:
        cli.read_until(cli.prompt)
        cli.send("SETRANGE k ")
        cli.read_until("SETRANGE k *offset value")
        cli.send("1 ")
        cli.read_until("SETRANGE k 1 *value")
        cli.send("x\r")
        cli.read_until(cli.prompt)
        cli.send("zrangeb\t")
        cli.read_until("(?i)zrangeby")
        cli.send("\x15\x0b")
        reply = cli.ask("HELP GETEX")[0]
        assert "summary: " in reply and "since: 6.2.0" in reply and "group: string" in reply, reply
        assert "EXPIRE" in cli.ask("HELP @generic")[0]
        assert "CONFIG GET" in cli.ask("HELP CONFIG GET")[0]
        assert "DOCS [<command-name> ...]" in cli.ask("COMMAND HELP")[0]


@check
def messages_in_a_terminal(url):
    client = redis.Redis.from_url(url)
    for protocol in ("-2", "-3"):
        with terminal(url, protocol) as cli:
            cli.read_until(cli.prompt)
            cli.send("SUBSCRIBE news more\r")
            cli.read_until(r'1\) "subscribe"\n2\) "news"\n3\) \(integer\) 1\n1\) "subscribe"\n2\) "more"\n3\) \(integer\) 2')
            assert client.publish("news", "hello") == 1
            cli.read_until(r'1\) "message"\n2\) "news"\n3\) "hello"')
            cli.send("\x03")
            cli.read_until(cli.prompt)
            assert cli.ask("PING")[0] == "PONG"
        eventually(lambda: client.pubsub_channels() == [], what="the subscriber's departure")


@check
def a_password_in_a_terminal(url):
    client = redis.Redis.from_url(url)
    client.config_set("requirepass", "secret")
    try:
        with terminal(url) as cli:
            cli.read_until(cli.prompt)
            assert cli.ask("GET k")[0] == "(error) NOAUTH Authentication required."
            assert cli.ask("AUTH wrong")[0] == "(error) WRONGPASS invalid username-password pair or user is disabled."
            assert cli.ask("AUTH secret")[0] == "OK" and cli.ask("GET k")[0] == "(nil)"
        with terminal(url, "-a", "secret", "--no-auth-warning", "-n", "4") as cli:
            cli.read_until(r"\[4\]> $")
            assert cli.ask("PING")[0] == "PONG"
        assert run(url, "PING") == "NOAUTH Authentication required.\n\n"
        assert run(url, "--user", "default", "--pass", "secret", "--no-auth-warning", "-3", "PING") == "PONG\n"
    finally:
        client.config_set("requirepass", "")


@check
def a_lost_connection_comes_back(url):
    client = redis.Redis.from_url(url)
    with terminal(url) as cli:
        cli.read_until(cli.prompt)
        cli.ask("SELECT 2")
        victim = re.search(r"\d+", cli.ask("CLIENT ID")[0]).group()
        client.client_kill_filter(_id=victim)
        assert cli.ask("SET k v") == ("Error: Server closed the connection", "not connected> ")
        reply, prompt = cli.ask("SET k v")
        assert reply == "OK" and prompt.endswith("[2]> "), (reply, prompt)
        assert cli.ask("GET k")[0] == '"v"'


@check
def monitoring(url):
    client = redis.Redis.from_url(url)
    with terminal(url) as cli:
        cli.read_until(cli.prompt)
        cli.send("MONITOR\r")
        cli.read_until("OK\n")
        client.set("seen", "a b")
        client.eval("return redis.call('GET', 'x')", 0)
        shown = cli.read_until(r'lua\] "GET" "x"')
        assert re.search(r'\d+\.\d{6} \[0 127\.0\.0\.1:\d+\] "SET" "seen" "a b"\n', shown), shown
        cli.send("\x03")
        cli.read_until(cli.prompt)
        assert cli.ask("GET seen")[0] == '"a b"'


@check
def forms_of_output(url):
    for protocol in ("-2", "-3"):
        run(url, protocol, "FLUSHALL")
        assert run(url, protocol, "SET", "k", "a\nb") == "OK\n" and run(url, protocol, "GET", "k") == "a\nb\n"
        assert run(url, protocol, "--no-raw", "GET", "k") == '"a\\nb"\n'
        assert run(url, protocol, "--csv", "GET", "k") == '"a\\nb"\n'
        run(url, protocol, "RPUSH", "l", "1", "x", "\x01")
        assert run(url, protocol, "--csv", "LRANGE", "l", "0", "-1") == '"1","x","\\x01"\n'
        assert run(url, protocol, "-d", ";", "LRANGE", "l", "0", "1") == "1;x\n"
        assert run(url, protocol, "-r", "3", "-i", "0.01", "INCR", "n") == "1\n2\n3\n"
        assert run(url, protocol, "-x", "SET", "in", text="from input") == "OK\n" and run(url, "GET", "in") == "from input\n"
        assert run(url, protocol, "-X", "here", "SET", "here", "v", text="tagged") == "OK\n" and run(url, "GET", "tagged") == "v\n"
        assert run(url, protocol, "-e", "LPUSH", "k", "1", status=1).startswith("WRONGTYPE")
        assert run(url, protocol, "-n", "5", "DBSIZE") == "0\n"
        assert run(url, protocol, text="INCR m\nINCR m\nGET m\n") == "1\n2\n2\n"
        assert run(url, protocol, "--quoted-input", "SET", '"\\x00\\n"', "v") == "OK\n"
        assert run(url, protocol, "--quoted-input", "STRLEN", '"\\x00\\n"') == "1\n"
    assert json.loads(run(url, "--json", "CONFIG", "GET", "maxmemory-policy")) == {"maxmemory-policy": "noeviction"}
    assert json.loads(run(url, "--json", "EVAL", "return {1, 'x', false, {'y'}}", "0")) == [1, "x", None, ["y"]]
    assert json.loads(run(url, "--json", "HGETALL", "none")) == {}


@check
def scripts_from_files(url):
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write("redis.call('SET', KEYS[1], ARGV[1]); return {KEYS[2], ARGV[2], #ARGV}")
        script.flush()
        assert run(url, "--eval", script.name, "a", "b", ",", "1", "2") == "b\n2\n2\n"
        assert run(url, "GET", "a") == "1\n"
        script.write("x")
        script.flush()
        assert "ERR Error compiling script" in run(url, "--eval", script.name)


@check
def bulk_loading(url):
    words = []
    for n in range(50_000):
        key, value = "k:%d" % n, "v" * (n % 50)
        words.append("*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(key), key, len(value), value))
    report = run(url, "--pipe", text="".join(words))
    assert "errors: 0, replies: 50000" in report, report
    assert run(url, "DBSIZE") == "50000\n"
    report = run(url, "--pipe", text="SET a 1\r\nLPUSH a 1\r\nNOSUCH\r\n", status=1)
    assert "errors: 2, replies: 3" in report and "WRONGTYPE" in report, report
    assert set(run(url, "--scan", "--pattern", "k:4999?").split()) == {"k:4999%d" % n for n in range(10)}
    assert len(run(url, "--scan").split()) == 50_001


@check
def looks_at_the_key_space(url):
    client = redis.Redis.from_url(url)
    client.set("small", "x")
    client.set("large", "x" * 1000)
    client.rpush("list", *range(300))
    client.hset("hash", mapping={"f:%d" % n: n for n in range(20)})
    client.zadd("zset", {"m:%d" % n: n for n in range(40)})
    client.sadd("set", *range(30))
    client.xadd("stream", {"f": "v"})
    report = run(url, "--bigkeys", "-i", "0.001")
    found = set(re.findall(r"""^Biggest +(\w+) found '"(\w+)"' has (\d+ \w+)$""", report, re.M))
    assert found == {
        ("string", "large", "1000 bytes"), ("list", "list", "300 items"), ("hash", "hash", "20 fields"),
        ("zset", "zset", "40 members"), ("set", "set", "30 members"), ("stream", "stream", "1 entries"),
    }, report
    assert "Sampled 7 keys in the keyspace!" in report
    report = run(url, "--memkeys")
    assert re.search(r"""Biggest +string found '"large"' has \d{4} bytes""", report), report
    assert run(url, "--scan", "--pattern", "s*").split() and len(run(url, "--memkeys-samples", "3").split()) > 50
    assert "maxmemory policy" in run(url, "--hotkeys", status=1)


@check
def figures_over_time(url):
    client = redis.Redis.from_url(url)
    client.set("k", "v")
    with terminal(url, "--stat", "-i", "0.1") as cli:
        shown = cli.read_until(r"\n(?:\d+ .*\n){3}")
        assert re.match(r"-+ data -+ -+ load -+ - child -\nkeys +mem +clients +blocked +requests +connections *\n1 ", shown), shown
        cli.send("\x03")
        cli.ended()
    least, most, average, count = map(float, run(url, "--latency", "--raw").split())
    assert 0 <= least <= average <= most < 1000 and count > 10
    with terminal(url, "--latency-history", "-i", "1") as cli:
        cli.read_until(r"min: \d+, max: \d+, avg: [\d.]+ \(\d+ samples\) -- 1\.\d\d seconds range")


@check
def a_blocked_reader_is_served(url):
    client = redis.Redis.from_url(url)
    got = []
    thread = threading.Thread(target=lambda: got.append(run(url, "BLPOP", "l", "20")))
    thread.start()
    eventually(lambda: client.info("clients")["blocked_clients"] == 1)
    client.rpush("l", "x")
    thread.join(20)
    assert got == ["l\nx\n"], got


@check
def the_benchmark_runs_its_default_set(url):
    names = ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "LPUSH", "RPUSH", "LPOP", "RPOP", "SADD", "HSET", "SPOP",
             "ZADD", "ZPOPMIN", "LPUSH (needed to benchmark LRANGE)", "LRANGE_100 (first 100 elements)",
             "LRANGE_300 (first 300 elements)", "LRANGE_500 (first 500 elements)", "LRANGE_600 (first 600 elements)", "MSET (10 keys)"]
    for options in ([], ["-P", "16", "-r", "1000"], ["--threads", "2"], ["-3"], ["-k", "0"]):
        count = "200" if options == ["-k", "0"] else "1000"
        report = run(url, "-q", "-n", count, "-c", "20", *options, program="redis-benchmark")
        # A test that ends within the clock's first millisecond has a rate of "inf".
        found = re.findall(r"^(?:.*\r)?([A-Z].*?): (?:[\d.]+|inf) requests per second", report, re.M)
        assert found == names and "rror" not in report, (found, report)
    report = run(url, "-n", "1000", "--csv", "-r", "100", "EVAL", "return redis.call('INCR', KEYS[1])", "1", "n:__rand_int__", program="redis-benchmark")
    assert '"rps"' in report and len(redis.Redis.from_url(url).keys("n:*")) > 50, report


if __name__ == "__main__":
    main()
