"""The jobs that Celery's worker does."""
import os
import time

import celery
import redis

VISIBILITY_SECONDS = 2

app = celery.Celery("jobs", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])
app.conf.update(
    broker_transport_options={"visibility_timeout": VISIBILITY_SECONDS, "polling_interval": 0.1},
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=1,
    result_expires=600,
)
client = redis.Redis.from_url(os.environ["REDIS_URL"])


@app.task
def add(a, b):
    return a + b


@app.task
def total(values):
    return sum(values)


@app.task
def fail(text):
    raise ValueError(text)


@app.task(bind=True, max_retries=5)
def third_time(self, key):
    count = client.incr(key)
    if count < 3:
        raise self.retry(countdown=0.1)
    return count


@app.task(acks_late=True)
def wait_for_key(key):
    client.incr("started")
    deadline = time.monotonic() + 50
    while not client.get(key):
        if time.monotonic() > deadline:
            raise TimeoutError(key)
        time.sleep(0.05)
    return "went"
