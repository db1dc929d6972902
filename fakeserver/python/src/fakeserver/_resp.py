"""As much of a Redis client as it takes to steer the server: one connection, RESP2, replies as they come."""

from __future__ import annotations

import socket
from typing import Any, Union

Word = Union[str, bytes, int, float]


class ReplyError(RuntimeError):
    """The server has answered with an error."""


class Connection:
    """A blocking connection to 127.0.0.1."""

    def __init__(self, host: str, port: int, password: str | None, timeout: float) -> None:
        self._socket = socket.create_connection((host, port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._input = self._socket.makefile("rb")
        if password is not None:
            self.call("AUTH", password)

    def close(self) -> None:
        self._input.close()
        self._socket.close()

    def call(self, *words: Word) -> Any:
        """Sends one command; its reply. Raises ReplyError if that is an error."""
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            if not isinstance(word, bytes):
                word = str(word).encode()
            parts.append(b"$%d\r\n%b\r\n" % (len(word), word))
        self._socket.sendall(b"".join(parts))
        reply = self._read()
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    def _read(self) -> Any:
        line = self._input.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server has closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode(errors="replace")
        if kind == b"-":
            return ReplyError(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._read_bulk(int(rest))
        if kind == b"*":
            return None if rest == b"-1" else [self._read() for _ in range(int(rest))]
        raise ConnectionError(f"not a reply: {line!r}")

    def _read_bulk(self, length: int) -> bytes:
        data = self._input.read(length + 2)
        if len(data) < length + 2:
            raise ConnectionError("the server has closed the connection")
        return data[:-2]
