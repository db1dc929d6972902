"""Tops up an account; the client tries again, and each payment counts once."""
import os
import sys

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

TOP_UP = """
local done = redis.call('GET', KEYS[2])
if done then return done end
local balance = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], balance, 'EX', 86400)
return balance
"""
client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry=Retry(ConstantBackoff(0.01), 3))

account, amount, payment = sys.argv[1:]
print(f"balance is {client.eval(TOP_UP, 2, f'balance:{account}', f'payment:{payment}', amount)}")
