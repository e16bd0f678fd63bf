"""The other files of a run of execution traces: ASTRA-sim's system file as ASTRA-sim reads it, remote memory,
groups.
"""

from __future__ import annotations

import json
from typing import Any

from simcore.cluster.files.astra_system import ALGORITHMS_EXPECTED, algorithm_named
from simcore.cluster.files.source import ClusterText, Entries, is_number, json_entries, quoted
from simcore.cluster.parsing import either
from simcore.compat.astra2 import RemoteMemory, System
from simcore.names import COLLECTIVES
from simcore.parameters import MOST_CHUNKS
from simcore.records import NamedTuple
from simcore.units import is_whole

_CODE = "system-json"
_MEMORIES = ("NO_MEMORY_EXPANSION", "PER_NPU_MEMORY_EXPANSION", "PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL")


class AstraSystem(NamedTuple):
    """A system file as ASTRA-sim 2.x reads it: a missing entry has no value, unless ASTRA-sim has a
    default.
    """

    algorithms: dict[str, tuple[str, ...]]
    """Kind of collective -> one name a dimension, those of wltui."""
    endpoint_delay_ns: float
    """The endpoint delay."""
    splits: int | None
    """The number of chunks of a collective."""
    active_chunks: int
    """How many chunks a dimension runs at a time."""
    baseline: bool
    """Whether an all-reduce is a whole all-reduce on each dimension."""
    system: System
    """The rest of the file."""


def read_astra_system(path: str, dimensions: int) -> AstraSystem:
    """Returns the system file of `--dialect astra-sim-2`. Raises InputError."""
    source = ClusterText(path)
    entries = json_entries(source, _CODE, "a system.json of ASTRA-sim 2")
    by_key = entries.by_key
    algorithms, custom = {}, {}
    for word, kind in COLLECTIVES.items():
        key = f"{word}-implementation"
        if key in by_key:
            algorithms[kind] = _read_algorithms(entries, key, dimensions)
        key += "-custom"
        if key in by_key:
            names = by_key[key].value
            if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
                raise entries.make_value_error(key, "a list of one prefix of files")
            custom[kind] = names[0]
    splits = entries.count("preferred-dataset-splits", 0, 1, MOST_CHUNKS) or None
    optimization = by_key.get("collective-optimization")
    if optimization is not None and optimization.value not in ("localBWAware", "baseline"):
        raise entries.make_value_error("collective-optimization", "localBWAware or baseline")
    memory = _read_number(entries, "local-mem-bw")
    system = System(
        bool(entries.count("roofline-enabled", 0, 0, 1)), _read_number(entries, "peak-perf"), memory,
        bool(entries.count("replay-only", 0, 0, 1)), custom,
    )  # fmt: skip
    return AstraSystem(
        algorithms, entries.count("endpoint-delay", 10, 0, 10**9), splits,
        entries.count("active-chunks-per-dimension", 1, 1, MOST_CHUNKS),
        optimization is not None and optimization.value == "baseline", system,
    )  # fmt: skip


def _read_number(entries: Entries, key: str) -> float | None:
    if key not in entries.by_key:
        return None
    value = entries.by_key[key].value
    if not is_number(value) or value < 0:
        raise entries.make_value_error(key, "a number of 0 or more")
    return float(value)


def _read_algorithms(entries: Entries, key: str, dimensions: int) -> tuple[str, ...]:
    """Returns one algorithm a dimension; fewer leave the higher dimensions out (R4.11)."""
    entry = entries.by_key[key]
    if not isinstance(entry.value, list):
        raise entries.make_value_error(key, "a list of one algorithm a dimension")
    if len(entry.value) > dimensions:
        message = (
            f"found {len(entry.value)} in {key}, expected at most {dimensions}, one a dimension of the "
            f"network "
            "(ASTRA-sim aborts, R4.11)"
        )
        raise entries.source.make_error(_CODE, message, entries.source.locate(entry.at))
    names = []
    for index, name in enumerate(entry.value):
        algorithm = algorithm_named(name)
        if algorithm is None:
            message = f"found {quoted(str(name))} in {key}, expected {ALGORITHMS_EXPECTED}"
            raise entries.source.make_error(_CODE, message, entries.source.locate(entry.items_at[index]))
        names.append(algorithm)
    return tuple(names)


def read_memory(path: str) -> RemoteMemory:
    """Returns the file of `--remote-memory`. Raises InputError."""
    entries = json_entries(ClusterText(path), "remote-memory", "a remote memory file of ASTRA-sim")
    kind = entries.by_key.get("memory-type")
    if kind is None:
        raise entries.source.make_error(
            "remote-memory", f"found no memory-type, expected {either(list(_MEMORIES))}"
        )
    if kind.value not in _MEMORIES:
        raise entries.make_value_error("memory-type", either(list(_MEMORIES)))
    if kind.value == _MEMORIES[0]:
        return RemoteMemory()
    bandwidth = _read_number(entries, "remote-mem-bw")
    if not bandwidth:
        raise entries.source.make_error(
            "remote-memory", "found no remote-mem-bw above 0, expected bytes per ns (GB/s)"
        )
    per_node = entries.count("num-npus-per-node", 0, 1, 1 << 24)
    if kind.value == _MEMORIES[2] and not per_node:
        raise entries.source.make_error(
            "remote-memory", "found no num-npus-per-node, expected it with this memory-type"
        )
    return RemoteMemory(
        kind.value, entries.count("remote-mem-latency", 0, 0, 10**12), bandwidth, per_node or 1
    )


def read_groups(path: str, world: int, with_zero: bool = False) -> dict[int, tuple[int, ...]]:
    """Returns the file of `--comm-groups`: id of a group -> its ranks in its order. Raises InputError.

    with_zero: allows a group 0, which stands for all ranks, as 0 always does.
    """
    source = ClusterText(path)
    try:
        root: Any = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        raise source.make_error("comm-groups", f"this is not JSON: {str(error)[:80]}") from None
    if not isinstance(root, dict):
        raise source.make_error("comm-groups", 'found no object, expected {"1": [0, 1], ...}')
    groups: dict[int, tuple[int, ...]] = {}
    for key, ranks in root.items():
        if not is_whole(key, 9) or (int(key) == 0 and not with_zero):
            message = f"found group {quoted(key)}, expected a number from 1 (ASTRA-sim aborts, R5.4"
            message += "; without --dialect it is a group)" if key == "0" else ")"
            raise source.make_error("comm-groups", message)
        fits = isinstance(ranks, list) and all(type(rank) is int and 0 <= rank < world for rank in ranks)
        if not fits or not ranks or len(set(ranks)) != len(ranks):
            message = (
                f"found the ranks {quoted(json.dumps(ranks))} of group {key}, expected different ranks below "
                f"{world}"
            )
            raise source.make_error("comm-groups", message)
        groups[int(key)] = tuple(ranks)
    return groups
