"""The kinds of work that a simulated and a measured step are compared by, in the words of the workload.

    kind                    simulated                                measured
    forward                 compute of phase fwd                     compute inside forward_step, loss_func
    backward                of ig, wg, recompute                     inside backward_step
    optimizer               of opt                                   inside optimizer_step
    tp forward, ep forward  collectives of that group in fwd         tp, exp inside forward_step, loss_func
    tp backward, ...        in ig, wg, recompute                     inside backward_step
    tp other, ...           before or after the micro-batches, opt   anywhere else
    dp, dp_ep               all of that group                        dp, exp_dp
    pp forward, pp backward transfers of activations, of gradients   send_forward, send_backward

What else a trace has (`embedding`, `position`) no workload has, and the groups `all` no trace.
"""

from __future__ import annotations

from simcore.measured.vocabulary import category_of_group, category_of_op
from simcore.program.ops import COMPUTE, FWD, OPT, STREAMS, TO_NEXT

COMPUTE_KINDS = ("forward", "backward", "optimizer")
OTHER = "other"
# Groups whose collectives belong to what computes; gradients of a group are reduced as a whole.
_SPLIT = ("tp", "ep")
_OF_CATEGORY = {"tp": "tp", "expert": "ep", "dp": "dp", "expert dp": "dp_ep"}
_TRANSFERS = {"send_forward": "pp forward", "send_backward": "pp backward"}
_WHERE = ("forward", "backward", OTHER)
ORDER = (
    *COMPUTE_KINDS,
    *(f"{group} {where}" for group in _SPLIT for where in _WHERE),
    "dp", "dp_ep", "all", *_TRANSFERS.values(),
)  # fmt: skip


def simulated_kind(stream: int, phase: int, in_microbatch: bool) -> str:
    """The kind of an op by its stream and phase (`simcore.program.ops`); whether it is of a micro-batch."""
    where = "forward" if phase == FWD else OTHER if phase == OPT else "backward"
    if stream == COMPUTE:
        return "optimizer" if phase == OPT else where
    if stream >= TO_NEXT:
        return f"pp {where}"
    group = STREAMS[stream]
    if group not in _SPLIT:
        return group
    return f"{group} {where if in_microbatch else OTHER}"


def measured_collective_kind(group: str | None, op: str, op_group: str | None, is_sub: bool) -> str:
    """The kind of a call of the trace's `group`, of or inside the operation `op` of group `op_group`."""
    category = category_of_group(group)
    name = _OF_CATEGORY.get(category, category)
    if name not in _SPLIT:
        return name
    outer = category_of_op(op, op_group) if is_sub else OTHER
    return f"{name} {outer if outer in _WHERE else OTHER}"


def measured_transfer_kind(op: str) -> str:
    """The kind of a send."""
    return _TRANSFERS[op]


def in_order(kinds: set[str]) -> list[str]:
    """Kinds in the order of reports: those of `ORDER`, then others by name."""
    return [kind for kind in ORDER if kind in kinds] + sorted(kinds.difference(ORDER))
