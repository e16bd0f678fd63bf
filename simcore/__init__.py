"""simcore simulates distributed-training workloads; it has no screen and imports none.

    import simcore as wl

    run = wl.load("workload.txt").run(schedule="1f1b")
    slow = run.with_(bandwidth={"tp": 0.5})
    wl.compare(run, slow).reasons

The public names are in `__all__`, loaded when first used (`simcore/api/`, docs/python.md). Times are
int nanoseconds everywhere, sizes int bytes, bandwidths float bytes per nanosecond (= GB/s, 10^9).
"""

from typing import Any

__version__ = "0.1.0"

__all__ = [
    "Comparison", "CriticalPath", "Input", "InputError", "Run", "Sweep", "Table", "UsageError", "__version__",
    "compare", "load", "sweep",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # Loaded here: `wltui --help` imports this, and needs nothing of it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("simcore.api"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
