"""The parameters of a run with the values that they had in it."""

from __future__ import annotations

from typing import Any

from simcore.cluster import parameter_values
from simcore.networks.simai_inputs import simai_bandwidths
from simcore.parameters import as_dict
from simcore.simulation import Simulation


def effective_parameters(simulation: Simulation) -> dict[str, Any]:
    """All parameters by field, those taken from the file or by default included."""
    layout, maker = simulation.layout, simulation.workload.maker
    # Of a model each stage has its own rows.
    of_model = {} if maker is None else {"stage_layout": "megatron"} | maker.values(simulation.parameters)
    return as_dict(simulation.parameters, "workload" if maker is None else "model") | of_model | {
        "world": layout.world,
        "tp": layout.tp,
        "ep": layout.ep,
        "pp": layout.pp,
        "schedule": simulation.program.schedule,
        "microbatches": simulation.program.microbatches,
        "virtual_stages": simulation.program.virtual_stages,
        "layers": simulation.program.layers,
        "dialect": simulation.parameters.dialect or simulation.workload.dialect,
        "dim": (
            [dimension.flag() for dimension in simulation.cluster.dims]
            if simulation.has_dimensions
            else list(simulation.parameters.dim)
        ),
        **simai_bandwidths(simulation.parameters),
        **parameter_values(simulation.cluster),
    }
