"""Two replays of a trace directory's text that share nothing with simcore's: lines are read by regular
expression, matched by position in the file, and run by trying every rank until nothing moves.

`naive_ns` knows whole operations alone and no tails (ORACLES 4); `fine_ns` takes sub-operations apart.
For ranks in the order tp-dp-pp, one micro-batch's pipeline without virtual stages.
"""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

_NAME = re.compile(r"wd(\d+)_tp(\d+)_pp(\d+)_.*_rank(\d+)_(\d+)\.txt")
_COMPUTE = ("forward_step", "backward_step", "loss_func", "optimizer_step")


class Line(NamedTuple):
    """An operation or sub-operation: name, start and end in ns, group, and what lies inside."""

    name: str
    start: int
    end: int
    group: str
    inner: tuple[Line, ...] = ()


def _value(text: str, key: str) -> str:
    found = re.search(rf"(?:^|[,(]){key}=([^,)]*)", text)
    return found[1] if found is not None else "None"


def _line(name: str, text: str, group: str, inner: tuple[Line, ...] = ()) -> Line:
    end = Fraction(_value(text, "timestamp")) * 10**6
    return Line(
        name, int(end - Fraction(_value(text, "duration")) * 10**6), int(end), _value(text, group), inner
    )


class Set(NamedTuple):
    """A run: its degrees, and the lines of every rank."""

    tp: int
    dp: int
    pp: int
    ranks: list[list[Line]]

    @property
    def step_ns(self) -> int:
        """First start to last end."""
        first = min(line.start for rank in self.ranks for line in rank)
        return max(line.end for rank in self.ranks for line in rank) - first


