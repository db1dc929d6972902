"""Changes an order together with the message about it: `pay ORDER`; hands messages on, each once: `relay`."""
import os
import sys

import redis

HAND_ON = """
local message = redis.call('LINDEX', KEYS[1], -1)
if message ~= ARGV[1] then return 0 end
redis.call('RPOP', KEYS[1])
return redis.call('RPUSH', KEYS[2], message)
"""
client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry=None)

if sys.argv[1] == "pay":
    with client.pipeline(transaction=True) as both:
        both.hset("orders", sys.argv[2], "paid")
        both.lpush("outbox", f"{sys.argv[2]} is paid")
        both.execute()
    print("paid")
else:
    while message := client.lindex("outbox", -1):
        client.eval(HAND_ON, 2, "outbox", "inbox", message)
