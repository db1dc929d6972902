"""The double itself: a server process of one's own, its clock and its faults."""

from __future__ import annotations

import os
import subprocess
import threading
import weakref
from datetime import datetime, timedelta, timezone
from typing import Any

from ._program import ProgramError, program
from ._resp import Connection, Word

_HOST = "127.0.0.1"
# What is asked of the server takes no time; this is for machines that have none.
_PATIENCE = 30.0


class Server:
    """An in-memory Redis double on a port of its own, answering as redis-server 7.0.15 does.

    It runs from its making to `stop`, to the end of a `with` block, or to the end of this process at the latest.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        password: str | None = None,
        seed: int | None = None,
        frozen_at: float | datetime | None = None,
        debug: bool = False,
    ) -> None:
        """
        port: where to listen on 127.0.0.1; 0 takes a free one.
        password: what clients have to give; it is part of `url`.
        seed: of random replies; random by default.
        frozen_at: let the clock stand still from the start, in seconds since the epoch or as a datetime.
        debug: allow the command DEBUG.
        """
        command = [program(), "--port", str(port), "--admin", "--parent-stdin"]
        if password is not None:
            command += ["--password", password]
        if seed is not None:
            command += ["--seed", str(seed)]
        if frozen_at is not None:
            command += ["--frozen-clock", str(_millis_since_epoch(frozen_at))]
        if debug:
            command.append("--enable-debug-command")
        self._password = password
        self._control: Connection | None = None
        self._lock = threading.RLock()
        process = _start(command)
        self._end = weakref.finalize(self, _stop, process, os.getpid())
        self._port = _await_ready(process)
        self.clock = Clock(self)

    @property
    def host(self) -> str:
        return _HOST

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        """What clients open: `redis://127.0.0.1:PORT`."""
        secret = f":{self._password}@" if self._password is not None else ""
        return f"redis://{secret}{_HOST}:{self._port}"

    @property
    def is_running(self) -> bool:
        return self._end.alive

    def stop(self) -> None:
        """Ends the server; once is enough, and more do no harm."""
        with self._lock:
            self._hang_up()
            self._end()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<fakeserver.Server {self.url}{'' if self.is_running else ' (stopped)'}>"

    def command(self, *words: Word) -> Any:
        """Runs one command on a connection of the server's own, in database 0; its reply, text as bytes."""
        with self._lock:
            if not self.is_running:
                raise ProgramError("the server is stopped")
            if self._control is None:
                self._control = Connection(_HOST, self._port, self._password, _PATIENCE)
            try:
                return self._control.call(*words)
            except (OSError, ValueError):
                self._hang_up()
                raise

    def _hang_up(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    def flush(self) -> None:
        """Removes all keys of all databases."""
        self.command("FLUSHALL")

    def reset(self) -> None:
        """As a new server: no keys, scripts, functions and faults, settings as at the start, the real clock, no connections."""
        self.command("FAKE", "RESET")

    def dump(self) -> str:
        """All keys with their values and times to live, as text in the same order each time."""
        text: bytes = self.command("FAKE", "DUMP")
        return text.decode()

    def fail(
        self,
        command: str,
        *,
        error: str | None = None,
        drop: str | None = None,
        delay: float | timedelta | None = None,
        nth: int = 1,
        always: bool = False,
    ) -> None:
        """Lets a command fail: the next time that a client sends it, the `nth` time from now on, or `always`.

        error: it is not run, and answered with this text, its code in front: `NOSCRIPT No matching script.`
        drop: the connection is closed "before" the command is run, or "after" that in place of its reply.
        delay: it is run, and answered so many seconds later by the server's clock.

        The command is what the client sends, which is `INCRBY` for redis-py's `incr`. `CONFIG|GET` names a subcommand, `*` any
        command.
        """
        ways = [error is not None, drop is not None, delay is not None]
        if sum(ways) != 1:
            raise TypeError("a command fails by one of `error`, `drop` and `delay`")
        if drop is not None and drop not in ("before", "after"):
            raise ValueError(f'`drop` is "before" or "after", not {drop!r}')
        words: list[Word] = ["FAKE", "FAIL", command]
        words += ["ALWAYS"] if always else ["NTH", nth]
        if error is not None:
            words += ["ERROR", error]
        elif drop is not None:
            words += [f"DROP-{drop.upper()}"]
        elif delay is not None:
            words += ["DELAY", _millis(delay)]
        self.command(*words)

    def clear_faults(self) -> int:
        """Forgets all faults; how many there were."""
        return int(self.command("FAKE", "FAIL", "CLEAR"))


class Clock:
    """A server's clock. Times are seconds since the epoch, as those of `time.time()`."""

    def __init__(self, server: Server) -> None:
        self._server = weakref.proxy(server)

    def _call(self, *words: Word) -> float:
        millis: int = self._server.command("FAKE", "CLOCK", *words)
        return millis / 1000

    def now(self) -> float:
        """The time that it shows."""
        return self._call("NOW")

    def freeze(self, at: float | datetime | None = None) -> float:
        """Stops it, where it stands or at a time; the time."""
        return self._call("FREEZE") if at is None else self._call("FREEZE", _millis_since_epoch(at))

    def advance(self, by: float | timedelta) -> float:
        """Moves it on, by seconds; when this returns, keys have expired and waiting clients have timed out. The time."""
        return self._call("ADVANCE", _millis(by))

    def real(self) -> float:
        """Lets it go with the machine's time again; the time."""
        return self._call("REAL")


def _millis(duration: float | timedelta) -> int:
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    return round(seconds * 1000)


def _millis_since_epoch(at: float | datetime) -> int:
    if isinstance(at, datetime):
        # As datetime.timestamp() does, one without a time zone is local time.
        at = at.astimezone(timezone.utc).timestamp()
    return round(at * 1000)


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        raise ProgramError(f"cannot start {command[0]}: {error}") from error


def _await_ready(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    with process.stdout as output:
        line = output.readline().decode(errors="replace").strip()
    if line.startswith("Ready: redis://"):
        return int(line.rpartition(":")[2])
    process.wait()
    raise ProgramError(f"the server ended with status {process.returncode} instead of starting; it says why on standard error")


def _stop(process: subprocess.Popen[bytes], owner: int) -> None:
    # A fork has a copy of the handle, but the server is its parent's.
    if os.getpid() != owner:
        return
    assert process.stdin is not None
    process.terminate()
    process.stdin.close()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
