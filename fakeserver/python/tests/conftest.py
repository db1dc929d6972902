import json
import os
import sys
from pathlib import Path

import pytest

import fakeserver

FINDING = {
    "kind": "isolation",
    "title": "B runs before A's command 2 and its write to `stock` is lost",
    "schedule": "isolation:a2",
    "also": [],
    "steps": [],
}


@pytest.fixture
def peer(monkeypatch, tmp_path):
    """Puts a stand-in with these steps in the place of the program."""

    def play(*steps):
        script = tmp_path / "fakeserver"
        source = Path(__file__).with_name("peer.py").read_text()
        script.write_text(f"#!{sys.executable}\n{source}")
        script.chmod(0o755)
        monkeypatch.setenv("FAKESERVER_PROGRAM", str(script))
        monkeypatch.setenv("PEER_STEPS", json.dumps(steps))

    return play


@pytest.fixture(scope="session")
def has_sweep():
    """Whether the program can sweep; a stage of its making could not."""
    import subprocess

    command = [fakeserver.program(), "sweep", "--host", "a", "--help"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
