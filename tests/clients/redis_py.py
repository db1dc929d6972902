#!/usr/bin/env python3
"""redis-py against a server, in both protocols: usage: redis_py.py URL"""
import sys
import redis

def check(url, protocol):
    client = redis.Redis.from_url(url, protocol=protocol, decode_responses=True)
    client.flushall()
    assert client.ping()
    assert client.set("k", "v", ex=100) and client.get("k") == "v" and 0 < client.ttl("k") <= 100
    assert client.get("missing") is None
    assert client.hset("h", mapping={"f": 1, "g": 2}) == 2 and client.hgetall("h") == {"f": "1", "g": "2"}
    assert client.zadd("z", {"a": 1.5, "b": 2}) == 2
    scores = client.zrange("z", 0, -1, withscores=True)
    assert [tuple(pair) for pair in scores] == [("a", 1.5), ("b", 2.0)], scores
    assert client.rpush("l", 1, 2, 3) == 3 and client.lrange("l", 0, -1) == ["1", "2", "3"]
    assert client.sadd("s", "x", "y") == 2 and client.smembers("s") == {"x", "y"}
    assert sorted(client.scan_iter()) == ["h", "k", "l", "s", "z"]
    script = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    assert script(keys=["n"], args=[5]) == 5 and script(keys=["n"], args=[5]) == 10
    with client.pipeline() as pipe:
        pipe.watch("n")
        value = int(pipe.get("n"))
        pipe.multi()
        pipe.set("n", value + 1).get("n")
        assert pipe.execute() == [True, "11"]
        pipe.watch("n")
        client.incr("n")
        pipe.multi()
        pipe.get("n")
        try:
            pipe.execute()
        except redis.WatchError:
            pass
        else:
            raise AssertionError("EXEC went through though a watched key had changed")
    try:
        client.lpush("k", 1)
    except redis.ResponseError as error:
        assert str(error).startswith("WRONGTYPE"), error
    else:
        raise AssertionError("LPUSH to a string went through")
    print("redis-py %s, RESP%d: works" % (redis.__version__, protocol))

if __name__ == "__main__":
    for protocol in (2, 3):
        check(sys.argv[1], protocol)
