"""The race sweep over two functions: `fakeserver sweep --host` decides what runs when, and this runs it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import IO, Any, Callable, Union

from ._program import ProgramError, program
from ._role import Operation, Run, Stopped, current, deaths_unnoticed, sleeps_that_end
from .report import Report
from .server import _millis, _millis_since_epoch

__all__ = ["Race", "Stopped", "SweepError", "race"]

Function = Callable[..., Any]
Duration = Union[float, timedelta]

# Findings and usage errors; anything else is the sweep's own trouble.
_STATUS_USAGE = 2


class SweepError(RuntimeError):
    """A sweep could not be made, or not to its end."""


class Race:
    """Runs two operations on a Redis double in every order that one preemption allows, and fails if one order has an outcome
    that the operations one after the other cannot have.

        race(a, b)

    `a` and `b` are functions, sync or async, that take the URL of the server, or nothing if they find it by `race.url` or have
    a client from `race.client`. Each has a thread of its own, and every run a fresh server. What they return or raise is part
    of the outcome, as is what they leave in the server.
    """

    def __call__(
        self,
        a: Function,
        b: Function | None = None,
        *,
        setup: Function | None = None,
        after: Function | None = None,
        only: str | Iterable[str] | None = None,
        ignore: str | Iterable[str] = (),
        ignore_fields: str | Iterable[str] = (),
        compare: str | None = None,
        compare_output: bool = True,
        heals_within: Duration | None = None,
        time_limit: Duration | None = None,
        patience: Duration | None = None,
        seed: int | None = None,
        clock: float | None = None,
        replay: str | None = None,
        confirm: str | None = None,
        html: str | os.PathLike[str] | None = None,
        check: bool = True,
    ) -> Report:
        """Sweeps; the report. Raises RaceFound if there are findings, unless `check` is False.

        b: without it A alone is swept: by crashes, lost replies, keys that expire, and restarts.
        setup: called once; what it leaves in the server is there before every run.
        after: called at the end of every run: a recovery, or a reader.
        only: kinds of `isolation`, `crash`, `lost-reply`, `expiry`, `restart`; all by default.
        ignore, ignore_fields: patterns of keys, and of `KEY:FIELD`, that are not compared.
        compare: "content", the default, or "shape": keys, types and sizes.
        compare_output: whether what the functions return or raise is compared.
        heals_within: a key that a dead operation leaves behind is no finding if it expires within this time; 60 seconds.
        time_limit: of one run; 30 seconds.
        patience: after this time an operation that sends nothing is held to wait for the other one; 1 second.
        seed, clock: of the server; the same in all runs. The clock stands, at seconds since the epoch.
        replay: one schedule as a finding names it, `isolation:a2`, instead of all.
        confirm: the URL of an empty redis-server on which findings are run again.
        html: a file for the report as a page.
        """
        __tracebackhide__ = True
        roles = {"setup": setup, "a": a, "b": b, "after": after}
        operations = {role: Operation(role, function) for role, function in roles.items() if function is not None}
        flags = {
            "--only": ",".join(_words(only)) or None,
            "--compare": compare,
            "--output": None if compare_output else "ignore",
            "--heals-within": _seconds(heals_within),
            "--time-limit": _seconds(time_limit),
            "--patience": None if patience is None else _millis(patience),
            "--seed": seed,
            "--clock": None if clock is None else _millis_since_epoch(clock),
            "--replay": replay,
            "--confirm": confirm,
            "--html": None if html is None else os.fspath(html),
        }
        options = [str(word) for flag, value in flags.items() if value is not None for word in (flag, value)]
        options += [word for pattern in _words(ignore) for word in ("--ignore", pattern)]
        options += [word for pattern in _words(ignore_fields) for word in ("--ignore-field", pattern)]
        if a is b:
            options.append("--same")
        report = _Sweep(operations, options).run()
        if check:
            report.check()
        return report

    def explore(self, a: Function, b: Function | None = None, **options: Any) -> Report:
        """The same with `check=False`: the report, whatever was found."""
        __tracebackhide__ = True
        return self(a, b, **{"check": False, **options})

    @property
    def url(self) -> str:
        """The server's URL, inside of an operation: in its thread, its coroutine and its tasks."""
        return _current_run().url

    @property
    def role(self) -> str:
        """The name of the running operation: `setup`, `a`, `b` or `after`."""
        return _current_run().role

    def client(self, factory: Callable[[str], Any]) -> Any:
        """A stand-in for a client that the code under test holds in a global: in each run of each operation it is another one,
        made by `factory(url)` at its first use.

            monkeypatch.setattr(shop, "client", race.client(redis.Redis.from_url))
        """
        return _ClientPerRun(factory)


