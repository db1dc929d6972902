"""Takes the lock of deploys, and keeps it until it is lifted by hand."""
import os
import time

import redis

client = redis.from_url(os.environ["REDIS_URL"])
while not client.set("deploy:lock", "freeze", nx=True):
    time.sleep(0.02)
print("no deploys from now on")
