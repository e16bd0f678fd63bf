"""What the host did at a time on a thread: the innermost operation, phase, collective and layer around it.

A range is anything that lasts on a thread of the host: an operation, an annotation, the call of a module. A
kernel belongs to what is around its launch. The backward pass has no modules: an operation of it has the
layer of the forward operation that its `fwdbwd` flow comes from.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import compress
from operator import add, le, not_
from typing import Any

from simcore.kineto.values import MOST_US
from simcore.kineto.vocabulary import COLLECTIVE_ANNOTATION, MODULE, layer_of, module_class, phase_of
from simcore.measured.columns import ANNOTATED, NOT_LAUNCHED, HostColumns, LaneColumns
from simcore.records import replace

# A time in the unit of the file, and its thread.
ThreadTime = tuple[float, object]
# Operation, phase, collective, layer: each None where nothing states it.
Surroundings = tuple[str | None, str | None, str | None, str | None]
NOTHING: Surroundings = (None, None, None, None)
# (phase, collective, layer, whether a layer inside of it is ignored) of a name.
_NameFacts = tuple[str | None, str | None, str | None, bool]

# Ranges whose times are taken at once: lists of all would take 100 B each.
_PART = 2**14
# Correlation of an operation without a launch.
NO_LAUNCH = -1
# Behind the last range; nothing is as late.
_NO_RANGE = float("nan"), 0, ""
# Times as written -> ns.
Times = Callable[[Sequence[float]], list[int]]


class Ranges:
    """What lasts on a thread, as columns in the order of the file.

    start, length: in the unit of the file, arrays of such numbers. event_index: position in the file.
    """

    def __init__(self, kind: str = "d") -> None:
        self.start: array[Any] = array(kind)
        self.length: array[Any] = array(kind)
        self.name: list[str] = []
        self.event_index = array("q")

    def __len__(self) -> int:
        return len(self.name)

    def add(self, start: Any, length: Any, name: str, event_index: int) -> None:
        """Adds a range."""
        self.start.append(start)
        self.length.append(length)
        self.name.append(name)
        self.event_index.append(event_index)

    def extend(self, events: Sequence[Any], names: list[str], indices: list[int]) -> None:
        """Adds events. names: of each; indices: their positions in the file."""
        self.start.fromlist([event.ts for event in events])
        self.length.fromlist([event.dur or 0 for event in events])
        self.name += names
        self.event_index.fromlist(indices)

    @property
    def ends(self) -> Iterator[Any]:
        """When each ends."""
        return map(add, self.start, self.length)

    def key(self, row: int) -> tuple[Any, Any, str, int]:
        """Returns what ranges are sorted by: an outer one comes before those inside."""
        start = self.start[row]
        return start, -start - self.length[row], self.name[row], self.event_index[row]

    def select(self, rows: Sequence[int]) -> Ranges:
        """Returns some of them."""
        some = Ranges(self.start.typecode)
        if isinstance(rows, range):
            some._take(self, rows.start, rows.stop)
            return some
        some.start.extend(map(self.start.__getitem__, rows))
        some.length.extend(map(self.length.__getitem__, rows))
        some.name += map(self.name.__getitem__, rows)
        some.event_index.extend(map(self.event_index.__getitem__, rows))
        return some

    def sort(self) -> Ranges:
        """Returns them in order, the same object where they are, as most profilers write them."""
        start, key, count = self.start, self.key, len(self)
        unsure = compress(range(1, count), map(le, start[1:], start))
        if all(key(row - 1) <= key(row) for row in unsure):
            return self
        return self.select(sorted(range(count), key=key))

    def merge(self, others: Ranges) -> Ranges:
        """Returns these and others, both in order, in order."""
        if not len(self) or not len(others):
            return self if len(self) else others
        merged, taken_count, count = Ranges(self.start.typecode), 0, len(self)
        for row in range(len(others)):
            key = others.key(row)
            until = bisect_left(self.start, key[0], taken_count)
            while until < count and self.key(until) < key:
                until += 1
            merged._take(self, taken_count, until)
            merged._take(others, row, row + 1)
            taken_count = until
        merged._take(self, taken_count, count)
        return merged

    def _take(self, others: Ranges, first: int, last: int) -> None:
        self.start += others.start[first:last]
        self.length += others.length[first:last]
        self.name += others.name[first:last]
        self.event_index += others.event_index[first:last]


Threads = dict[object, Ranges]


class ThreadIndices(dict[object, int]):
    """Thread -> its index, the next one for a new thread."""

    def __missing__(self, thread: object) -> int:
        self[thread] = index = len(self)
        return index


class Launches:
    """The calls that launched something, as columns.

    time, over: start and end as written. thread: index into `threads`.
    """

    def __init__(self) -> None:
        self.correlation, self.time, self.thread = array("q"), array("d"), array("i")
        self.over = array("d")
        self.threads = ThreadIndices()
        self.thread_keys: list[object] = []
        self.row_of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.row_of)

    def select(self, requested: Iterable[int]) -> None:
        """Keeps the launches of these correlations alone, each once, and finds their rows: `row_of`."""
        correlations = set(requested) - {NO_LAUNCH} if self.correlation else set[int]()
        # Of several with one correlation the last one counts.
        rows = {
            correlation: row
            for row, correlation in enumerate(self.correlation)
            if correlation in correlations
        }
        some = [*rows.values()]
        self.row_of = dict(zip(rows, range(len(some)), strict=True))
        self.correlation = array("q")
        self.time = array("d", map(self.time.__getitem__, some))
        self.over = array("d", map(self.over.__getitem__, some))
        self.thread = array("i", map(self.thread.__getitem__, some))
        self.thread_keys = list(self.threads)

    def thread_of(self, row: int) -> object:
        """Returns the thread of a launch."""
        return self.thread_keys[self.thread[row]]

    @property
    def on(self) -> Iterator[object]:
        """The thread of each launch."""
        return map(self.thread_keys.__getitem__, self.thread)


class Flows:
    """Flows from operations of the forward pass to those of the backward pass.

    forward: id -> (time, thread); backward: (thread, time) -> id.
    """

    def __init__(self) -> None:
        self.forward: dict[Any, tuple[float, object]] = {}
        self.backward: dict[tuple[object, float], Any] = {}


def find_surroundings(
    threads: Sequence[Threads], times: Sequence[float], on: Iterable[object], flows: Flows | None = None
) -> list[Surroundings]:
    """Returns the surroundings of each point, NOTHING for one that no range is around.

    threads: several of them together, such as operations and annotations. times, on: of the points, the
    latter their threads.
    """
    words = _Words(threads)
    layers: dict[tuple[object, float], str] = {}
    if flows is not None and words.has_layers:
        points = flows.forward.values()
        forward = _sweep(threads, [point[0] for point in points], [point[1] for point in points], words, {})
        layer_of_flow = {
            flow_id: layer
            for flow_id, (*_, layer) in zip(flows.forward, forward, strict=True)
            if layer is not None
        }
        layers = {
            thread_time: layer_of_flow[flow_id]
            for thread_time, flow_id in flows.backward.items()
            if flow_id in layer_of_flow
        }
    return _sweep(threads, times, on, words, layers)


class _Words:
    """What names state, each looked at once."""

    def __init__(self, threads: Sequence[Threads]) -> None:
        names = set[str]().union(*(ranges.name for some in threads for ranges in some.values()))
        modules = [name for name in names if name.startswith(MODULE)]
        classes = Counter(map(module_class, modules))
        self.facts: dict[str, _NameFacts] = {}
        for name in names:
            if name.startswith(MODULE):
                # A module is called in the forward pass, and in the backward pass to compute it again.
                self.facts[name] = ("forward", None, name[len(MODULE) :], classes[module_class(name)] > 1)
            else:
                call, layer = COLLECTIVE_ANNOTATION.match(name), layer_of(name)
                self.facts[name] = (phase_of(name), call[1] if call else None, layer, layer is not None)
        self.has_layers = any(layer is not None for _, _, layer, _ in self.facts.values())


def _sweep(
    threads: Sequence[Threads],
    times: Sequence[float],
    on: Iterable[object],
    words: _Words,
    layers: Mapping[tuple[object, float], str],
) -> list[Surroundings]:
    by_thread: dict[object, list[int]] = {}
    for point, thread in enumerate(on):
        by_thread.setdefault(thread, []).append(point)
    around = [NOTHING] * len(times)
    # Equal ones are one object: a tuple for each kernel takes 4 % of the bytes of the file.
    same: dict[Surroundings, Surroundings] = {}
    facts = words.facts
    for thread, points in by_thread.items():
        some = [ranges[thread].sort() for ranges in threads if thread in ranges]
        if not some:
            continue
        ranges = reduce(Ranges.merge, some)
        points.sort(key=times.__getitem__)
        # (end, surroundings inside, whether the layer stays) of the open ranges, the innermost last.
        open_: list[tuple[float, Surroundings, bool]] = []
        following = zip(ranges.start, ranges.ends, ranges.name, strict=True)
        begin, end, name = next(following, _NO_RANGE)
        for point in points:
            time = times[point]
            while begin <= time:
                if end >= time:
                    while open_ and open_[-1][0] <= begin:
                        open_.pop()
                    phase, call, layer, stays = facts[name]
                    operation: str | None = name
                    is_module = name.startswith(MODULE)
                    if layers and layer is None:
                        layer = layers.get((thread, begin))
                        stays = layer is not None
                    if open_:
                        _, (outer, outer_phase, outer_call, outer_layer), outer_stays = open_[-1]
                        # An annotation inside may state another phase; a module states one only where there
                        # is none yet.
                        phase = outer_phase or phase if is_module else phase or outer_phase
                        call = call or outer_call
                        if outer_stays or layer is None:
                            layer, stays = outer_layer, outer_stays
                        if is_module:
                            operation = outer
                    elif is_module:
                        operation = None
                    inside = operation, phase, call, layer
                    open_.append((end, same.setdefault(inside, inside), stays))
                begin, end, name = next(following, _NO_RANGE)
            while open_ and open_[-1][0] < time:
                open_.pop()
            if open_:
                around[point] = open_[-1][1]
    return around


def outermost(ranges: Ranges, skipped: str | tuple[str, ...] = ()) -> list[int]:
    """Returns the rows of those ranges, in order, that lie in no other; names that begin with `skipped` are
    left out.
    """
    outer: list[int] = []
    reached = -float("inf")
    for row, (begin, end) in enumerate(zip(ranges.start, ranges.ends, strict=True)):
        if begin >= reached and not (skipped and ranges.name[row].startswith(skipped)):
            reached = end
            outer.append(row)
    return outer


def launchers_of(threads: Iterable[object]) -> dict[object, int]:
    """Returns the threads that launched something, with their indices. threads: of each launch."""
    return {thread: index for index, thread in enumerate(dict.fromkeys(threads))}


def thread_words(launchers: Mapping[object, int]) -> list[str]:
    """Returns the words for each thread: its id, with that of its process where two have the same."""
    names = [str(thread[1]) if isinstance(thread, tuple) else str(thread) for thread in launchers]
    counts = Counter(names)
    return [
        f"{thread[0]}/{word}" if counts[word] > 1 and isinstance(thread, tuple) else word
        for word, thread in zip(names, launchers, strict=True)
    ]


def annotations_of(ranges: Threads) -> Ranges:
    """Returns the annotations among annotations and modules, in order."""
    annotations = Ranges()
    for some in ranges.values():
        for row, name in enumerate(some.name):
            if not name.startswith(MODULE):
                annotations.add(some.start[row], some.length[row], name, some.event_index[row])
    return annotations.sort()


def lane_columns(threads: Sequence[Ranges | None], annotations: Ranges, ns: Times) -> LaneColumns:
    """Returns what the host did.

    threads: the operations of each thread that launched something; annotations: in order. ns: converts times
    as written to ns. What is too late for any axis is left out.
    """
    columns = LaneColumns()
    for thread_index, operations in enumerate(threads):
        if operations is not None:
            some = operations.sort()
            outer = outermost(some)
            rows = range(len(some)) if len(outer) == len(some) else outer
            _add(columns, some, rows, thread_index, ns)
    _add(columns, annotations, range(len(annotations)), ANNOTATED, ns)
    return columns


def _add(columns: LaneColumns, ranges: Ranges, rows: Sequence[int], thread: int, ns: Times) -> None:
    """Adds what one thread did, in order."""
    if len(rows) > _PART:
        for first in range(0, len(rows), _PART):
            _add(columns, ranges, rows[first : first + _PART], thread, ns)
        return
    some = ranges.select(rows)
    starts, ends = some.start, [*some.ends]
    if not rows:
        return
    if not -MOST_US < starts[0] + min(0, min(some.length)) <= max(starts[-1], max(ends)) < MOST_US:
        fitting = [
            row for row, start, end in zip(rows, starts, ends, strict=True)
            if -MOST_US < start < MOST_US and -MOST_US < end < MOST_US
        ]  # fmt: skip
        _add(columns, ranges, fitting, thread, ns)
        return
    columns.name += some.name
    start, end = ns(starts), ns(ends)
    columns.start.fromlist(start)
    columns.end.fromlist(end if min(some.length) >= 0 else [*map(max, start, end)])
    columns.line += some.event_index
    columns.thread += array("i", (thread,)) * len(some)


class LaunchTimes:
    """The times of launches as columns, ns, behind them what stands for no launch; each by its row."""

    def __init__(self, launches: Launches, launchers: Mapping[object, int], ns: Times) -> None:
        pairs = zip(launches.time, launches.over, strict=True)
        fits = bytes([-MOST_US < begin <= over < MOST_US for begin, over in pairs])
        self.launch, self.launched = (
            _fitting_ns(times, fits, ns) for times in (launches.time, launches.over)
        )
        index_of = [launchers.get(thread, NOT_LAUNCHED) for thread in launches.thread_keys]
        self.launcher = array("i", map(index_of.__getitem__, launches.thread))
        for row in compress(range(len(fits)), map(not_, fits)):
            self.launcher[row] = NOT_LAUNCHED
        self.launcher.append(NOT_LAUNCHED)

    def of_rows(self, host: HostColumns, rows: list[int]) -> HostColumns:
        """Returns the host columns with the launches of operations of a device. rows: of the launches, -1 for
        none.
        """
        columns = self.launch, self.launched, self.launcher
        if len(self.launch) == 1:
            launch, launched, launcher = (column * len(rows) for column in columns)
        else:
            launch, launched, launcher = (
                array(column.typecode, map(column.__getitem__, rows)) for column in columns
            )
        return replace(host, launch=launch, launched=launched, launcher=launcher)


def _fitting_ns(times: array[float], fits: bytes, ns: Times) -> array[int]:
    """Returns times as ns, those that do not fit, and one behind all, as 0."""
    column = array("q")
    for first in range(0, len(times), _PART):
        part: Sequence[float] = times[first : first + _PART]
        if 0 in fits:
            part = [time if fit else 0 for time, fit in zip(part, fits[first:], strict=False)]
        column.fromlist(ns(part))
    column.fromlist(ns([0]))
    return column
