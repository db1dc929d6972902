"""Tops up an account; the client tries again when its connection breaks."""
import os
import sys

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

client = redis.from_url(os.environ["REDIS_URL"], retry=Retry(ConstantBackoff(0.01), 3))

account, amount = sys.argv[1], int(sys.argv[2])
print(f"balance is {client.incrby(f'balance:{account}', amount)}")
