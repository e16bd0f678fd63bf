"""What the host did at a time on a thread: the innermost operation, phase, collective and layer around.

A range is anything that lasts on a thread of the host: an operation, an annotation, the call of a module.
What a kernel belongs to is what lies around its launch. The backward pass has no modules: an operation of it
has the layer of the forward operation that its `fwdbwd` flow comes from.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from simcore.kineto.vocabulary import COLLECTIVE_ANNOTATION, MODULE, layer_of, module_class, phase_of

# (start, -end, name, place in the file), times in the unit of the file: in order an outer one comes first.
Range = tuple[float, float, str, int]
Threads = dict[object, list[Range]]
# Operation, phase, collective, layer: each None where nothing says it.
Around = tuple[str | None, str | None, str | None, str | None]
NOTHING: Around = (None, None, None, None)
# (phase, collective, layer, whether a layer inside of it has no say) of a name.
_Said = tuple[str | None, str | None, str | None, bool]


class Launches:
    """What launched something: columns. time: as written. thread: its number in `threads`."""

    def __init__(self) -> None:
        self.correlation, self.time, self.thread = array("q"), array("d"), array("i")
        self.threads: dict[object, int] = {}

    def of(self, wanted: set[int]) -> dict[int, tuple[float, object]]:
        """Correlation -> (time, thread) of those that are wanted."""
        threads = list(self.threads)
        return {
            correlation: (time, threads[thread])
            for correlation, time, thread in zip(self.correlation, self.time, self.thread, strict=True)
            if correlation in wanted
        }


class Flows:
    """From operations of the forward pass to those of the backward pass. forward: number -> (time, thread);
    backward: (thread, time) -> number.
    """

    def __init__(self) -> None:
        self.forward: dict[Any, tuple[float, object]] = {}
        self.backward: dict[tuple[object, float], Any] = {}


def around(
    threads: Threads, launches: Mapping[int, tuple[float, object]], flows: Flows | None = None
) -> dict[int, Around]:
    """Of each launch that has a range around it, by correlation. Sorts the ranges."""
    words = _Words(threads)
    layers: dict[tuple[object, float], str] = {}
    if flows is not None and words.has_layers:
        forward = _swept(threads, flows.forward, words, {})
        for place, number in flows.backward.items():
            layer = forward.get(number, NOTHING)[3]
            if layer is not None:
                layers[place] = layer
    return _swept(threads, launches, words, layers)


class _Words:
    """What names say, each looked at once."""

    def __init__(self, threads: Threads) -> None:
        names = {name for ranges in threads.values() for _, _, name, _ in ranges}
        modules = [name for name in names if name.startswith(MODULE)]
        classes = Counter(map(module_class, modules))
        self.said: dict[str, _Said] = {}
        for name in names:
            if name.startswith(MODULE):
                # A module is called in the forward pass, and in the backward pass to compute it again.
                self.said[name] = ("forward", None, name[len(MODULE) :], classes[module_class(name)] > 1)
            else:
                call, layer = COLLECTIVE_ANNOTATION.match(name), layer_of(name)
                self.said[name] = (phase_of(name), call[1] if call else None, layer, layer is not None)
        self.has_layers = any(layer is not None for _, _, layer, _ in self.said.values())


def _swept(
    threads: Threads,
    points: Mapping[Any, tuple[float, object]],
    words: _Words,
    layers: Mapping[tuple[object, float], str],
) -> dict[Any, Around]:
    by_thread: dict[object, list[tuple[float, Any]]] = {}
    for key, (time, thread) in points.items():
        by_thread.setdefault(thread, []).append((time, key))
    found: dict[Any, Around] = {}
    said = words.said
    for thread, times in by_thread.items():
        ranges = threads.get(thread, [])
        ranges.sort()
        times.sort(key=lambda one: one[0])
        # (end, operation, phase, collective, layer, whether that stays) of what is open, the innermost last.
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
                phase, call, layer, stays = said[name]
                operation: str | None = name
                is_module = name.startswith(MODULE)
                if layers and layer is None:
                    layer = layers.get((thread, begin))
                    stays = layer is not None
                if open_:
                    _, outer, outer_phase, outer_call, outer_layer, outer_stays = open_[-1]
                    # An annotation inside may say another phase; a module says none that is not said yet.
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
                found[key] = open_[-1][1:5]
    return found


def outermost(ranges: Iterable[Range], skipped: str) -> list[Range]:
    """The ranges of a thread that lie in no other of it, in order; those whose name begins with `skipped`
    are none.
    """
    found: list[Range] = []
    reached = -float("inf")
    for one in sorted(ranges):
        if one[0] >= reached and not one[2].startswith(skipped):
            reached = -one[1]
            found.append(one)
    return found
