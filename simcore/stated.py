"""What a file itself says of what its run takes, where no parameter gives it."""

from __future__ import annotations

from typing import Literal

from simcore.workload import Workload
from simcore.workload.policies import NO_POLICY

Origin = Literal["stated", "counted", "assumed"]


def origin_of(workload: Workload, field: str, value: object, in_blocks: bool) -> Origin:
    """How a file says that its run takes `value` for a field of `Parameters`.

    workload: as it was read. field: `world`, `tp`, `ep`, `pp`, `microbatches` or `dialect`. in_blocks:
    whether the run takes the blocks of its rows for micro-batches, which are counted. What the file
    has no key for is assumed, and so is what is taken instead of what its key says (an ep that was
    clamped). The dialect is known from what only one of the two programs writes: an op table is
    neither's, and rows without a header state no policy.
    """
    header = workload.header
    if field == "dialect":
        return "assumed" if workload.format == "op-table" or workload.policy == NO_POLICY else "stated"
    keys = {
        "world": header.all_gpus,
        "tp": header.tp,
        "ep": header.ep,
        "pp": header.pp,
        "microbatches": header.ga,
    }
    if keys[field] == value:
        return "stated"
    return "counted" if field == "microbatches" and in_blocks else "assumed"
