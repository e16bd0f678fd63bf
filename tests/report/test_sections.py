"""The page as a list of sections: each takes any run, and says the same in text and in JSON."""

from __future__ import annotations

import itertools
import json
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from simcore.comparison import Comparison
from simcore.executing.execution_result import Execution
from simcore.kineto import read_profile
from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.parameters import OpeningOptions as Choice
from simcore.parameters import Parameters, RunInput
from simcore.render.report import comparison, pages
from simcore.render.report.json_text import json_text
from simcore.render.report.section import (
    Field,
    PageOptions,
    Section,
    field_lines,
    field_values,
    format_table,
    keys,
    page,
    wrap,
)
from simcore.runs import open_run
from simcore.runs.measured import RecordedRun, run_recording
from simcore.simulation import simulate
from simcore.sources.inputs import open_input
from simcore.trace.run import Run
from simcore.units import column_unit, in_unit
from simcore.workload import open_workload
from tests.executing.encoding import COLL, COMP, write_set
from tests.kineto.test_bad_input import event
from tests.kineto.test_slowdown import two_replicas
from tests.measured.test_replay_by_hand import SLOW_RANK, run_of
from tests.snapshots.made import random_run, write
from tests.snapshots.made import snapshot as made_snapshot
from tests.tui.made_runs import run, two_stages
from tests.tui.pseudo_terminal import ROOT

KINDS = (
    "simulated", "model", "astra-sim-1", "simai", "measured", "replayed", "untimed", "profiler",
    "links", "executed", "experts", "steps",
)  # fmt: skip


@cache
def of(kind: str) -> Run:
    """A run of each kind, with waits in it where it has times."""
    if kind == "simulated":
        return run(two_stages(), slow_rank=("1=2",))
    if kind == "model":
        from simcore.runs.simulated import SimulatedRun

        opened = ModelMaker("llama-3-8b", MODELS["llama-3-8b"]).empty_workload()
        return SimulatedRun(simulate(opened, Parameters(world=4, pp=2, global_batch=4, gpu="h100")))
    if kind == "experts":
        from simcore.runs.simulated import SimulatedRun

        opened = ModelMaker("mixtral-8x7b", MODELS["mixtral-8x7b"]).empty_workload()
        given = Parameters(world=4, ep=4, gpu="h100", expert_imbalance="lognormal:0.5")
        return SimulatedRun(simulate(opened, given))
    if kind == "astra-sim-1":
        return run(two_stages(), dialect="astra-sim-1")
    if kind == "links":
        return run(two_stages(), network="links", dim=("switch:8:50:500",))
    if kind == "simai":
        from simcore.runs.simulated import SimulatedRun

        workload = open_workload("fixtures/002_gpt_1024npu.txt")
        return SimulatedRun(simulate(workload, Parameters(network="simai-auto", microbatches=2)))
    if kind == "executed":
        return executed()
    if kind == "profiler":
        said = {"Collective name": "allreduce", "In msg nelems": 64, "dtype": "Float", "Group size": 2}
        args = {"stream": 7, "device": 0}
        events = [
            event(args=args),
            event(ts=120, dur=30, name="ncclDevKernel_AllReduce", args=args | said),
        ]
        text = json.dumps({"traceEvents": events})
        return run_recording(read_profile("trace.json", text.encode(), Choice()), Parameters())
    if kind == "steps":
        text = json.dumps(two_replicas())
        return run_recording(read_profile("trace.json", text.encode(), Choice(step="all")), Parameters())
    trace = run_of(SLOW_RANK, 2)
    if kind == "untimed":
        from simcore.records import replace

        return RecordedRun(replace(trace, timed=False))
    return run_recording(trace, Parameters(compute_scale=2.0) if kind == "replayed" else Parameters())


def hung() -> Run:
    """A made incident."""
    opened = open_input(str(ROOT / "fixtures" / "hangs" / "sleeps"))
    return open_run(RunInput(opened, Parameters()))


def snapshot() -> Run:
    """A memory snapshot."""
    with TemporaryDirectory() as folder:
        path = write(Path(folder) / "snapshot.pickle", made_snapshot(random_run(1)))
        return open_run(RunInput(open_input(str(path)), Parameters()))


