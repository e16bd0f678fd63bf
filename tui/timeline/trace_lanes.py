"""Lanes of execution traces that have run: one for each rank, below it compute, CPU, groups, messages,
memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from simcore.chakra.nodes import SEND
from simcore.executing.accounts import ACCOUNTS, account_of
from simcore.executing.results import TraceResults
from simcore.units import byte_size, duration, plural
from tui.frame import Line, cells, wrapped
from tui.timeline.axis import TIME, Axis
from tui.timeline.flags import both, lasting
from tui.timeline.group_words import legend_of, told_group
from tui.timeline.query import Query
from tui.timeline.spans import ALL, DRAWN, Kind, Order, SpanLane, Spans, busy_words

_DRAWN_AS = {"forward": "fwd", "backward": "bwd", "optimizer": "opt", "expert": "ep", "expert dp": "dp_ep"}
# What no node is: the time in which a rank has nothing to do.
NOTHING = -1
_SHOWN = 12


def _of_account(account: str) -> int:
    kind, _, category = account.partition(" ")
    word = category or kind
    return DRAWN.index(_DRAWN_AS.get(word, word))


_OF_ACCOUNT = bytes(map(_of_account, ACCOUNTS)) + bytes(256 - len(ACCOUNTS))


@dataclass(frozen=True)
class TraceLane(SpanLane):
    """A lane of a rank: of all that it does (stream None), or of one of its streams."""

    results: TraceResults
    number: int
    stream: str | None = None

    @property
    def title(self) -> str:
        return f"rank {self.number:>2}" if self.stream is None else cells(self.stream, 14)

    @property
    def whose(self) -> str:
        return f"rank {self.number}"

    @property
    def count(self) -> str:
        return ""

    @cached_property
    def busy(self) -> str:
        step = self.results.step_time_ns
        if self.stream is None:
            return busy_words(self.results.accounts[self.number].busy_ns, step)
        return busy_words(sum(self.shares.between(0, step).values()), step)

    def share(self, measure: str) -> str:
        if self.stream is not None or not measure:
            return self.busy
        return busy_words(self.measured_ns(measure), self.results.step_time_ns)

    def measured_ns(self, measure: str) -> int:
        """ns of the step that an order goes by."""
        accounts = self.results.accounts[self.number]
        if measure == "busy":
            return accounts.busy_ns
        return accounts.exposed_ns if measure == "exposed" else accounts.ns(measure)

    @cached_property
    def spans(self) -> Spans:
        results, number = self.results, self.number
        if self.stream is None:
            one = results.accounts[number]
            places = array("q", (NOTHING if place < 0 else place for place in one.place))
            return Spans(one.edge[:-1], one.edge[1:], places, bytearray(one.account.translate(_OF_ACCOUNT)))
        executed = results.executed
        start, begin, end = executed.start[number], executed.begin[number], executed.end[number]
        found = []
        for place in self._places:
            kind = _OF_ACCOUNT[account_of(executed, number, place)]
            middle = begin[place]
            if middle > start[place]:
                waits = DRAWN.index("bubble" if self.stream == "messages" else "wait")
                found.append((start[place], middle, place, waits))
            if end[place] > middle:
                found.append((middle, end[place], place, kind))
        found.sort()
        return Spans(
            array("q", (one[0] for one in found)), array("q", (one[1] for one in found)),
            array("q", (one[2] for one in found)), bytearray(one[3] for one in found),
        )  # fmt: skip

    @property
    def _places(self) -> list[int]:
        results, number = self.results, self.number
        ends = results.executed.end[number]
        return [
            at for at in range(len(ends)) if ends[at] >= 0 and results.stream_of(number, at) == self.stream
        ]

    @property
    def may_overlap(self) -> bool:
        return self.stream is not None

    @property
    def covers_all(self) -> bool:
        return False

    def label(self, op: int, room: int) -> str:
        return "" if op == NOTHING else cells(self.results.name_of(self.number, op))[:room]

    def told(self, index: int | None, others: str, width: int, wide: bool) -> list[Line]:
        place = NOTHING if index is None else self.spans.op[index]
        if place == NOTHING:
            return [[("nothing runs here", ""), ("   ", ""), (self.whose, "dim")]]
        results, number = self.results, self.number
        executed = results.executed
        start, begin, end = (one[number][place] for one in (executed.start, executed.begin, executed.end))
        name = f"{cells(results.name_of(number, place), 40)} ({results.what(number, place)})"
        first: Line = [(name, "bright"), (others, "warn"), ("   ", ""), (f"{self.whose}, node "
                       f"{executed.nodes[number].id[place]}", "dim")]  # fmt: skip
        times: Line = [
            (f"{TIME.clock(start)} .. {TIME.clock(end)}", ""),
            ("   ", ""),
            (TIME.length(end - begin), "bright"),
        ]
        if begin > start:
            what = (
                "before its message" if results.type_of(number, place) == SEND + 1 else "for the last member"
            )
            times.append((f"   after waiting {duration(begin - start)} {what}", ""))
        said = ", ".join(facts_of(results, number, place))
        return [first, times, *([(line, "")] for line in wrapped(said, width - 4))]

    def matches(self, query: Query) -> bytes:
        spans = self.spans
        found = [lasting(spans.start, spans.end, query)]
        for word in query.words:
            known: dict[int, bool] = {NOTHING: False}
            flags = bytearray()
            for place, category in zip(spans.op, spans.category, strict=True):
                if place not in known:
                    name = (
                        f"{self.results.name_of(self.number, place)} {self.results.what(self.number, place)}"
                    )
                    known[place] = word.is_in(name)
                flags.append(known[place] or DRAWN[category] in word.kinds)
            found.append(bytes(flags))
        if query.microbatch is not None:
            found.append(bytes(len(spans.start)))
        return both(found)


def facts_of(results: TraceResults, rank: int, place: int) -> list[str]:
    """What the trace says of a node: its group, size, partner, other attributes."""
    values = results.attributes_of(rank, place)
    said = []
    if word := results.group_word(rank, place):
        said.append(word)
    size = values.get("comm_size", values.get("tensor_size"))
    if isinstance(size, int):
        said.append(byte_size(size))
    for key, words in (("comm_src", "from rank"), ("comm_dst", "to rank"), ("comm_tag", "tag")):
        if key in values and not (key != "comm_tag" and values[key] == rank):
            said.append(f"{words} {values[key]}")
    known = (
        "comm_size",
        "tensor_size",
        "comm_src",
        "comm_dst",
        "comm_tag",
        "comm_type",
        "pg_name",
        "is_cpu_op",
    )
    others = [key for key in values if key not in known]
    said += [f"{cells(key, 24)} {cells(str(values[key]), 40)}" for key in others[:_SHOWN]]
    return said + ([f"and {len(others) - _SHOWN} attributes more"] if len(others) > _SHOWN else [])


class TraceLanes:
    """Execution traces as a source of lanes: one for each rank."""

    def __init__(self, results: TraceResults) -> None:
        self.results = results
        self.numbers: Sequence[int] = results.ranks
        self._lanes: dict[tuple[int, str | None], TraceLane] = {}

    axis: Axis = TIME
    count_heading = ("", "")

    @property
    def orders(self) -> tuple[Order, ...]:
        return (
            Order("", "lane", "busy"),
            Order("busy", "least busy", "busy"),
            Order("bubble", "most bubble", "bubb"),
            Order("wait", "most wait", "wait"),
            Order("exposed", "most exposed", "expo"),
        )

    @property
    def length(self) -> int:
        return self.results.step_time_ns

    @property
    def groups(self) -> int:
        return len(self.numbers)

    @property
    def counted(self) -> str:
        rules = "ASTRA-sim 2's rules" if self.results.is_astra else "wltui's rules"
        return f"{plural(len(self.numbers), 'rank')}, {rules}"

    @property
    def heat(self) -> dict[int, int]:
        return dict.fromkeys(self.numbers, 1)

    @cached_property
    def legend(self) -> tuple[Kind, ...]:
        found = {category for one in self.results.accounts for category in one.account.translate(_OF_ACCOUNT)}
        return legend_of({DRAWN[category] for category in found}, "communication")

    def measure(self, order: str, number: int) -> int:
        ns = self._lane(number, None).measured_ns(order)
        return ns if order == "busy" else -ns

    def headings(self, number: int) -> tuple[str, ...]:
        return ()

    def ranks(self, number: int) -> tuple[int, ...]:
        return (number,)

    def count(self, number: int) -> int:
        return 1

    def number_of(self, rank: int) -> int | None:
        return rank if 0 <= rank < len(self.numbers) else None

    def lane(self, number: int, rank: int = ALL, left: int = 0) -> SpanLane:
        return self._lane(number, None)

    def _lane(self, number: int, stream: str | None) -> TraceLane:
        found = self._lanes.get((number, stream))
        if found is None:
            found = self._lanes[number, stream] = TraceLane(self.results, number, stream)
        return found

    def streams(self, number: int, rank: int = ALL) -> list[SpanLane]:
        ends = self.results.executed.end[number]
        names = {self.results.stream_of(number, at) for at in range(len(ends)) if ends[at] >= 0}
        first = [name for name in ("compute", "cpu") if name in names]
        last = [name for name in ("messages", "memory") if name in names]
        middle = sorted(names.difference(first, last), key=lambda name: (len(name), name))
        return [self._lane(number, name) for name in (*first, *middle, *last)]

    def computing(self, number: int) -> SpanLane:
        return self._lane(number, None)

    def told(self, title: Line, numbers: Sequence[int]) -> list[Line]:
        measures = ("busy", "exposed", "wait", "bubble")
        words = {"busy": "compute"}
        found = {
            words.get(measure, measure): [self._lane(number, None).measured_ns(measure) for number in numbers]
            for measure in measures
        }
        return told_group(title, list(numbers), found, self.length)
