"""Events of categories that are no profiler's known ones: whether a device ran them, and how many are not
shown.

Other vendors name the operations of their devices as they like (`aiu`, `hpu_op`). They have in common with
those of CUDA that they stand on a device and a stream, or have the correlation of a launch, and that no
thread of the host does. So it is told of each line of events, (category, pid, tid).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Container

from simcore.kineto.events import DeviceRow, DeviceRows, Event
from simcore.kineto.values import whole
from simcore.records import Struct, field
from simcore.units import plural
from simcore.workload.formats.cell import quoted

# So many categories are named one by one.
_NAMED = 4

Line = tuple[str | None, object, object]


class Unknown(Struct):
    """seen: events by category. lines: (category, pid, tid) -> its number. rows: those that a device may have
    run, and line: the number of the line of each; taken: those of the batch that is read. places: by line how
    many name a device or stream, and how many a stream that is their thread.
    """

    seen: Counter[str | None] = field(default_factory=Counter)
    lines: dict[Line, int] = field(default_factory=dict)
    rows: DeviceRows = field(default_factory=DeviceRows)
    line: array[int] = field(default_factory=lambda: array("i"))
    taken: list[DeviceRow] = field(default_factory=list)
    placed: Counter[int] = field(default_factory=Counter)
    streamed: Counter[int] = field(default_factory=Counter)

    def keep(self, event: Event) -> None:
        """Keeps the last row of `taken`, made of an event, if a device may have run it."""
        args = self.taken[-1].args
        if args.stream is None and args.device is None and args.correlation is None:
            self.taken.pop()
            return
        line = self.lines.setdefault((event.cat, event.pid, event.tid), len(self.lines))
        self.line.append(line)
        stream = whole(args.stream)
        self.placed[line] += stream is not None or whole(args.device) is not None
        self.streamed[line] += stream is not None and stream == whole(event.tid)

    def of_devices(
        self,
        threads: Container[object],
        processes: Container[object],
        launched: Container[int],
        used: Container[tuple[int, int]],
    ) -> list[int]:
        """The rows that devices ran. threads, processes: (pid, tid) and pid of the host; launched: the
        correlations of its launches; used: (device, stream) of known operations, beside which others only
        annotate.
        """  # fmt: skip
        rows, of_line = self.rows, Counter(self.line)
        by_launch = Counter(
            line for line, correlation in zip(self.line, rows.correlation, strict=True)
            if correlation in launched
        )  # fmt: skip
        launched_lines = {line for line, count in by_launch.items() if 2 * count > of_line[line]}
        device = set()
        for (_, pid, tid), line in self.lines.items():
            if (pid, tid) in threads:
                continue
            told = self.streamed[line] if pid in processes else max(self.placed[line], by_launch[line])
            if 2 * told > of_line[line]:
                device.add(line)
        places = list(zip(rows.device, rows.stream, strict=True))
        # Beside what was launched on a stream, what was not lies over it; a copy needs no launch.
        taken = {places[row] for row, line in enumerate(self.line) if line in device & launched_lines}
        return [
            row for row, line in enumerate(self.line)
            if line in device and places[row] not in used
            and (line in launched_lines or rows.is_copy[row] or places[row] not in taken)
        ]  # fmt: skip

    def categories_of(self, some: list[int]) -> Counter[str | None]:
        """How many of these rows each category has."""
        names = [category for category, _, _ in self.lines]
        return Counter(names[self.line[row]] for row in some)


def category_counts(counts: Counter[str | None], said: str) -> str:
    """`5 events of category 'x', 1 event without a category are not shown`, with what is said of them: those
    that have most first, few by name; "" of none.
    """
    most = [(category, count) for category, count in counts.most_common() if count > 0]
    words = [f"{plural(count, 'event')} {_named(category)}" for category, count in most[:_NAMED]]
    if len(most) > _NAMED:
        left = sum(count for _, count in most[_NAMED:])
        words.append(f"{plural(left, 'event')} of {len(most) - _NAMED} further")
    verb = "is" if sum(count for _, count in most) == 1 else "are"
    return f"{', '.join(words)} {verb} {said}" if words else ""


def _named(category: str | None) -> str:
    return f"of category {quoted(category)}" if category else "without a category"
