"""Admits a caller at most twice a minute: looking and counting are one script."""
import os
import sys

import redis

LIMIT = 2
WINDOW_SECONDS = 60
HIT = """
local hits = tonumber(redis.call('GET', KEYS[1]) or 0)
if hits >= tonumber(ARGV[1]) then return 0 end
if hits == 0 then redis.call('SET', KEYS[1], 0, 'EX', ARGV[2]) end
return redis.call('INCR', KEYS[1])
"""
client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry=None)


def admit(caller):
    hits = client.eval(HIT, 1, f"window:{caller}", LIMIT, WINDOW_SECONDS)
    return f"admitted as number {hits}" if hits else "refused"


print(admit(sys.argv[1]))
