"""Meanings of the words of a Megatron rank trace: operations, pipeline states, group kinds.

The trace's words are not the workload's: its `ep` is the word-embedding group (first and last stage), `pep`
the position-embedding group, `exp` the expert-parallel group. Source: the tracer of fwyc0573/Megatron-LM and
the data it wrote.
"""

from __future__ import annotations

from functools import lru_cache

from simcore.kernel_names import short_name
from simcore.names import GROUP_KINDS
from simcore.units import is_whole

# Categories of spans of a measured run, in the order of report columns. Compute by its purpose; communication
# by group; `comm` is communication of a kind that has no name here; `host` is neither (loading a batch);
# `gap` is the host's time between operations, `outside` the time before the first and after the last one. A
# profiler trace also has `kernel`, compute of unknown purpose, and `copy`, of memory.
KERNEL, COPY = "kernel", "copy"
COMPUTE = ("forward", "backward", "optimizer", KERNEL)
CATEGORIES = (*COMPUTE, *GROUP_KINDS, COPY, "host", "gap", "outside")

# The trace's group kinds, those of sub-operations first: their lane comes below compute.
GROUPS = {
    "tp": "tp", "pp": "pp", "dp": "dp", "ep": "embedding", "pep": "position", "exp": "expert",
    "exp_dp": "expert dp",
}  # fmt: skip

# Operation -> (category when no group takes part, the group that takes part when the line names none).
_OPS = {
    "forward_step": ("forward", None), "loss_func": ("forward", None), "backward_step": ("backward", None),
    "optimizer_step": ("optimizer", None), "get_batch": ("host", None),
    "recv_forward": ("pp", "pp"), "send_forward": ("pp", "pp"),
    "recv_backward": ("pp", "pp"), "send_backward": ("pp", "pp"),
    "dp_allreduce": ("dp", "dp"), "ddp_grad_comm": ("dp", "dp"),
    "ep_allreduce": ("embedding", "ep"), "pep_allreduce": ("position", "pep"),
    "exp_dp_allreduce": ("expert dp", "exp_dp"),
    "tp_allreduce": ("tp", "tp"), "tp_load_batch_broadcast": ("tp", "tp"), "tp_reduce_scatter": ("tp", "tp"),
    "exp_all_to_all": ("expert", "exp"), "exp_allgather": ("expert", "exp"),
}  # fmt: skip
# A line of this operation states when a bucket's gradient reduction was launched; it overlaps the backward
# step whose line follows.
LAUNCH = "ddp_grad_comm"
RECEIVES = frozenset(("recv_forward", "recv_backward"))
POINT_TO_POINT = RECEIVES | {"send_forward", "send_backward"}

_DTYPE_BYTES = {
    "float64": 8, "double": 8, "int64": 8, "long": 8, "float32": 4, "float": 4, "int32": 4, "int": 4,
    "float16": 2, "half": 2, "bfloat16": 2, "int16": 2, "short": 2, "int8": 1, "char": 1, "uint8": 1,
    "byte": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip
_MOST_DIMENSIONS = 16


def is_known_op(name: str) -> bool:
    """Returns whether an operation's name is one of the tracer's."""
    return name in _OPS


def group_of_op(name: str, stated_group: str | None) -> str | None:
    """Returns the trace's group kind of an operation: as stated on its line, else the one its name
    implies.
    """
    if stated_group is not None:
        return stated_group
    return _OPS[name][1] if name in _OPS else None


def describe_op(name: str, most: int) -> str:
    """Returns an operation's name for the user, truncated to `most` characters; a tracer's word that means
    something else elsewhere has its meaning behind it.

    >>> describe_op("ep_allreduce", 40), describe_op("tp_allreduce", 40)
    ('ep_allreduce (embedding)', 'tp_allreduce')
    """
    group = _OPS[name][1] if name in _OPS else None
    if group is None or GROUPS[group] == group or not name.startswith(group):
        return short_name(name, most)
    return f"{short_name(name, most)} ({GROUPS[group]})"


def category_of_op(name: str, group: str | None) -> str:
    """Returns the category of an operation whose group kind is `group`: for compute its name decides."""
    category, implied = _OPS.get(name, ("host", None))
    if group is None or (name in _OPS and implied is None):
        return category
    return category_of_group(group)


def category_of_group(group: str | None) -> str:
    """Returns the category of communication in a group of this kind; `comm` for kinds without a name."""
    return GROUPS.get(group, "comm") if group is not None else "comm"


def shape_of(text: str | None) -> tuple[int, ...] | None:
    """Returns the shape that a line writes as `[2048, 2, 5120]`, elements per dimension; None if it is
    none.
    """
    if text is None or not (text.startswith("[") and text.endswith("]")) or len(text) > 400:
        return None
    dimensions = [word.strip() for word in text[1:-1].split(",")]
    if len(dimensions) > _MOST_DIMENSIONS or not all(is_whole(word, 15) for word in dimensions):
        return None
    return tuple(map(int, dimensions))


@lru_cache(1 << 10)
def element_bytes(dtype: str | None) -> int | None:
    """Returns the bytes of an element of a type: `torch.float32`, `BFloat16` and the like; None if
    unknown.
    """
    return _DTYPE_BYTES.get((dtype or "").removeprefix("torch.").lower())


def buffer_bytes(shape: str | None, dtype: str | None) -> int | None:
    """Returns the bytes of a buffer: elements times the size of `torch.float32` and the like; None if
    unknown.
    """
    dimensions = shape_of(shape)
    size = element_bytes(dtype)
    if dimensions is None or size is None:
        return None
    for dimension in dimensions:
        size *= dimension
    return size
