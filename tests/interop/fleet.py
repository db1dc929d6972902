"""The workers of a mixed fleet, in Python: harel's store and transport in the order in which its own worker calls them.

What they decide is what `tests/src/fleet.rs` decides. Each worker is a fork of the driver, which has everything imported.
"""

import asyncio
import inspect
import os
import signal
import sys
import time

import redis
import redis.asyncio
from harel.engine.aio_store.redis import AsyncRedisStore
from harel.engine.aio_transport.redis import AsyncRedisTransport
from harel.engine.execution import Execution
from harel.engine.store._base import StoreConflict, TimerOp
from harel.engine.store.redis import RedisStore
from harel.engine.transport.redis import RedisTransport
from harel.spec.states import Event

FIRE_AT = 1.5
IDLE = 0.005


async def settled(result):
    return await result if inspect.isawaitable(result) else result


def decide(exe, event):
    exe.context["seen"].append(event.id)
    exe.processed_events += 1
    if event.kind != "Step":
        return {"emits": []}
    effects = {
        "emits": [],
        "timers": (TimerOp("schedule", f"T.{event.id}", FIRE_AT),),
        "trace": {"event": event.id},
    }
    hops = event.data["hops"]
    if hops > 0:
        following = Event(id=f"{event.id}>", kind="Step", data={"hops": hops - 1})
        effects["emits"] = [(exe.context["next"], following), (None, Event(id=f"{event.id}!", kind="Note"))]
        effects["spawns"] = ((f"{exe.id}.{event.id}", "R", {}),)
    return effects


class Worker:
    def __init__(self, store, transport, visibility):
        self.store, self.transport, self.visibility = store, transport, visibility

    async def turn(self):
        """One event, or one look at the timers; whether there was an event."""
        lease = await settled(self.transport.claim("python", self.visibility))
        if lease is None:
            await self.sweep()
            return False
        exe, known = await self.load(lease.group_id, lease.event.id)
        if exe is not None and not known:
            effects = decide(exe, lease.event)
            try:
                await settled(self.store.commit(exe, processed_event_id=lease.event.id, **effects))
            except StoreConflict:
                await settled(self.transport.nack(lease))
                return True
            if effects["emits"] or "spawns" in effects:
                await self.relay()
        await settled(self.transport.ack(lease))
        return True

    async def load(self, execution_id, event_id):
        if hasattr(self.store, "load_for_event"):
            return await self.store.load_for_event(execution_id, event_id)
        exe = self.store.load(execution_id)
        return exe, exe is not None and self.store.is_processed(execution_id, event_id)

    async def relay(self):
        while True:
            spawns = await settled(self.store.pending_spawns())
            outbox = await settled(self.store.pending_outbox())
            if not spawns and not outbox:
                return
            for spawn in spawns:
                if await settled(self.store.load(spawn.child_id)) is None:
                    child = Execution(
                        id=spawn.child_id,
                        definition_id="d",
                        root_path=spawn.root_path,
                        context=spawn.context,
                        parent_id=spawn.parent_id,
                    )
                    try:
                        await settled(self.store.commit(child, []))
                    except StoreConflict:
                        pass
                await settled(self.store.ack_spawn(spawn.seq))
            for entry in outbox:
                if entry.target_id is not None:
                    await settled(self.transport.publish(entry.target_id, entry.event))
                await settled(self.store.ack_outbox(entry.seq))

    async def sweep(self):
        for execution_id, path, fire_at in await settled(self.store.due_timers(FIRE_AT)):
            event = Event(id=f"timeout:{execution_id}:{path}:{fire_at}", kind="Timeout")
            await settled(self.transport.publish(execution_id, event))
            await settled(self.store.delete_timer(execution_id, path, fire_at))


async def work(url, prefix, flavour, visibility, turns, parent):
    if flavour == "async":
        client = redis.asyncio.Redis.from_url(url)
        worker = Worker(AsyncRedisStore(client, prefix=prefix), AsyncRedisTransport(client, prefix=prefix), visibility)
    else:
        client = redis.Redis.from_url(url)
        worker = Worker(RedisStore(client, prefix=prefix), RedisTransport(client, prefix=prefix), visibility)
    while turns != 0 and os.getppid() == parent:
        turns -= 1
        try:
            if not await worker.turn():
                time.sleep(IDLE)
        except Exception as error:
            # As harel's worker does: not acknowledged, not given back; the lease ends by itself.
            print(f"python worker: {type(error).__name__}: {error}", file=sys.stderr)
            time.sleep(IDLE)


def start(url, prefix, flavour, visibility, turns=-1):
    """A worker in a process of its own, whose id this returns. It ends with its parent, or after so many turns."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        # The driver's conversation is not the worker's.
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        asyncio.run(work(url, prefix, flavour, visibility, turns, parent))
    finally:
        os._exit(0)


def is_over(pid):
    """Whether a worker has ended by itself."""
    return os.waitpid(pid, os.WNOHANG)[0] == pid


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
