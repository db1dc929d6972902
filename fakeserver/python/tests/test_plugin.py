"""The plugin in a pytest of its own."""

import json

from conftest import FINDING

STEPS = [["report", [FINDING], "B runs before A's command 2"], ["exit", 1]]


def test_a_finding_is_a_short_failure(pytester, peer):
    peer(*STEPS)
    pytester.makepyfile(
        """
        def test_buying(race):
            race(lambda url: 1, lambda url: 2)
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*race(lambda url: 1, lambda url: 2)*", "E*RaceFound: B runs before A's command 2*"])
    shown = result.stdout.str()
    assert "sweep.py" not in shown and "report.py" not in shown, shown


def test_fixtures_are_told_of(pytester):
    result = pytester.runpytest_subprocess("--fixtures")
    result.stdout.fnmatch_lines(["redis_double*", "race*"])


def test_every_worker_has_servers_of_its_own(pytester):
    pytester.makepyfile(
        """
        import pytest, os

        @pytest.mark.parametrize("n", range(8))
        def test_alone(redis_double, n):
            assert redis_double.dump() == ""
            redis_double.command("SET", "k", n)
            assert redis_double.command("GET", "k") == str(n).encode()
        """
    )
    pytester.runpytest_subprocess("-n", "2").assert_outcomes(passed=8)


def test_a_coroutine_test_has_the_fixtures_too(pytester):
    pytester.makepyfile(
        """
        import redis.asyncio

        async def test_asynchronous(redis_double):
            client = redis.asyncio.Redis.from_url(redis_double.url)
            assert await client.incr("k") == 1
            await client.aclose()
        """
    )
    pytester.runpytest_subprocess("-o", "asyncio_mode=auto").assert_outcomes(passed=1)


def test_the_operations_of_unittest(pytester, peer, monkeypatch):
    peer(*STEPS)
    assert json.loads(json.dumps(STEPS)) == STEPS
    pytester.makepyfile(
        """
        import unittest, fakeserver

        class Buying(unittest.TestCase):
            def test_buying(self):
                with self.assertRaises(AssertionError):
                    fakeserver.race(lambda url: 1, lambda url: 2)
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
