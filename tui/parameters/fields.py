"""The fields of the form: what each shows, and what scrubbing or typing makes of the parameters."""

from __future__ import annotations

from simcore.choices import choices
from simcore.forms import form_of
from simcore.networks import network_model
from simcore.parameters import FLAGS, Flag, belongs
from tui.parameters.basis import Basis
from tui.parameters.dimension_fields import dimension_fields, dimension_place
from tui.parameters.field import Field, scrubbed_figure
from tui.parameters.flag_fields import FlagField, NetworkField, TextField
from tui.parameters.list_fields import DimensionsField, ListField

_KINDS: dict[str, type[FlagField]] = {"text": TextField, "words": ListField}
# Of files alone, or of another form of the same run: a model has rows of its own.
_NOT_OF_MODELS = ("dialect", "passes", "stage_layout", "microbatches", "as_aicb", "aicb_args")
# Names that would fill their column.
_SHORT = {
    "overlap_fwd_bwd": "overlap f+b",
    "overlap_grad_reduce": "overlap reduce",
    "overlap_param_gather": "overlap gather",
}


def fields_for(basis: Basis) -> list[Field]:
    """The fields of a run or a draft, in the groups of the command line.

    Choices of one are left out, what the run's network has no use for, and the layers of a file
    that is no op table. Raises `UsageError` for a network that there is not.
    """
    found: list[Field] = []
    model = network_model(basis.parameters)
    # What a model is made with stands beside its degrees.
    of_model = ("layout", "model") if basis.workload.maker is not None else ()
    for flag in sorted(FLAGS, key=lambda flag: flag.group not in of_model):
        if flag.group == "cluster" and not basis.has_dimensions:
            continue
        if flag.group == "network" and flag.field not in ("network", *model.flags):
            continue
        if flag.field == "dim":
            for index in range(len(basis.cluster.dims)):
                found += dimension_fields(index, basis.cluster.dims)
            found.append(_made(DimensionsField, flag, "dimensions"))
        elif not _is_left_out(flag, basis):
            # A label has 22 columns.
            label = _SHORT.get(flag.field) or flag.field.replace("_", " ").removeprefix("collective ")
            kind = NetworkField if flag.field == "network" else _KINDS.get(flag.kind, FlagField)
            found.append(_made(kind, flag, label))
    return found


def _made(kind: type[FlagField], flag: Flag, label: str) -> FlagField:
    """The field of a flag. Of a list its help tells the form, too."""
    words = f"{form_of(flag.field)}  {flag.help}" if flag.kind == "words" else flag.help
    return kind(flag.group, label, flag.unit, f"{flag.option}  {words}", flag.option, flag)


def _is_left_out(flag: Flag, basis: Basis) -> bool:
    maker = basis.workload.maker
    if not belongs(flag, "workload" if maker is None else "model"):
        return True
    if maker is not None and flag.field in _NOT_OF_MODELS:
        return True
    if flag.field == "layers":
        return not basis.workload.is_table
    return flag.field == "algorithm" or (flag.kind == "word" and len(choices(flag.field)) == 1)


__all__ = ["Field", "dimension_place", "fields_for", "scrubbed_figure"]
