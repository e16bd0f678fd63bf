"""The page and the JSON of two runs beside each other, whatever they came from: which sections they have.

JSON is of schema `wltui.compare/1` where ops were matched, else of `wltui.beside/1`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.report import (
    account_changes,
    layer_changes,
    movers,
    pass_changes,
    path_changes,
    sides,
    unchanged,
)
from simcore.report.section import PageAsked, Section, page, values

if TYPE_CHECKING:
    from simcore.analysis.two_runs import Compared

# In the order of the page.
SECTIONS: tuple[Section[Compared], ...] = (
    sides,
    account_changes,
    path_changes,
    pass_changes,
    layer_changes,
    movers,
    unchanged,
)
# What a person reads at once; --all has everything.
_LINES = 40
_LEAST_ACCOUNTS = 4
_LEAST_MOVERS, _MOST_MOVERS = 3, 7
# Lines of a table beside its rows: title, heading and a blank line; of the accounts also the step.
_BESIDE = 3
# The keys that come first, whatever the order of the page.
_FIRST_KEYS = (
    "schema", "a", "b", "difference_ns", "difference_percent", "why", "parts", "changed", "matched",
    "unlike", "paired_by", "accounts", "worst", "layers", "critical_path", "stages", "lanes", "movers",
    "unchanged",
)  # fmt: skip


def comparison_page(compared: Compared, everything: bool = False) -> str:
    """The page. It has at most 40 lines: accounts that change least give way first, then what differs most.

    everything: all that there is.
    """
    if everything:
        return page(SECTIONS, compared, PageAsked(everything=True))
    others = [section for section in SECTIONS if section not in (account_changes, movers)]
    left = (
        _LINES
        - sum(len(lines) + 1 for section in others if (lines := section.lines(compared, PageAsked())))
        + 1
    )
    some = bool(compared.op_movers or compared.kind_movers)
    accounts = max(left - (_LEAST_MOVERS + _BESIDE if some else 0) - _BESIDE - 1, _LEAST_ACCOUNTS)
    left -= len(account_changes.lines(compared, PageAsked(rows=accounts))) + 1 + _BESIDE
    rows = {
        account_changes: accounts,
        movers: max(_LEAST_MOVERS, min(left, _MOST_MOVERS)),
    }
    return page(SECTIONS, compared, PageAsked(), rows)


def comparison_json(compared: Compared) -> dict[str, Any]:
    """The comparison as plain values; times in ns, differences B - A."""
    return values(SECTIONS, compared, PageAsked(everything=True), _FIRST_KEYS)
