"""Runs execution traces, by wltui's rules or ASTRA-sim 2.x's, and says what became of them.

Import from here: `executed_results`, `TraceResults`.
"""

from simcore.executing.results import TraceResults, executed_results

__all__ = ["TraceResults", "executed_results"]
