"""Does what a worker left under way when it ended."""
import os

import redis

client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
for job in client.lrange("jobs:doing", 0, -1):
    with client.pipeline(transaction=True) as both:
        both.hset("results", job, len(job))
        both.lrem("jobs:doing", 1, job)
        both.execute()
