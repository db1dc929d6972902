"""Edits a document, or gives it a new version: a copy under the next number, the old one deleted."""
import os
import sys

import redis

client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def edit(title):
    version = int(client.get("doc:version"))
    client.hset(f"doc:{version}", "title", title)
    return f"title is {title}"


def bump():
    version = int(client.get("doc:version"))
    client.copy(f"doc:{version}", f"doc:{version + 1}")
    client.set("doc:version", version + 1)
    client.delete(f"doc:{version}")
    return f"version is {version + 1}"


print(edit(sys.argv[2]) if sys.argv[1] == "edit" else bump())
