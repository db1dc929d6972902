"""One hit of a limit, by one of the strategies of `limits`."""
import os
import sys

from limits import parse
from limits.storage import storage_from_string
from limits.strategies import STRATEGIES

storage = storage_from_string(os.environ["REDIS_URL"], retry=None)
limiter = STRATEGIES[sys.argv[1]](storage)
print("admitted" if limiter.hit(parse("1/day"), "ada") else "refused")
