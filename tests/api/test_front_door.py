"""What `import simcore` gives: the same figures as the program, for every kind of run."""

from __future__ import annotations

import doctest
import gzip
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import simcore as wl
from simcore.parameters import FLAGS, RunInput
from simcore.render.report.pages import run_json
from simcore.runs import open_run
from simcore.sources.inputs import open_input
from tests.executing.encoding import COMP, RECV, SEND, write_set

SIMULATED = "fixtures/002_gpt_1024npu.txt"
SMALL = "fixtures/000_gpt13b_tp4_old_header.txt"
MEASURED = "fixtures/004_megatron_rank7_trace.txt"


def executed(folder: Path) -> str:
    def node(number: int, kind: int, **more: object) -> dict[str, object]:
        return {"id": number, "name": f"n.{number}", "type": kind, "micros": 50, "attributes": {}, **more}

    transfer = {"comm_size": 1 << 20, "comm_tag": 0}
    sends = node(1, SEND, attributes={**transfer, "comm_src": 0, "comm_dst": 1}, data=[0])
    receives = node(0, RECV, attributes={**transfer, "comm_src": 0, "comm_dst": 1})
    return str(write_set(folder, [[node(0, COMP), sends], [receives, node(1, COMP, data=[0])]]))


@pytest.fixture(scope="module", params=["simulated", "measured", "executed"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> wl.Run:
    if request.param == "executed":
        return wl.load(executed(tmp_path_factory.mktemp("executed"))).run(dim=["ring:2:50:500"])
    return simulated() if request.param == "simulated" else wl.load(MEASURED).run()


@cache
def small() -> wl.Run:
    """The run of a small file, made once."""
    return wl.load(SMALL).run()


@cache
def simulated() -> wl.Run:
    """The run of seed 002, made once: nothing changes it."""
    return wl.load(SIMULATED).run()


@pytest.mark.slow
def test_the_page_of_the_docs_says_what_comes_out() -> None:
    failed, tried = doctest.testfile(str(Path("docs/python.md").resolve()), module_relative=False)
    assert tried > 20
    assert not failed


def test_the_notebook_of_the_docs_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    notebook = nbformat.read("docs/python.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": "docs"}}).execute()
    shown = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert all(outputs for outputs in shown)
    assert "<svg" in shown[0][0]["data"]["text/html"]


def test_names_are_few_and_there_and_typed() -> None:
    assert len(wl.__all__) <= 40
    assert all(hasattr(wl, name) for name in wl.__all__)
    stub = Path("simcore/__init__.pyi").read_text("utf-8")
    assert {*re.findall(r"as (\w+)$", stub, re.M), "__version__"} == set(wl.__all__)
    assert Path("simcore/py.typed").exists()
    with pytest.raises(AttributeError):
        wl.nothing  # noqa: B018


def test_who_imports_it_loads_nothing_until_it_is_asked() -> None:
    code = "import sys, simcore; print(sorted(name for name in sys.modules if name.startswith('simcore')))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "['simcore']"


def test_a_path_sums_to_the_step_by_all_that_it_can_be_grouped_by(run: wl.Run) -> None:
    for what in run.critical_path.groupings:
        assert sum(run.critical_path.by(what).values()) == run.step_time_ns
    with pytest.raises(wl.UsageError, match="kind"):
        run.critical_path.by("colour")
    segments = run.critical_path.segments()
    assert len(segments) == len(run.critical_path)
    assert sum(segments["end_ns"]) - sum(segments["start_ns"]) == run.step_time_ns


def test_accounts_of_a_rank_sum_to_the_step_and_the_mean_is_that_of_the_report(run: wl.Run) -> None:
    rank = run.spans()["rank"][0]
    assert sum(run.accounts(rank).values()) == run.step_time_ns
    report = run.to_dict()
    assert report["step_time_ns"] == run.step_time_ns
    with pytest.raises(wl.UsageError, match="rank 4096"):
        run.accounts(4096)


