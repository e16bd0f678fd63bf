"""What SimAI-analytical itself makes of a file: where it crashes, hangs or prints nonsense.

wltui reads all these files. Who holds its figures against SimAI's has to know.
"""

from __future__ import annotations

from simcore.diagnostics import Diagnostic, printable
from simcore.program.blocks import Structure
from simcore.units import plural
from simcore.workload import Workload
from simcore.workload.model import PHASES
from simcore.workload.policies import TRANSFORMER

# SimAI keeps the time of a cell in 32 bits with a sign.
_TOO_LONG_NS = 2**31


def layers_per_stage(workload: Workload, structure: Structure) -> int:
    """`vpp` of the header, else the layers that a stage was found to have, at least 1."""
    if workload.header.vpp:
        return workload.header.vpp
    return max((1, *structure.layers_per_block[:1]))


def accumulations(workload: Workload, structure: Structure) -> int:
    """`ga` of the header, else the micro-batches that were found, at least 1."""
    return workload.header.ga or max(1, len(structure.blocks))


def estimated_rows(workload: Workload) -> int:
    """How many rows SimAI's estimate covers: as many as line 2 states, if they are there."""
    declared = workload.declared_rows
    return len(workload) if declared is None else min(declared, len(workload))


def simai_notes(workload: Workload, structure: Structure) -> list[Diagnostic]:
    """A note for each reason why SimAI itself fails on a file, and what the estimate does instead.

    Of an op table, and of a policy that SimAI does not know, there is no more to say: it reads no further.
    """
    header = workload.header
    notes = []

    def note(message: str, line: int | None = None) -> None:
        notes.append(Diagnostic("note", "simai-fails", f"SimAI itself {message}", workload.path, line))

    if workload.format == "op-table":
        note("does not read op tables")
        return notes
    if workload.policy.upper() not in TRANSFORMER:
        note(f"crashes on policy {printable(workload.policy, 40)}", header.line)
        return notes
    keys = {"model_parallel_NPU_group": header.tp, "ep": header.ep, "pp": header.pp}
    missing = [key for key, value in keys.items() if value is None]
    if missing:
        note(f"crashes on this file: the header has no {', '.join(missing)}", header.line)
    for key, value, taken in (
        ("vpp", header.vpp, plural(layers_per_stage(workload, structure), "layer") + " a stage"),
        ("ga", header.ga, plural(accumulations(workload, structure), "micro-batch")),
    ):
        if not value and not missing:
            found = "no" if value is None else "0 for"
            note(f"prints Inf for bubble and total: {found} {key} in the header; {taken} taken", header.line)
    comment = next((one for one in workload.diagnostics if _empties(workload, one)), None)
    if comment is not None:
        what = "a comment" if comment.code == "comment" else "a number with a point or exponent"
        note(f"prints nothing for this file and ends with status 0: {what}", comment.line)
    columns = [workload.cells(phase).compute_ns[: estimated_rows(workload)] for phase in PHASES]
    longest = max(max(column, default=0) for column in columns)
    if longest >= _TOO_LONG_NS:
        row = min(column.index(longest) for column in columns if longest in column)
        note(f"hangs on this file: a cell of {longest} ns, 2^31 or more", workload.line[row])
    declared = workload.declared_rows
    if declared is not None and declared > len(workload):
        note(f"counts the last row {plural(declared - len(workload), 'time')} more")
    return notes


def _empties(workload: Workload, found: Diagnostic) -> bool:
    """Whether SimAI stops reading at what was found."""
    return found.code == "comment" or (found.code == "float-value" and found.line != workload.header.line)
