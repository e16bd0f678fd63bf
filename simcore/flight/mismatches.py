"""What members of a group do not have in common: the collective, its sizes, its dtype, its state."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress, count
from operator import itemgetter, ne
from typing import Any

from simcore.flight.progress import Progress, collective_of, short_operation
from simcore.flight.record import FlightRecord, count_elements, size_text
from simcore.records import NamedTuple
from simcore.unpickling.stacks import frames_of

# Collectives of which every member states the same elements.
_EQUAL = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
_SUMMED = "all_to_all"
_MOST = 200
# Frames of PyTorch itself: what called it says more.
_INNER = ("torch/distributed", "torch/utils", "torch/nn", "torch/autograd", "torch/_", "torch/fx")


class Side(NamedTuple):
    """What some ranks have of a collective."""

    ranks: tuple[int, ...]
    words: str
    """`all_reduce`, `4096x5120 -> 8192x5120`, `BFloat16`, `completed`; raw text of the file."""
    rank: int
    """One of them."""
    row: int
    """The entry of that one."""
    frame: str
    """The place in Python, `train.py:42 step`, raw text; "" where none was recorded."""


class Mismatch(NamedTuple):
    """A collective whose members do not agree."""

    kind: str
    """`collective`, `size`, `dtype`, `state`, `order`, `send alone` or `receive alone`."""
    group: int
    """Index into `FlightRecord.groups`."""
    sequence: int
    sides: tuple[Side, ...]
    peer: int | None = None
    """Of a message alone the rank that has no other side."""
    second_group: int | None = None
    """Of an order the other group."""
    odd: tuple[int, ...] = ()
    """Ranks that do not do what the others do, () where that is not known."""


def frame_of(record: FlightRecord, rank: int, row: int) -> str:
    """Returns the place in Python that an entry comes from: the innermost frame that is not PyTorch's."""
    frames = frames_of(record.names.stacks[record.by_rank[rank].entries.stack[row]])
    outer = [frame for frame in frames if not any(inner in frame[1] for inner in _INNER)] or frames
    if not outer:
        return ""
    name, file, line = outer[0]
    return f"{file}:{line} {name}"


def side_of(
    record: FlightRecord, rank: int, row: int, ranks: Iterable[int], words: str | None = None
) -> Side:
    """Returns what some ranks have of a collective, one of them with its entry."""
    operation = record.names.operations[record.by_rank[rank].entries.operation[row]]
    return Side(
        tuple(sorted(ranks)), short_operation(operation) if words is None else words, rank, row,
        frame_of(record, rank, row),
    )  # fmt: skip


class _Columns:
    """By entry what must agree, as numbers that are equal where it does."""

    def __init__(self, record: FlightRecord) -> None:
        self.record = record
        names = record.names
        kinds = [collective_of(name) for name in names.operations]
        index_of: dict[str, int] = {}
        self.kind_of = array("q", [index_of.setdefault(kind, len(index_of)) for kind in kinds])
        self.is_equal = [kind in _EQUAL for kind in kinds]
        self.is_summed = [kind == _SUMMED for kind in kinds]
        self.elements = [count_elements(sizes) for sizes in names.sizes]

    def raw(self, progress: Progress) -> tuple[Sequence[Any], ...]:
        """Returns the columns of a rank's collectives as the record has them."""
        entries = progress.entries
        return tuple(
            _pick(progress, column)
            for column in (entries.operation, entries.input_size, entries.output_size, entries.input_dtype,
                           entries.output_dtype, progress.dump.over)
        )  # fmt: skip

    def is_same(self, mine: tuple[Sequence[Any], ...], theirs: tuple[Sequence[Any], ...]) -> bool:
        """Returns whether two ranks have equal columns, of sizes only those that must be equal."""
        if (mine[0], *mine[3:]) != (theirs[0], *theirs[3:]):
            return False
        return mine[1:3] == theirs[1:3] or not any(self.is_equal[operation] for operation in {*mine[0]})

    def of(self, progress: Progress) -> dict[str, Any]:
        """Returns the columns of a rank's collectives."""
        operations, ins, outs, in_types, out_types, over = self.raw(progress)
        elements = self.elements
        return {
            "collective": list(map(self.kind_of.__getitem__, operations)),
            "size": [
                (elements[size], elements[out]) if self.is_equal[operation] else None
                for operation, size, out in zip(operations, ins, outs, strict=True)
            ],
            "dtype": list(zip(in_types, out_types, strict=True)),
            "state": over,
        }


