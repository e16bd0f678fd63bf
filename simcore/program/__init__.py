"""The program room: from rows to the ops of one step, in the order each stage issues them.

Knows schedules; knows no network, no prices and no times.
Import from here: `build_program`, `build_policy_program`, `Program`, `StageProgram`, `Ops`, `SCHEDULES`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from simcore.program.schedules import SCHEDULES

if TYPE_CHECKING:
    from simcore.program.building import build_policy_program, build_program
    from simcore.program.ops import Ops, Program, StageProgram

__all__ = ["SCHEDULES", "Ops", "Program", "StageProgram", "build_policy_program", "build_program"]

_HOMES = {
    "build_policy_program": "building",
    "build_program": "building",
    "Ops": "ops",
    "Program": "ops",
    "StageProgram": "ops",
}


def __getattr__(name: str) -> Any:
    """Loads a name on first use: `--help` needs the names of schedules and builds no program."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
