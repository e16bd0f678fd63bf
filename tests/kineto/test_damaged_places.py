"""A trace with one damaged place: everything else is read, and a warning names the byte."""

from __future__ import annotations

import json
import random
import re
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from simcore.diagnostics import Diagnostic, InputError
from simcore.kineto.damage import MOST_LOST
from simcore.kineto.reading import read_file_events

# Texts on both sides of a damaged place are told apart from it by no more.
NEAR = 25
HEAD = '{"schemaVersion": 1, "distributedInfo": {"rank": 3, "world_size": 4}, "traceEvents": ['
TAIL = '], "traceName": "t", "baseTimeNanoseconds": 1700000000000000000}'
FORMS = ("object", "list", "lines")


def kernel(number: int) -> dict[str, Any]:
    """A kernel of a name of its own, objects in its arguments that look like the start of an event."""
    args = {"stream": 7, "device": 0, "correlation": number, "grid": [1, 2, 3],
            "list": [{"a": 1}, {"name": "b"}]}  # fmt: skip
    return {"ph": "X", "cat": "kernel", "name": f"k{number}", "pid": 0, "tid": 7, "ts": 100.5 + 20 * number,
            "dur": 10.25, "args": args}  # fmt: skip


def written(drawn: random.Random, form: str) -> tuple[str, list[tuple[int, int]]]:
    """A trace as text, and where in it each of its events begins and ends."""
    between = "\n" if form == "lines" else drawn.choice((", ", ",\n", "\n  ,"))
    indents = (None,) if form == "lines" else (None, None, 2)
    text, places = {"object": HEAD, "list": "[", "lines": ""}[form], []
    for number in range(drawn.choice((2, 5, 30))):
        event = json.dumps(kernel(number), indent=drawn.choice(indents))
        text += between if number else ""
        places.append((len(text), len(text) + len(event)))
        text += event
    return text + {"object": TAIL, "list": "]", "lines": "\n"}[form], places


Place = tuple[int, int]
Change = Callable[[bytes, Place, random.Random], bytes]
ODD = b'"{}[],:\\x1\x00\x02'


def _deleted(data: bytes, place: Place, drawn: random.Random) -> bytes:
    at = drawn.randrange(*place)
    return data[:at] + data[min(place[1], at + drawn.randint(1, 6)) :]


def _inserted(data: bytes, place: Place, drawn: random.Random) -> bytes:
    at = drawn.randrange(*place)
    return data[:at] + bytes(drawn.choice(ODD) for _ in range(drawn.randint(1, 3))) + data[at:]


def _replaced(data: bytes, place: Place, drawn: random.Random) -> bytes:
    at = drawn.randrange(*place)
    return data[:at] + bytes([drawn.choice(ODD)]) + data[at + 1 :]


def _zeros(data: bytes, place: Place, drawn: random.Random) -> bytes:
    begin, end = sorted(drawn.randrange(*place) for _ in range(2))
    return data[:begin] + bytes(end + 1 - begin) + data[end + 1 :]


def _short(data: bytes, place: Place, drawn: random.Random) -> bytes:
    return data[: drawn.randrange(*place)] + data[place[1] :]


def _in_name(what: bytes) -> Change:
    def changed(data: bytes, place: Place, drawn: random.Random) -> bytes:
        at = data.index(b'"k', place[0]) + 1 + drawn.randrange(2)
        return data[:at] + what + data[at:]

    return changed


def _no_number(data: bytes, place: Place, drawn: random.Random) -> bytes:
    at = data.index(drawn.choice((b"10.25", b"[\n" if b"[\n" in data[slice(*place)] else b"1, 2")), place[0])
    return data[:at] + drawn.choice((b"NaN, ", b"-Infinity, ")) + data[at:] if data[at] == 91 else (
        data[:at] + drawn.choice((b"NaN", b"Infinity", b"-nan")) + data[at + (5 if data[at + 1] == 48 else 1) :]
    )  # fmt: skip


def _behind(*words: bytes) -> Change:
    def changed(data: bytes, place: Place, drawn: random.Random) -> bytes:
        return data[: place[1]] + drawn.choice(words) + data[place[1] :]

    return changed


CHANGES: dict[str, Change] = {
    "deleted": _deleted, "inserted": _inserted, "replaced": _replaced, "zeros": _zeros, "short": _short,
    "quote": _in_name(b'"'), "control": _in_name(b"\x01"), "escape": _in_name(b"\\U"),
    "not UTF-8": _in_name(b"\xff"), "half a pair": _in_name(b"\\ud800"), "between": _behind(b"xyz", b"\0\0", b'"}'),
    "bracket": _behind(b"]", b"}", b"{", b"["), "comma": _behind(b",", b",,"),
}  # fmt: skip


def read(data: bytes) -> tuple[set[str], list[Diagnostic]]:
    """The names of the kernels in a file, and what was found."""
    recordings, found = read_file_events("f", data)
    return {name for recording in recordings for name in recording.ops.name}, found


def bytes_named(found: list[Diagnostic]) -> list[int]:
    """The bytes that warnings name."""
    named = (re.search(r"at bytes? ([\d, ]*\d)", one.message) for one in found if one.severity == "warning")
    return [int(word) for places in named if places for word in places[1].split(", ")]


def is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", CHANGES)
def test_one_damaged_place_costs_one_event_at_most(
    change: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(60):
        drawn = random.Random(f"{change} {form} {seed}")
        monkeypatch.setattr("simcore.kineto.mending._STRETCH", drawn.choice((200, 1000, 1 << 18)))
        text, places = written(drawn, form)
        number = drawn.randrange(len(places))
        place = places[number]
        data = CHANGES[change](text.encode(), place, drawn)
        names, found = read(data)
        others = {f"k{other}" for other in range(len(places)) if other != number}
        assert others <= names, (seed, data)
        if not is_json(data) and form != "lines":
            near = range(place[0] - NEAR, place[1] + NEAR)
            assert any(byte in near for byte in bytes_named(found)), (seed, data, found)