def _pick(progress: Progress, column: Sequence[Any]) -> Sequence[Any]:
    """Returns the values of a rank's collectives."""
    rows = progress.collective_rows
    return itemgetter(*rows)(column) if len(rows) > 1 else tuple(column[row] for row in rows)


_KINDS = ("collective", "size", "dtype", "state")


def find_mismatches(record: FlightRecord, progress: Sequence[dict[int, Progress]]) -> list[Mismatch]:
    """Returns what does not match, the first number of each group and kind first; at most some hundred."""
    columns = _Columns(record)
    results: list[Mismatch] = []
    for group, of_group in enumerate(progress):
        members = [of for of in of_group.values() if of.sequences]
        if len(members) > 1:
            results += _in_group(record, group, members, columns)
        if len(results) > _MOST:
            break
    return [find_odd(record, progress, mismatch) for mismatch in results[:_MOST]]


def _in_group(
    record: FlightRecord, group: int, members: list[Progress], columns: _Columns
) -> Iterator[Mismatch]:
    """Yields for each number of a group the first thing that does not match."""
    first = members[0]
    raw, reference_numbers = columns.raw(first), first.sequences
    reference: dict[str, Any] = {}
    differing: dict[int, str] = {}
    for member in members[1:]:
        sequences = member.sequences
        # Most members have all the same, but for the parts of an all-to-all.
        if sequences == reference_numbers and columns.is_same(columns.raw(member), raw):
            continue
        reference, mine = reference or columns.of(first), columns.of(member)
        begin = max(sequences[0], reference_numbers[0])
        end = min(sequences[-1], reference_numbers[-1])
        if end < begin:
            continue
        here, there = _window(sequences, begin, end), _window(reference_numbers, begin, end)
        if sequences[here] != reference_numbers[there]:
            differing.update(_apart(sequences, mine, reference_numbers, reference))
            continue
        for kind in reversed(_KINDS):
            a, b = mine[kind][here], reference[kind][there]
            if a != b:
                differing.update((sequences[here][at], kind) for at in compress(count(), map(ne, a, b)))
    for sequence in sorted(differing):
        mismatch = _mismatch(record, group, sequence, differing[sequence], members, columns)
        if mismatch is not None:
            yield mismatch
    yield from _sums(record, group, members, columns)


def find_odd(record: FlightRecord, progress: Sequence[dict[int, Progress]], mismatch: Mismatch) -> Mismatch:
    """Returns a mismatch with the ranks that are odd: fewer than the others, or unlike the members of groups
    with the same description, which do the same in most programs.
    """
    sides = sorted(mismatch.sides, key=lambda side: len(side.ranks))
    if mismatch.kind not in ("collective", "size", "dtype") or len(sides) != 2:
        return mismatch
    if len(sides[0].ranks) < len(sides[1].ranks):
        return mismatch._replace(odd=sides[0].ranks)
    votes = [0, 0]
    for group, of_group in enumerate(progress):
        if record.groups[group].description != record.groups[mismatch.group].description:
            continue
        for of in of_group.values():
            row = None if group == mismatch.group else of.find(mismatch.sequence)
            if row is not None:
                for at, side in enumerate(sides):
                    votes[at] += _is_equal(record, of.dump.rank, row, side)
    if votes[0] == votes[1]:
        return mismatch
    return mismatch._replace(odd=sides[votes[0] > votes[1]].ranks)


def _is_equal(record: FlightRecord, rank: int, row: int, side: Side) -> bool:
    """Returns whether an entry is what a side has."""
    mine, theirs = record.by_rank[rank].entries, record.by_rank[side.rank].entries
    return all(
        getattr(mine, name)[row] == getattr(theirs, name)[side.row]
        for name in ("operation", "input_size", "output_size", "input_dtype", "output_dtype")
    )