def test_spans_are_those_of_the_trace_within_the_step(run: wl.Run) -> None:
    table = run.spans()
    assert {"rank", "ranks", "start_ns", "ready_ns", "end_ns", "category", "name"} <= set(table.columns)
    assert all(
        0 <= start <= ready <= end <= run.step_time_ns
        for start, ready, end in zip(table["start_ns"], table["ready_ns"], table["end_ns"], strict=True)
    )
    own = run.spans(rank=table["rank"][0])
    assert own["name"] == [row["name"] for row in table if row["rank"] == table["rank"][0]]
    assert set(table["category"]) <= set(run._run.trace.categories.all)
    assert len(table.to_pandas()) == len(table) == table.to_arrow().num_rows
    with pytest.raises(KeyError, match="start_ns"):
        table["begin"]


def test_compute_of_the_spans_of_a_rank_is_that_of_its_accounts() -> None:
    run = wl.load(SMALL).run()
    spans = run.spans(rank=0)
    sums: dict[str, int] = {}
    for row in spans:
        sums[row["category"]] = sums.get(row["category"], 0) + row["end_ns"] - row["ready_ns"]
    accounts = run.accounts(0)
    compute = [name for name in accounts if name.startswith("compute ")]
    assert compute
    assert {name: sums.get(name, 0) for name in compute} == {name: accounts[name] for name in compute}


def test_a_run_is_that_of_the_command_with_the_same_parameters(run: wl.Run, tmp_path: Path) -> None:
    again = wl.load(run.path).run(**run.parameters)
    assert again.step_time_ns == run.step_time_ns
    assert run.to_dict() == run_json(open_run(RunInput(open_input(run.path), again._run.parameters)))
    assert run.report().count("\n") > 10


def test_every_flag_has_its_keyword_and_takes_values_of_python() -> None:
    workload = wl.load(SMALL)
    values = {
        "slow_rank": {3: 1.5}, "dim": ["switch:8:450:500", "switch:32:50:1000"], "overlap_grad_reduce": True,
        "compute_scale": 2, "microbatches": None, "schedule": "1f1b", "pp": 2,
    }  # fmt: skip
    run = workload.run(**values)
    assert run.parameters == {
        "pp": 2, "schedule": "1f1b", "overlap_grad_reduce": True, "dim": values["dim"], "compute_scale": 2.0,
        "slow_rank": ["3=1.5"],
    }  # fmt: skip
    assert {flag.field for flag in FLAGS} >= set(values)
    assert wl.load(model="llama-3-8b").run(world=8, zero=1, sequence_parallel=True, tp=2).parameters == {
        "world": 8, "tp": 2, "sequence_parallel": "on", "zero": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tpp": 2}, "tpp: no parameter of this name; did you mean tp"),
        ({"tp": "two"}, "tp: found 'two', expected a whole number"),
        ({"tp": 0}, "tp: 0: a whole number from 1"),
        ({"schedule": "dance"}, "schedule: found 'dance', expected one of"),
        ({"slow_rank": {"x": 2}}, "slow_rank"),
        ({"overlap_grad_reduce": 1}, "overlap_grad_reduce: found 1, expected true or false"),
        ({"replay": True}, "replay: found a workload file, expected rank traces"),
        ({"zero": 2}, "zero: found a workload file, which has its rows; load(model=NAME) would fit"),
        ({"slow_rank": {9999: 2}}, "slow_rank 9999=2: no rank 9999 in this run"),
        ({"cluster": "nope"}, "cluster nope: no file, and none of h100-8"),
    ],
)
def test_what_cannot_be_says_what_was_found_and_what_fits(given: dict[str, object], words: str) -> None:
    with pytest.raises(wl.UsageError, match="^" + re.escape(words)):
        wl.load(SMALL).run(**given)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda run: wl.load(SMALL, step=3), "step: found a workload file, expected profiler traces"),
        (lambda run: wl.load(model="nope"), "model nope: neither a file nor a known model"),
        (
            lambda run: wl.load(MEASURED).run(tp=2),
            "tp has no meaning for a trace; its replay takes compute_scale",
        ),
        (lambda run: run.with_(bandwidth={"zz": 0.5}), "time_scale: no stream zz in this run"),
        (
            lambda run: wl.load(model="llama-3-8b").run(schedule="interleaved", virtual_stages=3),
            "virtual_stages 3: one stage has no virtual stages; pp 2 or more would fit",
        ),
        (lambda run: run.with_(pp=0), "pp: 0: a whole number from 1"),
        (lambda run: run.export(SMALL, "chrome"), f"{SMALL} is there already: force=True overwrites it"),
        (lambda run: run.export("", "chrome"), "path: found an empty name"),
        (lambda run: run.export("x", "vhs"), "format vhs: one of simai"),
        (lambda run: wl.sweep(SMALL, tp=[1, 2], where="q<2"), "where q<2: found q"),
        (
            lambda run: wl.sweep(SMALL, dp=[1, 2], world=8),
            "dp: world = tp x cp x pp x dp, so world beside it",
        ),
    ],
)
def test_errors_name_keywords_and_no_flags(wrong: Callable[[wl.Run], object], words: str) -> None:
    with pytest.raises(wl.UsageError, match="^" + re.escape(words)) as raised:
        wrong(small())
    assert "--" not in str(raised.value)


