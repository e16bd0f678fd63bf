"""ASTRA-sim's system file: algorithms, chunks, endpoint delay, local memory.

Version 2.0's `system.json` has a list of one algorithm a dimension; version 1.0's is lines of
`key: value` (or the same keys as JSON), with algorithms joined by `_`: `ring_direct`. What the file
leaves out is as in ASTRA-sim: endpoint delay 10 ns, 1 split, 1 active chunk, newest collective
first, local memory 1600 GB/s (decimal), in 1.0 500000. Keys that no price depends on are ignored
with a note.
"""

from __future__ import annotations

from typing import Any

from simcore.cluster.files.astra_network import LOCAL_MEMORY
from simcore.cluster.files.source import ClusterText, Entries, is_number, json_entries, line_entries, quoted
from simcore.cluster.model import is_algorithm
from simcore.cluster.parsing import BANDWIDTHS, Algorithms, Settings, either
from simcore.diagnostics import Diagnostic
from simcore.names import COLLECTIVES, OPTIMIZATIONS
from simcore.parameters import MOST_CHUNKS

_CODE = "system-json"
_WHAT = "a system.json"
_IMPLEMENTATIONS = {f"{name}-implementation": kind for name, kind in COLLECTIVES.items()}
_NAMES = {
    "ring": "ring",
    "halvingDoubling": "halving-doubling",
    "doubleBinaryTree": "double-binary-tree",
    "oneRing": "one-ring",
    "oneHalvingDoubling": "one-halving-doubling",
}
ALGORITHMS_EXPECTED = either(["ring", "direct", "direct<W>", *list(_NAMES)[1:], "oneDirect"])
_ORDERS = ("LIFO", "FIFO")
# The scheduler that is simulated, for each key that chooses one.
_SCHEDULERS = {"inter-dimension-scheduling": "baseline", "intra-dimension-scheduling": "FIFO"}
_KEYS = (
    *_IMPLEMENTATIONS, "endpoint-delay", "active-chunks-per-dimension", "preferred-dataset-splits",
    "local-mem-bw", "collective-optimization", "scheduling-policy", *_SCHEDULERS,
)  # fmt: skip


def read_system(source: ClusterText, dimensions: int) -> Settings:
    """Returns the settings of a system file for a network of so many dimensions. Raises InputError.

    If the file states algorithms of an all-to-all, each of its messages gets the whole bandwidth,
    as ASTRA-sim's congestion-unaware backend gives it to them.
    """
    is_json = source.text.lstrip()[:1] in ("{", "[", "")
    entries = (json_entries if is_json else line_entries)(source, _CODE, _WHAT)
    by_key = entries.by_key
    is_first = any(key in by_key and isinstance(by_key[key].value, str) for key in _IMPLEMENTATIONS)
    by_collective = tuple(
        (collective, _algorithms(entries, key, dimensions))
        for key, collective in _IMPLEMENTATIONS.items()
        if key in by_key
    )
    memory = by_key.get("local-mem-bw")
    if memory and not (is_number(memory.value) and BANDWIDTHS[0] <= memory.value <= BANDWIDTHS[1]):
        raise entries.make_value_error("local-mem-bw", "a number from 1e-6 to 1e9 (GB/s)")
    default_memory = LOCAL_MEMORY if is_first or not is_json else 1600.0
    return Settings(
        by_collective=by_collective,
        endpoint_delay_ns=entries.count("endpoint-delay", 10, 0, 10**9),
        local_mem_bandwidth=float(memory.value) if memory else default_memory,
        alltoall_port_time=False if "all-to-all-implementation" in by_key else None,
        splits=entries.count("preferred-dataset-splits", 1, 1, MOST_CHUNKS),
        active_chunks=entries.count("active-chunks-per-dimension", 1, 1, MOST_CHUNKS),
        optimization=_word(entries, "collective-optimization", OPTIMIZATIONS),
        newest_first=_word(entries, "scheduling-policy", _ORDERS) == "LIFO",
        diagnostics=(
            *source.note_ignored(
                [(key, source.locate(entry.key_at)) for key, entry in by_key.items() if key not in _KEYS]
            ),
            *_other_schedulers(entries),
        ),
    )


def _word(entries: Entries, key: str, words: tuple[Any, ...]) -> Any:
    """Returns one of `words`, the first one where the key is not there."""
    if key not in entries.by_key:
        return words[0]
    value = entries.by_key[key].value
    if value not in words:
        raise entries.make_value_error(key, either(words) if len(words) > 1 else words[0])
    return value


def _other_schedulers(entries: Entries) -> list[Diagnostic]:
    """Returns a warning for each chosen scheduler that is not simulated."""
    other_schedulers = []
    for key, simulated in _SCHEDULERS.items():
        if key in entries.by_key and entries.by_key[key].value != simulated:
            entry = entries.by_key[key]
            line, column = entries.source.locate(entry.at)
            message = f"found {quoted(entry.value)} for {key}, expected {simulated}; {simulated} is simulated"
            other_schedulers.append(
                Diagnostic("warning", "scheduler-ignored", message, entries.source.path, line, column)
            )
    return other_schedulers


def _algorithms(entries: Entries, key: str, dimensions: int) -> Algorithms:
    """Returns one algorithm a dimension; a single `one...` takes all of them."""
    entry = entries.by_key[key]
    is_joined = isinstance(entry.value, str)
    if not is_joined and not isinstance(entry.value, list):
        raise entries.make_value_error(key, "a list of one algorithm a dimension")
    names: list[str | None] = []
    for index, name in enumerate(entry.value.split("_") if is_joined else entry.value):
        algorithm = algorithm_named(name)
        if algorithm is None:
            message = f"found {quoted(name)} in {key}, expected {ALGORITHMS_EXPECTED}"
            at = entry.at if is_joined else entry.items_at[index]
            raise entries.source.make_error(_CODE, message, entries.source.locate(at))
        names.append(algorithm)
    if len(names) == 1 and str(names[0]).startswith("one-"):
        names += [None] * (dimensions - 1)
    if len(names) != dimensions:
        message = f"found {len(names)} in {key}, expected {dimensions}, one a dimension of the network"
        raise entries.source.make_error(_CODE, message, entries.source.locate(entry.at))
    return tuple(names)


def algorithm_named(name: object) -> str | None:
    """Returns wltui's name of an algorithm of ASTRA-sim, None for no algorithm."""
    if not isinstance(name, str):
        return None
    if name in _NAMES:
        return _NAMES[name]
    if name.startswith("oneDirect"):
        name = "one-direct" + name.removeprefix("oneDirect")
    elif not name.startswith("direct"):
        return None
    return name if is_algorithm(name) else None
