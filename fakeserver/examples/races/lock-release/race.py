"""Deploys, unless a deploy or a freeze is under way."""
import os
import secrets

import redis

client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def deploy():
    if not client.set("deploy:lock", secrets.token_hex(8), nx=True, ex=20):
        return "refused: somebody else holds the lock"
    client.incr("deploys")
    client.delete("deploy:lock")
    return "deployed"


print(deploy())
