#!/usr/bin/env python3
"""python-redis-lock, limits and walrus: usage: libraries.py URL"""
import threading

import redis

from checks import check, eventually, main, raises


@check
def python_redis_lock_gives_turns(url):
    import redis_lock

    client = redis.StrictRedis.from_url(url)
    lock, other = redis_lock.Lock(client, "turn", expire=5, auto_renewal=True), redis_lock.Lock(client, "turn", expire=5)
    assert lock.acquire() and lock.locked() and not other.acquire(blocking=False)
    raises(redis_lock.NotAcquired, "", other.release)
    raises(redis_lock.AlreadyAcquired, "", lock.acquire)
    got = []
    thread = threading.Thread(target=lambda: got.append(other.acquire(timeout=4)))
    thread.start()
    eventually(lambda: client.info("clients")["blocked_clients"] == 1)
    lock.release()
    thread.join(10)
    assert got == [True] and other.get_owner_id() == other.id
    other.extend(60)
    assert client.ttl("lock:turn") > 50
    other.reset()
    redis_lock.reset_all(client)
    assert not lock.locked()
    with redis_lock.Lock(client, "short", expire=3, auto_renewal=True) as renewed:
        eventually(lambda: client.pttl("lock:short") < 2500)
        eventually(lambda: client.pttl("lock:short") > 2500, what="a renewal")
        assert client.get("lock:short") == renewed.id.encode()


@check
def limits_count_hits(url):
    import limits
    from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter

    storage = limits.storage.storage_from_string(url)
    assert storage.check()
    for number, strategy in enumerate((FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter)):
        limiter, limit = strategy(storage), limits.parse("3/hour")
        name = "user%d" % number
        assert [limiter.hit(limit, name) for _ in range(4)] == [True, True, True, False], strategy
        assert not limiter.test(limit, name) and limiter.test(limit, "other")
        stats = limiter.get_window_stats(limit, name)
        assert stats.remaining == 0, stats
        limiter.clear(limit, name)
        assert limiter.hit(limit, name, cost=3) and not limiter.hit(limit, name)
        second = limits.parse("2/second")
        eventually(lambda: not limiter.hit(second, name), 5, "a refusal by %s" % strategy.__name__)
        eventually(lambda: limiter.hit(second, name), 5, "the next second of %s" % strategy.__name__)
    assert storage.reset() > 0


@check
def walrus_keeps_containers_and_models(url):
    import walrus

    database = walrus.Database(connection_pool=redis.ConnectionPool.from_url(url))
    hashed = database.Hash("h")
    hashed.update(a=1, b=2)
    assert sorted(hashed) and hashed["a"] == b"1" and len(hashed) == 2
    listed = database.List("l")
    listed.extend(["x", "y", "z"])
    assert listed[1:] == [b"y", b"z"] and listed.popleft() == b"x"
    scores = database.ZSet("z")
    scores.add({"a": 1, "b": 2, "c": 3})
    assert scores.score("c") == 3.0 and scores.rank("b") == 1 and len(scores) == 3
    left, right = database.Set("s"), database.Set("t")
    left.add("a", "b")
    right.add("b", "c")
    assert set(left & right) == {b"b"} and set(left | right) == {b"a", b"b", b"c"}

    class User(walrus.Model):
        __database__ = database
        name = walrus.TextField(primary_key=True)
        age = walrus.IntegerField(index=True)

    for name, age in (("ann", 30), ("bob", 40), ("cyd", 50)):
        User.create(name=name, age=age)
    assert [user.name for user in User.query((User.age >= 40) & (User.age < 50))] == ["bob"]
    assert User.get(User.name == "ann").age == 30 and len(list(User.all())) == 3
    group = database.consumer_group("g", ["stream"])
    group.create()
    database.Stream("stream").add({"n": 1})
    ((_, messages),) = group.read()
    assert group.stream.ack(messages[0][0]) == 1
    limit = database.rate_limit("limit", limit=2, per=60)
    assert [limit.limit("a") for _ in range(3)] == [False, False, True]
    with database.lock("lock", ttl=5000):
        assert not database.lock("lock", ttl=5000).acquire(block=False)
    completer = database.autocomplete()
    completer.store("one", "testing redis", {"n": 1})
    assert list(completer.search("tes red")) == [{"n": 1}]
    cache = database.cache()
    calls = []
    cached = cache.cached(timeout=50)(lambda n: calls.append(n) or n)
    assert cached(1) == cached(1) == 1 and calls == [1]


if __name__ == "__main__":
    main()
