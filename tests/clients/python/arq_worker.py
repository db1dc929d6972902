#!/usr/bin/env python3
"""arq, which needs an older redis-py: usage: arq_worker.py URL"""
import asyncio
import datetime
import sys
import urllib.parse

import arq
import arq.jobs
from arq.connections import RedisSettings

from checks import check, main, process


@check
def arq_does_delays_and_retries_jobs(url):
    async def enqueue():
        pool = await arq.create_pool(RedisSettings.from_dsn(url))
        job = await pool.enqueue_job("add", 2, 3)
        assert await job.result(timeout=30, poll_delay=0.05) == 5 and await job.status() == arq.jobs.JobStatus.complete
        again = await pool.enqueue_job("third_time", "tries")
        assert await again.result(timeout=30, poll_delay=0.05) == 3
        failing = await pool.enqueue_job("fail", "no")
        try:
            await failing.result(timeout=30, poll_delay=0.05)
        except ValueError as error:
            assert str(error) == "no"
        else:
            raise AssertionError("a failed job gave a value")
        later = await pool.enqueue_job("add", 4, 4, _defer_by=datetime.timedelta(milliseconds=500))
        assert await later.status() == arq.jobs.JobStatus.deferred
        assert await later.result(timeout=30, poll_delay=0.05) == 8
        assert await pool.enqueue_job("add", 1, 1, _job_id="one") and await pool.enqueue_job("add", 1, 1, _job_id="one") is None
        many = [await pool.enqueue_job("add", n, n) for n in range(10)]
        assert [await job.result(timeout=30, poll_delay=0.05) for job in many] == [2 * n for n in range(10)]
        await pool.aclose()

    assert urllib.parse.urlparse(url).scheme == "redis"
    with process(sys.executable, "-m", "arq", "arq_jobs.Settings", REDIS_URL=url):
        asyncio.run(asyncio.wait_for(enqueue(), 50))


if __name__ == "__main__":
    main()
