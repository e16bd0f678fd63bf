"""Execution traces (Chakra): read, run by wltui's rules or by ASTRA-sim 2.x's (docs/execution-traces.md).

Import from here: `ExecutionSet`, `find_set`, `is_trace`, `open_set`.
"""

from __future__ import annotations

from simcore.chakra.files import SetFiles, find_set, is_trace
from simcore.chakra.opening import ExecutionSet, open_set

__all__ = ["ExecutionSet", "SetFiles", "find_set", "is_trace", "open_set"]
