"""What a commit costs the Python client: processor time of this process, and time on the wall."""

import inspect
import time

from harel.engine.execution import Execution, Status
from harel.engine.store._base import _COMMIT_CAS_LUA, TimerOp
from harel.spec.states import Event


def execution(execution_id, size):
    """What `benches/store/documents.rs` makes of these."""
    exe = Execution(id=execution_id, definition_id="order", status=Status.RUNNING, active_path="Order.Paying")
    order = {"sku": "tea-green-0042", "amount": 3, "price": 4.25, "gift": False, "note": None}
    exe.context = {"attempts": 3, "total": 17.25, "orders": [dict(order) for _ in range(size)]}
    return exe


def effects(number):
    return {
        "emits": [
            ("order-18", Event(id=f"event-{number}-a", kind="Paid", data={"amount": 17.25})),
            (None, Event(id=f"event-{number}-b", kind="Noted")),
        ],
        "timers": (TimerOp("schedule", "Order.Paying", 1.7e9 + number),),
        "spawns": ((f"child-{number}", "Order.Shipping", {"by": "order"}),),
        "trace": {"event": f"event-{number}", "from": "Order.Cart", "to": "Order.Paying"},
    }


class Bench:
    def __init__(self, store, client):
        self.store, self.client = store, client

    def script(self):
        """The script of a commit that only changes the row."""
        return _COMMIT_CAS_LUA

    async def commits(self, execution_id, size, count, is_complex):
        """Commits so often; seconds of the processor, and of the wall."""
        exe = execution(execution_id, size)
        await self.commit(exe, "warm", {"emits": []})
        # The effects are the caller's; making them is no part of a commit.
        made = [effects(number) if is_complex else {"emits": []} for number in range(count)]
        ids = [f"event-{number}" for number in range(count)]
        processor, wall = time.process_time(), time.perf_counter()
        if inspect.iscoroutinefunction(self.store.commit):
            for event_id, effect in zip(ids, made):
                await self.store.commit(exe, processed_event_id=event_id, **effect)
        else:
            for event_id, effect in zip(ids, made):
                self.store.commit(exe, processed_event_id=event_id, **effect)
        return [time.process_time() - processor, time.perf_counter() - wall]

    async def commit(self, exe, event_id, effect):
        result = self.store.commit(exe, processed_event_id=event_id, **effect)
        if inspect.isawaitable(result):
            await result
