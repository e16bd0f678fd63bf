"""The time of NCCL's collectives inside a server, or an NVLink domain, by operation, GPUs and bytes.

A formula with six constants for each GPU and operation: a latency that grows with the GPUs; bytes over a
bandwidth that is lower among few GPUs; and what filling the pipelines of long messages takes, which is
nothing below about a megabyte and the same above some. servers.toml has the constants, made by
benchmarks/fit_servers.py from ../shared/validation/ops (ai-dynamo/aiconfigurator, Apache-2.0: nccl-tests
among 2, 4 and 8 GPUs of one server) on two of three shapes of a GPU and operation. More GPUs than were
measured are extrapolated.
"""

from __future__ import annotations

from functools import lru_cache

from simcore.diagnostics import UsageError, printable
from simcore.model.gpu import Gpu, find_gpu
from simcore.model.operations.timing import tables_of
from simcore.names import GPU_NAMES
from simcore.records import NamedTuple

OPERATIONS = ("all_gather", "reduce_scatter", "all_reduce", "alltoall")


class Constants(NamedTuple):
    """Those of an operation on one GPU. first, more: s, of two GPUs and of each one more. bandwidth: bytes/s
    that many GPUs reach. lost: share of it that is lost to one GPU, half of that to two. filling: s, of long
    messages. half: bytes of a message that has half of that.
    """

    first: float
    more: float
    bandwidth: float
    lost: float
    filling: float
    half: float


def collective_in_server(gpu: Gpu, operation: str, gpus: int, size: float) -> float:
    """Returns what a collective among GPUs on one NVLink takes alone, s.

    operation: one of `OPERATIONS`. size: bytes of the whole message: what an all-gather gives each GPU, what
    a reduce-scatter, all-reduce or all-to-all takes from each. Raises `UsageError` for another operation.
    """
    if operation not in OPERATIONS:
        raise UsageError(f"{printable(operation, 40)}: expected one of {', '.join(OPERATIONS)}")
    return (
        0.0 if gpus < 2 else send_time(_constants(gpu, operation), sent_share(operation, gpus) * size, gpus)
    )


def sent_share(operation: str, gpus: float) -> float:
    """Returns the share of a message that each GPU sends."""
    return (2 if operation == "all_reduce" else 1) * (gpus - 1) / gpus


def send_time(constants: Constants, size: float, gpus: float) -> float:
    """Returns what sending `moved` bytes takes, s."""
    latency = constants.first + (gpus - 2) * constants.more
    bandwidth = constants.bandwidth * (1 - constants.lost / gpus)
    return latency + size / bandwidth + constants.filling * size / (size + constants.half)


@lru_cache(maxsize=64)
def _constants(gpu: Gpu, operation: str) -> Constants:
    """Those of the nearest measured GPU, with the NVLink of this one."""
    tables = tables_of("servers")
    name = next(each for each in (*gpu.bases, *GPU_NAMES) if each in tables)
    return constants_of(tables[name][operation], gpu.nvlink / find_gpu(name).nvlink)


def constants_of(table: dict[str, float], faster: float) -> Constants:
    """Returns those of a table of servers.toml, with a bandwidth so many times as high."""
    return Constants(
        first=table["first_us"] * 1e-6,
        more=table["more_us"] * 1e-6,
        bandwidth=table["bandwidth"] * faster * 1e9,
        lost=table["lost"],
        filling=table["filling_us"] * 1e-6,
        half=table["half_mb"] * 1e6,
    )
