"""A Redis double for tests, and a sweep that finds the races between two operations.

    with fakeserver.Server() as server:
        client = redis.Redis.from_url(server.url)

    fakeserver.race(lambda url: buy(url), lambda url: buy(url))

In pytest the same is there as the fixtures `redis_double` and `race`.
"""

from ._program import ProgramError, program
from ._resp import ReplyError
from .report import Finding, RaceFound, Report
from .server import Clock, Server
from .sweep import Race, Stopped, SweepError, race

__all__ = [
    "Clock",
    "Finding",
    "ProgramError",
    "Race",
    "RaceFound",
    "ReplyError",
    "Report",
    "Server",
    "Stopped",
    "SweepError",
    "program",
    "race",
]
