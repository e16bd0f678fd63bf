"""The fields of a launch table: those of a model and of its training, taken apart and put together."""

from __future__ import annotations

from typing import Any

from simcore.model.known_models import MODELS
from simcore.model.launch.arguments import Fields
from simcore.model.sizes import Mla, Model, Moe
from simcore.model.training import Training
from simcore.records import asdict, replace
from simcore.workload.model import ModelParameters

# Fields that rows of a table use and that are no parameters.
_DERIVED = frozenset(("dp", "stages", "predictions"))
# What a trainer does not know of a model.
_UNSTATED = {"name": "", "seq": 0, "dropout": False, "vocab_step": 0}
# What a configuration states of its checkpoint, and no step has.
_OF_CHECKPOINT = {"longest": 0, "vision_parameters": 0, "mtp_layers": 0, "mtp_kind": -1}


class LaunchParameters(ModelParameters, frozen=True):
    """The parameters that launch arguments state, as in `Parameters`."""

    rank_order: str = "tp-ep-dp-pp"


def fields_of(training: Training, parameters: LaunchParameters) -> Fields:
    """Returns the fields of a training, as a table writes them."""
    model = training.model
    fields: Fields = {f"model.{name}": value for name, value in asdict(model).items()}
    for prefix, part in (("moe", model.moe), ("mla", model.mla)):
        fields |= {f"{prefix}.{name}": value for name, value in (asdict(part) if part else {}).items()}
    fields["model.seq"] = training.seq
    fields |= {
        name: getattr(training, name)
        for name in ("tp", "cp", "pp", "ep", "dp", "etp", "seq", "microbatch_size", "global_batch", "world",
                     "microbatches", "recompute", "precision", "cp_comm_type", "overlap_tp")
    }  # fmt: skip
    fields |= {
        name: getattr(parameters, name)
        for name in ("recompute_layers", "recompute_rows", "schedule", "pipeline_layout", "rank_order",
                     "account_for_embedding", "account_for_loss", "overlap_fwd_bwd", "bucket_size",
                     "expert_capacity", "pad_to_capacity",
                     "overlap_grad_reduce", "overlap_param_gather", "reshard_after_forward")
    }  # fmt: skip
    return fields | {
        "virtual_stages": training.chunks,
        "cp_inner": training.cp_heads,
        "stages": training.position_layers,
        "predictions": training.position_predictions,
        "sequence_parallel": "on" if training.sequence_parallel else "off",
        "flash": "on" if training.flash else "off",
        "zero": str(training.zero),
        "shard_size": training.shard_size or None,
        "grad_dtype": "fp32" if training.grad_bytes == 4 else "bf16",
        "engine_preset": training.engine,
        "compile": "on" if training.compiled else "off",
        "pp_scatter": "on" if training.pp_scatter else "off",
    }


def parameter_values(fields: Fields) -> dict[str, Any]:
    """Returns the values of parameters among the fields."""
    values = {
        name: value
        for name, value in fields.items()
        if "." not in name and name not in _DERIVED and value not in (None, False)
    }
    for degree in ("tp", "pp", "cp", "ep", "etp"):
        if values.get(degree) == 1:
            del values[degree]
    if "cp" not in values:
        values.pop("cp_comm_type", None)
    return values


def build_model(name: str, fields: Fields) -> Model:
    """Returns the model of the fields, by the name of a known one of its sizes."""

    def part(prefix: str) -> dict[str, Any]:
        prefix += "."
        return {key[len(prefix) :]: value for key, value in fields.items() if key.startswith(prefix)}

    sizes = part("model")
    moe = Moe(**part("moe")) if "moe.experts" in fields else None
    mla = Mla(**part("mla")) if "mla.kv_lora_rank" in fields else None
    model = Model(name, **sizes, moe=moe, mla=mla)
    return replace(model, name=known_name(model) or name)


def known_name(model: Model) -> str:
    """Returns the name of the known model of these sizes, "" for none."""
    sizes = replace(_without_groups(model), **_OF_CHECKPOINT)
    return next((name for name, one in MODELS.items() if _without_groups(one) == sizes), "")


def _without_groups(model: Model) -> Model:
    """Returns the sizes without what arguments may leave out."""
    moe = model.moe and replace(model.moe, groups=0, groups_per_token=0)
    return replace(model, **_UNSTATED, moe=moe)


def differences(before: Training, after: Training) -> list[str]:
    """Returns the names of what differs between two trainings, except the names of their models and what was
    assumed for them.
    """
    names = [name for name in Training.__struct_fields__ if name not in ("model", "diagnostics", "gpu")]
    different = [name for name in names if getattr(before, name) != getattr(after, name)]
    sizes = [name for name in Model.__struct_fields__ if name not in ("name", "seq", *_OF_CHECKPOINT)]
    return different + [
        f"model {name}" for name in sizes if getattr(before.model, name) != getattr(after.model, name)
    ]
