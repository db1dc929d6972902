"""The jobs that dramatiq's workers do."""
import os

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

broker = RedisBroker(url=os.environ["REDIS_URL"])
broker.add_middleware(Results(backend=RedisBackend(url=os.environ["REDIS_URL"])))
dramatiq.set_broker(broker)
client = redis.Redis.from_url(os.environ["REDIS_URL"])


@dramatiq.actor(store_results=True)
def add(a, b):
    return a + b


@dramatiq.actor(store_results=True, max_retries=0)
def fail(text):
    raise ValueError(text)


@dramatiq.actor(store_results=True, max_retries=5, min_backoff=50, max_backoff=100)
def third_time(key):
    count = client.incr(key)
    if count < 3:
        raise RuntimeError("call %d" % count)
    return count