@cache
def read_set(folder: Path, stamp: str) -> Set:
    """The files of one stamp."""
    ranks: dict[int, list[Line]] = {}
    degrees = (1, 1, 1)
    for path in folder.glob(f"*_{stamp}.txt"):
        found = _NAME.fullmatch(path.name)
        assert found is not None
        world, tp, pp, rank = (int(found[number]) for number in range(1, 5))
        degrees = (tp, world // tp // pp, pp)
        ranks[rank] = []
        for text in path.read_text().splitlines():
            front, back = text.split(",sub_operations=")
            inner = tuple(
                _line(_value(sub, "func_name") + _value(sub, "trace_src_func"), sub, "group")
                for sub in ast.literal_eval(back.rstrip()[:-1])
            )
            ranks[rank].append(_line(front.split(":")[2].split("(")[0], front, "group_kind", inner))
    return Set(*degrees, [ranks[rank] for rank in sorted(ranks)])


class Step(NamedTuple):
    """`own`: lasts ns. `send`, `recv`: by key. `come`: at a meeting. `go`: when it is over."""

    what: str
    ns: int = 0
    key: tuple[object, ...] = ()


def _group(run: Set, rank: int, kind: str) -> tuple[tuple[object, ...], int]:
    tp, dp, stage = rank % run.tp, rank // run.tp % run.dp, rank // run.tp // run.dp
    return {
        "tp": (("tp", dp, stage), run.tp),
        "dp": (("dp", tp, stage), run.dp),
        "ep": (("ep", tp, dp), min(run.pp, 2)),
        "mp": (("mp", dp), run.tp * run.pp),
    }[kind]


def _transfer(run: Set, rank: int, name: str, count: int) -> tuple[object, ...]:
    per_stage = run.tp * run.dp
    way = 1 if name.endswith("forward") else -1
    return (name.split("_")[1], rank if name.startswith("send") else rank - way * per_stage, count)


def naive_ns(run: Set) -> int:
    """Whole operations: a receive ends with its send, a collective takes its shortest member's duration."""
    first = min(line.start for rank in run.ranks for line in rank)
    shortest: dict[tuple[object, ...], int] = {}
    todo: list[list[Step]] = []
    for rank, lines in enumerate(run.ranks):
        steps, now = [], first
        seen: dict[str, int] = {}
        for line in lines:
            steps.append(Step("own", line.start - now))
            now = line.end
            count = seen[line.name] = seen.get(line.name, 0) + 1
            ns = line.end - line.start
            if line.name.startswith("send"):
                steps.append(Step("send", ns, _transfer(run, rank, line.name, count)))
            elif line.name.startswith("recv"):
                steps.append(Step("recv", 0, _transfer(run, rank, line.name, count)))
            elif line.group in ("dp", "ep") and _group(run, rank, line.group)[1] > 1:
                key = (*_group(run, rank, line.group)[0], line.name, count)
                shortest[key] = min(shortest.get(key, ns), ns)
                steps += [Step("come", 0, key), Step("go", 0, key)]
            else:
                steps.append(Step("own", ns))
        todo.append(steps)
    return _end(todo, shortest)


def fine_ns(run: Set, compute: int = 1) -> int:
    """Sub-operations too, with compute times a whole number; tails and waits as docs/measured.md has them."""
    first = min(line.start for rank in run.ranks for line in rank)
    calls: dict[tuple[object, ...], list[tuple[int, Line]]] = {}
    keys: dict[tuple[int, int, int], tuple[object, ...]] = {}
    for rank, lines in enumerate(run.ranks):
        seen: dict[object, int] = {}
        for number, line in enumerate(lines):
            mine = [(-1, line, {"optimizer_step": "mp"}.get(line.name, line.group))]
            mine += [(place, sub, sub.group) for place, sub in enumerate(line.inner)]
            for place, call, kind in mine:
                if kind not in ("tp", "dp", "ep", "mp"):
                    continue
                what = (line.name, call.name, place >= 0)
                seen[what] = seen.get(what, 0) + 1
                key = (*_group(run, rank, kind)[0], *what, seen[what])
                keys[rank, number, place] = key
                calls.setdefault(key, []).append((rank, call))
    lengths: dict[tuple[object, ...], int] = {}
    met = {}
    for key, members in calls.items():
        last, gone = max(call.start for _, call in members), min(call.end for _, call in members)
        size = _group(run, members[0][0], str(key[0]))[1]
        if len(members) == size > 1 and gone >= last - 20_000:
            met[key] = (last, max(gone, last))
            lengths[key] = 0 if key[0] == "mp" else max(gone - last, 0)
    sends = {}
    for rank, lines in enumerate(run.ranks):
        count: dict[str, int] = {}
        for line in lines:
            count[line.name] = count.get(line.name, 0) + 1
            if line.name.startswith(("send", "recv")):
                sends[line.name[:4], _transfer(run, rank, line.name, count[line.name])] = line
    todo = []
    for rank, lines in enumerate(run.ranks):
        steps, now = [], first
        count = {}
        for number, line in enumerate(lines):
            steps.append(Step("own", line.start - now))
            now = line.start
            count[line.name] = count.get(line.name, 0) + 1
            factor = compute if line.name in _COMPUTE else 1
            key = keys.get((rank, number, -1), ())
            if line.name.startswith(("send", "recv")):
                way = _transfer(run, rank, line.name, count[line.name])
                send, receive = sends["send", way], sends["recv", way]
                there = min(send.end, receive.end)
                if line.name.startswith("send"):
                    steps += [Step("send", there - send.start, way), Step("own", send.end - there)]
                else:
                    steps += [Step("recv", 0, way), Step("own", line.end - max(line.start, there))]
                now = line.end
                continue
            if key in met:
                over = met[key][0] if key[0] == "mp" else met[key][1]
                steps += [Step("come", 0, key), Step("go", 0, key)]
                now = over
                if key[0] != "mp":
                    steps.append(Step("own", line.end - over))
                    now = line.end
            steps += _inside(rank, number, line, now, factor, keys, met, calls)
            now = line.end
        todo.append(steps)
    return _end(todo, lengths)


def _inside(
    rank: int,
    number: int,
    line: Line,
    now: int,
    factor: int,
    keys: dict[tuple[int, int, int], tuple[object, ...]],
    met: dict[tuple[object, ...], tuple[int, int]],
    calls: dict[tuple[object, ...], list[tuple[int, Line]]],
) -> list[Step]:
    """The sub-operations of one operation, which follow each other, and the compute between them."""
    steps = []
    for place, sub in enumerate(line.inner):
        key = keys.get((rank, number, place), ())
        steps.append(Step("own", (sub.start - now) * factor))
        now = sub.end
        beside = sub.end - sub.start
        if "_async" in sub.name and key in met:
            members = [call for _, call in calls[key]]
            if sub.end == min(call.end for call in members):
                beside = min(call.end - call.start for call in members)
            steps += [Step("come", 0, key), Step("own", beside * factor), Step("go", 0, key)]
        elif "_async" in sub.name:
            steps.append(Step("own", beside * factor))
        elif key in met:
            steps += [Step("come", 0, key), Step("go", 0, key), Step("own", sub.end - met[key][1])]
        else:
            steps.append(Step("own", beside))
    steps.append(Step("own", (line.end - now) * factor))
    return steps


def _end(todo: list[list[Step]], lengths: dict[tuple[object, ...], int]) -> int:
    """When the last rank is through."""
    members: dict[tuple[object, ...], int] = {}
    for steps in todo:
        for step in steps:
            if step.what == "come":
                members[step.key] = members.get(step.key, 0) + 1
    now, place = [0] * len(todo), [0] * len(todo)
    sent: dict[tuple[object, ...], int] = {}
    came: dict[tuple[object, ...], list[int]] = {}
    moved = True
    while moved:
        moved = False
        for rank, steps in enumerate(todo):
            while place[rank] < len(steps):
                what, ns, key = steps[place[rank]]
                if what == "own":
                    now[rank] += ns
                elif what == "send":
                    now[rank] += ns
                    sent[key] = now[rank]
                elif what == "recv":
                    if key not in sent:
                        break
                    now[rank] = max(now[rank], sent[key])
                elif what == "come":
                    came.setdefault(key, []).append(now[rank])
                elif len(came[key]) < members[key]:
                    break
                else:
                    now[rank] = max(now[rank], max(came[key]) + lengths[key])
                place[rank] += 1
                moved = True
    assert all(at == len(steps) for at, steps in zip(place, todo, strict=True))
    return max(now)
