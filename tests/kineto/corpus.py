"""The corpus of profiler traces, and unions of a file's raw events that share no code with the reader."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"
CORPUS = SHARED / "corpus" / "kineto"
NSYS = SHARED / "corpus" / "nsys" / "h100_2gpu_1s.sqlite"
DLRM, GLOO, HTA = CORPUS / "dlrm_8", CORPUS / "gloo_4", CORPUS / "hta_sampled"
needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the profiler traces of ../shared are not there"
)

_COMMUNICATES = re.compile(r"nccl|rccl|gloo:", re.IGNORECASE)


def every_file() -> list[Path]:
    """All Kineto files of the corpus; none where it is not there."""
    return sorted(CORPUS.rglob("*.json.gz"))


@cache
def unpacked(path: Path) -> bytes:
    """The text of a file, which no test changes."""
    return gzip.decompress(path.read_bytes())


def raw(path: Path) -> dict[str, Any]:
    """A file as JSON, which its reader may change."""
    found: dict[str, Any] = json.loads(unpacked(path))
    return found


def union_ns(spans: list[tuple[float, float]]) -> float:
    """How long the union of spans is, by sweeping their edges."""
    edges = sorted(
        [(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans],
        key=lambda one: (one[0], -one[1]),
    )
    total = depth = 0.0
    before = 0.0
    for at, step in edges:
        if depth > 0:
            total += at - before
        before = at
        depth += step
    return total


def device_spans(events: list[dict[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """compute, comm, copy: (start, end) in us of the events of the device."""
    found: dict[str, list[tuple[float, float]]] = {"compute": [], "comm": [], "copy": []}
    for event in events:
        if event.get("ph") != "X" or event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        kind = "compute" if event["cat"] == "kernel" else "copy"
        if kind == "compute" and _COMMUNICATES.search(event["name"]):
            kind = "comm"
        found[kind].append((event["ts"], event["ts"] + event["dur"]))
    return found