def test_each_parameter_is_a_keyword_that_a_notebook_completes() -> None:
    fields = [flag.field for flag in FLAGS]
    taken = {
        wl.Input.run: ["self"], wl.Run.with_: ["self", "bandwidth", "latency"],
        wl.sweep: ["of", "model", "where", "jobs"],
    }  # fmt: skip
    for function, own in taken.items():
        keywords = inspect.signature(function).parameters
        others = [name for name in fields if name not in own]
        assert list(keywords) == [*own, *others, *(["dp"] if function is wl.sweep else [])]
        assert all(keywords[name].kind is inspect.Parameter.KEYWORD_ONLY for name in fields)
        assert "--" not in str(function.__doc__)
        assert all(f"\n    {name}: " in str(function.__doc__) for name in fields)
    run = wl.load(SMALL).run
    assert list(inspect.signature(run).parameters) == fields
    defaults = {name: one.default for name, one in inspect.signature(run).parameters.items()}
    assert run(**defaults).parameters == {}
    assert inspect.signature(run().with_).parameters["tp"].default is ...
    assert inspect.signature(wl.sweep).parameters["tp"].annotation == "int | Iterable[int | None] | None"


def test_a_path_is_a_text() -> None:
    assert (
        wl.load(SMALL).run(pp=2, schedule="1f1b").with_(cluster=Path("h100-8")).parameters["cluster"]
        == "h100-8"
    )


def test_notes_and_skipped_points_name_keywords_and_no_flags() -> None:
    notes = wl.load(SMALL).run(pp=2).notes
    assert any("no schedule given: assuming 1f1b" in note for note in notes)
    assert not any("--" in note for note in notes)
    (skipped,) = {*wl.sweep(SMALL, tp=[1, 3], zero=2).table()["skipped"]}
    assert "zero: found a workload file" in skipped
    assert "--" not in skipped


def test_what_cannot_be_opened_says_so() -> None:
    with pytest.raises(wl.InputError, match="no-such-file"):
        wl.load("no-such-file")
    for given in ({}, {"path": SMALL, "model": "llama-3-8b"}):
        with pytest.raises(wl.UsageError, match="model=NAME"):
            wl.load(**given)  # type: ignore[arg-type]


def test_a_factor_on_the_bandwidth_of_a_dimension_is_the_run_on_that_network() -> None:
    run = simulated()
    dims = list(run._run.network.dims)
    texts = [f"{dim.kind}:{dim.size}:{dim.bandwidth / 2 if not at else dim.bandwidth!r}:{dim.latency_ns}"
             for at, dim in enumerate(dims)]  # fmt: skip
    assert run.with_(bandwidth={0: 0.5}).step_time_ns == wl.load(SIMULATED).run(dim=texts).step_time_ns
    assert run.with_(latency={1: 4}).step_time_ns > run.step_time_ns
    both = run.with_(bandwidth={0: 0.5, "tp": 0.5}, microbatches=32)
    assert both.parameters["time_scale"] == ["stream tp=2.0"]
    assert both.with_(microbatches=None, dim=None, time_scale=None, world=None).parameters == {}


def test_a_factor_on_a_group_is_one_on_its_durations(run: wl.Run) -> None:
    if run.kind == "simulated":
        slow = run.with_(bandwidth={"tp": 0.5})
        assert slow.step_time_ns == wl.load(SIMULATED).run(time_scale=["stream tp=2"]).step_time_ns
    elif run.kind == "measured":
        slow = run.with_(bandwidth={"pp": 0.5})
        assert (slow.kind, slow.parameters) == ("replayed", {"kind_scale": ["pp=2.0"]})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bandwidth": {7: 0.5}}, "bandwidth[7]: the network has dimensions 0 to 1"),
        ({"bandwidth": {0: 0}}, "bandwidth[0]: found 0, expected a factor above 0"),
        ({"latency": {"tp": 2}}, "latency['tp']: latency is of a dimension"),
        ({"bandwidth": {"nothing": 2}}, "nothing"),
    ],
)
def test_factors_that_cannot_be_say_so(given: dict[str, object], words: str) -> None:
    with pytest.raises(wl.UsageError, match=re.escape(words)):
        simulated().with_(**given)  # type: ignore[arg-type]


