import asyncio
import os
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone

import pytest
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

import fakeserver

START = 1_722_150_000


def connect(server, **options):
    return redis.Redis.from_url(server.url, decode_responses=True, **options)


def without_retries(server):
    return connect(server, retry=Retry(NoBackoff(), 0))


def test_a_server_runs_until_the_end_of_its_block():
    with fakeserver.Server() as server:
        client = connect(server)
        assert client.set("k", "v") and client.get("k") == "v"
        assert server.url == f"redis://127.0.0.1:{server.port}" and server.host == "127.0.0.1"
        assert server.is_running
    assert not server.is_running
    server.stop()
    with pytest.raises(redis.ConnectionError):
        without_retries(server).ping()
    with pytest.raises(fakeserver.ProgramError, match="stopped"):
        server.flush()


def test_servers_know_nothing_of_each_other(redis_double):
    with fakeserver.Server() as other:
        connect(redis_double).set("k", "mine")
        assert connect(other).get("k") is None


@pytest.mark.parametrize("run", [1, 2])
def test_the_fixture_is_empty_each_time(redis_double, run):
    assert redis_double.dump() == ""
    connect(redis_double).set("k", run)


def test_coroutines_are_served(redis_double):
    async def both():
        client = redis.asyncio.Redis.from_url(redis_double.url)
        try:
            return await asyncio.gather(client.incr("k"), client.incr("k"))
        finally:
            await client.aclose()

    assert sorted(asyncio.run(both())) == [1, 2]


def test_time_is_in_the_hands_of_the_test(redis_double):
    client = connect(redis_double)
    assert redis_double.clock.freeze(START) == START
    client.set("k", "v", ex=60)
    assert redis_double.clock.advance(59.5) == START + 59.5
    assert client.pttl("k") == 500
    assert redis_double.clock.advance(timedelta(seconds=1)) == START + 60.5
    assert client.get("k") is None
    assert redis_double.clock.now() == START + 60.5
    at = datetime(2030, 1, 1, tzinfo=timezone.utc)
    assert redis_double.clock.freeze(at) == at.timestamp()
    assert abs(redis_double.clock.real() - time.time()) < 5
    assert redis_double.clock.freeze() == redis_double.clock.now()


def test_a_server_can_start_with_its_clock_frozen():
    with fakeserver.Server(frozen_at=START) as server:
        assert server.clock.now() == START
        assert connect(server).time() == (START, 0)


def test_a_password_is_part_of_the_url():
    with fakeserver.Server(password="secret") as server:
        assert connect(server).ping() and server.dump() == ""
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=server.port, retry=Retry(NoBackoff(), 0)).ping()


def test_a_seed_makes_random_replies_the_same():
    def picks():
        with fakeserver.Server(seed=7) as server:
            client = connect(server)
            client.sadd("s", *range(100))
            return client.srandmember("s", 10)

    assert picks() == picks()


def test_commands_fail_as_they_are_told(redis_double):
    client = without_retries(redis_double)
    redis_double.fail("SET", error="OOM used up", nth=2)
    assert client.set("k", 1)
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        client.set("k", 2)
    redis_double.fail("INCRBY", drop="before")
    with pytest.raises(redis.ConnectionError):
        client.incr("k")
    redis_double.fail("INCRBY", drop="after")
    with pytest.raises(redis.ConnectionError):
        client.incr("k")
    assert client.get("k") == "2"
    redis_double.fail("GET", delay=0.1, always=True)
    before = time.monotonic()
    assert client.get("k") == "2" and time.monotonic() - before >= 0.1
    assert redis_double.clear_faults() == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, TypeError),
        ({"error": "ERR no", "drop": "after"}, TypeError),
        ({"drop": "between"}, ValueError),
        ({"error": ""}, fakeserver.ReplyError),
        ({"error": "ERR no", "nth": 0}, fakeserver.ReplyError),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(redis_double, arguments, error):
    with pytest.raises(error):
        redis_double.fail("GET", **arguments)
    assert redis_double.clear_faults() == 0


def test_a_dump_shows_what_there_is(redis_double):
    redis_double.clock.freeze(START)
    client = connect(redis_double)
    client.hset("cart", mapping={"pear": 1, "apple": 2})
    client.set("name", "Zo\u00eb", px=1500)
    assert redis_double.dump() == (
        'db 0\n"cart" hash\n  "apple" "2"\n  "pear" "1"\n"name" string "Zo\\xc3\\xab" (expires in 1500 ms)\n'
    )
    redis_double.flush()
    assert redis_double.dump() == ""


def test_reset_makes_it_new(redis_double):
    redis_double.clock.freeze(START)
    redis_double.fail("PING", error="ERR no", always=True)
    connect(redis_double).set("k", "v")
    redis_double.reset()
    assert connect(redis_double).ping() and redis_double.dump() == ""
    assert abs(redis_double.clock.now() - time.time()) < 5


def test_replies_come_as_they_are(redis_double):
    assert redis_double.command("SET", "k", 1) == "OK"
    assert redis_double.command("GET", "k") == b"1"
    assert redis_double.command("GET", "missing") is None
    assert redis_double.command("MGET", b"k", "missing") == [b"1", None]
    with pytest.raises(fakeserver.ReplyError, match="^ERR unknown command 'NOSUCH'"):
        redis_double.command("NOSUCH")


def test_a_server_ends_with_the_process_that_started_it():
    source = "import fakeserver, os, signal; s = fakeserver.Server(); print(s.port, flush=True); {end}"
    for end in ["pass", "os._exit(1)", "os.kill(os.getpid(), signal.SIGKILL)"]:
        output = subprocess.run(
            [sys.executable, "-c", source.format(end=end)], capture_output=True, text=True, check=False
        ).stdout
        until = time.monotonic() + 10
        while True:
            try:
                fakeserver._resp.Connection("127.0.0.1", int(output), None, 1).close()
            except OSError:
                break
            assert time.monotonic() < until, f"the server is still there after {end}"
            time.sleep(0.01)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_end_of_a_fork_leaves_the_server_alone(redis_double):
    child = os.fork()
    if child == 0:
        redis_double._end()
        os._exit(0)
    os.waitpid(child, 0)
    assert connect(redis_double).ping()


def test_a_port_that_is_taken_is_an_error(redis_double, capfd):
    with pytest.raises(fakeserver.ProgramError, match="ended with status 2"):
        fakeserver.Server(port=redis_double.port)
    assert "cannot listen on 127.0.0.1" in capfd.readouterr().err


def test_a_program_that_is_not_there_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("FAKESERVER_PROGRAM", str(tmp_path / "missing"))
    with pytest.raises(fakeserver.ProgramError, match="cannot start"):
        fakeserver.Server()
