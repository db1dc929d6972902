"""One run of one operation: a thread that calls a function, and that can be ended while it does."""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import inspect
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Callable

from ._shown import shown, shown_error

current: contextvars.ContextVar[Run] = contextvars.ContextVar("fakeserver_run")

# A dead operation is first left alone with its broken connections, then interrupted, and at last given up.
_GRACE = 0.1
_INTERVAL = 0.02
_PATIENCE = 20.0

_sleep = time.sleep


class Stopped(BaseException):
    """Raised in an operation that the sweep has let die. Like KeyboardInterrupt it is not to be caught."""


class Operation:
    """A function under test, and how it wants to be called."""

    def __init__(self, role: str, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(f"the operation `{role}` is a function, not {function!r}")
        self.role = role
        self.function = function
        self.takes_url = _takes_url(role, function)

    @property
    def name(self) -> str:
        """What a reader knows it by; without commas, which separate the names that the program is told."""
        name: str = getattr(self.function, "__name__", type(self.function).__name__)
        return "a lambda" if name == "<lambda>" else name.replace(",", " ")

    def call(self, url: str) -> Any:
        return self.function(url) if self.takes_url else self.function()


def _takes_url(role: str, function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    required = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    by_name = [parameter for parameter in required if parameter.kind is parameter.KEYWORD_ONLY]
    if len(required) > 1 or by_name:
        raise TypeError(f"the operation `{role}` takes a URL or nothing, not {inspect.signature(function)}")
    first = next(iter(parameters), None)
    takes_any = first is not None and (first.kind is first.VAR_POSITIONAL or first.name == "url")
    # A default is more often a variable caught in a loop than a place for the URL.
    return bool(required) or takes_any


class Run:
    """A call of an operation, on a thread of its own."""

    def __init__(self, operation: Operation, number: int, url: str, ended: Callable[[Run], None]) -> None:
        self.role = operation.role
        self.number = number
        self.url = url
        self.status = 1
        self.output = ""
        self.error: BaseException | None = None
        self.clients: dict[int, Any] = {}
        self.stopped = threading.Event()
        self._operation = operation
        self._ended = ended
        self._lock = threading.Lock()
        self._is_over = False
        self._cancel: Callable[[], object] | None = None
        self._thread = threading.Thread(target=self._body, daemon=True, name=f"sweep-{self.role}-{number}")
        self._thread.start()

    def _body(self) -> None:
        current.set(self)
        try:
            self._call()
        except Stopped as error:
            self.error = error
            self.output = "Stopped"
        self._be_over()
        self.clients.clear()
        self._ended(self)

    def _call(self) -> None:
        try:
            value = self._operation.call(self.url)
            if inspect.isawaitable(value):
                value = self._run_until_done(value)
        except Stopped:
            raise
        except BaseException as error:
            self.error = error
            self.output = shown_error(error)
        else:
            self.output = shown(value)
            self.status = 0

    def _run_until_done(self, value: Any) -> Any:
        # Where there are no coroutines, pytest need not wait for this module.
        import asyncio

        async def main() -> Any:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None
            with self._lock:
                self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
            try:
                if self.stopped.is_set():
                    task.cancel()
                return await value
            finally:
                with self._lock:
                    self._cancel = None

        try:
            return asyncio.run(main())
        except asyncio.CancelledError:
            if self.stopped.is_set():
                raise Stopped from None
            raise

    def _be_over(self) -> None:
        """From here on nobody interrupts; whoever was about to has to be waited out."""
        while True:
            try:
                with self._lock:
                    self._is_over = True
                _raise_in(self._thread.ident, None)
                return
            except Stopped:
                continue

    def stop(self, given_up: Callable[[Run], None]) -> None:
        """Lets it end: its sleeps and its coroutines at once, anything else when its connections fail."""
        self.stopped.set()
        self._interrupt(asyncio_only=True)
        threading.Thread(target=self._hunt, args=(given_up,), daemon=True).start()

    def _hunt(self, given_up: Callable[[Run], None]) -> None:
        self._thread.join(_GRACE)
        until = time.monotonic() + _PATIENCE
        interval = _INTERVAL
        while self._thread.is_alive() and not self._is_over:
            if time.monotonic() > until:
                given_up(self)
                return
            self._interrupt()
            self._thread.join(interval)
            # What comes too soon after the last one hits those who deal with that.
            interval *= 2

    def _interrupt(self, asyncio_only: bool = False) -> None:
        with self._lock:
            if self._is_over:
                return
            if self._cancel is not None:
                # The loop may have been closed since.
                with contextlib.suppress(RuntimeError):
                    self._cancel()
            elif not asyncio_only:
                _raise_in(self._thread.ident, Stopped)

    def join(self, timeout: float) -> bool:
        """Waits for its end; whether it has come."""
        self._thread.join(timeout)
        return not self._thread.is_alive()


def _raise_in(thread: int | None, kind: type[BaseException] | None) -> None:
    what = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread or 0), what)


def _sleep_unless_stopped(seconds: float) -> None:
    run = current.get(None)
    if run is None:
        _sleep(seconds)
    elif seconds < 0:
        raise ValueError("sleep length must be non-negative")
    elif run.stopped.wait(seconds):
        raise Stopped


@contextlib.contextmanager
def deaths_unnoticed() -> Iterator[None]:
    """Keeps silent of interruptions that come while a finalizer runs, which Python drops and tells of."""
    hook = sys.unraisablehook

    def hook_for_others(unraisable: Any) -> None:
        if unraisable.exc_type is not Stopped:
            hook(unraisable)

    sys.unraisablehook = hook_for_others
    try:
        yield
    finally:
        if sys.unraisablehook is hook_for_others:
            sys.unraisablehook = hook


@contextlib.contextmanager
def sleeps_that_end() -> Iterator[None]:
    """Makes `time.sleep` end with the operation that sleeps. Clients sleep between retries, also by a name of their own."""
    patched = []
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get("sleep") is _sleep:
            module.sleep = _sleep_unless_stopped  # type: ignore[attr-defined]
            patched.append(module)
    try:
        yield
    finally:
        for module in patched:
            if module.__dict__.get("sleep") is _sleep_unless_stopped:
                module.sleep = _sleep  # type: ignore[attr-defined]
