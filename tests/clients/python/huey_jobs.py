"""The jobs that huey's consumer does."""
import os

import redis
from huey import PriorityRedisHuey

huey = PriorityRedisHuey("jobs", url=os.environ["REDIS_URL"])
client = redis.Redis.from_url(os.environ["REDIS_URL"])


@huey.task()
def add(a, b):
    return a + b


@huey.task()
def note(text):
    client.rpush("notes", text)
    return True


@huey.task()
def fail(text):
    raise ValueError(text)


@huey.task(retries=3, retry_delay=0)
def third_time(key):
    count = client.incr(key)
    if count < 3:
        raise RuntimeError("call %d" % count)
    client.set(key + ":done", count)
    return count
