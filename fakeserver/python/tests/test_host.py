"""The host's side of the sweep, with a stand-in for the program."""

import asyncio
import threading
import time

import pytest
import redis
import redis.asyncio

import fakeserver
from conftest import FINDING

URL = "redis://127.0.0.1:1"


def one_run(role="a"):
    return [["run", role, 1, URL], ["await", role, 1], ["report", [], "clean"]]


def ended(report):
    return {message["ended"]: (message["status"], message["output"]) for message in report.data["ended"]}


class Thing:
    pass


async def coroutine(url):
    await asyncio.sleep(0)
    return url


async def failing(url):
    raise KeyError(url)


def no_url():
    return fakeserver.race.url, fakeserver.race.role


def by_name(url=None):
    return url


def raises(url):
    raise ValueError(f"no {Thing()}")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda url: url, (0, f"'{URL}'")),
        (no_url, (0, f"('{URL}', 'a')")),
        (by_name, (0, f"'{URL}'")),
        (lambda *words: words, (0, f"('{URL}',)")),
        (lambda caught=7: caught, (0, "7")),
        (coroutine, (0, f"'{URL}'")),
        (lambda url: coroutine(url), (0, f"'{URL}'")),
        (failing, (1, f"KeyError: '{URL}'")),
        (raises, (1, "ValueError: no <test_host.Thing object>")),
        (
            lambda url: [Thing(), {"k": {"b", "a", "c"}}, (), set()],
            (0, "[<test_host.Thing object>, {'k': {'a', 'b', 'c'}}, (), set()]"),
        ),
        (lambda url: exit(3), (1, "SystemExit: 3")),
        (lambda url: None, (0, "None")),
    ],
)
def test_what_an_operation_does_is_told(peer, race, function, expected):
    peer(*one_run())
    assert ended(race(function))["a"] == expected


@pytest.mark.parametrize("function", [lambda x, y: 1, lambda *, x: 1, 5, "redis"])
def test_what_cannot_be_called_is_refused(race, function):
    with pytest.raises(TypeError, match="operation `b`"):
        race(lambda url: 1, function)


def test_options_become_arguments(peer, race):
    peer(*one_run())
    nothing, other = lambda url: None, lambda url: None
    report = race(
        nothing, other, setup=nothing, after=nothing, only=["isolation", "crash"], ignore="log:*",
        ignore_fields=["job:*:at", "job:*:by"], compare="shape", compare_output=False, heals_within=1.5, time_limit=10,
        patience=0.25, seed=3, clock=1000, replay="isolation:a2", confirm="redis://other", html="page.html",
    )  # fmt: skip
    assert report.data["argv"] == [
        "sweep", "--host", "setup=a lambda,a=a lambda,b=a lambda,after=a lambda", "--only", "isolation,crash", "--compare", "shape", "--output", "ignore",
        "--heals-within", "1.5", "--time-limit", "10", "--patience", "250", "--seed", "3", "--clock", "1000000",
        "--replay", "isolation:a2", "--confirm", "redis://other", "--html", "page.html", "--ignore", "log:*",
        "--ignore-field", "job:*:at", "--ignore-field", "job:*:by",
    ]  # fmt: skip
    peer(*one_run())
    assert race(nothing).data["argv"] == ["sweep", "--host", "a=a lambda"]
    peer(*one_run())
    assert race(nothing, nothing).data["argv"] == ["sweep", "--host", "a=a lambda,b=a lambda", "--same"]


def test_both_operations_run_at_once(peer, race):
    peer(["run", "a", 1, URL], ["run", "b", 1, URL], ["await", "a", 1], ["await", "b", 1], ["report", [], ""])
    meeting = threading.Barrier(2, timeout=20)

    async def b(url):
        await asyncio.to_thread(meeting.wait) if hasattr(asyncio, "to_thread") else meeting.wait()

    report = race(lambda url: meeting.wait() is None, b)
    assert ended(report)["b"] == (0, "None")


def test_a_stand_in_for_a_client_is_another_one_in_each_run(peer, race):
    made = []

    class Client:
        def __init__(self, url):
            made.append(url)
            self.url = url

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    client = race.client(Client)

    def twice():
        with client as same:
            assert same.url == client.url
        return client.url

    urls = ["redis://a", "redis://b", "redis://c"]
    steps = [[["run", "a", n, url], ["await", "a", n]] for n, url in enumerate(urls)]
    peer(*sum(steps, []), ["report", [], ""])
    report = race(twice)
    assert made == urls
    assert [message["output"] for message in report.data["ended"]] == [repr(url) for url in urls]
    with pytest.raises(RuntimeError, match="no operation of a sweep is running"):
        client.url
    with pytest.raises(RuntimeError, match="no operation of a sweep is running"):
        race.url


