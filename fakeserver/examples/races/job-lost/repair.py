"""Does one job of a queue: keeps it in a list of jobs under way until its result is filed."""
import os

import redis

client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry=None)

job = client.lmove("jobs", "jobs:doing", "RIGHT", "LEFT")
if job is None:
    print("nothing to do")
else:
    with client.pipeline(transaction=True) as both:
        both.hset("results", job, len(job))
        both.lrem("jobs:doing", 1, job)
        both.execute()
    print(f"did {job}")
