"""redis-py's lock around a read and a write."""
import os

import redis

client = redis.from_url(os.environ["REDIS_URL"], retry=None)
with client.lock("lock", timeout=30, sleep=0.02):
    client.set("count", int(client.get("count") or 0) + 1)
print("counted")
