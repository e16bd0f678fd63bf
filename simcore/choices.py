"""What a parameter that is a word may be. Reads names and registries, and loads nothing that runs."""

from __future__ import annotations

from simcore.names import DIALECTS, GPU_TYPES, NIC_TYPES, OPTIMIZATIONS, RANK_ORDERS, STAGE_LAYOUTS
from simcore.networks import network_names
from simcore.program.schedules import SCHEDULES

_CHOICES = {
    "schedule": tuple(SCHEDULES),
    "rank_order": RANK_ORDERS,
    "stage_layout": STAGE_LAYOUTS,
    "network": network_names(),
    "gpu_type": tuple(GPU_TYPES),
    "nic_type": tuple(NIC_TYPES),
    "dialect": DIALECTS,
    "collective_optimization": OPTIMIZATIONS,
}


def is_one_of(text: str, words: tuple[str, ...]) -> bool:
    """Whether `text` is one of a parameter's words; of some more stands behind a colon: `busbw:FILE`."""
    name, _, argument = text.partition(":")
    known = {word.partition(":")[0]: ":" in word for word in words}
    return name in known and bool(argument) == known[name]


def choices(field: str) -> tuple[str, ...]:
    """The words that `field` of `Parameters` may be, in the order in which they are shown."""
    return _CHOICES[field]
