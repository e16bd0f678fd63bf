"""Reads exports back without the code that wrote them: JSON and CSV by Python's own readers."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from decimal import Decimal
from typing import Any, NamedTuple

from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.ranks import RankSet
from simcore.render.export import FORMATS, Export, Request
from simcore.workload import Workload

BY_NAME = {one.name: one for one in FORMATS}
Event = dict[str, Any]
Lane = tuple[int, str]  # process and name of the thread
Span = tuple[int, int, Event]  # start, end


def exported(
    name: str,
    opened: Workload | MeasuredRun,
    parameters: Parameters = Parameters(),  # noqa: B008 - frozen, and no parameter is the plain case
    ranks: list[int] | None = None,
    **more: bool,
) -> Export:
    chosen = None if ranks is None else RankSet.of(ranks)
    return BY_NAME[name].build_export(Request(opened, parameters, chosen, **more))


def ns(microseconds: Decimal | int) -> int:
    """Microseconds of a trace as ns; what is no whole ns is no exact time."""
    scaled = Decimal(microseconds) * 1000
    assert scaled == int(scaled), f"{microseconds} us is no whole number of ns"
    return int(scaled)


def no_constant(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def load(data: bytes) -> dict[str, Any]:
    """Strict JSON whose numbers with a point are exact."""
    found: dict[str, Any] = json.loads(
        data.decode("ascii"), parse_float=Decimal, parse_constant=no_constant, object_pairs_hook=each_key_once
    )
    return found


def each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key comes twice in {keys}"
    return dict(pairs)


class Trace(NamedTuple):
    """A trace by thread. flows: (begin, end) by id."""

    names: dict[int, str]
    lanes: dict[Lane, list[Span]]
    flows: dict[str, tuple[Event, Event]]
    events: list[Event]

    def spans(self, pid: int, thread: str) -> list[Span]:
        """All rows of a thread of a process."""
        return [
            span
            for (rank, name), spans in self.lanes.items()
            if rank == pid and name.split(" (")[0] == thread
            for span in spans
        ]


def read_trace(data: bytes) -> Trace:
    """A trace with its threads by name; whatever is not as the format says fails here."""
    events: list[Event] = load(data)["traceEvents"]
    names = {one["pid"]: one["args"]["name"] for one in events if one["name"] == "process_name"}
    threads = {
        (one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"
    }
    assert len(set(threads.values())) <= len(threads)
    lanes: dict[Lane, list[Span]] = defaultdict(list)
    begun: dict[str, Event] = {}
    ended: dict[str, Event] = {}
    for one in events:
        assert one["pid"] in names
        if one["ph"] == "M":
            continue
        start = ns(one["ts"])
        if one["ph"] == "X":
            lane = (one["pid"], threads[one["pid"], one["tid"]])
            lanes[lane].append((start, start + ns(one["dur"]), one))
            assert one["dur"] >= 0
        elif one["ph"] in "sf":
            side = begun if one["ph"] == "s" else ended
            assert one["id"] not in side
            side[one["id"]] = one
    assert begun.keys() == ended.keys()
    flows = {key: (begun[key], ended[key]) for key in begun}
    return Trace(names, dict(lanes), flows, events)


def covered(spans: list[Span]) -> list[tuple[int, int]]:
    """The union of spans as disjoint intervals."""
    found: list[list[int]] = []
    for start, end, _ in sorted(spans, key=lambda span: span[:2]):
        if end == start:
            continue
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return [(start, end) for start, end in found]


def length(intervals: list[tuple[int, int]]) -> int:
    return sum(end - start for start, end in intervals)


def common(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> int:
    """How long two unions of intervals, disjoint and ascending, have in common."""
    total, first = 0, 0
    for start, end in some:
        while first < len(others) and others[first][1] <= start:
            first += 1
        place = first
        while place < len(others) and others[place][0] < end:
            total += min(end, others[place][1]) - max(start, others[place][0])
            place += 1
    return total


def is_nested(spans: list[Span]) -> bool:
    """Whether any two spans lie beside each other or one inside the other."""
    open_ends: list[int] = []
    for start, end, _ in sorted(spans, key=lambda span: (span[0], -span[1])):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            return False
        open_ends.append(end)
    return True


def read_lines(data: bytes) -> list[dict[str, str]]:
    """The lines of a CSV by column; every line has all columns."""
    text = io.StringIO(data.decode("utf-8"), newline="")
    head, *lines = list(csv.reader(text, strict=True))
    assert all(len(line) == len(head) for line in lines)
    return [dict(zip(head, line, strict=True)) for line in lines]
