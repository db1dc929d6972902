"""Enters a room for two, for a minute at most: a sorted set of guests by the end of their stay, in one script."""
import os
import sys

import redis

ENTER = """
local now = redis.call('TIME')[1]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
return redis.call('ZADD', KEYS[1], now + 60, ARGV[1])
"""
client = redis.from_url(os.environ["REDIS_URL"], retry=None)
print("in" if client.eval(ENTER, 1, "room", sys.argv[1], 2) else "full")