def test_a_comparison_explains_the_difference() -> None:
    a = simulated()
    b = a.with_(schedule="gpipe")
    both = wl.compare(a, b)
    assert both.difference_ns == b.step_time_ns - a.step_time_ns == sum(both.parts().values())
    assert both.reasons
    rows = both.accounts()
    assert all(row["difference_ns"] == row["b_ns"] - row["a_ns"] for row in rows)
    ranks = wl.compare(a, a, ranks=(0, 512))
    assert ranks.difference_ns == 0


def test_streams_are_those_of_the_report(run: wl.Run) -> None:
    streams = run.streams()
    reported = run.to_dict()["streams"]
    assert [(row["stream"], row["busy_ns"], row["exposed_ns"]) for row in streams] == [
        (row["stream"], row["busy_ns"], row["exposed_ns"]) for row in reported
    ]
    assert streams.columns == ("stream", "busy_ns", "overlapped_ns", "exposed_ns")
    rank = run.spans()["rank"][0]
    exposed = sum(ns for name, ns in run.accounts(rank).items() if name.startswith("exposed "))
    assert sum(run.streams(rank)["exposed_ns"]) == exposed
    with pytest.raises(wl.UsageError, match="rank 4096"):
        run.streams(4096)


def test_an_account_has_one_name(run: wl.Run) -> None:
    """In accounts, on the path, of a span and in a comparison."""
    names = set(run._run.trace.categories.all)
    assert set(run.accounts()) <= names
    assert set(run.critical_path.by("account")) <= names
    assert {name for name, ns in run.accounts().items() if ns} >= set(run.critical_path.by("account"))
    both = wl.compare(run, run.with_(compute_scale=0.5))
    rows = {row["account"]: row["a_ns"] for row in both.accounts()}
    assert len(rows) == len(both.accounts())
    assert set(rows) <= names
    assert {name: ns for name, ns in rows.items() if ns} == {
        name: ns for name, ns in run.accounts().items() if ns
    }
    assert set(both.parts()) <= names | {"compute"}


def test_a_simulated_and_a_measured_run_are_compared_by_accounts_of_recordings() -> None:
    measured = wl.load(MEASURED).run()
    rows = wl.compare(simulated(), measured).accounts()
    assert {"compute forward", "compute backward", "exposed tp", "exposed dp", "idle"} <= set(rows["account"])
    assert sum(rows["b_ns"]) == measured.step_time_ns
    assert rows["b_ns"][rows["account"].index("compute backward")] == measured.accounts()["compute backward"]


def test_points_of_a_sweep_are_runs() -> None:
    sweep = wl.sweep(SIMULATED, tp=[4, 8], schedule=["1f1b", "gpipe"], microbatches=16)
    table = sweep.table()
    assert list(zip(table["tp"], table["schedule"], strict=True)) == [
        (4, "1f1b"), (4, "gpipe"), (8, "1f1b"), (8, "gpipe"),
    ]  # fmt: skip
    for row in table:
        alone = wl.load(SIMULATED).run(tp=row["tp"], schedule=row["schedule"], microbatches=16)
        assert row["step_time_ns"] == alone.step_time_ns
    assert sweep.best().step_time_ns == min(table["step_time_ns"])
    assert len(sweep.to_pandas()) == len(sweep) == 4
    wrong = wl.sweep(wl.load(SIMULATED), tp=[8, 7])
    assert [row["skipped"] is None for row in wrong.table()] == [True, False]
    with pytest.raises(wl.UsageError, match="nothing varies"):
        wl.sweep(SIMULATED, tp=8)


