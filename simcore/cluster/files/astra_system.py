"""ASTRA-sim 2.0 `system.json`: algorithms, chunks, endpoint delay, local memory.

What the file leaves out is as in ASTRA-sim: endpoint delay 10 ns, local memory 1600 GB/s (decimal),
1 split, 1 active chunk. Keys that no price depends on are ignored with a note.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from simcore.cluster.files.source import Source, quoted
from simcore.cluster.model import OPTIMIZATIONS, is_algorithm
from simcore.cluster.parsing import BANDWIDTHS, either
from simcore.cluster.settings import Algorithms, Settings
from simcore.diagnostics import InputError
from simcore.parameters import MOST_CHUNKS

_CODE = "system-json"
_IMPLEMENTATIONS = {
    "all-reduce-implementation": "ALLREDUCE",
    "all-gather-implementation": "ALLGATHER",
    "reduce-scatter-implementation": "REDUCESCATTER",
    "all-to-all-implementation": "ALLTOALL",
}
_NAMES = {
    "ring": "ring",
    "halvingDoubling": "halving-doubling",
    "doubleBinaryTree": "double-binary-tree",
    "oneRing": "one-ring",
    "oneHalvingDoubling": "one-halving-doubling",
}
_EXPECTED = either(["ring", "direct", "direct<W>", *list(_NAMES)[1:], "oneDirect"])
_KEYS = (
    *_IMPLEMENTATIONS, "endpoint-delay", "active-chunks-per-dimension", "preferred-dataset-splits",
    "local-mem-bw", "collective-optimization",
)  # fmt: skip
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+)')


class _Entry(NamedTuple):
    """One value of the top level; offsets of itself and, in a list, of its items."""

    value: Any
    key_at: int
    at: int
    items_at: list[int]


def read_system_json(source: Source, dimensions: int) -> Settings:
    """The settings of a `system.json` for a network of so many dimensions. Raises InputError.

    Algorithms of an all-to-all that are given here get the whole bandwidth for each message,
    as ASTRA-sim's congestion-unaware backend gives it to them.
    """
    entries = _entries(source)
    by_collective = tuple(
        (collective, _algorithms(source, key, entries[key], dimensions))
        for key, collective in _IMPLEMENTATIONS.items()
        if key in entries
    )
    optimization: Any = "localBWAware"
    if "collective-optimization" in entries:
        entry = entries["collective-optimization"]
        optimization = entry.value
        if optimization not in OPTIMIZATIONS:
            raise _wrong(source, "collective-optimization", entry, either(OPTIMIZATIONS))
    memory = entries.get("local-mem-bw")
    if memory and not (_is_number(memory.value) and BANDWIDTHS[0] <= memory.value <= BANDWIDTHS[1]):
        raise _wrong(source, "local-mem-bw", memory, "a number from 1e-6 to 1e9 (GB/s)")
    return Settings(
        by_collective=by_collective,
        endpoint_delay_ns=_count(source, entries, "endpoint-delay", 10, 0, 10**9),
        local_mem_bandwidth=float(memory.value) if memory else 1600.0,
        alltoall_port_time=False if "all-to-all-implementation" in entries else None,
        splits=_count(source, entries, "preferred-dataset-splits", 1, 1, MOST_CHUNKS),
        active_chunks=_count(source, entries, "active-chunks-per-dimension", 1, 1, MOST_CHUNKS),
        optimization=optimization,
        diagnostics=source.ignored(
            [(key, source.place(entry.key_at)) for key, entry in entries.items() if key not in _KEYS]
        ),
    )


def _algorithms(source: Source, key: str, entry: _Entry, dimensions: int) -> Algorithms:
    """One algorithm a dimension; a single `one...` takes all of them."""
    if not isinstance(entry.value, list):
        raise _wrong(source, key, entry, "a list of one algorithm a dimension")
    names: list[str | None] = []
    for name, at in zip(entry.value, entry.items_at, strict=True):
        algorithm = _algorithm(name)
        if algorithm is None:
            message = f"found {quoted(name)} in {key}, expected {_EXPECTED}"
            raise source.refusal(_CODE, message, source.place(at))
        names.append(algorithm)
    if len(names) == 1 and str(names[0]).startswith("one-"):
        names += [None] * (dimensions - 1)
    if len(names) != dimensions:
        message = f"found {len(names)} in {key}, expected {dimensions}, one a dimension of the network"
        raise source.refusal(_CODE, message, source.place(entry.at))
    return tuple(names)


def _algorithm(name: object) -> str | None:
    """wltui's name of an algorithm of ASTRA-sim."""
    if not isinstance(name, str):
        return None
    if name in _NAMES:
        return _NAMES[name]
    if name.startswith("oneDirect"):
        name = "one-direct" + name.removeprefix("oneDirect")
    elif not name.startswith("direct"):
        return None
    return name if is_algorithm(name) else None


def _count(source: Source, entries: dict[str, _Entry], key: str, default: int, least: int, most: int) -> int:
    entry = entries.get(key)
    if entry is None:
        return default
    if not _is_number(entry.value) or entry.value != int(entry.value) or not least <= entry.value <= most:
        raise _wrong(source, key, entry, f"a whole number from {least} to {most}")
    return int(entry.value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _wrong(source: Source, key: str, entry: _Entry, expected: str) -> InputError:
    shown = entry.value if isinstance(entry.value, str) else json.dumps(entry.value)
    return source.refusal(
        _CODE, f"found {quoted(shown)} for {key}, expected {expected}", source.place(entry.at)
    )


def _entries(source: Source) -> dict[str, _Entry]:
    """The top level of the file by key, with the places that JSON's own reader does not keep."""
    try:
        root = json.loads(source.text)
    except json.JSONDecodeError as error:
        message = f"this is not JSON: {error.msg}"
        raise source.refusal(_CODE, message, source.place(error.pos)) from None
    except RecursionError:
        raise source.refusal(_CODE, "found too many nested lists, expected an object") from None
    except ValueError:  # a number of more than 4300 digits
        raise source.refusal(_CODE, "found a number that is too long, expected a system.json") from None
    if not isinstance(root, dict):
        raise source.refusal(_CODE, "found no object, expected a system.json", source.place(0))
    entries: dict[str, _Entry] = {}
    depth = 0
    before = key = ""
    for token in _TOKEN.finditer(source.text):
        text, at = token[1], token.start(1)
        if text in "]}":
            depth -= 1
        elif depth == 1 and before in ("{", ",") and text.startswith('"'):
            key = json.loads(text)
            key_at = at
        elif depth == 1 and before == ":":
            entries[key] = _Entry(root[key], key_at, at, [])
        elif depth == 2 and before in ("[", ","):
            entries[key].items_at.append(at)
        if text in "[{":
            depth += 1
        before = text
    return entries
