"""Edits a document, or gives it a new version: each in one script, which reads the version itself."""
import os
import sys

import redis

EDIT = """
local version = redis.call('GET', KEYS[1])
redis.call('HSET', 'doc:' .. version, 'title', ARGV[1])
"""
BUMP = """
local version = redis.call('GET', KEYS[1])
redis.call('RENAME', 'doc:' .. version, 'doc:' .. version + 1)
return redis.call('INCR', KEYS[1])
"""
client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry=None)


def edit(title):
    client.eval(EDIT, 1, "doc:version", title)
    return f"title is {title}"


def bump():
    return f"version is {client.eval(BUMP, 1, 'doc:version')}"


print(edit(sys.argv[2]) if sys.argv[1] == "edit" else bump())
