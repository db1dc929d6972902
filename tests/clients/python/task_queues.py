#!/usr/bin/env python3
"""RQ, Celery, huey and dramatiq, each with a worker process that does jobs: usage: task_queues.py URL"""
import datetime
import os
import sys
import threading
import time

import redis

from checks import check, eventually, main, process


def work(*module, url):
    """A worker of a library, run as a module."""
    return process(sys.executable, "-m", *module, REDIS_URL=url)


@check
def rq_does_retries_and_schedules_jobs(url):
    import rq
    from rq.registry import FailedJobRegistry, FinishedJobRegistry, ScheduledJobRegistry, StartedJobRegistry
    import rq_jobs

    connection = redis.Redis.from_url(url)
    queue = rq.Queue("jobs", connection=connection)
    with work("rq.cli", "worker", "--with-scheduler", "--url", url, "jobs", "later", url=url) as worker:
        def done(job):
            eventually(lambda: job.get_status(refresh=True) in ("finished", "failed") or worker.poll() is not None, 25, "an end of " + job.func_name)
            return job
        added = done(queue.enqueue(rq_jobs.add, 2, 3))
        assert added.get_status() == "finished" and added.return_value() == 5, added.latest_result()
        assert added.id in FinishedJobRegistry(queue=queue)
        failed = done(queue.enqueue(rq_jobs.fail, "no"))
        assert failed.get_status() == "failed" and "ValueError: no" in failed.latest_result().exc_string
        assert failed.id in FailedJobRegistry(queue=queue)
        second = done(queue.enqueue(rq_jobs.succeed_on_call, "tries", 2, retry=rq.Retry(max=3)))
        assert second.get_status() == "finished" and second.return_value() == 2, second.latest_result()
        first = queue.enqueue(rq_jobs.add, 1, 1)
        dependent = done(queue.enqueue(rq_jobs.add, 10, 10, depends_on=first))
        assert dependent.return_value() == 20 and first.get_status() == "finished"
        later = rq.Queue("later", connection=connection)
        scheduled = later.enqueue_in(datetime.timedelta(seconds=1), rq_jobs.add, 4, 4)
        assert scheduled.id in ScheduledJobRegistry(queue=later)
        assert done(scheduled).return_value() == 8
        many = [queue.enqueue(rq_jobs.add, n, n) for n in range(5)]
        assert [done(job).return_value() for job in many] == [0, 2, 4, 6, 8]
        failed.requeue()
        done(failed)
        assert [w.name for w in rq.Worker.all(connection=connection)] and len(StartedJobRegistry(queue=queue)) == 0
    eventually(lambda: rq.Worker.all(connection=connection) == [], what="the worker's departure")


@check
def celery_does_jobs_chords_and_retries(url):
    os.environ["REDIS_URL"] = url
    import celery
    import celery_jobs as jobs

    options = ("--pool", "threads", "--concurrency", "2", "--without-mingle", "--loglevel", "warning", "--hostname", "one@%h")
    with work("celery", "-A", "celery_jobs", "worker", *options, url=url):
        assert jobs.add.delay(2, 3).get(timeout=30) == 5
        assert celery.group(jobs.add.s(n, n) for n in range(6))().get(timeout=30) == [0, 2, 4, 6, 8, 10]
        assert celery.chord((jobs.add.s(n, 1) for n in range(5)), jobs.total.s())().get(timeout=30) == 15
        assert celery.chain(jobs.add.s(1, 2), jobs.add.s(10))().get(timeout=30) == 13
        assert jobs.third_time.delay("tries").get(timeout=30) == 3
        failure = jobs.fail.delay("no")
        try:
            failure.get(timeout=30)
        except ValueError as error:
            assert str(error) == "no"
        else:
            raise AssertionError("a failed job gave a value")
        assert failure.state == "FAILURE" and "ValueError" in failure.traceback
        assert jobs.add.apply_async((4, 4), countdown=1).get(timeout=30) == 8
        assert list(jobs.app.control.ping(timeout=2)[0].values()) == [{"ok": "pong"}]
        client = redis.Redis.from_url(url)
        eventually(lambda: client.hlen("unacked") == 0, what="acknowledgement of every message")
        ignored = jobs.add.delay(1, 1)
        ignored.get(timeout=30)
        ignored.forget()
        assert client.exists("celery-task-meta-" + ignored.id) == 0


