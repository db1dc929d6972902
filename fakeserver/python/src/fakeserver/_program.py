"""Where the program is that this package carries."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache


class ProgramError(RuntimeError):
    """The program cannot be found or did not start."""


def program() -> str:
    """The path of the program: the one that came with this package, or what `FAKESERVER_PROGRAM` names."""
    chosen = os.environ.get("FAKESERVER_PROGRAM")
    return chosen if chosen else _installed()


@cache
def _installed() -> str:
    name = "fakeserver" + (sysconfig.get_config_var("EXE") or "")
    tried = []
    for folder in _script_folders():
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
        tried.append(path)
    raise ProgramError("the program of the package `fakeserver` is at none of: " + ", ".join(tried))


def _script_folders() -> list[str]:
    folders = [sysconfig.get_path("scripts")]
    # `pip install --user` and `pip install --target` put programs elsewhere.
    user = "nt_user" if os.name == "nt" else "posix_user"
    if sys.platform == "darwin" and sys._framework:
        user = "osx_framework_user"
    folders.append(sysconfig.get_path("scripts", scheme=user))
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders.append(os.path.join(package, "bin"))
    return folders
