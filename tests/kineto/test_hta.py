"""The accounts of a device beside what HolisticTraceAnalysis says of the same file.

Runs where WLTUI_HTA_PYTHON names a Python with HolisticTraceAnalysis 0.5.0 (test_other_readers.py of exports
says how). Its expression for communication (`^nccl.*Kernel`) knows no kernels of DeepEP, RCCL, MSCCL++ or
NVSHMEM: there it counts as compute what is none. None of the corpus has any.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from simcore.kineto import open_profile
from simcore.parameters import OpeningOptions, Parameters
from simcore.runs.measured import run_recording
from tests.command_line.running import environment, process
from tests.export.test_other_readers import HTA, needs_hta
from tests.kineto.corpus import GLOO, every_file, needs_corpus

_READER = Path(__file__).parent / "hta_breakdown.py"
# HTA adds up floats of us.
_TOLERANCE_NS = 2_000


@needs_corpus
@needs_hta
@pytest.mark.parametrize(
    "path", [one for one in every_file() if GLOO not in one.parents], ids=lambda one: one.name[:12]
)
def test_idle_and_compute_are_those_of_hta(path: Path, tmp_path: Path) -> None:
    # It knows a rank by the name of the file, and looks for no other.
    copy = tmp_path / "trace.json.gz"
    shutil.copy(path, copy)
    done = process([HTA, str(_READER), str(copy)], environment(HTA_DISABLE_NS_ROUNDING="1"))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    results = run_recording(open_profile(str(path), OpeningOptions(step="all")), Parameters())
    (accounts,) = results.accounts
    ours = {
        "kernel_time(us)": results.step_time_ns,
        "compute_time(us)": accounts.busy_ns,
        "idle_time(us)": accounts.ns("idle"),
    }
    for name, ns in ours.items():
        assert abs(said[name] * 1000 - ns) <= _TOLERANCE_NS, name
