"""Races of redis-py's clients, found and repaired, with the real sweep."""

import asyncio
import sys

import pytest
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

import fakeserver


@pytest.fixture(autouse=True)
def _needs_sweep(has_sweep):
    if not has_sweep:
        pytest.skip("this program cannot sweep")


def connect(url):
    return redis.Redis.from_url(url, decode_responses=True, retry=Retry(NoBackoff(), 1))


def put_on_sale(url):
    connect(url).set("stock", 5)


def buy_carelessly(url):
    client = connect(url)
    client.set("stock", int(client.get("stock")) - 1)


def buy(url):
    connect(url).decr("stock")


def issue(url):
    connect(url).set("token", "alice", ex=3600)


def redeem_carelessly(url):
    client = connect(url)
    owner = client.get("token")
    if owner is not None:
        client.delete("token")
    return owner


def redeem(url):
    return connect(url).getdel("token")


async def redeem_carelessly_in_a_loop(url):
    async with redis.asyncio.Redis.from_url(url, decode_responses=True) as client:
        owner = await client.get("token")
        if owner is not None:
            await client.delete("token")
        return owner


async def redeem_in_a_loop(url):
    async with redis.asyncio.Redis.from_url(url, decode_responses=True) as client:
        return await client.getdel("token")


def test_a_lost_update_is_found(race):
    with pytest.raises(fakeserver.RaceFound) as caught:
        race(buy_carelessly, buy_carelessly, setup=put_on_sale)
    report = caught.value.report
    assert "isolation" in report.kinds()
    finding = report.findings[0]
    assert finding.kind == "isolation" and "stock" in str(finding.differences)
    assert f'race(..., replay="{finding.schedule}")' in str(caught.value)
    assert "stock" in str(caught.value)
    assert "A: buy_carelessly" in str(caught.value) and "B: buy_carelessly" in str(caught.value)


def test_its_repair_is_clean(race):
    report = race(buy, buy, setup=put_on_sale, only="isolation")
    assert report.is_clean and "single-preemption schedules" in report.claim


@pytest.mark.parametrize("careless", [redeem_carelessly, redeem_carelessly_in_a_loop])
def test_a_token_that_is_taken_twice_is_found(race, careless):
    report = race.explore(careless, careless, setup=issue, only="isolation")
    assert report.kinds() == ["isolation"]


@pytest.mark.parametrize("careful", [redeem, redeem_in_a_loop])
def test_getdel_takes_it_once(race, careful):
    assert race(careful, careful, setup=issue, only=["isolation", "expiry", "crash"]).is_clean


def test_sync_and_async_can_meet(race):
    report = race.explore(redeem_carelessly, redeem_carelessly_in_a_loop, setup=issue, only="isolation")
    assert report.kinds() == ["isolation"]


def test_what_opens_its_own_connection_is_swept_by_a_patched_url(race, monkeypatch):
    shop = type(sys)("shop")
    source = """
import redis
client = redis.Redis(port=1)
def hit():
    n = int(client.get("hits") or 0)
    client.set("hits", n + 1)
"""
    exec(source, shop.__dict__)
    monkeypatch.setattr(shop, "client", race.client(connect))
    report = race.explore(shop.hit, shop.hit, only="isolation")
    assert report.kinds() == ["isolation"]


def test_an_optimistic_transaction_is_clean(race):
    def buy_with_watch(url):
        def take(pipe):
            left = int(pipe.get("stock"))
            pipe.multi()
            pipe.set("stock", left - 1)

        connect(url).transaction(take, "stock")

    assert race(buy_with_watch, buy_with_watch, setup=put_on_sale, only=["isolation", "crash"]).is_clean


def test_a_lock_is_waited_for(race):
    def buy_under_lock(url):
        client = connect(url)
        with client.lock("lock", timeout=10, sleep=0.01):
            client.set("stock", int(client.get("stock")) - 1)

    report = race(buy_under_lock, buy_under_lock, setup=put_on_sale, only="isolation", patience=0.3)
    assert report.is_clean


def test_a_counter_that_never_expires_is_found(race):
    def hit(url):
        client = connect(url)
        if client.incr("hits") == 1:
            client.expire("hits", 60)

    report = race.explore(hit, only="crash")
    assert report.kinds() == ["crash"]


def test_a_reader_counts(race):
    def transfer(url):
        client = connect(url)
        client.decrby("a", 5)
        client.incrby("b", 5)

    def total(url):
        return sum(int(value or 0) for value in connect(url).mget("a", "b"))

    report = race.explore(transfer, only="crash", after=total)
    assert report.kinds() == ["crash"]
    assert "-5" in str(report.findings[0].outcome)
    assert race.explore(transfer, total, only="isolation").kinds() == ["isolation"]


def test_keys_can_be_left_out(race):
    def log(url):
        client = connect(url)
        client.set("log:last", client.incr("log:count"))

    assert race.explore(log, log, only="isolation").kinds() == ["isolation"]
    assert race(log, log, only="isolation", ignore="log:*").is_clean


def test_a_schedule_is_replayed(race):
    found = race.explore(redeem_carelessly, redeem_carelessly, setup=issue, only="isolation").findings[0]
    again = race.explore(redeem_carelessly, redeem_carelessly, setup=issue, replay=found.schedule)
    assert [finding.schedule for finding in again.findings] == [found.schedule]


def test_the_same_sweep_finds_the_same(race):
    def sweep():
        report = race.explore(buy_carelessly, redeem_carelessly, setup=put_on_sale)
        return [(finding.schedule, finding.differences, finding.outcome) for finding in report.findings], report.runs

    assert sweep() == sweep()


def test_exceptions_are_outcomes(race):
    def claim(url):
        client = connect(url)
        if client.exists("owner"):
            raise LookupError("taken")
        client.set("owner", "me")

    assert race.explore(claim, claim, only="isolation").kinds() == ["isolation"]

    def claim_at_once(url):
        if not connect(url).set("owner", "me", nx=True):
            raise LookupError("taken")

    assert race(claim_at_once, claim_at_once, only="isolation").is_clean


def test_a_client_that_retries_with_pauses_can_die(race):
    def patient(url):
        client = redis.Redis.from_url(url)
        client.incr("a")
        client.incr("b")

    assert race.explore(patient, only="crash").kinds() == ["crash"]


def test_a_setup_that_cannot_be_made_is_an_error(race):
    def broken(url):
        connect(url).incr("stock", "x")

    with pytest.raises(fakeserver.SweepError) as caught:
        race(buy, buy, setup=broken)
    assert isinstance(caught.value.__cause__, redis.RedisError)


def test_a_kind_that_is_none_is_an_error(race):
    with pytest.raises(fakeserver.SweepError, match="lightning"):
        race(buy, only="lightning")


def test_coroutine_tests_may_sweep(race):
    async def test():
        return race.explore(redeem_carelessly_in_a_loop, redeem_carelessly, setup=issue, only="isolation")

    assert asyncio.run(test()).kinds() == ["isolation"]
