"""SimAI's two models stated a second time, as tables of cases, to compare the networks with."""

from __future__ import annotations

import csv
import itertools
import math
import struct
from pathlib import Path

RATIOS = Path(__file__).resolve().parents[2] / "simcore" / "compat" / "simai_ratio.csv"
SMALL_US = {2: 10, 4: 12, 8: 15, 16: 66, 32: 135, 64: 200, 128: 320}


def f32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]  # type: ignore[no-any-return]


def members(kind: str, tp: int, ep: int, dp: int) -> int:
    return {"tp": tp, "ep": ep, "dp": dp, "dp_ep": max(1, dp // ep)}[kind]


def time_ns(size: int, ratio: float, gibps: float, collective: str, n: int) -> int:
    k = 2 if collective == "ALLREDUCE" else 1
    return math.floor(size / 2**30 / f32(f32(ratio) * f32(gibps)) * 1e9 * k * (n - 1) / n)


def ratio(table: str, size: int, column: int) -> float:
    """column: 1 to 8 for 1, 2, 4 ... 128 nodes, 9 for "Multi 16"."""
    lines = [line for line in RATIOS.read_text().splitlines() if not line.startswith("#")]
    rows = [
        (int(row[1]), float(row[1 + column]) if row[1 + column] else 1.0)
        for row in csv.reader(lines)
        if row[0] == table
    ]
    last = rows[-1][1]
    if size == 0 or size > rows[-1][0]:
        return 1.0
    if size < rows[0][0]:
        return rows[0][1] / last
    for (low, before), (high, after) in itertools.pairwise(rows):
        if low <= size <= high:
            return (before + (after - before) * (size - low) / (high - low)) / last
    raise AssertionError(size)


def auto_ns(
    kind: str, collective: str, size: int,
    tp: int, ep: int, dp: int, g: int, K: int, v: float, c: float,
) -> int:  # fmt: skip
    """simai-auto: g GPUs and K NICs a server, NVLink v, one NIC c, GiB/s. Groups that have NICs."""
    n = members(kind, tp, ep, dp)
    if n == 1 or size == 0:
        return 0
    if 1 < size < 2**20:
        return SMALL_US.get(n, 0) * 1000
    m = tp * ep
    if kind == "tp":
        nodes, q, k = (1, tp, K) if tp <= g else (tp // g, g, K)
    elif kind == "ep":
        nodes = 1 if m <= g else m // g
        q = max(g // tp, 1)
        k = K if nodes == 1 else K // g if tp > g else K // tp
    elif kind == "dp":
        nodes, q, k = (dp, g // tp, K // tp) if tp <= g else (dp, 1, K // g)
    else:
        nodes, q, k = (n, g // m, K // m) if m <= g else (n, 1, K // g)
    table = "nic"
    if nodes == 1:
        gibps = v
    elif collective == "ALLTOALL":
        gibps = (k * c / q) * (nodes * q - 1) / ((nodes - 1) * q)
    elif q > 1 and k * c > v:
        gibps = min(v * q / (q - 1), k * c)
        table = "nvlink" if gibps < k * c else "nic"
    else:
        gibps = k * c
    column = {1: 1, 2: 2, 4: 3, 8: 4, 16: 5, 32: 6, 64: 7, 128: 8}.get(nodes, 5)
    r = 1.0
    if kind == "tp" and collective in ("ALLGATHER", "REDUCESCATTER"):
        r = ratio(table, size, column)
    if kind in ("tp", "ep") and collective == "ALLTOALL":
        r = ratio("ata", size, 9 if kind == "ep" and tp >= g else column)
    return time_ns(size, r, gibps, collective, n)


def busbw_entry(kind: str, collective: str, tp: int, g: int, world: int) -> str | None:
    """The entry of busbw.yaml; None where SimAI has 0."""
    if kind == "tp":
        return {"ALLREDUCE": "TP.allreduce", "ALLTOALL": "TP.alltoall"}.get(collective, "TP.allgather")
    if kind == "ep":
        entries = {"ALLREDUCE": "TP.allreduce", "ALLTOALL": "EP.alltoall"}
        return entries.get(collective) if tp <= g else None
    if world == g and tp <= g:
        return "TP.allreduce" if collective == "ALLREDUCE" else None
    section = "DP" if kind == "dp" else "EP"
    return f"{section}.allreduce" if collective == "ALLREDUCE" else f"{section}.allgather"
