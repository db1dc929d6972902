"""Redeems a token that is good for one password reset: reading it is what uses it up."""
import os
import sys

import redis

# Without retries: a second GETDEL, after a reply that got lost, would find the token used.
client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry=None)


def redeem(token):
    user = client.getdel(f"reset:{token}")
    if user is None:
        return "refused: unknown or used"
    return f"accepted: {user} may set a new password"


print(redeem(sys.argv[1]))
