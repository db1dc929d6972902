"""redis-py's `transaction`: a best score is read and raised under WATCH."""
import os
import sys

import redis

client = redis.from_url(os.environ["REDIS_URL"], retry=None)
score = int(sys.argv[1])


def improve(pipe):
    best = int(pipe.get("best") or 0)
    pipe.multi()
    pipe.set("best", max(best, score))


client.transaction(improve, "best")
print("noted")
