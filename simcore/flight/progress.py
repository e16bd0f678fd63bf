"""How far each rank has come in each group: the numbers of what it began and ended."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

from simcore.flight.record import UNSTATED, Entries, FlightRecord, GroupStatus, RankDump
from simcore.records import NamedTuple, Struct

_MESSAGE = re.compile(r"\b(send|recv)\w*\s+(\d{1,7})\s*(?:->|<-)\s*(\d{1,7})")
_PREFIX = re.compile(r"^[a-z]+:")


class Message(NamedTuple):
    """What a send or a receive states. own, peer: places in the list of the group's ranks."""

    sends: bool
    own: int
    peer: int


def message_of(operation: str) -> Message | None:
    """Returns what `nccl:send 0->3` or `nccl:recv 3<-0` states; None of anything else."""
    match = _MESSAGE.search(operation)
    return None if match is None else Message(match[1] == "send", int(match[2]), int(match[3]))


def short_operation(operation: str) -> str:
    """Returns an operation without the backend: `all_reduce`, `send 0->3`; raw text of the file."""
    return _PREFIX.sub("", operation)


def collective_of(operation: str) -> str:
    """Returns the collective that an operation is, whichever call of PyTorch made it: `all_gather` for
    `nccl:_all_gather_base`.
    """
    name = short_operation(operation).strip("_")
    # The last ending of a name first: `all_gather_into_tensor_coalesced`.
    for ending in ("_coalesced", "_base", "_oop", "_into_tensor", "_tensor"):
        name = name.removesuffix(ending)
    two_words = {"allreduce": "all_reduce", "alltoall": "all_to_all", "allgather": "all_gather"}
    return two_words.get(name, name)


class Progress(Struct, dict=True):
    """What a rank has done in a group."""

    dump: RankDump
    group: int
    rows: array[int]
    """Its entries of the group, in their order."""
    status: GroupStatus
    has_messages: bool
    """Whether any rank sends or receives in the group: then the numbers of its status may be of messages."""

    @property
    def entries(self) -> Entries:
        return self.dump.entries

    @cached_property
    def collective_rows(self) -> Sequence[int]:
        """The entries that are collectives."""
        if not self.has_messages:
            return self.rows
        is_message = self.entries.is_message
        return [row for row in self.rows if not is_message[row]]

    @cached_property
    def sequences(self) -> array[int]:
        """The numbers of its collectives, ascending as they come."""
        return array("q", map(self.entries.collective.__getitem__, self.collective_rows))

    @cached_property
    def open_rows(self) -> list[int]:
        """Its collectives that have not ended."""
        over = self.dump.over
        if 0 not in over:
            return []
        return [row for row in self.collective_rows if not over[row]]

    @cached_property
    def enqueued(self) -> int:
        """The last number that it began, -1 where that is not known."""
        of_entries = max(self.sequences, default=UNSTATED)
        if not self.has_messages:
            return max(of_entries, self.status.enqueued)
        # Messages have the number of the last collective before them; without one the status alone tells.
        return max(map(self.entries.collective.__getitem__, self.rows), default=self.status.enqueued)

    @cached_property
    def completed(self) -> int:
        """The last number that it ended, -1 where that is not known."""
        over, collective = self.dump.over, self.entries.collective
        # From the last one back: most have ended.
        rows = reversed(self.collective_rows)
        of_entries = next((collective[row] for row in rows if over[row]), UNSTATED)
        first_open = min(map(collective.__getitem__, self.open_rows), default=None)
        stated_last = self.status.completed
        # gloo states what it has begun.
        if self.has_messages or (first_open is not None and stated_last >= first_open):
            return of_entries
        return max(of_entries, stated_last)

    @property
    def started(self) -> int:
        """The last number that began to run, -1 where that is not known."""
        collective, entries = self.entries.collective, self.entries
        began = (collective[row] for row in self.collective_rows if entries.state[row] in (1, 2))
        of_entries = max(began, default=UNSTATED)
        return of_entries if self.has_messages else max(of_entries, self.status.started)

    def find(self, sequence: int) -> int | None:
        """Returns the entry of a collective by its number, None where the ring does not have it."""
        sequences = self.sequences
        at = bisect_left(sequences, sequence)
        if at < len(sequences) and sequences[at] == sequence:
            return self.collective_rows[at]
        if self._is_ascending:
            return None
        rows = zip(self.collective_rows, sequences, strict=True)
        return next((row for row, has in rows if has == sequence), None)

    @cached_property
    def _is_ascending(self) -> bool:
        sequences = self.sequences
        return all(map(int.__lt__, sequences, sequences[1:]))


def progress_of(record: FlightRecord) -> list[dict[int, Progress]]:
    """Returns by group the progress of each rank that has a dump."""
    with_messages = {
        group
        for dump in record.dumps
        if 1 in dump.entries.is_message
        for group, rows in dump.rows_of_groups.items()
        if any(map(dump.entries.is_message.__getitem__, rows))
    }
    by_group: list[dict[int, Progress]] = [{} for _ in record.groups]
    nothing = array("I")
    for dump in record.dumps:
        rows_of = dump.rows_of_groups
        for group in {*dump.statuses, *rows_of}:
            status = dump.statuses.get(group, GroupStatus())
            by_group[group][dump.rank] = Progress(
                dump, group, rows_of.get(group, nothing), status, group in with_messages
            )
    return by_group
