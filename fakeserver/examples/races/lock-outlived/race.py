"""Books an amount on an account, under a lock."""
import os
import sys

import redis

client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry=None)

account, amount = sys.argv[1], int(sys.argv[2])
with client.lock(f"lock:{account}", timeout=20, sleep=0.02, raise_on_release_error=False):
    balance = int(client.get(f"balance:{account}") or 0)
    client.set(f"balance:{account}", balance + amount)
print(f"booked {amount}")
