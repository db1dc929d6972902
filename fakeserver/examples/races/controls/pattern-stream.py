"""Does one entry of a stream: `work`; does what ended workers have left: `recover`."""
import os
import sys

import redis

client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry=None)


def finish(entries):
    for number, entry in entries:
        with client.pipeline(transaction=True) as both:
            both.hset("results", entry["job"], len(entry["job"]))
            both.xack("jobs", "workers", number)
            both.execute()


if sys.argv[1] == "work":
    for _, entries in client.xreadgroup("workers", "one", {"jobs": ">"}, count=1) or []:
        finish(entries)
else:
    finish(client.xautoclaim("jobs", "workers", "two", min_idle_time=0)[1])
