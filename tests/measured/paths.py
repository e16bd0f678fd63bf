"""The critical path of a measured run as rows, for tests that follow it piece by piece."""

from __future__ import annotations

from typing import NamedTuple

from simcore.runs.measured import RecordedRun
from simcore.trace.reasons import find_reason


class PathRow(NamedTuple):
    """A segment. rank, of: places of ranks in the run; of: that which its reason names. reason: its kind."""

    start: int
    end: int
    rank: int
    piece: int
    account: int
    kind: str
    reason: str
    of: int


def insight_lines(results: RecordedRun) -> list[str]:
    """What is said of a run, a sentence a line."""
    return results.figures.words


def path_rows(results: RecordedRun) -> list[PathRow]:
    path, source = results.critical_path, results.path_source
    rows = []
    for index, (rank, piece) in enumerate(zip(path.track, path.span, strict=True)):
        facts = source.wait_facts(path, index)
        what = source.account(rank, piece), source.kind(rank, piece)
        numbers = [trace.rank for trace in results.measured.ranks]
        of = rank if facts.how is None else numbers.index(facts.rank)
        reason = find_reason(facts).name
        rows.append(PathRow(path.edge[index], path.edge[index + 1], rank, piece, *what, reason, of))
    return rows
