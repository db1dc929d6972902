"""The Python store and transport as a process: one call a line on standard input, one answer a line on standard output.

Usage: driver.py URL PREFIX [sync|async]

A call is {"call": "store.commit", "args": {...}}, an answer {"ok": ...} or {"error": {"type": ..., "text": ..., ...}}; what an
exception carries (execution_id, expected, found) is among the error's members. Nothing is kept between calls but the
connections: executions, events and leases travel as JSON both ways. Beside `store` and `transport` there are `fleet` (workers
in processes of their own), `control` (the control plane) and `bench` (what a commit costs); `clock` puts the transport's clock
wrong, and `retries` has the client send again what was not answered.
"""

import asyncio
import dataclasses
import inspect
import json
import sys
import time

import bench
import fleet
import pydantic
import redis
import redis.asyncio
import redis.asyncio.retry
import redis.retry
from harel.dsl import definition_from_dsl
from harel.engine import control
from harel.engine.aio import control as aio_control
from harel.engine.aio_store.redis import AsyncRedisStore
from harel.engine.aio_transport.redis import AsyncRedisTransport
from harel.engine.execution import Execution, Status
from harel.engine.store._base import TimerOp
from harel.engine.store.redis import RedisStore
from harel.engine.transport._base import Lease
from harel.engine.transport.redis import RedisTransport
from harel.spec.states import Event
from redis.backoff import NoBackoff

# Its executions wait in A, and take part in their own cancelling.
CANCELLABLE = """
machine d {
  initial A
  state A {}
  final Ended cancelled
  from A to Ended on Cancel
}
"""

# How far this worker's clock is off, in seconds.
clock = {"offset": 0.0}


def event(value):
    return Event.model_validate(value)


def lease(value):
    return Lease(**{**value, "event": event(value["event"])})


def timer(value):
    return TimerOp(**value)


def emits(value):
    return [(target, event(one)) for target, one in value]


# What an argument of this name is made of; all others are passed as they are.
MADE_OF = {
    "exe": Execution.model_validate,
    "event": event,
    "lease": lease,
    "emits": emits,
    "status": lambda value: [Status(one) for one in value],
    "timers": lambda value: tuple(timer(one) for one in value),
    "spawns": lambda value: tuple(tuple(one) for one in value),
}


def plain(value):
    if isinstance(value, pydantic.BaseModel):
        return json.loads(value.model_dump_json())
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


class Control:
    """The control plane over a store, either twin's."""

    def __init__(self, store, plane):
        self.store, self.plane = store, plane
        self.definition = definition_from_dsl(CANCELLABLE)

    def cancel(self, execution_id):
        return self.plane.cancel(self.store, self.definition, execution_id)


def perform(objects, settled, request):
    arguments = {name: MADE_OF.get(name, lambda same: same)(value) for name, value in request.get("args", {}).items()}
    if request["call"] == "clock":
        clock.update(arguments)
        return None
    if request["call"] == "retries":
        objects["client"].set_retry(objects["retry"](NoBackoff(), arguments["n"]))
        return None
    owner, method = request["call"].split(".")
    if owner == "store" and method == "trace_max":
        objects["store"].trace_max = arguments["n"]
        return None
    result = plain(settled(getattr(objects[owner], method)(**arguments)))
    if "exe" in arguments:
        return {"result": result, "version": arguments["exe"].version}
    return result


def failure(error):
    carried = {name: value for name, value in vars(error).items() if isinstance(value, (str, int, type(None)))}
    return {**carried, "type": type(error).__name__, "text": str(error)}


def main(url, prefix, flavour="sync"):
    now = lambda: time.time() + clock["offset"]
    retry = redis.asyncio.retry.Retry if flavour == "async" else redis.retry.Retry
    if flavour == "async":
        client = redis.asyncio.Redis.from_url(url)
        objects = {
            "store": AsyncRedisStore(client, prefix=prefix),
            "transport": AsyncRedisTransport(client, now, prefix=prefix),
        }
        objects["control"] = Control(objects["store"], aio_control)
    else:
        client = redis.Redis.from_url(url)
        objects = {
            "store": RedisStore(client, prefix=prefix),
            "transport": RedisTransport(client, now, prefix=prefix),
        }
        objects["control"] = Control(objects["store"], control)
    objects.update(client=client, retry=retry, fleet=fleet, bench=bench.Bench(objects["store"], client))
    loop = asyncio.new_event_loop()
    settled = lambda result: loop.run_until_complete(result) if inspect.isawaitable(result) else result
    for line in sys.stdin:
        try:
            answer = {"ok": perform(objects, settled, json.loads(line))}
        except Exception as error:
            answer = {"error": failure(error)}
        print(json.dumps(answer), flush=True)


main(*sys.argv[1:])
