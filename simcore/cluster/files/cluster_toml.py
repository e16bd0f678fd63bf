"""wltui's own cluster file: the cluster flags of the command line, as TOML.

dim = ["switch:8:450:500", "switch:128:50:1000"]   # KIND:SIZE:GBPS:NS, inner first
algorithm = ["1=ring"]
splits = 4
active_chunks = 2
endpoint_delay = 10                                 # ns
local_mem_bw = 3350                                 # GB/s
collective_optimization = "baseline"

In place of `dim`, the keys of `topology_toml` state nodes and links.
"""

from __future__ import annotations

from typing import Any

from simcore.cluster.files.source import ClusterText, quoted
from simcore.cluster.files.topology_toml import KEYS as TOPOLOGY_KEYS
from simcore.cluster.files.topology_toml import read_topology_table
from simcore.cluster.parsing import BANDWIDTHS, Settings, either, parse_algorithm, parse_dimension
from simcore.diagnostics import InputError, UsageError
from simcore.model.toml_text import TomlProblem, locate_key, parse_toml
from simcore.names import OPTIMIZATIONS, Optimization
from simcore.parameters import MOST_CHUNKS

_CODE = "cluster-toml"
_KEYS = (
    "dim", "algorithm", "splits", "active_chunks", "endpoint_delay", "local_mem_bw",
    "collective_optimization", *TOPOLOGY_KEYS,
)  # fmt: skip


def read_cluster_toml(source: ClusterText) -> Settings:
    """Returns the settings of a cluster file; only `dim` is required. Raises InputError."""
    table = _table(source)
    for key in table:
        if key not in _KEYS:
            raise source.make_error(
                _CODE, f"found {quoted(key)}, expected {either(_KEYS)}", locate_key(source.text, key)
            )
    topology_keys = [key for key in table if key in TOPOLOGY_KEYS]
    if topology_keys and "dim" in table:
        message = f"found {topology_keys[0]} with dim, expected one of them"
        raise source.make_error(_CODE, message, locate_key(source.text, topology_keys[0]))
    if topology_keys:
        base = read_topology_table(source, table)
        dims = list(base.dims)
    elif "dim" not in table:
        raise source.make_error(_CODE, 'found no dim, expected for example dim = ["switch:8:450:500"]')
    else:
        base = Settings()
        dims = [_parsed(source, "dim", text, parse_dimension) for text in _texts(source, table, "dim")]
    algorithms = [
        _parsed(source, "algorithm", text, lambda text: parse_algorithm(text, dims))
        for text in _texts(source, table, "algorithm")
    ]
    memory = table.get("local_mem_bw")
    if memory is not None and not (_is_number(memory) and BANDWIDTHS[0] <= memory <= BANDWIDTHS[1]):
        raise _wrong(source, "local_mem_bw", memory, "a number from 1e-6 to 1e9 (GB/s)")
    optimization: Optimization | None = table.get("collective_optimization")
    if optimization is not None and optimization not in OPTIMIZATIONS:
        raise _wrong(source, "collective_optimization", optimization, either(OPTIMIZATIONS))
    settings = Settings(
        dims=tuple(dims),
        topology=base.topology,
        diagnostics=base.diagnostics,
        endpoint_delay_ns=_count(source, table, "endpoint_delay", 0, 10**9),
        local_mem_bandwidth=None if memory is None else float(memory),
        splits=_count(source, table, "splits", 1, MOST_CHUNKS),
        active_chunks=_count(source, table, "active_chunks", 1, MOST_CHUNKS),
        optimization=optimization,
    )
    return settings.with_algorithms(algorithms, len(dims))


def _table(source: ClusterText) -> dict[str, Any]:
    try:
        return parse_toml(source.text, "single values")
    except TomlProblem as problem:
        raise source.make_error(_CODE, problem.message, problem.location) from None


def _texts(source: ClusterText, table: dict[str, Any], key: str) -> list[str]:
    value = table.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise _wrong(source, key, value, "a list of texts")
    return value


def _parsed(source: ClusterText, key: str, text: str, parse: Any) -> Any:
    """Returns `text` as the flag of the same name parses it; its error gets a (line, column) here."""
    try:
        return parse(text)
    except UsageError as error:
        message = f"{key} {str(error).removeprefix('--' + key + ' ')}"
        raise source.make_error(_CODE, message, locate_key(source.text, key, text)) from None


def _count(source: ClusterText, table: dict[str, Any], key: str, least: int, most: int) -> int | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise _wrong(source, key, value, f"a whole number from {least} to {most}")
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrong(source: ClusterText, key: str, value: object, expected: str) -> InputError:
    return source.make_error(
        _CODE, f"found {quoted(value)} for {key}, expected {expected}", locate_key(source.text, key)
    )
