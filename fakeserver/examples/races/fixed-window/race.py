"""Admits a caller at most twice a minute."""
import os
import sys

import redis

LIMIT = 2
WINDOW_SECONDS = 60
client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def admit(caller):
    key = f"window:{caller}"
    hits = int(client.get(key) or 0)
    if hits >= LIMIT:
        return "refused"
    client.set(key, hits + 1, ex=WINDOW_SECONDS)
    return f"admitted as number {hits + 1}"


print(admit(sys.argv[1]))
