#!/usr/bin/env python3
"""redis-py's asyncio client in both protocols: usage: redis_asyncio.py URL"""
import asyncio

import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff

from checks import each_protocol, main


def connect(url, protocol, **options):
    return redis.asyncio.Redis.from_url(url, protocol=protocol, decode_responses=True, **options)


def in_a_loop(function):
    """Makes a check of a coroutine that is called with a client."""
    def run(url, protocol):
        async def with_client():
            async with connect(url, protocol) as client:
                await asyncio.wait_for(function(client, url, protocol), 50)
        asyncio.run(with_client())
    run.__name__ = function.__name__
    return each_protocol(run)


async def eventually(condition, seconds=20):
    async with asyncio.timeout(seconds):
        while not (value := await condition()):
            await asyncio.sleep(0.02)
    return value


@in_a_loop
async def tasks_share_a_client(client, _url, _protocol):
    async def count(task):
        for n in range(20):
            assert await client.incr("k:%d" % task) == n + 1
    await asyncio.gather(*(count(task) for task in range(20)))
    assert {key async for key in client.scan_iter(match="k:*")} == {"k:%d" % task for task in range(20)}
    assert await client.mget(*("k:%d" % task for task in range(20))) == ["20"] * 20


@in_a_loop
async def pipelines_transactions_and_scripts(client, _url, _protocol):
    async with client.pipeline(transaction=True) as pipe:
        assert await pipe.set("n", 1).incr("n").lrange("l", 0, -1).execute() == [True, 2, []]
        await pipe.watch("n")
        await client.incr("n")
        pipe.multi()
        pipe.get("n")
        try:
            await pipe.execute()
        except redis.WatchError:
            pass
        else:
            raise AssertionError("EXEC went through though a watched key had changed")
    script = client.register_script("return {KEYS[1], ARGV[1], redis.call('GET', KEYS[1])}")
    await client.script_flush()
    assert await script(keys=["n"], args=["a"]) == ["n", "a", "3"]


@in_a_loop
async def blocked_tasks_are_served_in_order(client, url, protocol):
    got = []
    async def take(number):
        async with connect(url, protocol) as own:
            got.append((number, list(await own.blpop("l", timeout=20))))
    tasks = []
    for number in range(3):
        tasks.append(asyncio.create_task(take(number)))
        async def blocked(number=number):
            return (await client.info("clients"))["blocked_clients"] == number + 1
        await eventually(blocked)
    await client.rpush("l", "a", "b", "c")
    await asyncio.gather(*tasks)
    assert sorted(got) == [(0, ["l", "a"]), (1, ["l", "b"]), (2, ["l", "c"])], got


@in_a_loop
async def messages_reach_subscribers(client, _url, _protocol):
    async with client.pubsub() as pubsub:
        await pubsub.subscribe("news")
        await pubsub.psubscribe("n*")
        async def subscribed():
            return await client.pubsub_numpat() == 1
        await eventually(subscribed)
        assert await client.publish("news", "hello") == 2
        kinds = []
        while len(kinds) < 4:
            message = await pubsub.get_message(timeout=5)
            assert message, kinds
            kinds.append((message["type"], message["data"]))
        assert kinds == [("subscribe", 1), ("psubscribe", 2), ("message", "hello"), ("pmessage", "hello")], kinds


@in_a_loop
async def locks_have_one_owner(client, _url, _protocol):
    seen = []
    async def add():
        async with client.lock("lock", timeout=10, sleep=0.005):
            n = int(await client.get("n") or 0)
            await asyncio.sleep(0.002)
            await client.set("n", n + 1)
            seen.append(n)
    await asyncio.gather(*(add() for _ in range(8)))
    assert seen == list(range(8)), seen


@in_a_loop
async def a_killed_connection_is_replaced(client, url, protocol):
    retry = Retry(ConstantBackoff(0.01), 3)
    async with connect(url, protocol, client_name="victim", retry=retry, retry_on_error=[redis.ConnectionError]) as victim:
        first = await victim.client_id()
        assert await client.client_kill_filter(_id=first) == 1
        assert await victim.client_getname() == "victim" and await victim.client_id() > first


@in_a_loop
async def a_cancelled_wait_leaves_the_pool_usable(client, _url, _protocol):
    try:
        await asyncio.wait_for(client.blpop("nothing", timeout=0), 0.1)
    except asyncio.TimeoutError:
        pass
    else:
        raise AssertionError("BLPOP of nothing was served")
    async def none_blocked():
        return (await client.info("clients"))["blocked_clients"] == 0
    await eventually(none_blocked)
    await client.rpush("nothing", "x")
    assert await client.llen("nothing") == 1


if __name__ == "__main__":
    main()
