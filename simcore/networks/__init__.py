"""The networks room: what communication costs, by the model that `--network` names.

A new model is one new file here and one line in `NETWORKS`. Import from here: `Network`,
`Sharing`, `NETWORKS`, `network_names`, `open_network`.
"""

from __future__ import annotations

from simcore.cluster import Cluster
from simcore.diagnostics import UsageError, printable
from simcore.layout import Layout
from simcore.networks.analytical import open_analytical
from simcore.networks.model import Network, NetworkModel, Sharing
from simcore.parameters import Parameters


def _open_shared(parameters: Parameters, layout: Layout, cluster: Cluster, argument: str) -> Network:
    # Imported here: the common run has no use for it.
    from simcore.networks.shared import Shared

    return Shared(cluster)


NETWORKS: dict[str, NetworkModel] = {
    "analytical": NetworkModel(open_analytical),
    "shared": NetworkModel(_open_shared),
}


def network_names() -> tuple[str, ...]:
    """What `--network` may be, with what stands behind a name: `busbw:FILE`."""
    return tuple(f"{name}:{model.argument}" if model.argument else name for name, model in NETWORKS.items())


def open_network(parameters: Parameters, layout: Layout, cluster: Cluster) -> Network:
    """The network of a run. Raises `UsageError` when there is no such model."""
    name, colon, argument = parameters.network.partition(":")
    model = NETWORKS.get(name)
    if model is None or bool(colon and argument) != (model.argument is not None):
        shown = printable(parameters.network, 60)
        raise UsageError(f"--network {shown}: one of {', '.join(network_names())} is expected")
    return model.open(parameters, layout, cluster, argument)


__all__ = ["NETWORKS", "Network", "Sharing", "network_names", "open_network"]