def stopped(peer, url="redis://127.0.0.1:1"):
    peer(["run", "a", 1, url], ["sleep", 0.1], ["stop", "a", 1], ["await", "a", 1], ["report", [], ""])


def sleeps(url):
    time.sleep(60)


def retries(url):
    while True:
        try:
            redis.Redis.from_url(url, retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0)).ping()
        except Exception:
            continue


def backs_off(url):
    # The name under which redis-py has it.
    redis.retry.sleep(60)


def spins(url):
    while True:
        pass


def will_not(url):
    for _ in range(5):
        try:
            spins(url)
        except BaseException:
            continue


async def sleeps_in_a_loop(url):
    await asyncio.sleep(60)


async def catches(url):
    for _ in range(5):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


async def spins_in_a_loop(url):
    while True:
        await asyncio.sleep(0)


@pytest.mark.parametrize("function", [sleeps, retries, backs_off, spins, will_not, sleeps_in_a_loop, catches, spins_in_a_loop])
def test_a_dead_operation_comes_to_its_end(peer, race, function):
    stopped(peer)
    before = time.monotonic()
    report = race(function)
    assert time.monotonic() - before < 10
    status, output = ended(report)["a"]
    assert (status, output) in [(1, "Stopped"), (0, "None")]
    assert time.sleep.__module__ == "time"


def test_an_operation_that_will_not_die_is_an_error(peer, race, monkeypatch):
    monkeypatch.setattr(fakeserver._role, "_PATIENCE", 0.2)
    stopped(peer)
    held = threading.Event()
    try:
        with pytest.raises(fakeserver.SweepError, match="`a` goes on though its connections are cut"):
            race(lambda url: held.wait(60))
    finally:
        held.set()


def test_findings_fail_the_test_with_the_text_of_the_report(peer, race):
    peer(["report", [FINDING], "1 finding\n  schedule   isolation:a2\n\n  A: no_url"], ["exit", 1])
    with pytest.raises(fakeserver.RaceFound) as caught:
        race(no_url)
    expected = '1 finding\n  schedule   isolation:a2   race(..., replay="isolation:a2")\n\n  A: no_url'
    assert str(caught.value) == expected
    assert caught.value.report.findings[0].schedule == "isolation:a2"


def test_the_program_is_told_what_functions_are_called(peer, race):
    def with_a_name(url):
        pass

    with_a_name.__name__ = "with,a,name"
    peer(["report", [FINDING], "text"], ["exit", 1])
    arguments = race.explore(with_a_name, lambda url: 1, setup=no_url).data["argv"]
    assert arguments[arguments.index("--host") + 1] == "setup=no_url,a=with a name,b=a lambda"


def test_explore_returns_what_was_found(peer, race):
    peer(["report", [FINDING, {**FINDING, "kind": "crash", "new": 1}], "text"], ["exit", 1])
    report = race.explore(no_url)
    assert not report.is_clean and report.kinds() == ["isolation", "crash"]
    with pytest.raises(fakeserver.RaceFound):
        report.check()
    peer(["report", [], "clean"])
    assert race.explore(no_url, only="crash").is_clean


def test_a_usage_error_is_told(peer, race):
    peer(["say", "there is no kind `lightning`"], ["exit", 2])
    with pytest.raises(fakeserver.SweepError, match="^there is no kind `lightning`$"):
        race(no_url, only="lightning")


def test_a_setup_that_fails_is_told_with_its_cause(peer, race):
    peer(["run", "setup", 1, URL], ["await", "setup", 1], ["say", "setup failed"], ["exit", 2])
    with pytest.raises(fakeserver.SweepError, match="setup failed") as caught:
        race(no_url, setup=raises)
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_sweep_that_breaks_off_leaves_nothing_behind(peer, race):
    before = threading.active_count()
    peer(["run", "a", 1, URL], ["sleep", 0.1], ["exit", 0])
    with pytest.raises(fakeserver.SweepError, match="without a report"):
        race(sleeps)
    until = time.monotonic() + 10
    while threading.active_count() > before:
        assert time.monotonic() < until, threading.enumerate()
        time.sleep(0.01)
