"""The comparison of two runs, as Python has it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from simcore.api.run import Run
from simcore.api.table import Table
from simcore.api.values import WrongType, errors_in_keywords, whole_number
from simcore.comparison import Comparison as OfTwo
from simcore.trace import run as of_run
from simcore.trace.track import COMMON_ACCOUNTS, COMPUTE
from simcore.units import change_percent, duration


class Comparison:
    """Run `b` against run `a`: all differences are b - a."""

    def __init__(self, a: Run, b: Run, ranks: tuple[int, int] | None = None) -> None:
        self.a, self.b = a, b
        self._comparison = OfTwo(_unwrap(a), _unwrap(b), None if ranks is None else _rank_pair(ranks))

    @property
    def difference_ns(self) -> int:
        """How much longer the step of b is than that of a, ns."""
        return self._comparison.difference_ns

    @property
    def reasons(self) -> list[str]:
        """Why, in sentences: what explains the difference and what causes it."""
        of = self._comparison
        why = of.why_text
        return [why, *(words for words in of.name_sentences if words not in why)]

    @property
    def notices(self) -> list[str]:
        """What a reader has to know before trusting the figures."""
        return list(self._comparison.notices)

    def accounts(self) -> Table:
        """Returns a row for each account of the mean rank, or of the two ranks.

        Columns: account, a_ns, b_ns, difference_ns. Accounts have the names of `Run.accounts`; where the two
        runs have different names for one, that of recordings. Accounts that neither run has are left out.
        """
        names = self._account_names
        rows = [row for row in self._comparison.accounts if names.get(row.name, row.name)]
        return Table({
            "account": [names.get(row.name, row.name) for row in rows], "a_ns": [row.a_ns for row in rows],
            "b_ns": [row.b_ns for row in rows], "difference_ns": [row.ns for row in rows],
        })  # fmt: skip

    def parts(self) -> dict[str, int]:
        """Returns {account: ns} that sum to the difference, the largest first: of the critical paths, or of
        the mean rank where ops are not matched. `compute` is all compute.
        """
        names = self._account_names
        return {names.get(part.account, part.account): part.ns for part in self._comparison.parts}

    @cached_property
    def _account_names(self) -> dict[str, str]:
        """{name of an account of any run: its name for these two}, "" where neither run has it."""
        name_sets: dict[str, set[str]] = {name: set() for name in COMMON_ACCOUNTS}
        for run in (self._comparison.a, self._comparison.b):
            of = run.trace.categories
            for name, common_index in zip(of.all, of.common_indices, strict=True):
                name_sets[COMMON_ACCOUNTS[common_index]].add(name)
        computed = {COMMON_ACCOUNTS[account] for account in COMPUTE}
        common = {name: f"compute {name}" if name in computed else name for name in COMMON_ACCOUNTS}
        return {name: common[name] if len(names) > 1 else "".join(names) for name, names in name_sets.items()}

    def __repr__(self) -> str:
        a, b = self.a.step_time_ns, self.b.step_time_ns
        return f"<Comparison: {duration(a)} -> {duration(b)} ({change_percent(a, b)})>"


def _unwrap(run: Run) -> of_run.Run:
    try:
        return run._run
    except AttributeError:
        raise WrongType("compare", run, "a run, as `load(...).run()` gives it") from None


def _rank_pair(ranks: object) -> tuple[int, int]:
    """Returns the rank of a and that of b."""
    if not isinstance(ranks, Sequence) or isinstance(ranks, str) or len(ranks) != 2:
        raise WrongType("ranks", ranks, "the rank of a and that of b, like (0, 7)")
    return whole_number("ranks", ranks[0]), whole_number("ranks", ranks[1])


@errors_in_keywords()
def compare(a: Run, b: Run, ranks: tuple[int, int] | None = None) -> Comparison:
    """Returns the comparison of run b with run a. ranks: the rank of a and that of b alone, also of one run.

    Raises `UsageError` where nothing of the two can be paired.
    """
    return Comparison(a, b, ranks)
