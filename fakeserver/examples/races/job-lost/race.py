"""Does one job of a queue: takes it out, and files its result."""
import os

import redis

client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True)

job = client.rpop("jobs")
if job is None:
    print("nothing to do")
else:
    client.hset("results", job, len(job))
    print(f"did {job}")