race = Race()


def _current_run() -> Run:
    run = current.get(None)
    if run is None:
        raise RuntimeError("no operation of a sweep is running here; a thread that it starts has to be handed the URL")
    return run


def _words(words: str | Iterable[str] | None) -> list[str]:
    if words is None:
        return []
    return [words] if isinstance(words, str) else list(words)


def _seconds(duration: Duration | None) -> str | None:
    if duration is None:
        return None
    return f"{_millis(duration) / 1000:g}"


class _ClientPerRun:
    def __init__(self, factory: Callable[[str], Any]) -> None:
        self._factory = factory

    def _own(self) -> Any:
        run = _current_run()
        if id(self) not in run.clients:
            run.clients[id(self)] = self._factory(run.url)
        return run.clients[id(self)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own(), name)

    def __enter__(self) -> Any:
        return self._own().__enter__()

    def __exit__(self, *error: Any) -> Any:
        return self._own().__exit__(*error)

    async def __aenter__(self) -> Any:
        return await self._own().__aenter__()

    async def __aexit__(self, *error: Any) -> Any:
        return await self._own().__aexit__(*error)


class _Sweep:
    """One sweep: the program, and the operations that it asks for, by a JSON object a line in both directions."""

    def __init__(self, operations: dict[str, Operation], options: list[str]) -> None:
        self._operations = operations
        hosted = ",".join(f"{role}={operation.name}" for role, operation in operations.items())
        self._command = [program(), "sweep", "--host", hosted, *options]
        self._lock = threading.Lock()
        self._open: dict[tuple[str, int], Run] = {}
        self._failed: dict[str, BaseException] = {}
        self._given_up: str | None = None

    def run(self) -> Report:
        __tracebackhide__ = True
        with tempfile.TemporaryFile() as errors, sleeps_that_end(), deaths_unnoticed(), self._started(errors) as process:
            self._process = process
            report = self._serve(process)
            status = process.wait()
            errors.seek(0)
            text = errors.read().decode(errors="replace").strip()
        if self._given_up is not None:
            raise SweepError(self._given_up)
        if report is None or status >= _STATUS_USAGE or status < 0:
            raise SweepError(text or f"the sweep ended with status {status} and without a report") from self._failed.get(
                "setup"
            )
        return report

    @contextlib.contextmanager
    def _started(self, errors: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
        try:
            process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        except OSError as error:
            raise ProgramError(f"cannot start {self._command[0]}: {error}") from error
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            with self._lock:
                runs = list(self._open.values())
            for run in runs:
                run.stop(lambda _: None)
            for run in runs:
                run.join(1)
            with self._lock, contextlib.suppress(OSError):
                process.stdin.close()
            process.stdout.close()

    def _serve(self, process: subprocess.Popen[bytes]) -> Report | None:
        assert process.stdout is not None
        for line in process.stdout:
            message = _message(line)
            todo = message["do"]
            if todo == "run":
                self._begin(message["role"], message["run"], message["url"])
            elif todo == "stop":
                with self._lock:
                    run = self._open.get((message["role"], message["run"]))
                if run is not None:
                    run.stop(self._give_up)
            elif todo == "report":
                return Report(message["report"], _with_replays(message["text"]))
        return None

    def _begin(self, role: str, number: int, url: str) -> None:
        # The lock keeps an operation that ends at once from ending before it is known.
        with self._lock:
            self._open[role, number] = Run(self._operations[role], number, url, self._ended)

    def _ended(self, run: Run) -> None:
        answer = {"ended": run.role, "run": run.number, "status": run.status, "output": run.output}
        line = json.dumps(answer).encode() + b"\n"
        stdin = self._process.stdin
        assert stdin is not None
        with self._lock:
            self._open.pop((run.role, run.number), None)
            if run.error is not None:
                self._failed[run.role] = run.error
            # A sweep that is over needs no answer.
            with contextlib.suppress(OSError, ValueError):
                stdin.write(line)
                stdin.flush()

    def _give_up(self, run: Run) -> None:
        self._given_up = (
            f"the operation `{run.role}` goes on though its connections are cut; it has to end when its commands fail"
        )
        self._process.kill()


def _message(line: bytes) -> dict[str, Any]:
    try:
        message: dict[str, Any] = json.loads(line)
        return message
    except ValueError:
        raise SweepError(f"the sweep speaks another language: {line.decode(errors='replace')}") from None


_SCHEDULE = re.compile(r"^ *schedule +(\S+)$", re.MULTILINE)


def _with_replays(text: str) -> str:
    """The program's text, which also says how to replay a schedule here."""
    return _SCHEDULE.sub(r'\g<0>   race(..., replay="\1")', text)
