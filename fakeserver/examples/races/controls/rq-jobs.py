"""Puts a job into a queue of RQ: `add ID`; does the first one: `work`."""
import os
import sys

import redis
import rq

connection = redis.from_url(os.environ["REDIS_URL"], retry=None)
queue = rq.Queue("jobs", connection=connection)
if sys.argv[1] == "add":
    queue.enqueue("operator.add", 2, 3, job_id=sys.argv[2])
    print("queued")
else:
    rq.SimpleWorker([queue], name="worker", connection=connection).work(burst=True, max_jobs=1, logging_level="ERROR")
    print("worked")
