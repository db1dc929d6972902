"""Runs the commands that its arguments name: what a case finds in its database at the start."""
import os
import shlex
import sys

import redis

client = redis.from_url(os.environ["REDIS_URL"])
for command in sys.argv[1:]:
    client.execute_command(*shlex.split(command))
