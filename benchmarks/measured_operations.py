"""The measured operations of ../shared/validation/ops, and how far wltui is from them: tables of
docs/accuracy.md.

They are ai-dynamo/aiconfigurator's (Apache-2.0), each operation alone on a GPU.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import statistics
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from benchmarks.measuring import ROOT
from simcore.model.gpu import find_gpu
from simcore.model.operations.alone import KINDS
from simcore.model.operations.attention import attention_time
from simcore.model.operations.products import product_time
from simcore.model.operations.servers import collective_in_server

FOLDER = ROOT.parent / "shared" / "validation" / "ops"
# Which table is of which GPU.
GPUS = {"a100-80": "a100_sxm", "h100": "h100_sxm", "h200": "h200_sxm", "b200": "b200_sxm", "gb200": "gb200"}
PRECISIONS = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4"}
# Training has no shorter ones: bounds hold for lengths and tokens from here on.
LEAST = 1024
_COLUMNS = {
    "attention": ("attn_dtype", "batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim"),
    "moe": (
        "moe_dtype", "num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size",
        "moe_ep_size",
    ),
    "nccl": ("op_name", "num_gpus", "message_size"),
}  # fmt: skip


def rows_of(gpu: str, kind: str) -> list[dict[str, str]]:
    """Returns the rows of a GPU's table; none where there is no such table. kind: attention, moe or nccl."""
    path = FOLDER / f"{GPUS[gpu]}_{kind}.csv.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def part_of(shape: Any, parts: int) -> int:
    """Returns which part of its table a shape belongs to: the same in every run, in any order of rows."""
    return zlib.crc32(repr(shape).encode()) % parts


def are_kept(shapes: Iterable[Iterable[Any]]) -> list[bool]:
    """Returns for each shape whether it is fitted on: two of three are, the others are tested on."""
    return [part_of(tuple(map(int, shape)), 3) != 0 for shape in shapes]


def is_check(words: str) -> bool:
    """Returns whether a fitting program was asked to cross-validate. words: what its help says."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="cross-validate, write nothing")
    return bool(parser.parse_args().check)


class Product(NamedTuple):
    """A measured product (m, k) by (k, n), us."""

    m: int
    n: int
    k: int
    us: float

    @property
    def is_fitted(self) -> bool:
        """Whether the constants are fitted on it: they are on two of three."""
        return part_of(self[:3], 3) != 0


def products_of(gpu: str) -> dict[str, list[Product]]:
    """Returns the measured products of a GPU by precision."""
    found: dict[str, list[Product]] = {}
    for row in rows_of(gpu, "gemm"):
        product = Product(int(row["m"]), int(row["n"]), int(row["k"]), 1e3 * float(row["ms"]))
        found.setdefault(PRECISIONS[row["gemm_dtype"]], []).append(product)
    return found


def products_off(name: str, precision: str, products: list[Product]) -> list[float]:
    """Returns how much longer each is priced than it was measured, as a share of that."""
    gpu = find_gpu(name)
    return [1e6 * product_time(gpu, precision, m, n, k).seconds / us - 1 for m, n, k, us in products]


def products_table() -> list[list[str]]:
    """A row for each GPU and precision: the products that nothing was fitted on, m of 1,024 and more."""
    rows = [["GPU", "precision", "products", "median error", "90 of 100 within", "on average"]]
    for name in GPUS:
        for precision, products in products_of(name).items():
            asked = [one for one in products if one.m >= LEAST and not one.is_fitted]
            off = products_off(name, precision, asked)
            sizes = sorted(map(abs, off))
            rows.append([
                name, precision, f"{len(off):,}", f"{100 * statistics.median(sizes):.1f} %",
                f"{100 * sizes[int(0.9 * len(sizes))]:.1f} %", f"{100 * statistics.fmean(off):+.1f} %",
            ])  # fmt: skip
    return rows


class Measured(NamedTuple):
    """A measured operation. sizes: as the columns of its table, the first apart. us: what it took."""

    sizes: tuple[int, ...]
    us: float

    @property
    def is_fitted(self) -> bool:
        """Whether the constants are fitted on it: they are on two of three."""
        return part_of(self.sizes, 3) != 0


def measured(gpu: str, kind: str) -> dict[str, list[Measured]]:
    """Returns the measured operations of a GPU, by precision or (nccl) by collective."""
    first, *columns = _COLUMNS[kind]
    found: dict[str, list[Measured]] = {}
    for row in rows_of(gpu, kind):
        one = Measured(tuple(int(row[column]) for column in columns), 1e3 * float(row["ms"]))
        found.setdefault(PRECISIONS.get(row[first], row[first]), []).append(one)
    return found


def attention_us(gpu: str, precision: str, sizes: tuple[int, ...]) -> float:
    """Returns what a row of attention is priced at, us."""
    return 1e6 * attention_time(find_gpu(gpu), precision, *sizes).seconds


def experts_us(gpu: str, precision: str, sizes: tuple[int, ...]) -> float:
    """Returns what a row of experts is priced at, us."""
    return 1e6 * KINDS["experts"].time(find_gpu(gpu), precision, *sizes).seconds


def collective_us(gpu: str, operation: str, sizes: tuple[int, ...]) -> float:
    """Returns what a row of NCCL is priced at, us. Its messages have elements of 2 bytes."""
    return 1e6 * collective_in_server(find_gpu(gpu), operation, sizes[0], 2 * sizes[1])


def attention_table() -> list[list[str]]:
    """A row for each GPU and precision: attention that nothing was fitted on, lengths of 1,024 and more."""
    head = ["GPU", "precision", "shapes", "median error", "90 of 100 within", "on average"]
    return [head, *_rows("attention", 1)]


def experts_table() -> list[list[str]]:
    """A row for each GPU and precision: experts that nothing was fitted on, tokens of 1,024 and more."""
    head = ["GPU", "precision", "shapes", "median error", "90 of 100 within", "on average"]
    return [head, *_rows("moe", 0)]


def nccl_table() -> list[list[str]]:
    """A row for each GPU and collective inside a server: messages that nothing was fitted on, of any size."""
    head = ["GPU", "collective", "messages", "median error", "90 of 100 within", "on average"]
    return [head, *_rows("nccl", None)]


def off(name: str, kind: str, what: str, ones: list[Measured]) -> list[float]:
    """Returns how much longer each is priced than it was measured, as a share of that."""
    price = {"attention": attention_us, "moe": experts_us, "nccl": collective_us}[kind]
    return [price(name, what, one.sizes) / one.us - 1 for one in ones]


def asked(ones: list[Measured], place: int | None) -> list[Measured]:
    """Returns those that nothing was fitted on and that training has. place: of the length or tokens."""
    return [one for one in ones if not one.is_fitted and (place is None or one.sizes[place] >= LEAST)]


def _rows(kind: str, place: int | None) -> list[list[str]]:
    rows = []
    for name in GPUS:
        for what, ones in measured(name, kind).items():
            found = off(name, kind, what, asked(ones, place))
            sizes = sorted(map(abs, found))
            rows.append([
                name, what, f"{len(found):,}", f"{100 * statistics.median(sizes):.1f} %",
                f"{100 * sizes[int(0.9 * len(sizes))]:.1f} %", f"{100 * statistics.fmean(found):+.1f} %",
            ])  # fmt: skip
    return rows
