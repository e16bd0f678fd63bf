"""docs/diagnostics.md explains every code that the workload room can give."""

from __future__ import annotations

import re

from .texts import REPOSITORY


def test_every_code_of_the_room_is_explained() -> None:
    room = REPOSITORY / "simcore" / "workload"
    source = "\n".join(path.read_text() for path in room.rglob("*.py"))
    given = set(re.findall(r'"(?:error|warning|note)",\s*"([a-z0-9-]+)"', source))
    given |= set(re.findall(r'_refusal\(path, "([a-z0-9-]+)"', source))
    page = (REPOSITORY / "docs" / "diagnostics.md").read_text()
    opening, _, rest = page.partition("## Opening a file")
    explained = set(re.findall(r"^\| `([a-z0-9-]+)`", rest, flags=re.MULTILINE))
    assert not re.search(r"^\| `", opening, flags=re.MULTILINE)
    assert given <= explained, given - explained
    assert {"no-such-file", "row-count", "unknown-key", "not-a-number"} <= given  # the search found them


def test_every_code_of_measured_runs_is_explained() -> None:
    room = REPOSITORY / "simcore" / "measured"
    source = "\n".join(path.read_text() for path in room.rglob("*.py"))
    given = set(re.findall(r'"(?:error|warning|note)",\s*"([a-z0-9-]+)"', source))
    given |= set(re.findall(r'(?:GrammarError|self\._error)\(\s*"([a-z0-9-]+)"', source))
    page = (REPOSITORY / "docs" / "diagnostics.md").read_text()
    explained = set(re.findall(r"^\| `([a-z0-9-]+)`", page, flags=re.MULTILINE))
    assert given <= explained, given - explained
    assert {"not-concurrent", "trace-list", "other-runs", "untimed-schedule", "ranks-missing"} <= given
