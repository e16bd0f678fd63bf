"""An inference step: one forward pass of a whole model, whose layers are spread over the stages of a run."""

from __future__ import annotations

from array import array

from simcore.diagnostics import UsageError
from simcore.records import replace
from simcore.units import plural
from simcore.workload.model import Cells, StageRows, Workload

# Names of rows with which a layer begins, as AICB's inference generator has them.
_FIRST_OF_LAYER = ("attention", "gdn")
_NORM = "norm"


def without_backward(workload: Workload) -> Workload:
    """Returns the workload without its backward cells, which AICB fills in and which mean nothing here."""
    return replace(workload, ig=_empty_cells(len(workload)), wg=_empty_cells(len(workload)))


def _empty_cells(rows: int) -> Cells:
    return Cells(array("q", bytes(8 * rows)), [None] * rows, [None] * rows, array("q", bytes(8 * rows)))


def with_stages(workload: Workload, stages: int) -> Workload:
    """Returns the workload with its layers on so many stages: as many on each, the first ones have one more.

    Raises `UsageError` where there are fewer layers than stages.
    """
    starts = _layer_starts(workload.name)
    if stages > len(starts):
        layers = plural(len(starts), "layer")
        raise UsageError(f"--pp {stages}: the file has {layers}: --pp {len(starts)} would fit")
    most, more = divmod(len(starts), stages)
    cuts = [starts[stage * most + min(stage, more)] for stage in range(stages)]
    edges = [0, *cuts[1:], len(workload)]
    rows = tuple(StageRows((), (tuple(range(edges[stage], edges[stage + 1])),)) for stage in range(stages))
    # The header's vpp means nothing of such a file.
    header = replace(workload.header, vpp=most + bool(more), pp=stages)
    return replace(workload, stages=rows, header=header)


def _layer_starts(names: list[str]) -> list[int]:
    """Returns the first row of each layer: of attention, with the norms before it where the first one has
    some, or each row where none is of attention.
    """
    starts = [row for row, name in enumerate(names) if name.startswith(_FIRST_OF_LAYER)]
    if not starts:
        return list(range(len(names)))
    first = starts[0]
    while first and names[first - 1].endswith(_NORM):
        first -= 1
    norms = names[first : starts[0]]
    return [row - len(norms) if names[row - len(norms) : row] == norms else row for row in starts]