def test_what_can_be_swept_is_said(run: wl.Run) -> None:
    opened = wl.load(run.path)
    assert opened.can_be_swept is (run.kind == "simulated")
    if opened.can_be_swept:
        assert len(wl.sweep(opened, compute_scale=[0.9, 0.8])) == 2
        return
    words = f"sweep: found {opened.kind}, "
    with pytest.raises(wl.UsageError, match=re.escape(words) + ".*expected a workload or a model; of others"):
        wl.sweep(opened, compute_scale=[0.9, 0.8])


def test_a_notebook_shows_a_run_and_nothing_of_a_file_as_markup(run: wl.Run, tmp_path: Path) -> None:
    shown = run._repr_html_()
    assert "<svg" in shown
    assert shown.count("<rect") >= len(run._run.tracks[:8])
    hostile = tmp_path / "<b>x<script>.txt"
    hostile.write_bytes(Path(SMALL).read_bytes().replace(b"attention_row", b"<script>x"))
    other = wl.load(hostile).run()
    for html in (other._repr_html_(), other.spans(rank=0)._repr_html_(), other.layers()._repr_html_()):
        assert "<script" not in html
    assert "more rows" in other.spans(rank=0)._repr_html_()


def test_spans_of_ranks_that_ran_alike_are_those_of_each(tmp_path: Path) -> None:
    """Planted: spans of execution traces taken by the rank, not by the class of ranks that ran alike."""
    alone = [{"id": 0, "name": "n", "type": COMP, "micros": 50, "attributes": {}}]
    long = [{"id": 0, "name": "m", "type": COMP, "micros": 70, "attributes": {}}]
    run = wl.load(write_set(tmp_path, [alone, alone, long, alone])).run(dim=["ring:4:50:500"])
    assert [run.spans(rank)["name"] for rank in range(4)] == [["n"], ["n"], ["m"], ["n"]]
    assert [run.spans(rank)["end_ns"] for rank in range(4)] == [[50_000], [50_000], [70_000], [50_000]]
    assert {row["name"] for row in run.layers()} == {"n", "m"}


def test_operations_of_a_device_are_there_once() -> None:
    run = wl.load("tests/kineto/cases/spans.csv").run()
    rows = [tuple(row.values()) for row in run.spans()]
    assert len(rows) == len(set(rows)) > 0


def test_a_slice_of_a_table_is_a_table_of_those_rows() -> None:
    table = wl.load(SMALL).run().spans(rank=0)
    rows = [*table]
    for part in (slice(5), slice(-3, None), slice(2, 40, 7), slice(5, 5), slice(None, None, -1)):
        assert [*table[part]] == rows[part]
        assert table[part].columns == table.columns
    assert len(table[:5].to_pandas()) == table[:5].to_arrow().num_rows == 5
    with pytest.raises(KeyError, match="no column 3, only rank"):
        table[3]  # type: ignore[call-overload]


def test_whole_numbers_stay_whole_where_some_are_missing() -> None:
    table = wl.load(SMALL).run().spans(rank=0)
    assert None in table["microbatch"]
    frame = table.to_pandas()
    types = {name: str(frame[name].dtype) for name in ("end_ns", "row", "microbatch")}
    assert types["end_ns"] == "int64"
    assert types["microbatch"] == "Int64"
    whole = [None if value is frame.microbatch.dtype.na_value else value for value in frame.microbatch]
    assert whole == table["microbatch"]
    large = wl.Table({"ns": [2**62 + 1, None], "none": [None, None], "fits": [True, None]})
    assert int(large.to_pandas()["ns"][0]) == 2**62 + 1
    assert list(large.to_pandas()["fits"]) == [True, None]
    assert len(large[:0].to_pandas()) == 0


def test_values_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    workload = wl.load(SMALL)
    assert workload.run(pp=numpy.int64(2), compute_scale=numpy.float64(0.9)).parameters == {
        "pp": 2, "compute_scale": 0.9,
    }  # fmt: skip
    half = workload.run().with_(bandwidth={numpy.int64(0): numpy.float64(0.5)})
    assert half.step_time_ns == workload.run().with_(bandwidth={0: 0.5}).step_time_ns
    assert len(wl.sweep(SIMULATED, tp=numpy.array([4, 8]))) == 2


