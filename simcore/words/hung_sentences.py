"""The sentences on flight recorder dumps, the verdict first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from simcore.diagnostics import printable
from simcore.flight.mismatches import Mismatch
from simcore.flight.names import group_text, ranks_text, wall_clock
from simcore.flight.progress import short_operation
from simcore.units import plural
from simcore.words.rules import Sentence

if TYPE_CHECKING:
    from simcore.hangs.run import HangAnalysis

_MOST_CULPRITS, _MOST_MISMATCHES = 4, 4


class WaitedFor(Sentence, frozen=True, kw_only=True):
    """Who is waited for, by whom, in what, and who waits behind these."""

    rule: ClassVar[str] = "hang-culprits"

    culprits: tuple[int, ...]
    waiting: tuple[int, ...]
    behind: tuple[int, ...]
    """Ranks that wait for some that wait for them."""
    operation: str
    group: str
    sequence: int
    since_ns: int
    other_groups: int = 0
    """In how many more groups."""
    lacks_dump: tuple[int, ...] = ()
    """Those of the culprits that have no dump."""

    @property
    def text(self) -> str:
        be = "is" if len(self.culprits) == 1 else "are"
        words = (
            f"{_capital(ranks_text(self.culprits))} {be} waited for by {ranks_text(self.waiting)}, first "
            f"in {self.operation} no. {self.sequence} of {self.group} since {wall_clock(self.since_ns)} UTC"
        )
        if self.other_groups:
            words += f", and in {plural(self.other_groups, 'more group')}"
        if self.behind:
            words += f"; {ranks_text(self.behind)} {_wait(self.behind)} behind these"
        if self.lacks_dump:
            have = "has" if len(self.lacks_dump) == 1 else "have"
            words += f"; {ranks_text(self.lacks_dump)} {have} no dump: died, or wrote none"
        return f"{words}."


class Stuck(Sentence, frozen=True, kw_only=True):
    """Ranks that have not ended what their peers have."""

    rule: ClassVar[str] = "hang-stuck"

    ranks: tuple[int, ...]

    @property
    def text(self) -> str:
        have = "has" if len(self.ranks) == 1 else "have"
        its = "its device" if len(self.ranks) == 1 else "their devices"
        return (
            f"{_capital(ranks_text(self.ranks))} {have} not ended collectives that other members of the "
            f"group have: look at {its} first."
        )


class HeldUp(Sentence, frozen=True, kw_only=True):
    """Ranks with something open that no wait explains."""

    rule: ClassVar[str] = "hang-chain"

    ranks: tuple[int, ...]

    @property
    def text(self) -> str:
        have = "has" if len(self.ranks) == 1 else "have"
        return (
            f"{_capital(ranks_text(self.ranks))} {have} open collectives to which all known members came: "
            "behind others."
        )


class Differs(Sentence, frozen=True, kw_only=True):
    """A collective whose members do not agree."""

    rule: ClassVar[str] = "hang-mismatch"

    kind: str
    group: str
    sequence: int
    sides: tuple[tuple[tuple[int, ...], str, str], ...]
    """(ranks, what they have, where it was called) of each."""
    peer: int | None
    second_group: str
    count: int
    """How many more of the kind there are."""
    odd: tuple[int, ...] = ()
    """Who does not do what the others do."""

    @property
    def text(self) -> str:
        sides = ", ".join(
            f"{ranks_text(ranks)}: {words}{f' ({call_site})' if call_site else ''}"
            for ranks, words, call_site in self.sides
        )
        if self.peer is not None:
            other = "receive" if self.kind.startswith("send") else "send"
            text = f"{_capital(sides)} in {self.group} has no {other} on rank {self.peer}"
        elif self.kind == "order":
            text = f"{self.group} and {self.second_group} are begun in another order: {sides}"
        else:
            what = {"collective": "is another collective", "size": "has other sizes",
                    "dtype": "has another dtype", "state": "is in another state"}[self.kind]  # fmt: skip
            text = f"No. {self.sequence} of {self.group} {what} on some ranks: {sides}"
        if self.odd and self.peer is None:
            text += f"; {ranks_text(self.odd)} {'is' if len(self.odd) == 1 else 'are'} unlike the others"
        return f"{text}{f'; {self.count} more like this' if self.count else ''}."


class AllMatch(Sentence, frozen=True, kw_only=True):
    """Members that came do the same."""

    rule: ClassVar[str] = "hang-match"

    @property
    def text(self) -> str:
        return "Kinds, sizes and types match wherever members came."


class OpenAlone(Sentence, frozen=True, kw_only=True):
    """Something is open, and nobody is known to be missing."""

    rule: ClassVar[str] = "hang-open"

    ranks: tuple[int, ...]

    @property
    def text(self) -> str:
        return (
            f"{_capital(ranks_text(self.ranks))} {'has' if len(self.ranks) == 1 else 'have'} open "
            "collectives, and no member is known to be missing: all came, or no dump tells."
        )


class NothingOpen(Sentence, frozen=True, kw_only=True):
    """Everything has ended."""

    rule: ClassVar[str] = "hang-none"

    ranks: int

    @property
    def text(self) -> str:
        return f"Nothing is outstanding on {plural(self.ranks, 'rank')}: nobody hung."


class NotKnown(Sentence, frozen=True, kw_only=True):
    """What nobody can know."""

    rule: ClassVar[str] = "hang-unknown"

    ranks: tuple[int, ...]
    group: str
    sequence: int
    count: int

    @property
    def text(self) -> str:
        more = f", and of {self.count} collectives more" if self.count else ""
        return (
            f"The ring of {ranks_text(self.ranks)} begins behind no. {self.sequence} of {self.group}{more}: "
            "nobody can know what they did with it."
        )


class Missing(Sentence, frozen=True, kw_only=True):
    """Ranks without a dump that are not to blame."""

    rule: ClassVar[str] = "hang-missing"

    ranks: tuple[int, ...]

    @property
    def text(self) -> str:
        have = "has" if len(self.ranks) == 1 else "have"
        return f"{_capital(ranks_text(self.ranks))} {have} no dump: whether they came is not known."


class Foreign(Sentence, frozen=True, kw_only=True):
    """What dumps of gloo cannot tell."""

    rule: ClassVar[str] = "hang-gloo"

    @property
    def text(self) -> str:
        return (
            "These are dumps of gloo: states stay scheduled to the end, so that retired entries count as "
            "ended; sends and receives are not recorded, and the last completed number is that of the last "
            "begun."
        )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wait(ranks: Sequence[int]) -> str:
    return "waits" if len(ranks) == 1 else "wait"


def find_sentences(run: HangAnalysis) -> list[Sentence]:
    """Returns the sentences on dumps, the verdict first."""
    return [sentence for rule in RULES for sentence in rule(run)]


def _group(run: HangAnalysis, index: int) -> str:
    return printable(group_text(run.record.groups[index]), 90)


def find_culprits(run: HangAnalysis) -> Iterator[Sentence]:
    """Yields who is waited for: a sentence for each culprit, or for those that the same ranks wait for."""
    verdict, record = run.verdict, run.record
    by_facts: dict[tuple[int, int, tuple[int, ...], tuple[int, ...], frozenset[int]], list[int]] = {}
    all_behind: dict[int, list[int]] = {}
    for other in sorted(verdict.culprits_ahead):
        for rank in verdict.culprits_ahead[other]:
            all_behind.setdefault(rank, []).append(other)
    for rank in verdict.culprits:
        waits = verdict.waits_for[rank]
        waiting = {wait.rank for wait in waits}
        direct = tuple(sorted(waiting))
        behind = tuple(other for other in all_behind[rank] if other not in waiting)
        groups = frozenset(wait.group for wait in waits)
        by_facts.setdefault((waits[0].group, waits[0].sequence, direct, behind, groups), []).append(rank)
    for (_, _, direct, behind, groups), culprits in [*by_facts.items()][:_MOST_CULPRITS]:
        first = verdict.waits_for[culprits[0]][0]
        entries = record.by_rank[first.rank].entries
        operation = short_operation(record.names.operations[entries.operation[first.row]])
        yield WaitedFor(
            culprits=tuple(culprits), waiting=direct, behind=behind, operation=printable(operation, 40),
            group=_group(run, first.group), sequence=first.sequence, since_ns=first.since_ns,
            other_groups=len(groups) - 1,
            lacks_dump=tuple(rank for rank in culprits if rank not in record.by_rank),
        )  # fmt: skip


def find_mismatches(run: HangAnalysis) -> Iterator[Sentence]:
    """Yields what does not match, the first of each kind and group."""
    firsts: dict[tuple[str, int], list[Mismatch]] = {}
    for mismatch in run.verdict.mismatches:
        firsts.setdefault((mismatch.kind, mismatch.group), []).append(mismatch)
    for equal_ones in [*firsts.values()][:_MOST_MISMATCHES]:
        first = equal_ones[0]
        sides = tuple(
            (side.ranks, printable(side.words, 60), printable(side.frame, 80)) for side in first.sides
        )
        yield Differs(
            kind=first.kind, group=_group(run, first.group), sequence=first.sequence, sides=sides,
            peer=first.peer, odd=first.odd, count=len(equal_ones) - 1,
            second_group="" if first.second_group is None else _group(run, first.second_group),
        )  # fmt: skip


def find_stuck(run: HangAnalysis) -> Iterator[Sentence]:
    """Yields who has not ended what peers have."""
    if run.verdict.stuck:
        yield Stuck(ranks=run.verdict.stuck)


def find_held_up(run: HangAnalysis) -> Iterator[Sentence]:
    """Yields who has something open that no wait explains, where others are waited for."""
    verdict = run.verdict
    if verdict.culprits and verdict.held_up:
        yield HeldUp(ranks=verdict.held_up)


def find_match(run: HangAnalysis) -> Iterator[Sentence]:
    """Yields that nothing differs where somebody waits."""
    if run.verdict.waits and not run.verdict.mismatches:
        yield AllMatch()


def find_open(run: HangAnalysis) -> Iterator[Sentence]:
    """Yields that something is open without a cause, or that nothing is."""
    verdict = run.verdict
    if verdict.is_clean:
        yield NothingOpen(ranks=len(run.record.dumps))
    elif not (verdict.culprits or verdict.mismatches or verdict.stuck):
        yield OpenAlone(ranks=verdict.open_ranks)


def find_unknown(run: HangAnalysis) -> Iterator[Sentence]:
    """Yields what rings and missing dumps do not tell."""
    unknown = run.verdict.unknown
    if unknown:
        first = unknown[0]
        yield NotKnown(
            ranks=first.ranks, group=_group(run, first.group), sequence=first.sequence, count=len(unknown) - 1
        )
    missing = tuple(rank for rank in run.record.missing if rank not in run.verdict.culprits)
    if missing:
        yield Missing(ranks=missing)


def find_foreign(run: HangAnalysis) -> Iterator[Sentence]:
    """Yields the limits of dumps that are not of NCCL."""
    if any(name.startswith("gloo:") for name in run.record.names.operations):
        yield Foreign()


RULES = (
    find_culprits,
    find_mismatches,
    find_stuck,
    find_held_up,
    find_match,
    find_open,
    find_unknown,
    find_foreign,
)