def executed() -> Run:
    """Two ranks of execution traces, of which one comes late to a collective."""
    from simcore.chakra import find_set, open_set
    from simcore.runs.executed import run_execution

    attributes = {"comm_type": 0, "comm_size": 4000}
    ranks = [
        [
            {"id": 1, "name": "fwd", "type": COMP, "micros": 5 + rank, "attributes": {}},
            {"id": 2, "name": "reduce", "type": COLL, "data": [1], "attributes": attributes},
        ]
        for rank in range(2)
    ]
    with TemporaryDirectory() as folder:
        found = find_set(write_set(Path(folder), ranks))
        assert found is not None
        return run_execution(Execution(open_set(found), Parameters()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_is_of_one_section_and_every_run_has_all_keys_but_those_of_its_files(kind: str) -> None:
    asked = PageOptions()
    of_sections = [section.values(of(kind), asked) for section in pages.SECTIONS]
    found = [key for values in of_sections for key in values]
    assert len(found) == len(set(found))
    assert {"schema", *found} == set(pages.run_json(of(kind)))
    of_models = {"throughput", "trust", "memory", "model", "links", "ranks", "groups", "imbalance", "steps"}
    of_models |= {"slowdown", "spread", "recurrence", "as_peers", "cause"}
    # Of a SimAI file its gradients say what a rank holds.
    assert of_models & set(found) == {
        "model": {"throughput", "trust", "memory", "model"}, "simai": {"memory"}, "links": {"links"},
        "executed": {"links", "ranks", "groups"},
        "experts": {"throughput", "trust", "memory", "model", "imbalance"},
        "steps": {"steps", "slowdown", "spread", "recurrence", "as_peers", "cause"},
    }.get(kind, set())  # fmt: skip
    assert set(found) - {"measured"} - of_models == set(pages.run_json(of("simulated"))) - {"schema"}
    assert ("measured" in found) == (of(kind).recording is not None)
    assert json.loads(json_text(pages.run_json(of(kind))))["schema"] == pages.SCHEMA


@pytest.mark.parametrize("kind", KINDS)
def test_a_section_begins_with_words_and_ends_without_a_blank_line(kind: str) -> None:
    for section in pages.SECTIONS:
        for every in (False, True):
            lines = section.lines(of(kind), PageOptions(every_layer=every))
            assert not lines or (lines[0] and lines[-1])
            assert not any("\n" in line for line in lines)


def test_every_section_says_something_of_some_run() -> None:
    asked = PageOptions(what_if=True)
    flows = run(two_stages(), network="flows", cluster="spectrum-x:8")
    with_gpu = of("measured").with_parameters(Parameters(gpu="h100"))
    runs = [*(of(kind) for kind in KINDS if kind != "untimed"), hung(), flows, with_gpu, snapshot()]
    for section in pages.SECTIONS:
        assert any(section.lines(one, asked) for one in runs), section


@pytest.mark.parametrize("kind", ["simulated", "measured", "replayed", "executed"])
def test_the_text_and_the_json_have_the_same_figures(kind: str) -> None:
    """The table of streams: each cell of time is the figure of the JSON in the unit of its column."""
    from simcore.render.report.usage import USAGE

    found = of(kind)
    lines = [line.split() for line in USAGE.lines(found, PageOptions())]
    streams = USAGE.values(found, PageOptions())["streams"]
    unit_ns, unit = column_unit(max(one["most_busy_ns"] for one in streams))
    assert lines[1][:3] == ["stream", "busy", unit]
    resolution = found.figures.resolution_ns
    for one, cells in zip(streams, lines[2:], strict=False):
        cells = [" ".join(cells[: len(one["stream"].split())]), *cells[len(one["stream"].split()) :]]
        assert cells[:2] == [one["stream"], in_unit(one["busy_ns"], unit_ns, resolution)]
        if one["stream"] != "compute":
            assert cells[-1] == in_unit(one["exposed_ns"], unit_ns, resolution)


def test_a_field_is_a_column_a_key_or_both() -> None:
    fields: list[Field[complex]] = [
        Field("re", lambda one: f"{one.real:.0f}", "real"),
        Field("sum", lambda one: f"{one.real + one.imag:.0f}"),
        Field(key="imag"),
        Field(key="double", value=lambda one: one.real * 2 or None, optional=True),
    ]
    rows = [1 + 2j, 0j]
    assert field_lines(fields, rows) == ["  re  sum", "   1    3", "   0    0"]
    assert field_values(fields, rows) == [{"real": 1, "imag": 2, "double": 2}, {"real": 0, "imag": 0}]
    assert field_values(keys("real", "imag"), rows) == [{"real": 1, "imag": 2}, {"real": 0, "imag": 0}]
    assert format_table([], []) == [""]


def test_a_section_more_is_a_line_in_the_list() -> None:
    def lines(found: Run, asked: PageOptions) -> list[str]:
        return [f"Ranks: {sum(len(track.ranks) for track in found.tracks)}"]

    more: list[Section[Run]] = [*pages.SECTIONS, Section("ranks", lines)]
    for kind, ranks in (("simulated", 8), ("measured", 2)):
        whole = pages.run_page(of(kind))
        assert page(more, of(kind), PageOptions()) == f"{whole}\nRanks: {ranks}\n"


@pytest.mark.parametrize(
    ("a", "b"), [("simulated", "simulated"), ("measured", "replayed"), ("simulated", "measured")]
)
def test_a_comparison_of_any_two_kinds_has_each_key_once_and_fits_a_screen(a: str, b: str) -> None:
    found = Comparison(of(a), of(b))
    keys_of = [list(section.values(found, PageOptions())) for section in comparison.SECTIONS]
    assert len({key for some in keys_of for key in some}) == sum(map(len, keys_of))
    assert sum(map(len, keys_of)) == len(comparison.comparison_json(found))
    assert comparison.comparison_page(found).count("\n") <= 40
    everything = comparison.comparison_page(found, everything=True)
    assert everything.count("\n") >= comparison.comparison_page(found).count("\n")


@pytest.mark.parametrize("kind", KINDS)
def test_no_figure_stands_apart_from_its_unit(kind: str) -> None:
    """At whatever width a line of words is broken, `189.1` and `ms` stand in one."""
    for words in ("a step of 189.1 ms (3.2 %), 16 777 216 B of 4 GB", *of(kind).figures.words):
        for width in range(40):
            lines = wrap(f"{'x' * width} {words}", "  ", "  ")
            assert " ".join(" ".join(lines).split()) == " ".join(f"{'x' * width} {words}".split())
            for above, below in itertools.pairwise(lines):
                begins = re.match(r"\s*(?:[mun]?s|[kMGT]?B|%|\d{3})(?!\w)", below)
                assert not (above[-1:].isdigit() and begins), (above, below)
