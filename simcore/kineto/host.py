"""What the host did at a time on a thread: the innermost operation, phase, collective and layer around it.

A range is anything that lasts on a thread of the host: an operation, an annotation, the call of a module. A
kernel belongs to what is around its launch. The backward pass has no modules: an operation of it has the
layer of the forward operation that its `fwdbwd` flow comes from.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, repeat
from typing import Any

from simcore.kineto.values import MOST_US
from simcore.kineto.vocabulary import COLLECTIVE_ANNOTATION, MODULE, layer_of, module_class, phase_of
from simcore.measured.columns import ANNOTATED, NOT_LAUNCHED, HostColumns
from simcore.records import replace

# (start, -end, name, position in the file), times in the unit of the file: in order an outer one comes first.
Range = tuple[float, float, str, int]
Threads = dict[object, list[Range]]
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
# Times as written -> ns.
Times = Callable[[Sequence[float]], list[int]]


class Launches:
    """The calls that launched something, as columns.

    time, over: start and end as written. thread: index into `threads`.
    """

    def __init__(self) -> None:
        self.correlation, self.time, self.thread = array("q"), array("d"), array("i")
        self.over = array("d")
        self.threads: dict[object, int] = {}

    def take_starts(self, requested: Iterable[int]) -> dict[int, ThreadTime]:
        """Returns correlation -> start and thread of the requested launches. It can be called once: it frees
        the memory of these columns.
        """
        if not self.correlation:
            return {}
        threads, correlations = list(self.threads), set(requested) - {NO_LAUNCH}
        is_wanted = list(map(correlations.__contains__, self.correlation))
        times = zip(
            compress(self.time, is_wanted),
            map(threads.__getitem__, compress(self.thread, is_wanted)),
            strict=True,
        )
        launches: dict[int, ThreadTime] = dict(zip(compress(self.correlation, is_wanted), times, strict=True))
        self.time, self.thread = array("d"), array("i")
        return launches

    def ends(self, requested: Iterable[int]) -> dict[int, float]:
        """Returns the end of each requested launch by its correlation id."""
        if not self.correlation:
            return {}
        correlations = set(requested)
        is_wanted = list(map(correlations.__contains__, self.correlation))
        return dict(zip(compress(self.correlation, is_wanted), compress(self.over, is_wanted), strict=True))


class Flows:
    """Flows from operations of the forward pass to those of the backward pass.

    forward: id -> (time, thread); backward: (thread, time) -> id.
    """

    def __init__(self) -> None:
        self.forward: dict[Any, tuple[float, object]] = {}
        self.backward: dict[tuple[object, float], Any] = {}


def find_surroundings(
    threads: Threads, launches: Mapping[int, ThreadTime], flows: Flows | None = None
) -> dict[int, Surroundings]:
    """Returns the surroundings of each launch that has a range around it, by correlation."""
    words = _Words(threads)
    layers: dict[tuple[object, float], str] = {}
    if flows is not None and words.has_layers:
        forward = _sweep(threads, flows.forward, words, {})
        for thread_time, flow_id in flows.backward.items():
            layer = forward.get(flow_id, NOTHING)[3]
            if layer is not None:
                layers[thread_time] = layer
    return _sweep(threads, launches, words, layers)


class _Words:
    """What names state, each looked at once."""

    def __init__(self, threads: Threads) -> None:
        names = {name for ranges in threads.values() for _, _, name, _ in ranges}
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
    threads: Threads,
    points: Mapping[Any, ThreadTime],
    words: _Words,
    layers: Mapping[tuple[object, float], str],
) -> dict[Any, Surroundings]:
    by_thread: dict[object, list[tuple[float, Any]]] = {}
    for key, (time, thread) in points.items():
        by_thread.setdefault(thread, []).append((time, key))
    times_around: dict[Any, Surroundings] = {}
    same: dict[Surroundings, Surroundings] = {}
    facts = words.facts
    for thread, times in by_thread.items():
        ranges = sorted(threads.get(thread, ()))
        times.sort(key=lambda edge: edge[0])
        # (end, operation, phase, collective, layer, whether that stays) of the open ranges, the innermost
        # last.
        open_: list[tuple[float, str | None, str | None, str | None, str | None, bool]] = []
        at, count = 0, len(ranges)
        for time, key in times:
            while at < count:
                begin, minus_end, name, _ = ranges[at]
                if begin > time:
                    break
                at += 1
                end = -minus_end
                if end < time:
                    continue
                while open_ and open_[-1][0] <= begin:
                    open_.pop()
                phase, call, layer, stays = facts[name]
                operation: str | None = name
                is_module = name.startswith(MODULE)
                if layers and layer is None:
                    layer = layers.get((thread, begin))
                    stays = layer is not None
                if open_:
                    _, outer, outer_phase, outer_call, outer_layer, outer_stays = open_[-1]
                    # An annotation inside may state another phase; a module states one only where there is
                    # none yet.
                    phase = outer_phase or phase if is_module else phase or outer_phase
                    call = call or outer_call
                    if outer_stays or layer is None:
                        layer, stays = outer_layer, outer_stays
                    if is_module:
                        operation = outer
                elif is_module:
                    operation = None
                open_.append((end, operation, phase, call, layer, stays))
            while open_ and open_[-1][0] < time:
                open_.pop()
            if open_:
                near = open_[-1][1:5]
                # Equal ones are one object: a tuple for each kernel takes 4 % of the bytes of the file.
                times_around[key] = same.setdefault(near, near)
    return times_around


def outermost(ranges: Iterable[Range], skipped: str | tuple[str, ...] = ()) -> list[Range]:
    """Returns the ranges of a thread that lie in no other of it, in order; names that begin with `skipped`
    are left out.
    """
    outer: list[Range] = []
    reached = -float("inf")
    for nested in sorted(ranges):
        begin, minus_end, name, _ = nested
        if begin >= reached and not name.startswith(skipped):
            reached = -minus_end
            outer.append(nested)
    return outer


def launchers_of(started: Iterable[ThreadTime]) -> dict[object, int]:
    """Returns the threads that launched something, with their indices. started: when and by whom."""
    threads = dict.fromkeys(launch[1] for launch in started)
    return {thread: index for index, thread in enumerate(threads)}


def thread_words(launchers: Mapping[object, int]) -> list[str]:
    """Returns the words for each thread: its id, with that of its process where two have the same."""
    names = [str(thread[1]) if isinstance(thread, tuple) else str(thread) for thread in launchers]
    counts = Counter(names)
    return [
        f"{thread[0]}/{word}" if counts[word] > 1 and isinstance(thread, tuple) else word
        for word, thread in zip(names, launchers, strict=True)
    ]


def host_columns(
    threads: Threads, ranges: Threads, launchers: Mapping[object, int], ns: Times
) -> HostColumns:
    """Returns what the host did, without launches.

    threads: operations; ranges: annotations and modules; launchers: as `launchers_of` returns them. ns:
    converts times as written to ns. What is too late for any axis is left out.
    """
    columns = HostColumns()
    for thread, thread_index in launchers.items():
        some = sorted(threads.get(thread, []))
        reached, outer = -float("inf"), []
        for host_range in some:
            if host_range[0] >= reached:
                reached = -host_range[1]
                outer.append(host_range)
        _add(columns, outer, thread_index, ns)
    annotations = [
        host_range for some in ranges.values() for host_range in some if not host_range[2].startswith(MODULE)
    ]  # fmt: skip
    _add(columns, sorted(annotations), ANNOTATED, ns)
    columns.threads += thread_words(launchers)
    return columns


def _add(columns: HostColumns, ranges: list[Range], thread: int, ns: Times) -> None:
    """Adds what one thread did, in order."""
    if len(ranges) > _PART:
        for first in range(0, len(ranges), _PART):
            _add(columns, ranges[first : first + _PART], thread, ns)
        return
    starts, ends = [host_range[0] for host_range in ranges], [-host_range[1] for host_range in ranges]
    if ranges and not -MOST_US < min(min(starts), min(ends)) <= max(max(starts), max(ends)) < MOST_US:
        fitting = [
            host_range for host_range in ranges if all(-MOST_US < time < MOST_US for time in host_range[:2])
        ]
        _add(columns, fitting, thread, ns)
        return
    columns.name += [host_range[2] for host_range in ranges]
    start, end = ns(starts), ns(ends)
    columns.start.extend(start)
    columns.end.extend(map(max, start, end))
    columns.line.extend([host_range[3] for host_range in ranges])
    columns.thread.extend([thread] * len(ranges))


def with_launches(
    host: HostColumns,
    started: Mapping[int, ThreadTime],
    launches: Launches,
    correlation: array[int],
    launchers: Mapping[object, int],
    ns: Times,
) -> HostColumns:
    """Returns the host columns with the launches of the operations of one device. started: of `take_starts`;
    correlation: of each operation.
    """
    count = len(correlation)
    if not started:
        times = array("q", ns([0])) * count
        return replace(host, launch=times, launched=times, launcher=array("i", (NOT_LAUNCHED,)) * count)
    ends = launches.ends(correlation)
    launch, launched, launcher = array("q"), array("q"), array("i")
    for first in range(0, count, _PART):
        some = correlation[first : first + _PART]
        fitting = [
            (begin[0], end, launchers[begin[1]])
            if begin is not None and -MOST_US < begin[0] <= end < MOST_US
            else (0, 0, NOT_LAUNCHED)
            for begin, end in zip(map(started.get, some), map(ends.get, some, repeat(0)), strict=True)
        ]
        begins, overs, by = zip(*fitting, strict=True)
        launch.extend(ns(begins))
        launched.extend(ns(overs))
        launcher.extend(by)
    return replace(host, launch=launch, launched=launched, launcher=launcher)
