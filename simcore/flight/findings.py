"""What a check says of a hung job, as diagnostics: each an error, for a job that hung is one."""

from __future__ import annotations

from simcore.diagnostics import Diagnostic, printable
from simcore.flight.mismatches import Mismatch
from simcore.flight.names import group_text, ranks_text, wall_clock
from simcore.flight.progress import short_operation
from simcore.flight.record import FlightRecord
from simcore.flight.verdict import find_verdict

_MOST_MISMATCHES = 20


def find_hang(record: FlightRecord) -> list[Diagnostic]:
    """Returns who is waited for, who is stuck, and what does not match; empty where nothing hung."""
    verdict = find_verdict(record)
    results: list[Diagnostic] = []

    def report_error(code: str, message: str) -> None:
        results.append(Diagnostic("error", code, message, record.path))

    for rank in verdict.culprits:
        wait = verdict.waits_for[rank][0]
        entries = record.by_rank[wait.rank].entries
        operation = printable(short_operation(record.names.operations[entries.operation[wait.row]]), 40)
        waiting = ranks_text(tuple(sorted({one.rank for one in verdict.waits_for[rank]})))
        group = printable(group_text(record.groups[wait.group]), 90)
        where = f"{operation} no. {wait.sequence} of {group} since {wall_clock(wait.since_ns)} UTC"
        report_error("hung", f"rank {rank} is waited for by {waiting}, first in {where}")
    if verdict.waits and not verdict.culprits:
        waiting = ranks_text(tuple(sorted({wait.rank for wait in verdict.waits})))
        report_error("hung", f"{waiting} wait for each other: every rank that is waited for waits itself")
    if verdict.stuck:
        report_error(
            "stuck-ranks", f"{ranks_text(verdict.stuck)} did not end collectives that other members ended"
        )
    for mismatch in verdict.mismatches[:_MOST_MISMATCHES]:
        report_error("collective-mismatch", _mismatch_text(record, mismatch))
    more = len(verdict.mismatches) - _MOST_MISMATCHES
    if more > 0:
        report_error("collective-mismatch", f"and {more} more that do not match")
    return results


def _mismatch_text(record: FlightRecord, mismatch: Mismatch) -> str:
    sides = ", ".join(
        f"{ranks_text(side.ranks)}: {printable(side.words, 60)}"
        + (f" ({printable(side.frame, 80)})" if side.frame else "")
        for side in mismatch.sides
    )
    group = printable(group_text(record.groups[mismatch.group]), 90)
    if mismatch.peer is not None:
        return f"{sides} in {group} has no other side on rank {mismatch.peer}"
    odd = f"; {ranks_text(mismatch.odd)} unlike the others" if mismatch.odd else ""
    return f"no. {mismatch.sequence} of {group} differs in {mismatch.kind}: {sides}{odd}"
