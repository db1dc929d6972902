"""The fixtures `redis_double`, a server for each test, and `race`, the sweep."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .server import Server
from .sweep import Race


@pytest.fixture
def redis_double() -> Iterator[Server]:
    """A Redis double of the test's own, empty; it ends with the test."""
    with Server() as server:
        yield server


@pytest.fixture
def race() -> Race:
    """Sweeps two operations for races: `race(a, b)` fails the test if there is one. See `fakeserver.Race`."""
    return Race()
