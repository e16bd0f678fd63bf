"""Lanes of runs whose ranks have one each, what is common of them: accounts as kinds and figures, waits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from simcore.run.accounts import AccountNames, Accounts, Ranges
from simcore.run.lanes import KINDS, Figure, LaneOrder, Spans, StretchFigures, figures_of

# What of a trace is drawn as a kind with another name.
_DRAWN = {
    "forward": "fwd", "backward": "bwd", "optimizer": "opt", "expert": "ep", "expert dp": "dp_ep",
    "gap": "idle", "outside": "idle",
}  # fmt: skip
SHORT = {"forward": "fwd", "backward": "bwd", "optimizer": "opt", "embedding": "emb", "position": "pos"}
# What a span is drawn as -> the words of a search that stand for it.
SEARCHED = {
    "fwd": ("fwd", "compute"), "bwd": ("ig", "wg", "compute"), "opt": ("opt", "compute"),
    "recompute": ("recompute", "compute"), "tp": ("tp",), "dp": ("dp",), "pp": ("pp",), "ep": ("ep",),
    "kernel": ("compute",), "copy": ("copy",),
    "dp_ep": ("dp_ep",), "all": ("all",), "host": ("host",), "idle": ("idle",),
    "wait": ("wait",), "bubble": ("bubble",),
}  # fmt: skip


def drawn_as(category: str) -> int:
    """Index into KINDS of what a trace says of an operation or group."""
    return KINDS.index(_DRAWN.get(category, category))


def kind_of(category: str) -> str:
    """That of its cells; none for what is idle."""
    kind = KINDS[drawn_as(category)]
    return "" if kind == "idle" else kind


def kinds_of_accounts(names: AccountNames) -> bytes:
    """Account -> index into KINDS, as `bytearray.translate` takes it."""
    kinds = bytes(drawn_as(account.split(" ", 1)[-1]) for account in names.all)
    return kinds + bytes(256 - len(kinds))


def figures_of_accounts(names: AccountNames) -> tuple[Figure, ...]:
    """The accounts as figures of a stretch, without their times."""
    return tuple(map(_figure, names.all))


def _figure(account: str) -> Figure:
    kind, _, of = account.partition(" ")
    if kind == "compute":
        return Figure(of, SHORT.get(of, of), kind_of(of), 0)
    if kind == "exposed":
        return Figure(account, f"exp {SHORT.get(of, of)}", kind_of(of), 0)
    return Figure(account, account, kind_of(account), 0)


class RankLanes:
    """The part of `RunLanes` that accounts of single ranks answer. A subclass says what is in a lane, and how
    long its spans wait (`_waits_of`).

    numbers: of the lanes. account_figures: see `figures_of_accounts`.
    """

    communication_words = "communication"
    numbers: Sequence[int]
    account_figures: tuple[Figure, ...]

    def __init__(self) -> None:
        self._spans: dict[tuple[int, str | None], Spans] = {}
        # Of each lane how long each span waits that does.
        self._waits: dict[int, dict[int, int]] = {}

    @property
    def accounts(self) -> Sequence[Accounts]:
        """Of each lane."""
        raise NotImplementedError

    @property
    def orders(self) -> tuple[LaneOrder, ...]:
        raise NotImplementedError

    def _found_waits(self, number: int) -> dict[int, int]:
        """Of the spans of a lane that wait, by index, how long, in the order in which they are walked."""
        raise NotImplementedError

    def measure_ns(self, order: str, number: int) -> int:
        accounts = self.accounts[number]
        if order == "busy":
            return accounts.busy_ns
        return accounts.all_exposed_ns if order == "exposed" else accounts.ns(order)

    def busy_ns(self, number: int) -> int:
        return self.accounts[number].busy_ns

    def spread(self, numbers: Sequence[int]) -> dict[str, list[int]]:
        name_of = {"busy": "compute", "end": "over before the others"}
        return {
            name_of.get(order.id, order.id): [self.measure_ns(order.id, number) for number in numbers]
            for order in self.orders[1:]
        }

    def number_like(self, number: int) -> int:
        return number

    def seams(self, number: int) -> Sequence[int]:
        return ()

    def covers_all(self, stream: str | None) -> bool:
        # Operations may overlap and have to be looked for; so all lanes are looked through.
        return False

    # -- waits -------------------------------------------------------------------------

    def waits(self, number: int) -> Sequence[int]:
        return list(self._waits_of(number))

    def waited_ns(self, number: int, index: int) -> int:
        return self._waits_of(number).get(index, 0)

    def _waits_of(self, number: int) -> dict[int, int]:
        waits = self._waits.get(number)
        if waits is None:
            waits = self._waits[number] = self._found_waits(number)
        return waits

    # -- a stretch ---------------------------------------------------------------------

    @cached_property
    def _ranges(self) -> Ranges:
        """By account: what of an operation is waiting counts as that."""
        accounts = self.accounts
        kinds = len(self.account_figures)
        return Ranges(lambda rank: (accounts[rank].edge, accounts[rank].account), [1] * len(accounts), kinds)

    @property
    def _figures(self) -> tuple[Figure, ...]:
        return self.account_figures

    @property
    def figure_words(self) -> Sequence[str]:
        return [figure.words for figure in self._figures]

    def figures(self, number: int, first_ns: int, last_ns: int) -> StretchFigures:
        figures = self._ranges.of_class(number, first_ns, last_ns)
        return figures_of(self._figures, figures, last_ns - first_ns, 1)

    def all_figures(self, first_ns: int, last_ns: int) -> StretchFigures:
        ranks = len(self.numbers)
        figures = self._ranges.of_all(first_ns, last_ns)
        return figures_of(self._figures, figures, (last_ns - first_ns) * ranks, ranks)
