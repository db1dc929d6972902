"""Redeems a token that is good for one password reset."""
import os
import sys

import redis

client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def redeem(token):
    user = client.get(f"reset:{token}")
    if user is None:
        return "refused: unknown or used"
    client.delete(f"reset:{token}")
    return f"accepted: {user} may set a new password"


print(redeem(sys.argv[1]))
