"""What a sweep has found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class RaceFound(AssertionError):
    """A sweep has found something. Its text is the report's; `report` is the report."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.text)
        self.report = report


@dataclass(frozen=True)
class Finding:
    """One fault: the schedule that shows it, what came of it, and what would have been right."""

    kind: str
    title: str
    schedule: str
    also: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    outcome: dict[str, Any] = field(default_factory=dict)
    expected: list[dict[str, Any]] = field(default_factory=list)
    differences: list[dict[str, Any]] = field(default_factory=list)
    cause: dict[str, Any] | None = None
    repair: dict[str, Any] | None = None
    replay: str | None = None
    confirmed: dict[str, Any] | None = None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Finding:
        known = cls.__dataclass_fields__.keys()
        return cls(**{name: value for name, value in data.items() if name in known})


class Report:
    """What a sweep did and what it has found. `data` is all of it, as the program's `--json` has it."""

    def __init__(self, data: dict[str, Any], text: str) -> None:
        self.data = data
        self.text = text
        self.findings = [Finding.from_json(finding) for finding in data.get("findings", [])]

    @property
    def is_clean(self) -> bool:
        return not self.findings

    @property
    def claim(self) -> str:
        """What a clean sweep shows, exactly."""
        return str(self.data.get("claim", ""))

    @property
    def runs(self) -> dict[str, int]:
        """How often the operations were run, by what for."""
        return dict(self.data.get("runs", {}))

    @property
    def seconds(self) -> float:
        return float(self.data.get("seconds", 0.0))

    @property
    def left_out(self) -> list[str]:
        """What was not compared, since it varies by itself."""
        return list(self.data.get("left_out", []))

    @property
    def notes(self) -> list[str]:
        return list(self.data.get("notes", []))

    def kinds(self) -> list[str]:
        """The kinds of the findings, each once, in order."""
        return list(dict.fromkeys(finding.kind for finding in self.findings))

    def check(self) -> None:
        """Raises RaceFound if anything was found."""
        __tracebackhide__ = True
        if self.findings:
            raise RaceFound(self)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<fakeserver.Report {len(self.findings)} findings in {sum(self.runs.values())} runs>"
