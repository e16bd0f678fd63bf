"""Events of unknown categories: whether a device ran them, and how many are not displayed.

Other vendors name the operations of their devices as they like (`aiu`, `hpu_op`). They have in common with
those of CUDA that they are on a device and a stream, or have the correlation of a launch, and that they are
on no thread of the host. So it is decided for each line of events, (category, pid, tid).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Container

from simcore.kineto.events import DeviceEvents, DeviceRows, Event
from simcore.kineto.values import whole
from simcore.records import Struct, field
from simcore.units import plural
from simcore.workload.formats.cell import quoted

# At most so many categories are named one by one.
_MOST_LISTED = 4

Line = tuple[str | None, object, object]


class UnknownEvents(Struct):
    """Events of unknown categories, and those of them that a device may have run."""

    counts: Counter[str | None] = field(default_factory=Counter)
    """Events by category."""
    lines: dict[Line, int] = field(default_factory=dict)
    """(category, pid, tid) -> its index."""
    rows: DeviceRows = field(default_factory=DeviceRows)
    """Those that a device may have run."""
    line: array[int] = field(default_factory=lambda: array("i"))
    """By row the index of its line."""
    batch: DeviceEvents = field(default_factory=DeviceEvents)
    """The events of the current batch."""
    device_counts: Counter[int] = field(default_factory=Counter)
    """By line how many name a device or stream."""
    stream_counts: Counter[int] = field(default_factory=Counter)
    """By line how many have a stream that is their thread."""

    def take(self, event_index: int, event: Event) -> None:
        """Takes an event into the current batch, if its arguments may be those of a device's operation."""
        self.counts[event.cat] += 1
        if event.args:
            self.batch.events.append(event)
            self.batch.indices.append(event_index)

    def keep(self, batch: DeviceEvents) -> DeviceEvents:
        """Returns those events of a batch that a device may have run, which the next rows are made of."""
        possible = batch.select(
            args.stream is not None or args.device is not None or args.correlation is not None
            for args in batch.args
        )
        for event, args in zip(possible.events, possible.args, strict=True):
            line = self.lines.setdefault((event.cat, event.pid, event.tid), len(self.lines))
            self.line.append(line)
            stream = whole(args.stream)
            self.device_counts[line] += stream is not None or whole(args.device) is not None
            self.stream_counts[line] += stream is not None and stream == whole(event.tid)
        return possible

    def of_devices(
        self,
        threads: Container[object],
        processes: Container[object],
        launched: Container[int],
        used: Container[tuple[int, int]],
    ) -> list[int]:
        """Returns the rows that devices ran. threads, processes: (pid, tid), pid of the host; launched: the
        correlations of its launches; used: (device, stream) of known operations, on which unknown ones only
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
            device_count = (
                self.stream_counts[line]
                if pid in processes
                else max(self.device_counts[line], by_launch[line])
            )
            if 2 * device_count > of_line[line]:
                device.add(line)
        device_streams = list(zip(rows.device, rows.stream, strict=True))
        # On a stream with launched operations those without a launch only annotate; a copy needs no launch.
        launched_streams = {
            device_streams[row] for row, line in enumerate(self.line) if line in device & launched_lines
        }
        return [
            row for row, line in enumerate(self.line)
            if line in device and device_streams[row] not in used
            and (line in launched_lines or rows.is_copy[row] or device_streams[row] not in launched_streams)
        ]  # fmt: skip

    def categories_of(self, some: list[int]) -> Counter[str | None]:
        """Returns how many of these rows each category has."""
        names = [category for category, _, _ in self.lines]
        return Counter(names[self.line[row]] for row in some)


def category_counts(counts: Counter[str | None], statement: str) -> str:
    """Returns `5 events of category 'x', 1 event without a category are not shown`; "" for none.

    Those that have most come first, few by name. statement: the end of the sentence.
    """
    most = [(category, count) for category, count in counts.most_common() if count > 0]
    words = [
        f"{plural(count, 'event')} {_category_words(category)}" for category, count in most[:_MOST_LISTED]
    ]
    if len(most) > _MOST_LISTED:
        left = sum(count for _, count in most[_MOST_LISTED:])
        words.append(f"{plural(left, 'event')} of {len(most) - _MOST_LISTED} further")
    verb = "is" if sum(count for _, count in most) == 1 else "are"
    return f"{', '.join(words)} {verb} {statement}" if words else ""


def _category_words(category: str | None) -> str:
    return f"of category {quoted(category)}" if category else "without a category"
