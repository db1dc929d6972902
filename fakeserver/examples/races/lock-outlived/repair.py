"""Books an amount on an account, under a lock that is looked at again by the script that writes."""
import os
import secrets
import sys
import time

import redis

BOOK = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2])
return redis.call('DEL', KEYS[1])
"""
client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry=None)


def book(account, amount):
    lock, key, owner = f"lock:{account}", f"balance:{account}", secrets.token_hex(8)
    while True:
        while not client.set(lock, owner, nx=True, ex=20):
            time.sleep(0.02)
        balance = int(client.get(key) or 0)
        if client.eval(BOOK, 2, lock, key, owner, balance + amount):
            return


book(sys.argv[1], int(sys.argv[2]))
print(f"booked {sys.argv[2]}")
