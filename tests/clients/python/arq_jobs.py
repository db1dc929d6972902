"""The jobs that arq's worker does."""
import os

import arq
from arq.connections import RedisSettings


async def add(_context, a, b):
    return a + b


async def fail(_context, text):
    raise ValueError(text)


async def third_time(context, key):
    count = await context["redis"].incr(key)
    if count < 3:
        raise arq.Retry(defer=0.1)
    return count


class Settings:
    functions = [add, fail, third_time]
    redis_settings = RedisSettings.from_dsn(os.environ["REDIS_URL"])
    poll_delay = 0.05
