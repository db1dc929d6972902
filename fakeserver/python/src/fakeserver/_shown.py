"""What a call returned or raised, as text that two equal calls share."""

from __future__ import annotations

import re
from typing import Any

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def shown(value: Any) -> str:
    """Its repr, without memory addresses, and with sets in order."""
    try:
        text = _text(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return _ADDRESS.sub("", text)


def shown_error(error: BaseException) -> str:
    """`TypeName: message`."""
    try:
        message = str(error)
    except Exception:
        message = ""
    return _ADDRESS.sub("", f"{type(error).__name__}: {message}")


def _text(value: Any) -> str:
    kind = type(value)
    if kind is list:
        return "[" + ", ".join(map(_text, value)) + "]"
    if kind is tuple:
        return "(" + ", ".join(map(_text, value)) + (",)" if len(value) == 1 else ")")
    if kind is dict:
        return "{" + ", ".join(f"{_text(key)}: {_text(item)}" for key, item in value.items()) + "}"
    if kind in (set, frozenset) and value:
        members = "{" + ", ".join(sorted(map(_text, value))) + "}"
        return members if kind is set else f"frozenset({members})"
    return repr(value)
