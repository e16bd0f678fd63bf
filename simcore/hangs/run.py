"""Dumps of a job with the interface of every run: its verdict, its timeline, what each figure needs."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from simcore.diagnostics import Diagnostic
from simcore.flight.record import STATE_WORDS, FlightRecord
from simcore.flight.verdict import Verdict, find_verdict
from simcore.hangs.timeline import Timeline, hung_trace
from simcore.parameters import Input, RunInput
from simcore.trace.contexts import NoModel
from simcore.trace.spans import Trace
from simcore.trace.without_step import RunWithoutStep

NOT_COME = "not come"


class HangInput(RunInput, frozen=True, dict=True):
    """Flight recorder dumps; they take no parameters."""

    opened: FlightRecord

    of: ClassVar[Input] = "dumps"
    activity: ClassVar[str] = "reading"


class HangAnalysis(RunWithoutStep):
    """The dumps of a job, and all that is found in them, each figure once."""

    model = NoModel("")

    def __init__(self, setup: HangInput) -> None:
        self._setup = setup
        self.record: FlightRecord = setup.opened

    @property
    def setup(self) -> HangInput:
        return self._setup

    @cached_property
    def verdict(self) -> Verdict:
        """Who waits for whom, and who is to blame."""
        return find_verdict(self.record)

    @cached_property
    def timeline(self) -> Timeline:
        """When each entry began and ended."""
        return Timeline(self.verdict)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.record.diagnostics

    @cached_property
    def trace(self) -> Trace:
        """The entries of each rank."""
        return hung_trace(self.timeline)

    @cached_property
    def ids(self) -> list[int]:
        return [dump.rank for dump in self.record.dumps]

    # -- of one collective ---------------------------------------------------------------

    def states_of(self, group: int, sequence: int) -> dict[str, list[int]]:
        """Returns the members of a group by the state that they have a collective in, those that have not
        come first; those whose ring or dump does not tell last.
        """
        states: dict[str, list[int]] = {NOT_COME: [], **{word: [] for word in STATE_WORDS}}
        states |= {"ended before its ring begins": [], "not known": [], "no dump": []}
        progress = self.verdict.progress[group]
        for rank in self.record.groups[group].ranks:
            dump = self.record.by_rank.get(rank)
            of = progress.get(rank)
            row = None if of is None else of.find(sequence)
            if dump is None:
                states["no dump"].append(rank)
            elif row is not None:
                over = dump.over[row]
                states["completed" if over else STATE_WORDS[dump.entries.state[row]]].append(rank)
            elif of is not None and of.completed >= sequence:
                states["ended before its ring begins"].append(rank)
            elif of is None or (of.enqueued < sequence and (of.enqueued >= 0 or not len(dump.entries))):
                states[NOT_COME].append(rank)
            else:
                states["not known"].append(rank)
        return {state: ranks for state, ranks in states.items() if ranks}

    def late_ranks(self, track_id: int, row: int) -> list[int]:
        """Returns the ranks that have not come to an entry that has not ended."""
        dump = self.record.dumps[track_id]
        entries = dump.entries
        waits = self.verdict.waits_of.get(dump.rank, ())
        if entries.is_message[row]:
            return [wait.for_rank for wait in waits if wait.row == row]
        late = self.states_of(entries.group[row], entries.collective[row]).get(NOT_COME, [])
        return late or [wait.for_rank for wait in waits if wait.row == row]
