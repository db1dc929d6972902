"""Edits a document, or gives it a new version: both only if the version is still the one that they have read."""
import os
import sys

import redis

client = redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry=None)


def edit(title):
    def change(pipe):
        version = int(pipe.get("doc:version"))
        pipe.multi()
        pipe.hset(f"doc:{version}", "title", title)

    client.transaction(change, "doc:version")
    return f"title is {title}"


def bump():
    def change(pipe):
        version = int(pipe.get("doc:version"))
        pipe.multi()
        pipe.rename(f"doc:{version}", f"doc:{version + 1}")
        pipe.set("doc:version", version + 1)
        return version + 1

    version = client.transaction(change, "doc:version", value_from_callable=True)
    return f"version is {version}"


print(edit(sys.argv[2]) if sys.argv[1] == "edit" else bump())
