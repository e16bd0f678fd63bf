"""SimAI's ratio tables: how much of its bus bandwidth a collective of some size reaches.

The tables are in simai_ratio.csv beside this file, with their source.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

# The columns: numbers of nodes, and one for expert groups whose tensor groups fill a server.
_NODES = (1, 2, 4, 8, 16, 32, 64, 128)
_OTHER_NODES = "16"
MULTI_NODE = "Multi 16"
_COLUMNS = (*map(str, _NODES), MULTI_NODE)


class Table(NamedTuple):
    """One table. sizes: bytes of each row, ascending; columns: the ratios of each."""

    sizes: tuple[int, ...]
    columns: dict[str, tuple[float, ...]]


def column_of(nodes: int) -> str:
    """The column for a number of nodes: its own, else that of 16."""
    return str(nodes) if nodes in _NODES else _OTHER_NODES


def ratio(table: str, column: str, size: int) -> float:
    """What share of the bandwidth at 16 GiB a collective of `size` bytes reaches.

    Linear between rows; below 16 MiB as at 16 MiB, above 16 GiB as there; 1 for no bytes.
    """
    sizes, columns = _tables()[table]
    ratios = columns[column]
    if size == 0 or size >= sizes[-1]:
        return 1.0
    if size <= sizes[0]:
        return ratios[0] / ratios[-1]
    above = next(row for row, bytes_there in enumerate(sizes) if bytes_there >= size)
    low, high = sizes[above - 1], sizes[above]
    step = ratios[above] - ratios[above - 1]
    return (ratios[above - 1] + step * (size - low) / (high - low)) / ratios[-1]


@lru_cache(maxsize=1)
def _tables() -> dict[str, Table]:
    text = Path(__file__).with_suffix(".csv").read_text(encoding="utf-8")
    rows = [line.split(",") for line in text.splitlines() if not line.startswith("#")][1:]
    tables = {}
    for name in dict.fromkeys(row[0] for row in rows):
        own = [row[1:] for row in rows if row[0] == name]
        ratios = [[float(cell) if cell else 1.0 for cell in row[1:]] for row in own]
        columns = dict(zip(_COLUMNS, zip(*ratios, strict=True), strict=True))
        tables[name] = Table(tuple(int(row[0]) for row in own), columns)
    return tables
