"""An output taken apart: what belongs to the step time, to the accounts, to the path and so on, as text.

A JSON is flattened to its values, each with the keys that lead to it, and each value goes to one part by
those keys. Keys that `keys.txt` does not list are of one part, `new_keys`: a key that is added changes
nothing else.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

KNOWN_KEYS = Path(__file__).with_name("keys.txt")
NEW_KEYS = "new_keys"
_REST = "rest"

# Key -> part, the first that the keys of a value begin with; what none begins with is the rest.
_REPORT = {
    "step_time_ns": "step",
    "pass_end_ns": "step",
    "measured.step_time_ns": "step",
    "measured.replay.step_time_ns": "step",
    "measured.replay.difference_ns": "step",
    "classes": "accounts",
    "mean_ns": "accounts",
    "measured.accounts": "accounts",
    "measured.by_rank": "accounts",
    "measured.replay.accounts": "accounts",
    "measured.replay.by_rank": "accounts",
    # Who waits for whom names ranks, as the path does.
    "measured.waiting": "waiting",
    "measured.replay.waiting": "waiting",
    "layers[].slack_ns": "slack",
    # What each layer takes of the path: a tie named otherwise may move it, unlike the layer's own times.
    "layers[].critical_ns": "path_layers",
    "layers": "layers",
    "critical_path[].start_ns": "path",
    "critical_path[].end_ns": "path",
    "critical_path[].kind": "path",
    "critical_path": "path_names",
    "what_if": "what_if",
    "estimates": "estimates",
    "sentences": "words",
    "diagnostics": "words",
}
_COMPARE = {
    "a.step_time_ns": "step",
    "b.step_time_ns": "step",
    "difference_ns": "step",
    "difference_percent": "step",
    "why": "words",
    "unlike": "words",
    "a.diagnostics": "words",
    "b.diagnostics": "words",
    "accounts": "sums",
    "worst": "sums",
    "stages": "sums",
    "lanes": "sums",
    "critical_path": "path_sums",
    "layers": "layers",
    "movers": "movers",
    "unchanged": "movers",
}
_PARTS = {"json": _REPORT, "compare": _COMPARE}


def json_parts(view: str, text: str, known: frozenset[str] | None = None) -> dict[str, str]:
    """Part -> the lines of it, of what `report --json` (view json) or `compare --json` (compare) prints.

    known: the keys that are not new, as `known_keys` has them.
    """
    output = json.loads(text)
    known = known_keys(view) if known is None else known
    lines: dict[str, list[str]] = defaultdict(list)
    # Most runs have no what-if and no estimate: such a part has nothing to keep.
    filled = set()
    for place, keys, value in flattened(output):
        part = _part_of(view, keys) if keys in known else NEW_KEYS
        lines[part].append(f"{place} {json.dumps(value)}")
        if value is not None:
            filled.add(part)
    lines = {part: several for part, several in lines.items() if part in filled}
    if view == "json":
        lines["path_sums"] = list(_sums_of_path(output["critical_path"]))
    # The order of keys means nothing; that of a list is in the places.
    return {part: "\n".join(sorted(several)) + "\n" for part, several in lines.items()}


def flattened(value: Any, place: str = "", keys: str = "") -> Iterator[tuple[str, str, Any]]:
    """(place, keys, value) of each value of a JSON; an empty list or object is a value.

    keys: the keys that lead to it, `layers[].name`; place: the same with numbers, `layers[3].name`.
    """
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            before = "." if keys else ""
            yield from flattened(inner, f"{place}{before}{key}", f"{keys}{before}{key}")
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from flattened(inner, f"{place}[{number}]", f"{keys}[]")
    else:
        yield place, keys, value


@cache
def known_keys(view: str) -> frozenset[str]:
    """The keys of a view that `keys.txt` lists, and what leads to them: a list may be empty."""
    lines = KNOWN_KEYS.read_text(encoding="utf-8").splitlines() if KNOWN_KEYS.exists() else []
    known = set()
    for line in lines:
        of, keys = line.split(" ", 1)
        while of == view and keys:
            known.add(keys)
            keys = keys[:-2] if keys.endswith("[]") else keys.rpartition(".")[0]
    return frozenset(known)


@cache
def _part_of(view: str, keys: str) -> str:
    """The part that the keys belong to: that of the whole key that they begin with."""
    for begin, part in _PARTS[view].items():
        if keys == begin or keys.startswith((f"{begin}.", f"{begin}[")):
            return part
    return _REST


def _sums_of_path(segments: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Of each kind of work and waiting what the path has of it: the same however a tie is named."""
    sums: dict[str, int] = defaultdict(int)
    for segment in segments:
        sums[segment["kind"]] += segment["end_ns"] - segment["start_ns"]
    for kind, ns in sums.items():
        yield f"{kind} {ns}"
