"""Which step each operation of a device belongs to, and when a device's step begins and ends.

A step is an annotation of the host (`ProfilerStep#12`). The host runs ahead: the kernels that it launches in
an annotation may run much later. So a step of a device has what was launched in its annotation; it begins
when the annotation does or, if that is later, when the device has finished what was launched before; it ends
with its last kernel, or with the annotation if that is later.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from simcore.kineto.recording import NO_STEP, ProfilerStep
from simcore.kineto.vocabulary import STEP
from simcore.measured.columns import OpColumns
from simcore.measured.vocabulary import CATEGORIES, COPY
from simcore.records import NamedTuple

_COPY = CATEGORIES.index(COPY)
_DIGITS = re.compile(r"\d{1,12}")
_NEVER, _ALWAYS = -(1 << 70), 1 << 70
# An annotation with so many others of its kind inside is a window of those.
_WINDOW_OF = 2


class StepMark(NamedTuple):
    """An annotation of a step."""

    step_number: int
    begin: float
    """When it starts, in the unit of launches."""
    over: float
    """When it ends, in that unit."""
    start: int
    """When it starts, ns."""
    end: int
    """When it ends, ns."""


class StepNames:
    """Which names of annotations are steps: the profiler's, or those that fit a regular expression."""

    def __init__(self, names: str | None) -> None:
        self.has_pattern = names is not None
        self._pattern = STEP if names is None else re.compile(names)

    def fit(self, name: str) -> bool:
        """Returns whether a name is that of a step."""
        return self._pattern.search(name) is not None

    def parse_number(self, name: str) -> int:
        """Returns the number in the name of a step: that of the expression's first group, else the last one
        in the name; -1 where there is none.
        """
        match = self._pattern.search(name)
        text = match[1] if match is not None and match.re.groups else name
        return int(digits[-1]) if (digits := _DIGITS.findall(text or "")) else -1

    def marks(self, candidates: Iterable[tuple[str, StepMark]], is_of_device: bool = False) -> list[StepMark]:
        """Returns the steps among annotations in order of time, each number once, none inside another.

        candidates: (name, annotation without its number). is_of_device: whether each stream has an annotation
        of its own. Steps without numbers, or with one twice, are counted from 0.
        """
        marks = [mark._replace(step_number=self.parse_number(name)) for name, mark in candidates]
        marks = _merge_marks(marks, is_of_device and not self.has_pattern)
        if not self.has_pattern:
            inside = _count_inside(marks)
            marks = [mark for mark, count in zip(marks, inside, strict=True) if count < _WINDOW_OF]
        selected: list[StepMark] = []
        for mark in marks:
            if not selected or mark.end > selected[-1].end:
                selected.append(mark)
        step_numbers = {mark.step_number for mark in selected}
        if -1 in step_numbers or len(step_numbers) < len(selected):
            selected = [mark._replace(step_number=index) for index, mark in enumerate(selected)]
        return selected


def _merge_marks(marks: list[StepMark], anywhere: bool) -> list[StepMark]:
    """Returns overlapping marks of one number as one, the outer of two that begin together first. anywhere:
    also those that do not overlap.
    """
    last: dict[int, int] = {}
    merged: list[StepMark] = []
    for mark in sorted(marks, key=lambda mark: (mark.begin, -mark.over)):
        at = last.get(mark.step_number) if mark.step_number >= 0 else None
        if at is not None and (anywhere or mark.begin < merged[at].over):
            earlier = merged[at]
            merged[at] = earlier._replace(over=max(earlier.over, mark.over), end=max(earlier.end, mark.end))
        else:
            last[mark.step_number] = len(merged)
            merged.append(mark)
    return merged


def _count_inside(marks: Sequence[StepMark]) -> list[int]:
    """Returns how many marks lie inside each, those inside of these not counted."""
    counts = [0] * len(marks)
    open_: list[int] = []
    for index, mark in enumerate(marks):
        while open_ and marks[open_[-1]].over < mark.over:
            open_.pop()
        if open_:
            counts[open_[-1]] += 1
        open_.append(index)
    return counts


def steps_by_time(marks: Sequence[StepMark], ops: OpColumns) -> tuple[array[int], tuple[ProfilerStep, ...]]:
    """Returns (the step of each operation, the steps) where operations are of the annotation in which they
    start.
    """
    step = array("q", (NO_STEP,)) * len(ops)
    ends, counts = [mark.end for mark in marks], [0] * len(marks)
    behind = [*(mark.start for mark in marks[1:]), _ALWAYS]
    for index, (mark, next_start) in enumerate(zip(marks, behind, strict=False)):
        # Operations are in order of start.
        first = bisect_left(ops.start, mark.start)
        last = bisect_left(ops.start, min(next_start, mark.end), first)
        counts[index] = max(last - first, 0)
        step[first:last] = array("q", (mark.step_number,)) * counts[index]
        ends[index] = max(mark.end, max(ops.end[first:last], default=mark.end))
    return step, tuple(
        ProfilerStep(mark.step_number, mark.start, end, count, mark.start)
        for mark, end, count in zip(marks, ends, counts, strict=True)
    )


def steps_of_device(
    marks: Sequence[StepMark], ops: OpColumns, launch: Sequence[float | None]
) -> tuple[array[int], tuple[ProfilerStep, ...]]:
    """Returns (the step of each operation of a device, the steps on it).

    ops: in order of start. launch: when each was launched, None where the file does not state it.
    """
    if not marks:
        return array("q", (NO_STEP,)) * len(ops), ()
    if not launch:
        return steps_by_time(marks, ops)
    device = _Device(marks, ops, launch)
    return device.steps() if device.is_launched else steps_by_time(marks, ops)


