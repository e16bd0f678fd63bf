"""The accounts of a device against unions of the raw events, by code that shares nothing with the reader."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from simcore.kineto import open_profile
from simcore.parameters import OpeningOptions, Parameters
from simcore.records import replace
from simcore.render.report.pages import run_json
from simcore.runs.measured import run_recording
from tests.kineto.corpus import DLRM, GLOO, device_spans, every_file, needs_corpus, raw, union_ns
from tests.kineto.test_bad_input import event

_TOLERANCE_NS = 2_000


def _class(path: Path) -> tuple[int, dict[str, Any]]:
    run = open_profile(str(path), OpeningOptions(step="all"))
    found = run_json(run_recording(run, Parameters()))
    (one,) = found["classes"]
    return found["step_time_ns"], one


@needs_corpus
@pytest.mark.parametrize(
    "path",
    [one for one in every_file() if not {GLOO, DLRM} & {*one.parents}],
    ids=lambda one: one.name[:-8],
)
def test_accounts_of_a_device_are_the_unions_of_its_events(path: Path) -> None:
    _are_unions(path, raw(path)["traceEvents"])


@needs_corpus
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "path", [one for one in every_file() if DLRM in one.parents], ids=lambda one: one.name[:7]
)
def test_accounts_of_a_device_of_a_set_are_the_unions_of_its_events(path: Path) -> None:
    _are_unions(path, raw(path)["traceEvents"])


@pytest.mark.parametrize("seed", range(10))
def test_accounts_of_made_devices_are_the_unions_of_their_events(seed: int, tmp_path: Path) -> None:
    """Kernels, collectives and copies anywhere on four streams, several at once."""
    drawn = random.Random(seed)
    kinds = (("kernel", "gemm"), ("kernel", "ncclDevKernel_AllReduce"), ("gpu_memcpy", "Memcpy HtoD"))
    events: list[dict[str, Any]] = []
    for _ in range(drawn.randint(1, 60)):
        cat, name = drawn.choice(kinds)
        times = {"ts": drawn.randrange(500) + drawn.choice((0, 0.125)), "dur": drawn.choice((0, 1, 7.5, 40))}
        events.append(event(cat=cat, name=name, tid=drawn.randrange(4), args={}, **times))
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    _are_unions(path, events)


def _are_unions(path: Path, events: list[dict[str, Any]]) -> None:
    step, found = _class(path)
    spans = device_spans(events)
    compute, comm, copy = (spans[kind] for kind in ("compute", "comm", "copy"))
    first = min(start for some in spans.values() for start, _ in some)
    last = max(end for some in spans.values() for _, end in some)

    def is_near(ns: int, us: float) -> bool:
        return abs(ns - us * 1000) <= _TOLERANCE_NS

    assert is_near(step, last - first)
    assert is_near(sum(found["compute_ns"].values()), union_ns(compute))
    assert is_near(found["comm_ns"], union_ns(comm))
    assert is_near(found["overlapped_ns"], union_ns(compute) + union_ns(comm) - union_ns(compute + comm))
    exposed = sum(ns for name, ns in found["exposed_ns"].items() if name != "copy")
    assert is_near(exposed + found["wait_ns"], union_ns(compute + comm) - union_ns(compute))
    copied = union_ns(compute + comm + copy) - union_ns(compute + comm)
    assert is_near(found["exposed_ns"].get("copy", 0), copied)
    assert is_near(found["idle_ns"], last - first - union_ns(compute + comm + copy))
    accounts = sum(found["compute_ns"].values()) + sum(found["exposed_ns"].values())
    assert accounts + sum(found[f"{name}_ns"] for name in ("wait", "bubble", "host", "idle")) == step


@needs_corpus
@pytest.mark.parametrize(
    "changed", [{"compute_scale": 0.5}, {"comm_scale": 0.5}, {"comm_scale": 2.0}], ids=str
)
def test_what_a_replayed_device_communicates_is_exposed_waits_or_is_beside_compute(
    changed: dict[str, float],
) -> None:
    """A collective that a rank waits for lasts until the rank goes on, as in its accounts."""
    run = run_recording(open_profile(str(GLOO), OpeningOptions(step="all")), replace(Parameters(), **changed))
    for use in run.figures.track_uses:
        exposed = sum(ns for name, ns in use.exposed_ns.items() if name != "copy")
        assert use.overlapped_ns is not None
        assert use.comm_ns == exposed + use.wait_ns + use.bubble_ns + use.overlapped_ns


@needs_corpus
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "path", [one for one in every_file() if GLOO in one.parents], ids=lambda one: one.name
)
def test_accounts_of_a_host_without_a_device_are_the_unions_of_its_operations(path: Path) -> None:
    step, found = _class(path)
    events = [one for one in raw(path)["traceEvents"] if one.get("ph") == "X"]
    spans = [(one["ts"], one["ts"] + one["dur"], one) for one in events]
    compute = [
        span[:2] for span in spans if span[2]["cat"] == "cpu_op" and not span[2]["name"].startswith("c10d::")
    ]
    comm = [
        span[:2]
        for span in spans
        if span[2]["cat"] == "user_annotation" and span[2]["name"].startswith("gloo:")
    ]
    assert abs(sum(found["compute_ns"].values()) - union_ns(compute) * 1000) <= _TOLERANCE_NS
    assert abs(found["comm_ns"] - union_ns(comm) * 1000) <= _TOLERANCE_NS
    assert abs(found["idle_ns"] - (step - union_ns(compute + comm) * 1000)) <= _TOLERANCE_NS
