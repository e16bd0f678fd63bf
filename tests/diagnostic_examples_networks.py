"""Examples of what is said of runs on SimAI's networks and of policies of ASTRA-sim 1.0."""

from __future__ import annotations

from pathlib import Path

from simcore.diagnostics import Diagnostic, InputError
from simcore.parameters import Parameters
from simcore.simulation import simulate
from tests.diagnostic_examples_measured import Example, relative
from tests.workload.texts import HEADER, read, row, text_of

BUSBW = "bandwidths\nTP:\nallreduce,: 300\nDP:\nallreduce,: null\nEP:\nallreduce,: 45\n"
NCCL_TESTS = """# Collective test starting: all_reduce_perf
#  Rank  0 Group  0 Pid   4000 on     node-0 device  0 [0000:1a:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4001 on     node-0 device  1 [0000:1b:00] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw  #wrong
     1048576        262144     float     sum      -1    30.00   34.95   34.95       0
"""
REDUCED = text_of(row(fwd="ALLREDUCE 8192"))
EXPERTS = HEADER.replace("ep: 1", "ep: 2")


def run(content: str, busbw: str | None = None, **parameters: object) -> Example:
    """What a run of a workload with this content says, on a network of this `busbw.yaml` if there is one."""

    def example(folder: Path) -> list[Diagnostic]:
        if busbw is not None:
            (folder / "busbw.yaml").write_text(busbw)
            parameters["network"] = f"busbw:{folder / 'busbw.yaml'}"
        try:
            done = simulate(read(content), Parameters(**parameters))  # type: ignore[arg-type]
        except InputError as error:
            return relative(error.all_diagnostics, folder)
        return relative(done.diagnostics, folder)

    return example


def policy(name: str, *rows: str) -> Example:
    """What a run of these rows under a policy of ASTRA-sim 1.0 says."""
    return run(text_of(*rows, header=name), dialect="astra-sim-1")


ONE = "conv -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 64 5"
NETWORKS: dict[str, Example] = {
    "busbw-file": run(REDUCED, BUSBW.replace("300", "fast")),
    "busbw-missing": run(REDUCED.replace("ALLREDUCE", "ALLTOALL"), BUSBW),
    "busbw-title": run(REDUCED, BUSBW.removeprefix("bandwidths\n")),
    "busbw-repeated": run(REDUCED, BUSBW.replace("300\n", "300\nallreduce,: 320\n")),
    "nccl-tests": run(REDUCED, NCCL_TESTS.replace("30.00", "quick")),
    "busbw-stand-in": run(REDUCED, NCCL_TESTS),
    "busbw-one-host": run(REDUCED, NCCL_TESTS, gpus_per_server=2),
    "simai-free": run(text_of(row(fwd="ALLGATHER_EP 64"), header=EXPERTS), BUSBW),
    "simai-forward-size": run(text_of(row(fwd="ALLREDUCE 64")), network="simai-auto"),
    "simai-tp-1": run(REDUCED.replace("group: 2", "group: 1"), network="simai-auto"),
    "simai-fails": run(text_of(row(), count=3), network="simai-auto"),
    "simai-no-estimate": run(
        text_of(row(wg="ALLREDUCE_EP 64"), header=EXPERTS.replace("gpus: 8", "gpus: 16")), BUSBW
    ),
}
POLICIES: dict[str, Example] = {
    "no-policy": run(ONE + "\n"),
    "last-bottom-layer": policy("HYBRID_DLRM", ONE, ONE),
    "row-policy": policy("HYBRID_CUSTOMIZED", f"{ONE} PIPELINE"),
    "gemm-columns": run(text_of("mlp_row -1 10 4 4 4 NONE 0 20 4 4 4 NONE 0 30 4 4 4 NONE 0 100")),
    "pp-ignored": policy("HYBRID_TRANSFORMER model_parallel_NPU_group: 2 pp: 2", ONE),
    "ep-ignored": policy("HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 2", ONE),
    "policy-leaves-out": policy("MICRO", ONE, ONE),
    "no-ops": policy("DATA", "conv -1 0 NONE 0 0 NONE 0 0 NONE 0 0"),
}