def test_a_model_has_its_throughput_and_memory() -> None:
    run = wl.load(model="llama-3-8b").run(world=8, tp=2)
    values = run.to_dict()
    assert run.tokens_per_s == values["throughput"]["tokens_per_s"]
    assert list(run.memory()["needed"]) == [stage["needed"] for stage in values["memory"]]
    assert run.fits is all(stage["fits"] for stage in values["memory"])
    assert (wl.load(SMALL).run().tokens_per_s, wl.load(SMALL).run().fits) == (None, None)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda run: wl.compare(run, "b.txt"), "compare: found 'b.txt', expected a run"),
        (lambda run: wl.sweep(run, tp=[1, 2]), "sweep: found <Run "),
        (lambda run: wl.sweep(SMALL, tp=[1, 2], jobs=0), "jobs: found 0"),
        (lambda run: wl.sweep(SMALL, tp=[]), "tp: found no values"),
        (lambda run: wl.sweep(SMALL, dp=["a"]), "dp: found 'a', expected a whole number"),
        (lambda run: wl.sweep(SMALL, dp=[0, 2]), "dp: found 0, expected a whole number from 1"),
        (lambda run: run.with_(bandwidth=0.5), "bandwidth: found 0.5, expected factors"),
        (lambda run: run.accounts("0"), "rank: found '0', expected a whole number"),
        (lambda run: wl.sweep(SIMULATED, tp=[3, 5]).best(), "was run and fits; the first: "),
    ],
)
def test_slips_of_a_notebook_are_told(wrong: Callable[[wl.Run], object], words: str) -> None:
    with pytest.raises(wl.UsageError, match=re.escape(words)):
        wrong(small())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda run: wl.load(5), "load: found 5, expected a path, as a text or pathlib.Path, or model=NAME"),
        (lambda run: wl.load(b"x"), "load: found b'x', expected a path"),
        (lambda run: wl.load(run), "load: found <Run "),
        (lambda run: wl.load(model=5), "model: found 5, expected a name"),
        (lambda run: wl.load(SMALL, step=1.5), "step: found 1.5, expected a whole number"),
        (lambda run: wl.load(SMALL, run=5), "run: found 5, expected a text"),
        (lambda run: wl.load(SMALL, ranks=5), "ranks: found 5, expected ranks, like [0, 3]"),
        (lambda run: wl.load(SMALL, ranks=["a"]), "ranks: found 'a', expected a whole number"),
        (lambda run: wl.compare(5, run), "compare: found 5, expected a run"),
        (lambda run: wl.compare(run, run, ranks=3), "ranks: found 3, expected the rank of a and that of b"),
        (lambda run: wl.compare(run, run, ranks=(0, "1")), "ranks: found '1', expected a whole number"),
        (lambda run: wl.sweep(5, tp=[1, 2]), "sweep: found 5, expected an input"),
        (lambda run: wl.sweep(SMALL, tp=[1, 2], where=5), "where: found 5, expected conditions"),
        (lambda run: wl.sweep(SMALL, tp=[1, 2], jobs=1.5), "jobs: found 1.5, expected a whole number"),
        (lambda run: run.export(5, "chrome"), "export: found 5, expected the path of a file"),
        (lambda run: run.export("run.json", 5), "format: found 5, expected a text"),
        (lambda run: run.with_(latency=3), "latency: found 3, expected factors"),
        (lambda run: run.spans("x"), "rank: found 'x', expected a whole number"),
    ],
)
def test_arguments_of_a_wrong_type_say_what_fits(wrong: Callable[[wl.Run], object], words: str) -> None:
    with pytest.raises(TypeError, match=re.escape(words)) as raised:
        wrong(small())
    assert isinstance(raised.value, wl.UsageError)


def test_a_path_and_a_condition_may_be_one() -> None:
    assert wl.load(Path(SMALL)).path == SMALL
    assert len(wl.sweep(SMALL, tp=[1, 2, 4], where="tp >= 2")) == 2


def test_a_run_is_exported(tmp_path: Path) -> None:
    run = wl.load(SMALL).run()
    run.export(tmp_path / "run.json", "chrome")
    assert (tmp_path / "run.json").stat().st_size > 1000
    run.export(tmp_path / "run.json.gz", "chrome")
    assert gzip.decompress((tmp_path / "run.json.gz").read_bytes()) == (tmp_path / "run.json").read_bytes()
    for arguments, words in (
        ((tmp_path / "run.json", "chrome"), "run.json"),
        ((tmp_path / "x", "vhs"), "chrome"),
    ):
        with pytest.raises(wl.UsageError, match=words):
            run.export(*arguments)
