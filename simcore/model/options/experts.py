"""The options of experts: who divides them, how tokens go to them, how unevenly they are loaded."""

from __future__ import annotations

import math

from simcore.diagnostics import UsageError, printable
from simcore.model.gpu import find_gpu
from simcore.model.imbalance import ExpertLoads, expert_loads, layer_loads, mean_loads
from simcore.model.options.request import TrainingRequest, common_divisors, nearest_words
from simcore.model.sizes import Moe
from simcore.model.training import Training
from simcore.parameters import flag_of
from simcore.ranks import ranks_of_domain
from simcore.records import replace
from simcore.units import plural
from simcore.workload.model import ModelParameters


def _expert_degree(training: Training, parameters: ModelParameters) -> int:
    """Returns how many ranks of tp divide an expert. Raises `UsageError` where they cannot."""
    etp, tp, moe = parameters.etp, training.tp, training.model.moe
    if etp is None and training.inference is not None and moe is not None:
        # Without ranks of their own experts are divided as all other weights.
        divides = training.ep == 1 and moe.ffn % tp == 0 and parameters.expert_imbalance is None
        etp = tp if divides else 1
    if etp is None or etp == 1:
        return 1
    if moe is None:
        raise UsageError(f"--etp {etp}: {printable(training.model.name, 40)} has no experts; 1 would fit")
    if etp != tp:
        fit = f"1 or tp {tp}" if tp > 1 else "1"
        raise UsageError(f"--etp {etp}: ranks of tp {tp} hold whole experts or divide each; {fit} would fit")
    if moe.ffn % etp:
        raise UsageError(f"--etp {etp} does not divide the ffn {moe.ffn} of an expert; 1 would fit")
    data = training.dp * training.cp
    if data % training.ep:
        raise UsageError(
            f"--etp {etp}: ep {training.ep} does not divide dp x cp {data}: "
            f"{nearest_words(common_divisors(moe.experts, data), training.ep)} would fit"
        )
    if parameters.expert_imbalance is not None:
        raise UsageError("--etp with --expert-imbalance: one of the two would fit")
    return etp


def _padded_capacity(training: Training, parameters: ModelParameters) -> float:
    """Returns the capacity that every expert is filled up to, over the mean; 0 without padding. Raises
    `UsageError` where nothing can be filled up.
    """
    if not parameters.pad_to_capacity:
        return 0.0
    if training.model.moe is None:
        raise UsageError(
            f"--pad-to-capacity: {printable(training.model.name, 40)} has no experts; a model with them "
            "would fit"
        )
    if parameters.expert_capacity is None:
        raise UsageError("--pad-to-capacity: with --expert-capacity, 1 or more, it would fit")
    if parameters.expert_imbalance is not None:
        raise UsageError(
            "--pad-to-capacity with --expert-imbalance: every expert runs its capacity, whatever is routed; "
            "one of the two would fit"
        )
    return parameters.expert_capacity


def add_experts(request: TrainingRequest, training: Training) -> Training:
    """Returns the training with the options of its experts. Raises `UsageError` for those that do not fit."""
    parameters, moe = request.parameters, training.model.moe
    training = replace(training, etp=_expert_degree(training, parameters))
    training = replace(training, capacity=_padded_capacity(training, parameters))
    training = _add_dispatch(training, parameters)
    if training.ep_node and moe and moe.groups and parameters.node_limit is None:
        request.assume("node_limit", *_describe_groups(training, moe))
    return _add_loads(training, parameters)


