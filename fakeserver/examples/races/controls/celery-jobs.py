"""Sends a task of Celery: `add ID`; does the first one: `work`."""
import os
import sys

import celery
from celery.signals import task_postrun
from celery.worker import state

app = celery.Celery("jobs", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])
app.conf.update(broker_connection_retry=False, broker_connection_retry_on_startup=False, worker_prefetch_multiplier=1)
app.conf.update(result_backend_always_retry=False, redis_retry_on_timeout=False)


@app.task(name="add")
def add(a, b):
    return a + b


@task_postrun.connect
def stop(**_):
    state.should_stop = os.EX_OK


if sys.argv[1] == "add":
    add.apply_async((2, 3), task_id=sys.argv[2], retry=False)
    print("queued")
else:
    options = ["--pool", "solo", "--without-mingle", "--without-gossip", "--without-heartbeat", "--loglevel", "critical"]
    app.worker_main(["--quiet", "worker", "--hostname", "worker@host", *options])
    print("worked")