@check
def celery_gives_back_what_a_worker_did_not_acknowledge(url):
    os.environ["REDIS_URL"] = url
    import celery_jobs as jobs

    client = redis.Redis.from_url(url)
    waiting = jobs.wait_for_key.delay("go")
    arguments = ("celery", "-A", "celery_jobs", "worker", "--pool", "threads", "--concurrency", "1", "--without-mingle", "--loglevel", "error")
    with work(*arguments, "--hostname", "first@%h", url=url) as worker:
        eventually(lambda: client.get("started") == b"1", what="the job's start")
        assert client.hlen("unacked") == 1
        worker.kill()
        worker.wait(10)
    assert client.hlen("unacked") == 1 and not waiting.ready()
    client.set("go", 1)
    # A worker looks for such messages when it starts, and then only every few minutes.
    overdue = lambda: client.zcount("unacked_index", 0, time.time() - jobs.VISIBILITY_SECONDS)
    eventually(overdue, what="the end of the message's visibility")
    with work(*arguments, "--hostname", "second@%h", url=url):
        assert waiting.get(timeout=40) == "went"
    assert client.get("started") == b"2"


@check
def huey_does_delays_and_retries_jobs(url):
    os.environ["REDIS_URL"] = url
    import huey_jobs as jobs
    from huey.exceptions import TaskException

    with work("huey.bin.huey_consumer", "huey_jobs.huey", "-w", "2", "-d", "0.05", "-m", "0.2", "-q", url=url):
        assert jobs.add(2, 3).get(blocking=True, timeout=30) == 5
        # A result is kept for each try, so the last one is told apart by what the job leaves behind.
        jobs.third_time("tries")
        eventually(lambda: jobs.client.get("tries:done") == b"3", 30, "the third try")
        failed = jobs.fail("no")
        try:
            failed.get(blocking=True, timeout=30)
        except TaskException as error:
            assert "ValueError('no')" in str(error), error
        else:
            raise AssertionError("a failed job gave a value")
        delayed = jobs.add.schedule((4, 4), delay=1)
        eventually(lambda: jobs.huey.scheduled_count() == 1 or delayed.get() is not None)
        assert delayed.get(blocking=True, timeout=30) == 8
        chained = jobs.huey.enqueue(jobs.add.s(1, 2).then(jobs.add, 10))
        assert [result.get(blocking=True, timeout=30) for result in chained] == [3, 13]
        revoked = jobs.add.schedule((9, 9), delay=60)
        revoked.revoke()
        assert revoked.is_revoked()
        order = [jobs.note("low", priority=1), jobs.note("high", priority=9)]
        for result in order:
            result.get(blocking=True, timeout=30)
        assert sorted(jobs.client.lrange("notes", 0, -1)) == [b"high", b"low"]
        with jobs.huey.lock_task("held"):
            assert jobs.huey.is_locked("held")
        assert not jobs.huey.is_locked("held")


@check
def dramatiq_does_delays_and_retries_jobs(url):
    os.environ["REDIS_URL"] = url
    import dramatiq
    import dramatiq_jobs as jobs
    from dramatiq.rate_limits import ConcurrentRateLimiter, WindowRateLimiter
    from dramatiq.rate_limits.backends import RedisBackend
    from dramatiq.results.errors import ResultFailure

    with work("dramatiq", "dramatiq_jobs", "--processes", "1", "--threads", "2", url=url):
        assert jobs.add.send(2, 3).get_result(block=True, timeout=30_000) == 5
        assert jobs.third_time.send("tries").get_result(block=True, timeout=30_000) == 3
        failed = jobs.fail.send("no")
        try:
            failed.get_result(block=True, timeout=30_000)
        except ResultFailure as error:
            assert "no" in str(error)
        else:
            raise AssertionError("a failed job gave a value")
        assert jobs.add.send_with_options(args=(4, 4), delay=500).get_result(block=True, timeout=30_000) == 8
        group = dramatiq.group(jobs.add.message(n, n) for n in range(5)).run()
        assert sorted(group.get_results(block=True, timeout=30_000)) == [0, 2, 4, 6, 8]
        pipeline = jobs.add.message(1, 2) | jobs.add.message(10)
        assert pipeline.run().get_result(block=True, timeout=30_000) == 13
        jobs.broker.join("default", timeout=30_000)
    backend = RedisBackend(url=url)
    limiter = ConcurrentRateLimiter(backend, "one", limit=1)
    with limiter.acquire() as first, limiter.acquire(raise_on_failure=False) as second:
        assert first and not second
    window = WindowRateLimiter(backend, "window", limit=2, window=60)
    taken = []
    for _ in range(3):
        with window.acquire(raise_on_failure=False) as got:
            taken.append(bool(got))
    assert taken == [True, True, False], taken
    assert threading.active_count() < 20


if __name__ == "__main__":
    main()
