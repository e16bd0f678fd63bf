"""The networks room: what communication costs, by the model that `--network` names.

A new model is one new file here and one line in `NETWORKS`. Import from here all that `__all__` names, and
`unused_fields`.
"""

from __future__ import annotations

from simcore.diagnostics import Diagnostic, UsageError, did_you_mean, printable
from simcore.networks.model import (
    GroupCollective,
    Network,
    NetworkModel,
    NetworkParameters,
    Sharing,
    server_switches,
    single_switch,
)
from simcore.parameters import FLAGS, TOPOLOGY_FIELDS

_BUSBW_FLAGS = ("gpus_per_server", "overlap")
_AUTO_FLAGS = (*_BUSBW_FLAGS, "nvlink", "nic", "nics_per_server", "gpu_type", "nic_type")
NETWORKS: dict[str, NetworkModel] = {
    "analytical": NetworkModel("networks.analytical", queues=True),
    "shared": NetworkModel("networks.shared"),
    "busbw": NetworkModel("compat.simai_busbw", "FILE", _BUSBW_FLAGS, single_switch, lifts_forward=True),
    "simai-auto": NetworkModel("compat.simai_auto", None, _AUTO_FLAGS, server_switches, lifts_forward=True),
    "links": NetworkModel("networks.links", needs_all_ranks=True),
    "flows": NetworkModel("networks.flows", None, TOPOLOGY_FIELDS, needs_all_ranks=True),
}


def network_names() -> tuple[str, ...]:
    """Returns the values that `--network` takes, with a model's argument behind its name: `busbw:FILE`."""
    return tuple(f"{name}:{model.argument}" if model.argument else name for name, model in NETWORKS.items())


def network_model(network: str) -> NetworkModel:
    """Returns the entry that `--network` names. Raises `UsageError` when there is no such model."""
    check_network(network)
    return NETWORKS[network.partition(":")[0]]


def check_network(network: str) -> None:
    """Raises `UsageError` where `--network` names no model, or lacks a model's argument."""
    name, colon, argument = network.partition(":")
    model = NETWORKS.get(name)
    if model is None or bool(colon and argument) != (model.argument is not None):
        network_text = printable(network, 60)
        raise UsageError(f"--network {network_text}: one of {', '.join(network_names())} is expected"
                         f"{did_you_mean(network, network_names())}")  # fmt: skip


def unused_fields(network: str) -> frozenset[str]:
    """Returns the fields that other networks use and the one that `--network` names does not."""
    model = NETWORKS.get(network.partition(":")[0])
    used = model.flags if model is not None else ()
    return frozenset(flag for network in NETWORKS.values() for flag in network.flags if flag not in used)


def check_flags(
    model: NetworkModel, parameters: NetworkParameters, explicit_fields: frozenset[str]
) -> list[Diagnostic]:
    """Returns a warning for each explicit flag that the network of the run does not use.

    Raises `UsageError` for a slow link where there are no links, and for groups that have no price.
    """
    name = printable(parameters.network, 60)
    if model.make_cluster and parameters.slow_link:
        models = " and ".join(name for name, model in NETWORKS.items() if not model.make_cluster)
        raise UsageError(
            f"--slow-link {printable(parameters.slow_link[0], 60)}: network {name} has no dimensions, "
            f"and so no ports; {models} have them"
        )
    if model.make_cluster and parameters.shard_size is not None:
        models = " and ".join(name for name, model in NETWORKS.items() if not model.make_cluster)
        raise UsageError(
            f"--shard-size {parameters.shard_size}: network {name} knows no groups inside data parallelism; "
            f"{models} would fit"
        )
    if model.needs_all_ranks and parameters.expert_imbalance is not None:
        raise UsageError(
            f"--expert-imbalance: network {name} sends messages of equal size; analytical and shared "
            "would fit"
        )
    if model.needs_all_ranks and parameters.overlap_tp:
        raise UsageError(
            f"--overlap-tp: network {name} has no pieces of collectives; analytical, shared and simai-auto "
            "would fit"
        )
    unused = [
        (flag, "has no effect")
        for flag in FLAGS
        if flag.group == "network" and flag.field != "network" and flag.field not in model.flags
    ]
    if model.make_cluster:
        unused += [(flag, "has no effect on prices") for flag in FLAGS if flag.group == "cluster"]
    return [
        Diagnostic("warning", "parameter-ignored", f"{flag.option} {what} under network {name}")
        for flag, what in unused
        if flag.field in explicit_fields
    ]


def topology_unused(network: str, topology: str, refusal: str) -> Diagnostic:
    """Returns a warning that a network knows a topology by two dimensions alone. topology: its name.
    refusal: why the network is not flows; "" where the user named it.
    """
    message = (
        f"--network {network} has a server and what joins servers, made of the topology: links that flows "
        "share above servers, and their paths, are not seen; "
    )
    message += f"flows cannot carry this run: {refusal}" if refusal else "--network flows has them"
    brief = f"network {network}: links of the topology not seen"
    return Diagnostic("warning", "topology-unused", message, topology, brief=brief)


__all__ = [
    "NETWORKS",
    "GroupCollective",
    "Network",
    "NetworkParameters",
    "Sharing",
    "check_flags",
    "check_network",
    "network_model",
    "network_names",
    "topology_unused",
]
