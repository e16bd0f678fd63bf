"""SimAI's own estimate of a step: its closed form over the rows of the file, without a schedule.

SimAI-analytical adds up all cells, takes what communication is not hidden by fixed ratios, and a bubble
as if each layer of a stage were a virtual stage. It stands beside the step time to show why the two differ.
"""

from __future__ import annotations

import math

from simcore.diagnostics import InputError, UsageError
from simcore.networks.simai import SimaiNetwork, estimate_kind, single
from simcore.networks.simai_inputs import priced_bytes
from simcore.networks.simai_notes import accumulations, estimated_rows, layers_per_stage
from simcore.records import Struct
from simcore.simulation import Simulation
from simcore.workload import Workload
from simcore.workload.model import PHASES

# The bubble counts every row but these, by their exact name.
_NOT_IN_BUBBLE = "embedding_layer"


class SimaiEstimate(Struct, frozen=True):
    """The lines of SimAI's summary, us. dp, dp_ep, tp, ep: exposed collectives.

    pp_us: exposed transfers between stages, whole us; None where SimAI has no bandwidth for them.
    """

    dp_us: float
    dp_ep_us: float
    tp_us: float
    ep_us: float
    pp_us: int | None
    bubble_us: float
    compute_us: float

    @property
    def exposed_us(self) -> float:
        """Exposed collectives, transfers not among them."""
        return self.dp_us + self.dp_ep_us + self.tp_us + self.ep_us

    @property
    def total_us(self) -> float:
        """The step as SimAI estimates it."""
        return self.compute_us + self.exposed_us + self.bubble_us + (self.pp_us or 0)


def simai_estimate(simulation: Simulation) -> SimaiEstimate | None:
    """The estimate for a run's file and bandwidths; scales, overrides and the schedule play no part.

    It covers the first rows, as many as line 2 states; without `vpp` or `ga` in the header what was
    found is taken. None unless the network is one of SimAI's, and where it lacks a bandwidth.
    """
    if not isinstance(simulation.network, SimaiNetwork):
        return None
    try:
        return _estimate(simulation, simulation.network)
    except (InputError, UsageError):
        return None


def _estimate(simulation: Simulation, network: SimaiNetwork) -> SimaiEstimate:
    workload, structure = simulation.workload, simulation.program.structure
    exposed = dict.fromkeys(("dp", "dp_ep", "tp", "ep"), 0)
    compute = in_bubble = 0
    again = _recomputed(workload)
    for row in range(estimated_rows(workload)):
        cells_ns = sum(workload.cells(phase).compute_ns[row] for phase in PHASES)
        cells_ns += again.get(row, 0) * workload.fwd.compute_ns[row]
        forward = "ep" if workload.fwd.group[row] == "ep" else "tp"
        blocking_ns = 0
        for phase in PHASES:
            cells = workload.cells(phase)
            collective, group, size = cells.collective[row], cells.group[row], cells.bytes[row]
            # SimAI takes a SENDRECV for nothing, as each type that it does not know.
            if collective is None or group is None or group == "pp":
                continue
            kind = estimate_kind(phase, group)
            ns = network.ns(kind, collective, priced_bytes(workload, phase, size))
            if phase != "wg":
                blocking_ns += ns
            bucket = kind if phase == "wg" else forward
            hidden = network.overlap["dp" if phase == "wg" else forward]
            exposed[bucket] += math.floor(single(single(ns) * single(1 - hidden)))
        compute += cells_ns
        if workload.name[row] != _NOT_IN_BUBBLE:
            in_bubble += cells_ns + blocking_ns
    virtual, accumulated = layers_per_stage(workload, structure), accumulations(workload, structure)
    return SimaiEstimate(
        dp_us=exposed["dp"] / 1000,
        dp_ep_us=exposed["dp_ep"] / 1000,
        tp_us=exposed["tp"] / 1000,
        ep_us=exposed["ep"] / 1000,
        pp_us=_transfers_us(network, virtual * accumulated * (workload.header.pp_comm or 0)),
        bubble_us=(simulation.layout.pp - 1) / (accumulated * virtual) * in_bubble / 1000,
        compute_us=compute / 1000,
    )


def _transfers_us(network: SimaiNetwork, size: int) -> int | None:
    """Exposed us of `size` bytes each way."""
    if network.pp_gibps is None:
        return None
    whole = math.floor(2 * size / 2**30 / network.pp_gibps * 1e9 / 1000)
    return math.floor(whole * (1 - network.overlap["pp"]))


def _recomputed(workload: Workload) -> dict[int, int]:
    """How often the forward of each row runs again, from the nearest checkpoint up to an initiator."""
    times: dict[int, int] = {}
    header = workload.header
    for initiator in header.checkpoint_initiates:
        first = max((one for one in header.checkpoints if one < initiator), default=initiator)
        for row in range(first, initiator):
            times[row] = times.get(row, 0) + 1
    return times
