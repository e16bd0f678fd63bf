"""The program room: from rows to the ops of one step, in the order each stage issues them.

Knows schedules; knows no network, no prices and no times.
Import from here: `build_program`, `build_policy_program`, `Program`, `StageProgram`, `Ops`, `SCHEDULES`.
"""

from simcore.program.building import build_policy_program, build_program
from simcore.program.ops import Ops, Program, StageProgram
from simcore.program.schedules import SCHEDULES

__all__ = ["SCHEDULES", "Ops", "Program", "StageProgram", "build_policy_program", "build_program"]
