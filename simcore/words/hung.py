"""The figures of flight recorder dumps, in the form that all runs have: see `simcore/trace/figures.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.flight.mismatches import Mismatch, frame_of
from simcore.flight.names import clock_of_day, ranks_text, short_group, wall_clock
from simcore.flight.progress import Progress, short_operation
from simcore.flight.record import STATE_WORDS, UNSTATED, size_text
from simcore.flight.verdict import Wait
from simcore.hangs.run import NOT_COME, HangAnalysis
from simcore.ranks import RankSet
from simcore.trace.figures import (
    CollectiveStates,
    GroupProgress,
    HangTables,
    HangWait,
    Insight,
    MemberProgress,
    Origin,
)
from simcore.trace.findings import Finding
from simcore.trace.without_step import FiguresWithoutStep
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.trace.streams import TrackStreams

_ROLES = ("culprit", "stuck", "waits", "held up", "no dump", "")


class HangFigures(FiguresWithoutStep[HangAnalysis]):
    """The figures of dumps: a verdict and tables; nothing is timed."""

    kind = "hung"

    @property
    def title(self) -> str:
        return self.hang.headline

    @property
    def facts(self) -> list[tuple[str, str]]:
        record, timeline = self.run.record, self.run.timeline
        versions = sorted({dump.version for dump in record.dumps if dump.version})
        version = f", version {printable(', '.join(versions), 40)}" if versions else ""
        facts = [
            ("file", printable(record.path)),
            ("format", f"flight recorder dumps of PyTorch{version}"),
            ("read", f"{self._counts()}; {plural(len(record.groups), 'group')}"),
        ]
        if timeline.begin_ns:
            facts.append(("time", f"{wall_clock(timeline.begin_ns)} to "
                          f"{clock_of_day(timeline.begin_ns + timeline.length)} UTC"))  # fmt: skip
        if apart := self._clock_words():
            facts.append(("clocks", apart))
        return facts

    def _counts(self) -> str:
        record = self.run.record
        count = len(record.dumps)
        of = f" of {record.world}" if len(record.missing) else ""
        entries = "1 entry" if record.entry_count == 1 else f"{record.entry_count} entries"
        return f"dumps of {count}{of} ranks, {entries}" if count != 1 else f"the dump of rank " \
               f"{record.dumps[0].rank}{of and f' of {record.world} ranks'}, {entries}"  # fmt: skip

    def _clock_words(self) -> str:
        """Returns which ranks have other clocks; "" where nothing ended, so that nothing is known."""
        by_offset: dict[int, list[int]] = {}
        for rank, offset in self.run.timeline.offsets.items():
            if offset.ns:
                by_offset.setdefault(round(offset.ns / 1e6), []).append(rank)
        parts = [f"{ranks_text(tuple(ranks))} by {ms:+d} ms" for ms, ranks in sorted(by_offset.items())[:4]]
        more = f" and {len(by_offset) - 4} offsets more" if len(by_offset) > 4 else ""
        return f"brought to that of the lowest rank: {', '.join(parts)}{more}" if parts else ""

    def headline(self, wide: bool) -> list[str]:
        """Returns who is to blame, then how many ranks there are."""
        return [self.hang.headline, *([self._counts()] if wide else [])]

    @cached_property
    def insights(self) -> list[Insight]:
        from simcore.words.hung_sentences import find_sentences

        return [Insight(sentence.rule, sentence.text) for sentence in find_sentences(self.run)]

    @property
    def worst_findings(self) -> list[Finding]:
        return []

    @cached_property
    def origin(self) -> Origin:
        record = self.run.record
        degrees = {"tp": None, "ep": None, "dp": None, "pp": None, "world": record.world}
        count = record.entry_count
        return Origin("flight-recorder", "", count, None, 0, degrees, "none", "none", {}, [], count, 0)

    @property
    def streams(self) -> Sequence[TrackStreams]:
        return ()

    # -- the tables ----------------------------------------------------------------------

    @cached_property
    def hang(self) -> HangTables:
        return HangTables(
            self._headline(), self._groups, self._find_collectives, self._find_waits, self._values
        )

    def _headline(self) -> str:
        verdict = self.run.verdict
        culprits = verdict.culprits
        if culprits:
            return f"{ranks_text(culprits)} {'is' if len(culprits) == 1 else 'are'} waited for"
        if verdict.mismatches:
            return _mismatch_headline(verdict.mismatches[0])
        if verdict.stuck:
            return f"{ranks_text(verdict.stuck)} {'is' if len(verdict.stuck) == 1 else 'are'} stuck"
        if verdict.open_ranks:
            return "nobody is known to be missing"
        return "nothing is outstanding: nobody hung"

    def _role(self, rank: int) -> str:
        verdict = self.run.verdict
        if rank in verdict.culprits:
            return "culprit"
        if rank in verdict.stuck:
            return "stuck"
        if rank not in self.run.record.by_rank:
            return "no dump"
        if rank in verdict.waits_of:
            return "waits"
        return "held up" if rank in verdict.held_up else ""

    @cached_property
    def _groups(self) -> list[GroupProgress]:
        """Those that somebody waits in first, by their oldest wait, then those with something open."""
        verdict, groups = self.run.verdict, self.run.record.groups
        since: dict[int, int] = {}
        for wait in reversed(verdict.waits + verdict.messages):
            since[wait.group] = min(wait.since_ns, since.get(wait.group, wait.since_ns))
        to_blame = {wait.group for wait in verdict.waits if wait.for_rank in verdict.culprits}
        mismatched = {mismatch.group for mismatch in verdict.mismatches}
        tables = []
        for index, group in enumerate(groups):
            of_group = verdict.progress[index]
            is_open = any(of.open_rows for of in of_group.values())
            key = (index not in to_blame, index not in mismatched, index not in since, not is_open,
                   since.get(index, 0), index)  # fmt: skip
            tables.append((key, index, group))
        return [
            GroupProgress(
                group.description, short_group(group.description), RankSet.of(group.ranks).text(),
                self._members(index), str(index),
            )
            for _, index, group in sorted(tables)
        ]  # fmt: skip

    def _members(self, index: int) -> list[MemberProgress]:
        progress = self.run.verdict.progress[index]
        members = []
        for rank in self.run.record.groups[index].ranks:
            of = progress.get(rank)
            sequences = (None, None, None) if of is None else self._sequences_of(of)
            members.append(MemberProgress(rank, *sequences, self._role(rank), self._track_id(rank)))
        return sorted(members, key=_behind_first)

    @staticmethod
    def _sequences_of(of: Progress) -> tuple[int | None, int | None, int | None]:
        # Where messages are counted too, the numbers of the status are of both.
        sequences = of.status if of.has_messages else (of.enqueued, of.started, of.completed)
        return tuple(None if sequence == UNSTATED else sequence for sequence in sequences)  # type: ignore[return-value]

    def _track_id(self, rank: int) -> int | None:
        return self._index_of.get(rank)

    @cached_property
    def _index_of(self) -> dict[int, int]:
        return {dump.rank: index for index, dump in enumerate(self.run.record.dumps)}

    def _find_collectives(self, all_of_them: bool) -> list[CollectiveStates]:
        """Returns collectives and messages: what does not match first, then those in which somebody is
        missing, of these collectives, then by when they began.
        """
        verdict = self.run.verdict
        problems: dict[tuple[int, int], str] = {}
        for mismatch in verdict.mismatches:
            if mismatch.peer is None:
                problems.setdefault((mismatch.group, mismatch.sequence), mismatch.kind)
        keys: set[tuple[int, int]] = set(problems)
        for index, of_group in enumerate(verdict.progress):
            for of in of_group.values():
                rows = of.collective_rows if all_of_them else of.open_rows
                keys.update((index, of.entries.collective[row]) for row in rows)
        results = self._find_messages(all_of_them)
        for group, sequence in keys:
            first: tuple[int, int, int] | None = None
            for rank, of in verdict.progress[group].items():
                row = of.find(sequence)
                if row is not None:
                    begin = self.run.timeline.begin_of(self._index_of[rank], row)
                    first = min(first or (begin, rank, row), (begin, rank, row))
            if first is not None:
                states = self.run.states_of(group, sequence)
                results.append(self._states_of(*first[1:], states, problems.get((group, sequence), "")))
        results.sort(
            key=lambda one: (
                not one.problem,
                NOT_COME not in one.states,
                one.is_message,
                one.since_ns,
                one.sequence,
            )
        )
        return results

    def _find_messages(self, all_of_them: bool) -> list[CollectiveStates]:
        """Returns sends and receives: those that have not ended, or all."""
        verdict = self.run.verdict
        late = {(wait.rank, wait.row): wait.for_rank for wait in verdict.messages}
        alone = {
            (mismatch.sides[0].ranks[0], mismatch.group, mismatch.sequence): mismatch.kind
            for mismatch in verdict.mismatches
            if mismatch.peer is not None
        }
        results = []
        for dump in self.run.record.dumps:
            entries, over, rank = dump.entries, dump.over, dump.rank
            if 1 not in entries.is_message:
                continue
            for row, is_message in enumerate(entries.is_message):
                if not is_message or (over[row] and not all_of_them):
                    continue
                states = {NOT_COME: [late[rank, row]]} if (rank, row) in late else {}
                states["completed" if over[row] else STATE_WORDS[entries.state[row]]] = [rank]
                problem = alone.get((rank, entries.group[row], entries.message[row]), "")
                results.append(self._states_of(rank, row, states, problem))
        return results

    def _states_of(
        self, rank: int, row: int, states: Mapping[str, list[int]], problem: str
    ) -> CollectiveStates:
        """Returns an entry of a rank as a row of the table."""
        record, index = self.run.record, self._index_of[rank]
        timeline, entries, names = self.run.timeline, record.by_rank[rank].entries, record.names
        ends, is_message = (entries.input_size[row], entries.output_size[row]), bool(entries.is_message[row])
        sizes = dict.fromkeys(filter(None, (size_text(names.sizes[end]) for end in ends)))
        begin = timeline.begin_of(index, row)
        return CollectiveStates(
            self._table_of[entries.group[row]],
            entries.message[row] if is_message else entries.collective[row], is_message,
            short_operation(names.operations[entries.operation[row]]),
            {state: RankSet.of(ranks).text() for state, ranks in states.items()},
            len(states.get(NOT_COME, ())),
            f"{' -> '.join(sizes)} {names.dtypes[entries.input_dtype[row]]}".strip(),
            clock_of_day(timeline.begin_ns + begin, 6), begin, problem, index,
            timeline.times(index).end[row], frame_of(record, rank, row),
        )  # fmt: skip

    @cached_property
    def _table_of(self) -> dict[int, GroupProgress]:
        """The table of each group."""
        return {int(table.stream): table for table in self._groups}

    def _find_waits(self) -> list[HangWait]:
        verdict, record, timeline = self.run.verdict, self.run.record, self.run.timeline
        culprits = {*verdict.culprits}
        ahead: dict[tuple[int, ...], str] = {}
        results = []
        waits = (*verdict.waits, *verdict.messages)
        for wait in sorted(waits, key=lambda wait: (wait.for_rank not in culprits, wait.since_ns)):
            ranks = () if wait.for_rank in culprits else verdict.culprits_ahead.get(wait.for_rank, ())
            if ranks not in ahead:
                ahead[ranks] = RankSet.of(ranks).text() if ranks else ""
            track_id = self._index_of[wait.rank]
            times, entries = timeline.times(track_id), record.by_rank[wait.rank].entries
            start = times.start[wait.row]
            results.append(HangWait(
                wait.rank, wait.for_rank, ahead[ranks], self._table_of[wait.group], wait.sequence,
                short_operation(record.names.operations[entries.operation[wait.row]]),
                clock_of_day(timeline.begin_ns + start, 6), track_id, start, times.end[wait.row],
            ))  # fmt: skip
        return results

    # -- as JSON -------------------------------------------------------------------------

    @cached_property
    def _values(self) -> dict[str, Any]:
        verdict = self.run.verdict
        return {
            "culprits": list(verdict.culprits),
            "stuck": list(verdict.stuck),
            "waits": [self._wait_values(wait) for wait in verdict.waits],
            "messages": [self._wait_values(wait) for wait in verdict.messages],
            "mismatches": [self._mismatch_values(mismatch) for mismatch in verdict.mismatches],
            "unknown": [
                {"group": self._group_values(one.group), "number": one.sequence, "ranks": list(one.ranks)}
                for one in verdict.unknown
            ],
            "missing": [*self.run.record.missing],
            "groups": [
                self._group_values(int(table.stream))
                | {
                    "members": [
                        {"rank": member.rank, "enqueued": member.enqueued, "started": member.started,
                         "completed": member.completed, "role": member.role or None}
                        for member in table.members
                    ]
                }
                for table in self._groups
            ],
        }  # fmt: skip

    def _group_values(self, index: int) -> dict[str, Any]:
        group = self.run.record.groups[index]
        return {"desc": group.description, "ranks": list(group.ranks)}

    def _wait_values(self, wait: Wait) -> dict[str, Any]:
        record = self.run.record
        operation = record.names.operations[record.by_rank[wait.rank].entries.operation[wait.row]]
        return {
            "rank": wait.rank, "for": wait.for_rank, "group": self._group_values(wait.group),
            "number": wait.sequence, "collective": operation, "since_ns": wait.since_ns,
        }  # fmt: skip

    def _mismatch_values(self, mismatch: Mismatch) -> dict[str, Any]:
        values: dict[str, Any] = {
            "kind": mismatch.kind, "group": self._group_values(mismatch.group), "number": mismatch.sequence,
            "sides": [
                {"ranks": list(side.ranks), "value": side.words, "frame": side.frame or None}
                for side in mismatch.sides
            ],
        }  # fmt: skip
        if mismatch.odd:
            values["odd"] = list(mismatch.odd)
        if mismatch.peer is not None:
            values["peer"] = mismatch.peer
        if mismatch.second_group is not None:
            values["second_group"] = self._group_values(mismatch.second_group)
        return values


_DIFFERS = {"collective": "another collective", "size": "other sizes", "dtype": "another dtype",
            "state": "another state", "order": "another order of groups"}  # fmt: skip


def _mismatch_headline(mismatch: Mismatch) -> str:
    """Returns who has something else than the others."""
    what = _DIFFERS.get(mismatch.kind, f"a {mismatch.kind}")
    ranks = mismatch.odd or tuple(sorted({rank for side in mismatch.sides for rank in side.ranks}))
    return f"{ranks_text(ranks)}: {what}"


def _behind_first(member: MemberProgress) -> tuple[int, int, int]:
    """Returns a key that puts who is to blame first, then who has begun least."""
    enqueued = -1 if member.enqueued is None else member.enqueued
    return _ROLES.index(member.role) if member.role == "culprit" else len(_ROLES), enqueued, member.rank