class _Device:
    """The steps of one device.

    kernels, copies: the operations of each step, behind all steps those of none. group: for copies and for
    kernels of no step the last step that the host had begun when it launched them. first: when each step's
    first kernel starts, ascending; for a step without one that of the next.
    """

    def __init__(self, marks: Sequence[StepMark], ops: OpColumns, launch: Sequence[float | None]) -> None:
        self.marks, self.ops = marks, ops
        self.group: dict[int, int] = {}
        self.kernels: list[list[int]] = [[] for _ in (*marks, None)]
        self.copies: list[list[int]] = [[] for _ in (*marks, None)]
        left = self._group(launch)
        self.is_launched = any(self.kernels[:-1]) or any(self.copies[:-1])
        self.first = self._firsts()
        self._assign_unlaunched(left)
        self.last = list(map(self._last, self.kernels[:-1]))

    def _group(self, launch: Sequence[float | None]) -> list[int]:
        """Puts operations into the steps that launched them; returns those without a stated launch."""
        begins = [*(mark.begin for mark in self.marks), float("inf")]
        left, none = [], self.kernels[-1].append
        index, since, until, over, add = -1, 0.0, 0.0, 0.0, none
        for op, (time, category) in enumerate(zip(launch, self.ops.stated_category, strict=True)):
            if time is None:
                left.append(op)
                continue
            # Most are launched in the step of the one before.
            if not since <= time < until:
                index = bisect_right(begins, time) - 1
                since = begins[index] if index >= 0 else -float("inf")
                until = begins[index + 1]
                over = self.marks[index].over if index >= 0 else since
                add = self.kernels[index].append
            if category == _COPY:
                self.copies[index if time < over else -1].append(op)
                self.group[op] = index
            elif time < over:
                add(op)
            else:
                none(op)
                self.group[op] = index
        return left

    def _firsts(self) -> list[int]:
        start = self.ops.start
        first = [
            # Copies run ahead of what needs them: they count only where a step has nothing else.
            start[some[0]] if (some := kernels or copies) else _ALWAYS
            for kernels, copies in zip(self.kernels[:-1], self.copies, strict=False)
        ]
        reached = _NEVER
        for index, time in enumerate(first):
            if time != _ALWAYS:
                reached = first[index] = max(reached, time)
        later = _ALWAYS
        for index in range(len(first) - 1, -1, -1):
            later = first[index] = later if first[index] == _ALWAYS else first[index]
        return first

    def _assign_unlaunched(self, left: Sequence[int]) -> None:
        """Puts operations without a stated launch into the step that the device is at: before a step's first
        kernel they belong to the step before.
        """
        over = self._ends() if left else []
        for op in left:
            start = self.ops.start[op]
            self.group[op] = index = bisect_right(self.first, start) - 1
            column = self.copies if self.ops.stated_category[op] == _COPY else self.kernels
            column[index if index >= 0 and start < over[index] else -1].append(op)

    def _ends(self) -> list[int]:
        """Returns when each step ends."""
        return [max(mark.end, end) for mark, end in zip(self.marks, self._own_ends(), strict=True)]

    def _own_ends(self) -> list[int]:
        """Returns when what each step launched has ended: of copies beside kernels those that end before the
        next step's first kernel, as others delay nothing.
        """
        end, ends = self.ops.end, []
        behind = [*self.first[1:], _ALWAYS]
        for kernels, copies, next_ in zip(self.kernels[:-1], self.copies[:-1], behind, strict=True):
            copied = [op for op in copies if not kernels or end[op] <= next_]
            ends.append(self._last([*kernels, *copied]))
        return ends

    def _last(self, some: Sequence[int]) -> int:
        return max(map(self.ops.end.__getitem__, some), default=_NEVER)

    def _free_before(self) -> list[int]:
        """Returns when the device has finished what was launched before each step."""
        end, free_at = self.ops.end, [_NEVER, *self.last]
        for op in self.kernels[-1]:
            at = self.group[op] + 1
            free_at[at] = max(free_at[at], end[op])
        first = [*self.first, _ALWAYS]
        for op in (op for copies in self.copies for op in copies):
            at, over = self.group[op] + 1, end[op]
            if over > first[at]:
                # It overlaps kernels of a later step.
                at = bisect_left(first, over, at)
            if over > free_at[at]:
                free_at[at] = over
        return list(accumulate(free_at, max))

    def steps(self) -> tuple[array[int], tuple[ProfilerStep, ...]]:
        """Returns the step of each operation, and the steps."""
        step, steps = array("q", (NO_STEP,)) * len(self.ops), []
        for index, (mark, free_at, own_end) in enumerate(
            zip(self.marks, self._free_before(), self._own_ends(), strict=False)
        ):
            own = [*self.kernels[index], *self.copies[index]]
            for op in own:
                step[op] = mark.step_number
            start = mark.start
            if own:
                # What outlasts the whole step on another stream does not say when it begins.
                first = min(map(self.ops.start.__getitem__, self.kernels[index] or self.copies[index]))
                start = max(start, free_at if free_at < own_end else first)
            end = max(mark.end, own_end)
            steps.append(ProfilerStep(mark.step_number, start, end, len(own), mark.start))
        return step, tuple(steps)