def _add_dispatch(training: Training, parameters: ModelParameters) -> Training:
    """Returns the training with the way of tokens to experts. Raises `UsageError` where none are sent, or not
    so.
    """
    limit, moe = parameters.node_limit, training.model.moe
    for field in ("dispatch", "node_limit", "dispatch_precision"):
        value, flag = getattr(parameters, field), flag_of(field)
        if value is None:
            continue
        if flag.choices and value not in flag.choices:
            raise UsageError(
                f"{flag.option} {printable(value, 40)}: one of {', '.join(flag.choices)} is expected"
            )
        if training.ep == 1 or moe is None:
            raise UsageError(
                f"{flag.option} is of what is sent to experts: found ep 1; --ep 2 or more would fit"
            )
    if parameters.dispatch_precision == "fp8":
        training = replace(training, fp8_dispatch=True)
    if moe is None or (parameters.dispatch != "hierarchical" and limit is None):
        return training
    inside = _ranks_in_node(training, parameters)
    nodes = training.ep // inside
    if limit is not None:
        least = -(-moe.experts_per_token * nodes // moe.experts)
        if not least <= limit <= nodes:
            raise UsageError(
                f"--node-limit {limit}: the {moe.experts} experts are on {plural(nodes, 'node')}, the "
                f"{moe.experts_per_token} of a token on {least} or more; {_range_words(least, nodes)} would "
                "fit"
            )
    if parameters.dispatch != "hierarchical" or nodes == 1:
        return training
    if parameters.expert_imbalance is not None:
        raise UsageError("--dispatch hierarchical with --expert-imbalance: one of the two would fit")
    if limit is None and moe.groups and not nodes % moe.groups:
        limit = moe.groups_per_token * nodes // moe.groups
    return replace(training, ep_node=inside, node_limit=limit or 0)


def _describe_groups(training: Training, moe: Moe) -> tuple[str, str]:
    """Returns (where the experts of a token are taken to be, why)."""
    nodes, limit = training.ep // training.ep_node, training.node_limit
    groups_words = f"{moe.groups_per_token} of {moe.groups} groups"
    if limit:
        return f"{limit}", f"the {groups_words} of a token's experts lie on so many of {nodes} nodes"
    if moe.groups % nodes:
        return "none", f"the {moe.groups} groups of experts do not lie on whole nodes, which are {nodes}"
    on_node = moe.groups // nodes
    return f"{groups_words} of experts", f"of which {on_node} lie on each of {nodes} nodes"


def _ranks_in_node(training: Training, parameters: ModelParameters) -> int:
    """Returns how many neighbours of an expert group are in one server of the GPU."""
    server = ranks_of_domain(find_gpu(training.gpu).server, training.world)
    # Neighbours on dp are as many ranks apart.
    apart = training.tp * (training.pp if parameters.rank_order == "tp-pp-dp" else 1)
    inside = max(1, server // apart) * (min(training.tp, server) if training.etp == 1 else 1)
    return math.gcd(inside, training.ep)


def _range_words(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _add_loads(training: Training, parameters: ModelParameters) -> Training:
    """Returns the training with the loads of its experts. Raises `UsageError` where the model has none."""
    model = training.model
    moe = model.moe
    for field in ("expert_imbalance", "expert_capacity", "expert_placement"):
        if getattr(parameters, field) is None:
            continue
        option = flag_of(field).option
        if moe is None:
            raise UsageError(
                f"{option}: {printable(training.model.name, 40)} has no experts; a model with them would fit"
            )
        if parameters.expert_imbalance is None and not (field == "expert_capacity" and training.capacity):
            others = " or --pad-to-capacity" if field == "expert_capacity" else ""
            raise UsageError(f"{option} is of uneven loads: with --expert-imbalance{others} it would fit")
    placement = parameters.expert_placement
    if placement is not None and placement not in flag_of("expert_placement").choices:
        choices = ", ".join(flag_of("expert_placement").choices)
        raise UsageError(f"--expert-placement {printable(placement, 40)}: one of {choices} is expected")
    if moe is None or parameters.expert_imbalance is None:
        return training
    loads, each = resolve_loads(training, parameters)
    return replace(training, loads=loads, layer_loads=each)


def resolve_loads(
    training: Training, parameters: ModelParameters
) -> tuple[ExpertLoads | None, tuple[ExpertLoads | None, ...]]:
    """Returns the loads of the experts of a model with experts, as `Training.loads` and `layer_loads`."""
    model = training.model
    assert model.moe is not None
    sizes = model.moe.experts, training.ep, training.routed_tokens
    has_experts = [model.is_moe(layer) for layer in range(model.layers)]
    each = layer_loads(parameters, *sizes, has_experts)
    return (mean_loads(each), each) if each else (expert_loads(parameters, *sizes), ())
