"""Who is to blame for a hang: who waits for whom, who is stuck, and what does not match.

Rank r waits for m in group g if r has a collective of g that has not ended, with number s, and m is a member
whose last number in g is below s. The culprits are waited for and wait for nobody. A rank is stuck whose
first open number lies below what a peer of the group has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from simcore.flight.mismatches import Mismatch, find_mismatches, find_odd_order, side_of
from simcore.flight.progress import Message, Progress, message_of, progress_of
from simcore.flight.record import UNSTATED, FlightRecord, Group, RankDump
from simcore.records import NamedTuple, Struct


class Wait(NamedTuple):
    """A rank that waits for another one: of several waits of the two the oldest."""

    rank: int
    for_rank: int
    group: int
    """Index into `FlightRecord.groups`."""
    sequence: int
    """Of the collective in its group; of a message among those of the rank."""
    row: int
    """Its entry in the dump of the rank that waits."""
    since_ns: int
    """When it was created, ns since 1970 by the clock of the rank that waits."""


class Unknown(NamedTuple):
    """A collective that some ranks have not ended, of which others' rings no longer tell."""

    group: int
    sequence: int
    ranks: tuple[int, ...]
    """Whose rings begin behind it."""


class Verdict(Struct, frozen=True, dict=True):
    """What the dumps of a job say."""

    record: FlightRecord
    progress: Sequence[dict[int, Progress]]
    """By group the progress of each rank."""
    waits: tuple[Wait, ...]
    """Of collectives, the oldest first."""
    messages: tuple[Wait, ...]
    """Sends and receives whose other side has not come, the oldest first."""
    stuck: tuple[int, ...]
    """Ranks that have not ended what a peer has."""
    mismatches: tuple[Mismatch, ...]
    unknown: tuple[Unknown, ...]
    open_ranks: tuple[int, ...]
    """Ranks with something that has not ended."""

    @cached_property
    def culprits(self) -> tuple[int, ...]:
        """Ranks that are waited for and wait for nobody; where no collective waits, those of messages."""
        for waits in (self.waits, self.messages):
            ends = {wait.for_rank for wait in waits} - {wait.rank for wait in waits}
            if ends:
                return tuple(sorted(ends))
        return ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing is open and nothing differs."""
        return not (self.open_ranks or self.mismatches)

    @cached_property
    def waits_of(self) -> dict[int, list[Wait]]:
        """The waits of each rank, of collectives first."""
        return _by((*self.waits, *self.messages), lambda wait: wait.rank)

    @cached_property
    def waits_for(self) -> dict[int, list[Wait]]:
        """The waits for each rank, of collectives first."""
        return _by((*self.waits, *self.messages), lambda wait: wait.for_rank)

    @cached_property
    def culprits_ahead(self) -> dict[int, tuple[int, ...]]:
        """The culprits that the waits of each rank lead to."""
        bit_of = {rank: 1 << at for at, rank in enumerate(self.culprits)}
        ahead, changed = dict(bit_of), {*self.culprits}
        while changed:
            ahead_before = dict(ahead)
            for wait in [wait for rank in changed for wait in self.waits_for.get(rank, ())]:
                ahead[wait.rank] = ahead.get(wait.rank, 0) | ahead[wait.for_rank]
            changed = {rank for rank, bits in ahead.items() if bits != ahead_before.get(rank)}
        # Many ranks stand behind the same ones.
        ranks_of = {
            bits: tuple(rank for rank, bit in bit_of.items() if bits & bit) for bits in set(ahead.values())
        }
        return {rank: ranks_of[bits] for rank, bits in ahead.items() if rank not in bit_of}

    @cached_property
    def held_up(self) -> tuple[int, ...]:
        """Ranks with something open that no wait leads to a culprit: nobody is known to be missing there."""
        known_ranks = {*self.culprits, *self.culprits_ahead}
        return tuple(rank for rank in self.open_ranks if rank not in known_ranks)

    def find_entry(self, rank: int, group: int, sequence: int) -> int | None:
        """Returns the entry of a collective on a rank, None where it has none."""
        progress = self.progress[group].get(rank)
        return None if progress is None else progress.find(sequence)


def _by(waits: Iterable[Wait], key: Callable[[Wait], int]) -> dict[int, list[Wait]]:
    results: dict[int, list[Wait]] = {}
    for wait in waits:
        results.setdefault(key(wait), []).append(wait)
    return results


def find_verdict(record: FlightRecord) -> Verdict:
    """Returns what the dumps say."""
    progress = progress_of(record)
    waits, unknown = _find_waits(record, progress)
    messages = _find_messages(record)
    open_ranks = tuple(dump.rank for dump in record.dumps if 0 in dump.over)
    mismatches = find_mismatches(record, progress)
    involved = {rank for wait in waits for rank in (wait.rank, wait.for_rank)}
    # A message whose other side is held up is no fault of its own.
    mismatches += [_unmatched_message(record, wait) for wait in messages if wait.for_rank not in involved]
    if not mismatches:
        mismatches += [find_odd_order(record, progress, one) for one in _find_orders(record, waits)]
    return Verdict(
        record, progress, tuple(waits), tuple(messages), tuple(_find_stuck(progress)), tuple(mismatches),
        tuple(unknown), open_ranks,
    )  # fmt: skip


def _find_waits(
    record: FlightRecord, progress: Sequence[dict[int, Progress]]
) -> tuple[list[Wait], list[Unknown]]:
    by_rank = record.by_rank
    # Of a few dumps out of many the others were not given, rather than not written.
    blames_missing = 2 * len(record.missing) <= record.world
    late: dict[tuple[int, int], tuple[int, ...]] = {}
    oldest: dict[tuple[int, int], Wait] = {}
    unknown: dict[tuple[int, int], Unknown] = {}
    for dump in record.dumps:
        entries, first = dump.entries, True
        for row in _open_collectives(dump):
            group, sequence = entries.group[row], entries.collective[row]
            key = group, sequence
            if key not in late:
                late[key] = _late(record.groups[group], progress[group], sequence, by_rank)
                _add_unknown(unknown, record.groups[group], progress[group], key)
            for_ranks = late[key]
            if first and blames_missing and not for_ranks and key not in unknown:
                # A rank without a dump is named where nothing else explains the oldest collective.
                for_ranks = tuple(rank for rank in record.groups[group].ranks if rank not in by_rank)
            first = False
            for rank in for_ranks:
                pair = dump.rank, rank
                wait = Wait(*pair, group, sequence, row, entries.created[row])
                if rank != dump.rank and (pair not in oldest or wait.since_ns < oldest[pair].since_ns):
                    oldest[pair] = wait
    return sorted(oldest.values(), key=_age), list(unknown.values())


def _age(wait: Wait) -> tuple[int, int, int]:
    return wait.since_ns, wait.rank, wait.for_rank


def _open_collectives(dump: RankDump) -> Iterable[int]:
    """Returns the collectives that have not ended, the oldest first."""
    over, is_message, created = dump.over, dump.entries.is_message, dump.entries.created
    rows, at = [], over.find(0)
    while at >= 0:
        if not is_message[at]:
            rows.append(at)
        at = over.find(0, at + 1)
    return sorted(rows, key=created.__getitem__)


def _late(
    group: Group, progress: dict[int, Progress], sequence: int, by_rank: dict[int, RankDump]
) -> tuple[int, ...]:
    """Returns the members that have not begun a collective."""
    results = []
    for rank in group.ranks:
        dump = by_rank.get(rank)
        if dump is None:
            continue
        of = progress.get(rank)
        enqueued = UNSTATED if of is None else of.enqueued
        # Of a rank without any entry nothing has been pushed out of the ring.
        is_behind = enqueued < sequence and (enqueued != UNSTATED or not len(dump.entries))
        if is_behind and (of is None or of.find(sequence) is None):
            results.append(rank)
    return tuple(results)


def _add_unknown(
    unknown: dict[tuple[int, int], Unknown], group: Group, progress: dict[int, Progress], key: tuple[int, int]
) -> None:
    sequence = key[1]
    gone_ranks = tuple(
        rank
        for rank in group.ranks
        if (of := progress.get(rank)) is not None and of.sequences and of.sequences[0] > sequence
        and of.completed < sequence
    )  # fmt: skip
    if gone_ranks:
        unknown[key] = Unknown(*key, gone_ranks)


def _find_stuck(progress: Sequence[dict[int, Progress]]) -> list[int]:
    stuck = set()
    for of_group in progress:
        last = sorted(((of.completed, rank) for rank, of in of_group.items()), reverse=True)[:2]
        for rank, of in of_group.items():
            peers = [completed for completed, peer in last if peer != rank]
            if of.open_rows and peers:
                first = min(map(of.entries.collective.__getitem__, of.open_rows))
                if first < peers[0]:
                    stuck.add(rank)
    return sorted(stuck)


def _find_messages(record: FlightRecord) -> list[Wait]:
    """Returns the open sends and receives whose other side has not come, of two ranks the oldest."""
    kinds: list[Message | None] = [message_of(name) for name in record.names.operations]
    # (group, sender, receiver) -> the open rows of the sender, and of the receiver.
    open_rows: dict[tuple[int, int, int], tuple[list[int], list[int]]] = {}
    for dump in record.dumps:
        if 1 not in dump.entries.is_message:
            continue
        entries = dump.entries
        for row, (is_over, is_message) in enumerate(zip(dump.over, entries.is_message, strict=True)):
            message = kinds[entries.operation[row]] if is_message and not is_over else None
            ranks = record.groups[entries.group[row]].ranks
            if message is None or message.peer >= len(ranks) or ranks[message.peer] == dump.rank:
                continue
            peer = ranks[message.peer]
            ends = (dump.rank, peer) if message.sends else (peer, dump.rank)
            open_rows.setdefault((entries.group[row], *ends), ([], []))[not message.sends].append(row)
    waits: dict[tuple[int, int], Wait] = {}
    for (group, sender, receiver), (sends, receives) in open_rows.items():
        for own, peer, mine, others in (
            (sender, receiver, sends, receives),
            (receiver, sender, receives, sends),
        ):
            if len(mine) > len(others) and peer in record.by_rank:
                entries, row = record.by_rank[own].entries, mine[len(others)]
                wait = Wait(own, peer, group, entries.message[row], row, entries.created[row])
                if (own, peer) not in waits or wait.since_ns < waits[own, peer].since_ns:
                    waits[own, peer] = wait
    return sorted(waits.values(), key=_age)


def _unmatched_message(record: FlightRecord, wait: Wait) -> Mismatch:
    side = side_of(record, wait.rank, wait.row, [wait.rank])
    kind = "send" if " send" in f" {side.words}" else "receive"
    return Mismatch(f"{kind} alone", wait.group, wait.sequence, (side,), wait.for_rank)


def _find_orders(record: FlightRecord, waits: Sequence[Wait]) -> list[Mismatch]:
    """Returns two groups whose collectives two ranks began in another order, where that explains the hang."""
    if waits and {wait.for_rank for wait in waits} - {wait.rank for wait in waits}:
        return []
    # The oldest open collective of each group on each rank, in the order in which the rank began them.
    first_seen: dict[tuple[int, int], tuple[int, int, int]] = {}
    for dump in record.dumps:
        firsts: dict[int, int] = {}
        for row in sorted(_open_collectives(dump)):
            firsts.setdefault(dump.entries.group[row], row)
        order = list(firsts.items())
        for at, (first, first_row) in enumerate(order):
            for second, second_row in order[at + 1 :]:
                other = first_seen.get((second, first))
                if other is not None and {other[0], dump.rank} <= {*record.groups[first].ranks}:
                    sides = (
                        side_of(record, dump.rank, first_row, [dump.rank]),
                        side_of(record, other[0], other[1], [other[0]]),
                    )
                    sequence = dump.entries.collective[first_row]
                    return [Mismatch("order", first, sequence, sides, None, second)]
                first_seen.setdefault((first, second), (dump.rank, first_row, second_row))
    return _crossed(record, waits)


def _crossed(record: FlightRecord, waits: Sequence[Wait]) -> list[Mismatch]:
    """Returns two ranks that wait for each other in two groups."""
    by_pair = {(wait.rank, wait.for_rank): wait for wait in waits}
    for wait in waits:
        back = by_pair.get((wait.for_rank, wait.rank))
        if back is not None and back.group != wait.group:
            sides = tuple(side_of(record, one.rank, one.row, [one.rank]) for one in (wait, back))
            return [Mismatch("order", wait.group, wait.sequence, sides, None, back.group)]
    return []
