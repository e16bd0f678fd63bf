"""The section on flight recorder dumps: how far each group has come, what is open, and who waits for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.ranks import RankSet
from simcore.records import NamedTuple
from simcore.render.report.section import Field, PageOptions, Section, field_lines, remaining_line, shorten
from simcore.trace.figures import CollectiveStates, GroupProgress, MemberProgress

if TYPE_CHECKING:
    from simcore.trace.run import Run

_GROUPS, _COLLECTIVES, _MEMBERS = 8, 12, 4
_ALL_RINGS, _OPEN = "Collectives and messages of the rings", "What has not ended, or does not match"
_NAME_CELLS, _RANK_CELLS, _STATE_CELLS = 40, 24, 50


class MemberLine(NamedTuple):
    """Members of a group that have come equally far."""

    group: GroupProgress
    members: list[MemberProgress]
    heads: bool
    """Whether it is the first line of the group."""


def _sequence(sequence: int | None) -> str:
    return "-" if sequence is None else str(sequence)


_PROGRESS: list[Field[MemberLine]] = [
    Field("group", lambda line: printable(line.group.group, _NAME_CELLS) if line.heads else "", left=True),
    Field("of ranks", lambda line: shorten(line.group.ranks, _RANK_CELLS) if line.heads else "", left=True),
    Field(
        "ranks",
        lambda line: shorten(RankSet.of(member.rank for member in line.members).text(), _RANK_CELLS),
        left=True,
    ),
    Field("enqueued", lambda line: _sequence(line.members[0].enqueued)),
    Field("started", lambda line: _sequence(line.members[0].started)),
    Field("completed", lambda line: _sequence(line.members[0].completed)),
    Field("", lambda line: line.members[0].role, left=True),
]
_COLLECTIVE: list[Field[CollectiveStates]] = [
    Field("group", lambda one: printable(one.group.short, 16), left=True),
    Field("no.", lambda one: str(one.sequence)),
    Field("collective", lambda one: printable(one.operation, 24), left=True),
    Field("since, UTC", lambda one: one.since, left=True),
    Field("ranks by state", lambda one: shorten(states_text(one), _STATE_CELLS), left=True),
]


def states_text(collective: CollectiveStates) -> str:
    """Returns `not come 12; scheduled 13-15`."""
    states = "; ".join(f"{state} {ranks}" for state, ranks in collective.states.items())
    return f"{collective.problem_text}; {states}" if collective.problem else states


def member_lines(group: GroupProgress) -> list[MemberLine]:
    """Returns the members of a group, those that have come equally far on one line."""
    equal_ones: dict[object, list[MemberProgress]] = {}
    for member in group.members:
        equal_ones.setdefault(member[1:5], []).append(member)
    return [MemberLine(group, members, at == 0) for at, members in enumerate(equal_ones.values())]


def lines(run: Run, options: PageOptions) -> list[str]:
    """Returns the groups, those to blame first, then the collectives that have not ended."""
    tables = run.figures.hang
    if tables is None:
        return []
    every = options.every_layer or options.everything
    most = len(tables.groups) if every else _GROUPS
    rows: list[MemberLine] = []
    left = 0
    for group in tables.groups[:most]:
        of_group = member_lines(group)
        rows += of_group if every else of_group[:_MEMBERS]
        left += 0 if every else len(of_group[_MEMBERS:])
    page = [
        "The last collective of each group that its ranks began, started and ended; those behind in front",
        *field_lines(_PROGRESS, rows),
        *remaining_line(left, "more ranks or sets of ranks", "--all-layers has all"),
        *remaining_line(len(tables.groups) - most, "more groups", "--all-layers has all"),
    ]
    collectives = tables.find_collectives(options.every_layer)
    if collectives:
        shown_rows = collectives if every else collectives[:_COLLECTIVES]
        page += [
            "",
            _ALL_RINGS if options.every_layer else _OPEN,
            *field_lines(_COLLECTIVE, shown_rows),
            *remaining_line(len(collectives) - len(shown_rows), "more", "--all-layers has all"),
        ]
    return page


def values(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `hang`."""
    tables = run.figures.hang
    return {} if tables is None else {"hang": tables.values}


SECTION: Section[Run] = Section("hang", lines, values)
