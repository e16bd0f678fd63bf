"""The section on execution traces: when each rank ends, the nodes by name, and the groups of collectives."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.kernel_names import short_name
from simcore.ranks import RankSet
from simcore.render.report.layers import column_field
from simcore.render.report.section import (
    Field,
    PageOptions,
    Section,
    field_lines,
    field_values,
    keys,
    remaining_line,
    shorten,
)
from simcore.trace.figures import GroupUse, RankEnd
from simcore.trace.layers import columns_of, json_rows
from simcore.units import byte_size, column_unit

if TYPE_CHECKING:
    from simcore.trace.run import Run

_RANKS, _NAMES, _GROUPS = 32, 20, 16
_NAME_CELLS, _RANK_CELLS = 48, 30
_RANK: list[Field[RankEnd]] = keys("rank", "end_ns", "exposed_ns")


def lines(run: Run, options: PageOptions) -> list[str]:
    """Returns consecutive ranks that end equally on one line, the names of nodes that take most,
    the groups.
    """
    tables = run.figures.nodes
    if tables is None:
        return []
    unit_ns, unit = column_unit(run.step_time_ns)

    def figure(ns: float) -> str:
        return f"{ns / unit_ns:.3f}"

    equal_ranks = [list(ranks) for _, ranks in itertools.groupby(tables.ranks, lambda rank: rank[1:])]
    page = [
        f"When each rank ends, {'cycles of 1 ns' if tables.in_cycles else unit}; exposed: "
        f"{tables.exposed_words}",
        *field_lines(_rank_fields(0 if tables.in_cycles else unit_ns), equal_ranks[:_RANKS]),
        *remaining_line(sum(map(len, equal_ranks[_RANKS:])), "more ranks", "--json has all"),
    ]
    names = tables.names if options.every_layer else tables.names[:_NAMES]
    of_names = [
        column_field(
            column, run.step_time_ns, (unit_ns, ""), lambda name: short_name(name, _NAME_CELLS), "nodes"
        )
        for column in columns_of("names")
    ]
    page += [
        "",
        f"Nodes by name (# for a number), {unit}; time, waits: a rank's mean; compute, exposed: the "
        "most of one; % of step: of the path",
        *field_lines(of_names, names),
        *remaining_line(len(tables.names) - len(names), "more names", "--all-layers has all"),
    ]
    if not tables.groups:
        return page
    of_groups: list[Field[GroupUse]] = [
        Field("group", lambda group_use: printable(group_use.group, _RANK_CELLS), left=True),
        Field("ranks", lambda group_use: shorten(group_use.ranks, _RANK_CELLS), left=True),
        Field("collectives", lambda group_use: str(group_use.collectives)),
        Field("bytes", lambda group_use: byte_size(group_use.bytes)),
        Field("time", lambda group_use: figure(group_use.own_ns)),
        Field("waits", lambda group_use: figure(group_use.waits_ns)),
    ]
    groups = tables.groups if options.every_layer else tables.groups[:_GROUPS]
    return [
        *page,
        "",
        f"Groups, {unit}, summed over their ranks; bytes as comm_size has them",
        *field_lines(of_groups, groups),
        *remaining_line(len(tables.groups) - len(groups), "more groups", "--all-layers has all"),
    ]


def _rank_fields(unit_ns: int) -> list[Field[Sequence[RankEnd]]]:
    """Returns the columns of a rank. unit_ns: 0 for whole ns, as ASTRA-sim prints them."""

    def exposed(rank_ends: Sequence[RankEnd]) -> str:
        # ASTRA-sim's exposed time is an unsigned number of 64 bits: it may wrap.
        ns = rank_ends[0].exposed_ns
        if not unit_ns:
            return str(ns)
        return f"{ns / unit_ns:.3f}" if ns < 1 << 63 else f"-{((1 << 64) - ns) / unit_ns:.3f}"

    def ranks(rank_ends: Sequence[RankEnd]) -> str:
        return shorten(RankSet.of(each.rank for each in rank_ends).text(), _RANK_CELLS)

    return [
        Field("ranks", ranks, left=True),
        Field(
            "end",
            lambda rank_ends: f"{rank_ends[0].end_ns / unit_ns:.3f}" if unit_ns else str(rank_ends[0].end_ns),
        ),
        Field("exposed", exposed),
    ]


def values(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `ranks`, `layers` (names of nodes) and `groups`."""
    tables = run.figures.nodes
    if tables is None:
        return {}
    groups = [
        {"group": group.group, "ranks": group.ranks, "collectives": group.collectives, "bytes": group.bytes,
         "own_ns": group.own_ns, "wait_ns": group.waits_ns}
        for group in tables.groups
    ]  # fmt: skip
    return {
        "ranks": field_values(_RANK, tables.ranks),
        "layers": json_rows(tables.names, run.step_time_ns),
        "groups": groups,
    }


SECTION: Section[Run] = Section("nodes", lines, values)
