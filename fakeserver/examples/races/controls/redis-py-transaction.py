"""redis-py's `transaction`: a read and a write under WATCH."""
import os

import redis

client = redis.from_url(os.environ["REDIS_URL"], retry=None)


def count(pipe):
    number = int(pipe.get("count") or 0)
    pipe.multi()
    pipe.set("count", number + 1)


client.transaction(count, "count")
print("counted")