def find_odd_order(
    record: FlightRecord, progress: Sequence[dict[int, Progress]], mismatch: Mismatch
) -> Mismatch:
    """Returns an order with the rank that begins its two groups in another order than most ranks do."""
    first, second = mismatch.sides
    ends = [
        (record.groups[record.by_rank[side.rank].entries.group[side.row]].description,
         record.by_rank[side.rank].entries.collective[side.row])
        for side in mismatch.sides
    ]  # fmt: skip
    rows: list[dict[int, int]] = [{}, {}]
    for group, of_group in enumerate(progress):
        for at, (description, sequence) in enumerate(ends):
            if record.groups[group].description == description:
                for rank, of in of_group.items():
                    row = of.find(sequence)
                    if row is not None:
                        rows[at][rank] = row
    others = (rows[0].keys() & rows[1].keys()) - {first.rank, second.rank}
    votes = sum(1 if rows[0][rank] < rows[1][rank] else -1 for rank in others)
    if not votes:
        return mismatch
    # The first side has begun the first group, and not yet the second.
    return mismatch._replace(odd=(second.rank if votes > 0 else first.rank,))


def _window(sequences: array[int], begin: int, end: int) -> slice:
    from bisect import bisect_left, bisect_right

    return slice(bisect_left(sequences, begin), bisect_right(sequences, end))


def _apart(
    sequences: array[int], mine: dict[str, Any], others: array[int], theirs: dict[str, Any]
) -> Iterator[tuple[int, str]]:
    """Yields (number, kind) of what differs on two ranks whose rings do not have the same numbers."""
    at_of = {sequence: at for at, sequence in enumerate(others)}
    for at, sequence in enumerate(sequences):
        there = at_of.get(sequence)
        if there is not None:
            for kind in _KINDS:
                if mine[kind][at] != theirs[kind][there]:
                    yield sequence, kind
                    break


def _mismatch(
    record: FlightRecord, group: int, sequence: int, kind: str, members: list[Progress], columns: _Columns
) -> Mismatch | None:
    names = record.names
    sides: dict[object, tuple[str, list[int], int]] = {}
    for member in members:
        row = member.find(sequence)
        if row is None:
            continue
        entries = member.entries
        operation = names.operations[entries.operation[row]]
        if kind == "collective":
            key, words = collective_of(operation), short_operation(operation)
        elif kind == "size":
            ends = entries.input_size[row], entries.output_size[row]
            key = [columns.elements[end] for end in ends]  # type: ignore[assignment]
            key = str(key)
            words = f"{short_operation(operation)} {' -> '.join(size_text(names.sizes[end]) for end in ends)}"
        elif kind == "dtype":
            types = [names.dtypes[entries.input_dtype[row]], names.dtypes[entries.output_dtype[row]]]
            key = words = " -> ".join(dict.fromkeys(types))
        else:
            key = words = "completed" if member.dump.over[row] else "not completed"
        sides.setdefault(key, (words, [], row))[1].append(member.dump.rank)
    if len(sides) < 2:
        return None
    return Mismatch(
        kind, group, sequence,
        tuple(side_of(record, ranks[0], row, ranks, words) for words, ranks, row in sides.values()),
    )  # fmt: skip


def _sums(record: FlightRecord, group: int, members: list[Progress], columns: _Columns) -> Iterator[Mismatch]:
    """Yields all-to-alls of which more goes in than comes out, on all ranks together."""
    if len(members) < len(record.groups[group].ranks) or not any(columns.is_summed):
        return
    if not any(map(columns.is_summed.__getitem__, _pick(members[0], members[0].entries.operation))):
        return
    sums: dict[int, list[int]] = {}
    for member in members:
        entries = member.entries
        sizes = zip(
            member.sequences,
            map(columns.is_summed.__getitem__, _pick(member, entries.operation)),
            map(columns.elements.__getitem__, _pick(member, entries.input_size)),
            map(columns.elements.__getitem__, _pick(member, entries.output_size)),
            strict=True,
        )
        for sequence, is_summed, goes_in, comes_out in sizes:
            if is_summed:
                total = sums.setdefault(sequence, [0, 0])
                total[0] += goes_in - comes_out
                total[1] += 1
    for sequence in sorted(sums):
        surplus, ranks = sums[sequence]
        if ranks == len(members) and surplus:
            first = members[0]
            row_of_first = first.find(sequence)
            assert row_of_first is not None
            more = "in than come out" if surplus > 0 else "out than go in"
            words = f"{abs(surplus)} elements more {'go' if surplus > 0 else 'come'} {more}"
            everyone = chain.from_iterable((member.dump.rank,) for member in members)
            side = side_of(record, first.dump.rank, row_of_first, everyone, words)
            yield Mismatch("size", group, sequence, (side,))
