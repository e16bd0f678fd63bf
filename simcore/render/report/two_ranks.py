"""What differs between two ranks, as a page and as JSON of schema `wltui.ranks/1`, section by section."""

from __future__ import annotations

from typing import Any

from simcore.compare import AccountChange
from simcore.compare.two_ranks import RankOf, TwoRanks
from simcore.render.report.comparison import account_values, change_fields
from simcore.render.report.name_changes import name_lines, name_values
from simcore.render.report.section import (
    Field,
    PageAsked,
    Section,
    field_lines,
    field_values,
    page,
    values,
    wrapped,
)
from simcore.units import column_unit

_THEN = "     "
_SIDE: list[Field[RankOf]] = [
    Field(key="file", value=lambda side: side.run.path),
    Field(key="run", value=lambda side: side.run.setup.label),
    Field(key="kind", value=lambda side: side.run.figures.kind),
    Field(key="step_time_ns", value=lambda side: side.run.step_time_ns),
    Field(key="rank"),
    Field(key="ranks", value=lambda side: side.track.ranks.text()),
    Field(key="stage", value=lambda side: side.track.stage),
]


def _side_lines(ranks: TwoRanks, asked: PageAsked) -> list[str]:
    """What has to be known before figures are believed, a line a side, and what differs most."""
    text = [line for notice in ranks.notices for line in wrapped(notice, "", _THEN)]
    for name, words in zip("AB", ranks.sides, strict=True):
        text += wrapped(words, f"{name}  ", _THEN)
    for sentence in ranks.by_name_words:
        text += wrapped(sentence, "", _THEN)
    return text


def _side_json(ranks: TwoRanks, asked: PageAsked) -> dict[str, Any]:
    """`schema`, `a`, `b`, `sentences`."""
    return {
        "schema": "wltui.ranks/1",
        **dict(zip("ab", field_values(_SIDE, (ranks.a, ranks.b)), strict=True)),
        "sentences": list(ranks.by_name_words),
    }


def _itself(change: AccountChange) -> AccountChange:
    return change


def _account_lines(ranks: TwoRanks, asked: PageAsked) -> list[str]:
    steps = AccountChange("step", ranks.a.run.step_time_ns, ranks.b.run.step_time_ns)
    unit_ns, unit = column_unit(max(steps.a_ns, steps.b_ns))
    fields: list[Field[AccountChange]] = [
        Field(f"account, {unit}", lambda change: change.name, left=True),
        *change_fields(_itself, unit_ns, "A"),
    ]
    there = [change for change in ranks.accounts if change.a_ns or change.b_ns]
    return ["Accounts", *field_lines(fields, [*there, steps])]


def _account_json(ranks: TwoRanks, asked: PageAsked) -> dict[str, Any]:
    """`accounts`; those of a profiler alone where there are any."""
    return {"accounts": account_values(ranks.accounts)}


_NAMES: Section[TwoRanks] = Section("name-changes", name_lines, name_values)
SECTIONS: tuple[Section[TwoRanks], ...] = (
    Section("sides", _side_lines, _side_json),
    Section("account-changes", _account_lines, _account_json),
    _NAMES,
)
# What a person reads at once; names that differ least give way.
_LINES, _LEAST_ROWS, _BESIDE = 40, 5, 3


def ranks_page(ranks: TwoRanks, everything: bool = False) -> str:
    """The page, of 40 lines. everything: all names."""
    asked = PageAsked(everything=everything)
    others = [section for section in SECTIONS if section is not _NAMES]
    left = _LINES - sum(len(section.lines(ranks, asked)) + 1 for section in others) - _BESIDE + 1
    return page(SECTIONS, ranks, asked, {} if everything else {_NAMES: max(left, _LEAST_ROWS)})


def ranks_json(ranks: TwoRanks) -> dict[str, Any]:
    """The two ranks as plain values; times in ns, differences B - A."""
    return values(SECTIONS, ranks, PageAsked(everything=True), ())
