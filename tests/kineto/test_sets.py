"""Ranks of a job together: matching, clocks, files in any state."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from simcore.calibration import calibrate
from simcore.diagnostics import InputError, UsageError
from simcore.kineto import loading
from simcore.measured import MeasuredRun
from simcore.measured.run import RecordedStep
from simcore.parameters import OpeningOptions, Parameters
from simcore.replay.parameters import Scales
from simcore.replay.stragglers import find_stragglers, on_time_scales
from simcore.runs.measured import RecordedRun, run_recording
from simcore.setup import Setup
from simcore.sources.inputs import open_input
from simcore.units import duration, percent
from simcore.words.measured_run import facts, format_words, steps_words
from simcore.workload.model import Workload
from tests.export.reading import exported
from tests.kineto.corpus import DLRM, GLOO, HTA, SHARED, device_spans, needs_corpus, raw, union_ns
from tests.says import figures, said
from tests.workload.texts import REPOSITORY

pytestmark = needs_corpus
_NEAR_NS = 10_000


@cache
def _of_corpus(path: Path, **asked: Any) -> MeasuredRun:
    run = open_input(str(path), OpeningOptions(**asked))
    assert isinstance(run, MeasuredRun)
    return run


def _opened(path: Path, **asked: Any) -> MeasuredRun:
    """A set; those of the corpus are opened once."""
    return (_of_corpus if SHARED in path.parents else _of_corpus.__wrapped__)(path, **asked)


def _results(path: Path, **asked: Any) -> RecordedRun:
    return run_recording(_opened(path, **asked), Parameters())


def _accounts(results: RecordedRun) -> list[list[int]]:
    return [one.total_ns for one in results.accounts]


def _said(run: MeasuredRun) -> dict[str, str]:
    return {one.code: one.message for one in run.diagnostics}


# Of 8 ranks 4, and of 3,290 events of each 900: what its device ran, what launched it, and what tells its
# collectives apart.
_KEPT = ("kernel", "gpu_memcpy", "gpu_memset", "user_annotation", "cuda_runtime")
_TELLS = re.compile("c10d::|nccl:|record_param_comms")


@cache
def _few_events() -> dict[str, bytes]:
    """The files of a smaller DLRM: what tests change takes a fifth of the time."""
    found = {}
    for path in sorted(DLRM.glob("*.json.gz"))[:4]:
        data = raw(path)
        data["distributedInfo"]["world_size"] = 4
        data["traceEvents"] = [
            one
            for one in data["traceEvents"]
            if one.get("cat") in _KEPT or one["ph"] == "M" or _TELLS.match(str(one.get("name")))
        ]
        found[path.name.removesuffix(".gz")] = msgspec.json.encode(data)
    return found


def _copy(tmp_path: Path, change: Callable[[int, dict[str, Any]], None] | None = None) -> Path:
    """The smaller set with each file changed. change: of (which file, its JSON)."""
    for number, (name, text) in enumerate(_few_events().items()):
        if change is not None:
            data = json.loads(text)
            change(number, data)
            text = msgspec.json.encode(data)
        (tmp_path / name).write_bytes(text)
    return tmp_path


def _copy_of(source: Path, tmp_path: Path, change: Callable[[int, dict[str, Any]], None]) -> Path:
    """A set of the corpus with each file changed."""
    for number, path in enumerate(sorted(source.glob("*.json.gz"))):
        data = raw(path)
        change(number, data)
        (tmp_path / path.name.removesuffix(".gz")).write_bytes(msgspec.json.encode(data))
    return tmp_path


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    """The smaller set as it is."""
    return _results(_copy(tmp_path_factory.mktemp("few")))


def _shift(data: dict[str, Any], us: int) -> None:
    for event in data["traceEvents"]:
        if "ts" in event:
            event["ts"] += us


def _call_step(data: dict[str, Any], number: int) -> None:
    for event in data["traceEvents"]:
        if str(event.get("name")).startswith("ProfilerStep#"):
            event["name"] = f"ProfilerStep#{number}"


def test_files_read_side_by_side_are_those_read_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, counts = _opened(HTA), []
    side_by_side = loading._read_in_processes

    def counted(files: Any, part: Any, workers: int, progress: Any) -> Any:
        counts.append(workers)
        return side_by_side(files, part, workers, progress)

    monkeypatch.setattr(loading, "_cores", lambda: 2)
    monkeypatch.setattr(loading, "LEAST_BYTES", 1)
    monkeypatch.setattr(loading, "_read_in_processes", counted)
    assert _of_corpus.__wrapped__(HTA) == alone
    assert counts == [2]


def test_all_eight_collectives_match_on_all_eight_ranks() -> None:
    matches = _results(DLRM).rendezvous.matches
    assert [sorted(call.rank for call in one.calls) for one in matches.meetings] == [list(range(8))] * 8
    assert not matches.unmatched


def test_accounts_sum_to_the_step_on_every_rank() -> None:
    for results in (_results(DLRM), _results(GLOO)):
        assert [sum(ns) for ns in _accounts(results)] == [results.step_time_ns] * len(results.accounts)


def test_shifted_clocks_change_no_account(tmp_path: Path, few: RecordedRun) -> None:
    drawn = random.Random(5)
    shifted = _results(_copy(tmp_path, lambda number, data: _shift(data, drawn.randint(-20_000, 20_000))))
    assert abs(shifted.step_time_ns - few.step_time_ns) <= _NEAR_NS
    for one, other in zip(_accounts(shifted), _accounts(few), strict=True):
        assert all(abs(ns - of) <= _NEAR_NS for ns, of in zip(one, other, strict=True))


def test_the_rank_that_comes_last_is_named_with_how_often_and_what_it_costs() -> None:
    results = _results(DLRM)
    sentences = results.figures.words
    words = " ".join(sentences)
    assert figures(said(sentences, "Rank 7 comes last"))[:3] == ["7", "5", "8"]
    (late,) = find_stragglers(results)
    # The gaps before its five collectives and, of these, what lies before its first operation.
    said(sentences, "Rank 7 comes last", "6.061 ms", "host gaps", "4.648 ms", "first operation")
    begun = sorted(rank.ops.start[0] for rank in results.measured.ranks)
    (latest, upper), least = (begun[-1], begun[-2]), results.measured.ranks[7].ops.start[0]
    assert latest == least
    assert late.least_ns <= latest - upper <= late.most_ns
    # What it did before its own step nobody recorded.
    windows = [rank.window for rank in results.measured.ranks]
    outside = [(w[0], results.step_time_ns - w[1]) for w in windows if w is not None]
    assert len(outside) == 8
    share = percent(sum(map(sum, outside)), 8 * results.step_time_ns)
    own = said(sentences, "own steps")
    before = [duration(outside[7][0]), f"{share} %"]
    assert figures(own)[-5:] == ["7", "16.866 ms", "7.644 ms", *before]
    said([own], "rank 7", "16.866 ms", "7.644 ms", "first operation", *before)
    scales, less_ns = on_time_scales(results, late.rank)
    again = results.with_scales(scales)
    # A replay begins as its operations let it.
    assert not any("own steps" in line for line in again.figures.words)
    accounts = [run.base.accounts[7] for run in (results, again)]
    assert f"({duration(less_ns)} less)" in words
    assert accounts[1].busy_ns <= accounts[0].busy_ns
    assert again.step_time_ns < results.step_time_ns
    assert f"would take {duration(again.step_time_ns)}" in words
    name = "SendRecv_RING_SIMPLE_Sum_int8_t"
    said(sentences, "Ranks 0-6", "rank 7", name, "8.896 ms")


def test_calls_that_end_apart_are_no_collective_and_nobody_waits_in_them() -> None:
    """Two of 128 ranks: of five calls in order two pairs end within 0.2 ms, the others 13 to 68 ms apart."""
    results = _results(HTA)
    met = [one.calls for one in results.rendezvous.matches.meetings if len(one.calls) > 1]
    assert len(met) == 2
    assert len(results.rendezvous.matches.unmatched) == 6
    first, second = (raw(path)["traceEvents"] for path in sorted(HTA.glob("*.json.gz")))
    calls = [[one for one in events if "SendRecv" in one.get("name", "")] for events in (first, second)]
    calls = [sorted(some, key=lambda one: one["ts"])[-2:] for some in calls]
    late_us = results.measured.recorded.shifts[1] / 1e3 if results.measured.recorded else 0.0
    # What rank 0 has of both before rank 1 comes, with no compute beside it.
    spans, waited = device_spans(first), 0.0
    for mine, other in zip(*calls, strict=True):
        before = [(mine["ts"], other["ts"] + late_us)]
        computes = [
            (start, end) for start, end in spans["compute"] if start < before[0][1] and end > mine["ts"]
        ]
        waited += union_ns(before + computes) - union_ns(computes)
    assert [(wait.early, wait.late, wait.ns) for wait in results.waiting] == [(0, 1, round(waited * 1000))]
    assert not any("for each other" in line or "wait for" in line for line in results.figures.words)


def test_a_rank_with_more_to_do_in_some_kernels_is_not_slow() -> None:
    """Rank 1's 32 ms more are those of three embedding kernels, its matrix products are as fast."""
    results = _results(HTA)
    kernels: list[float] = []
    for path in sorted(HTA.glob("*.json.gz")):
        steps = raw(path)["traceEvents"]
        rows = [one for one in steps if "unweighted_kernel_cta_per_row_1" in one.get("name", "")]
        kernels.append(max(rows, key=lambda one: one["ts"])["dur"] / 1e3)
    assert f"({kernels[1]:.3f} ms, rank 0 {kernels[0]:.3f} ms)." in results.figures.words[0]
    assert figures(results.figures.words[0])[:4] == ["1", "136.4 ms", "0", "104.1 ms"]
    assert results.figures.words[0].startswith("Rank 1 computes longer")


def test_one_pair_alone_that_ends_at_once_set_the_clocks_itself(tmp_path: Path) -> None:
    """Without the two pairs that agree, the middle one of three that do not agree proves nothing."""

    def cut(_: int, data: dict[str, Any]) -> None:
        calls = [one for one in data["traceEvents"] if "SendRecv" in one.get("name", "")]
        for call in sorted(calls, key=lambda one: one["ts"])[-2:]:
            data["traceEvents"].remove(call)
        # Order alone pairs what no call of the host tells apart.
        data["traceEvents"] = [one for one in data["traceEvents"] if not _TELLS.match(str(one.get("name")))]

    results = _results(_copy_of(HTA, tmp_path, cut))
    assert results.measured.concurrent
    assert [len(one.calls) for one in results.rendezvous.matches.meetings] == [1] * 6
    assert not results.waiting
    # Nor does anybody come last to a call whose other members are not known.
    assert not any("came last" in one.reason for one in results.figures.path_segments())


def test_kernels_of_one_collective_end_at_once_or_are_none(tmp_path: Path) -> None:
    def lengthen(number: int, data: dict[str, Any]) -> None:
        kernels = [one for one in data["traceEvents"] if "AllReduce" in one.get("name", "")]
        if number == 3:
            max(kernels, key=lambda one: one["ts"])["dur"] += 1_500

    matches = _results(_copy(tmp_path, lengthen)).rendezvous.matches
    assert [len(one.calls) for one in matches.meetings if len(one.calls) > 1] == [4] * 7
    assert len(matches.unmatched) == 4


def test_no_rank_is_late_where_all_come_together(tmp_path: Path) -> None:
    alike = json.loads(next(iter(_few_events().values())))
    for rank in range(4):
        alike["distributedInfo"]["rank"] = rank
        (tmp_path / f"rank{rank}.json").write_bytes(msgspec.json.encode(alike))
    words = " ".join(_results(tmp_path).figures.words)
    assert "comes last" not in words
    assert "On time" not in words


def test_which_step_it_is_is_said_in_words() -> None:
    said([format_words(_opened(DLRM))], "step 10", "only one")
    said([format_words(_opened(GLOO))], "step 4", "3 steps (2-4)")
    said([format_words(_opened(GLOO, step="all"))], "all", "3 steps (2-4)")


def test_the_steps_are_listed_with_their_times_and_the_slowest() -> None:
    found = _opened(GLOO)
    assert found.recorded is not None
    words = steps_words(found.recorded.steps)
    assert figures(words) == ["2", "118.3 ms", "3", "128.8 ms", "4", "155.1 ms", "4"]
    assert words.endswith("slowest is 4")
    many = [RecordedStep(number, {0: 10**6 * (number % 7 + 1)}) for number in range(20)]
    assert figures(steps_words(many)) == ["4.000 ms", "6", "7.000 ms", "13", "7.000 ms", "5", "6.000 ms"]
    assert ("steps", words) in facts(run_recording(found, Parameters()))
    assert not any(name == "steps" for name, _ in facts(_results(DLRM)))


def test_all_ranks_are_one_file_for_other_viewers_with_flows_between_the_members(tmp_path: Path) -> None:
    drawn = random.Random(5)
    run = _opened(_copy(tmp_path, lambda number, data: _shift(data, drawn.randint(-20_000, 20_000))))
    events = json.loads(b"".join(exported("chrome", run).chunks))["traceEvents"]
    arrows = [one for one in events if one["ph"] in "sf"]
    # Of each of 8 collectives an arrow from the last to come to each of 3 others.
    assert len(arrows) == 2 * 8 * 3
    ends: dict[str, list[float]] = {}
    for one in events:
        if one["ph"] == "X" and one["cat"] == "comm":
            ends.setdefault(f"{one['pid']}", []).append(one["ts"] + one["dur"])
    # On one clock the members of a collective end together, whatever their hosts' clocks said.
    for together in zip(*map(sorted, ends.values()), strict=True):
        assert max(together) - min(together) <= 10


def test_bandwidths_are_fitted_to_the_groups_of_a_profile() -> None:
    workload = open_input(str(REPOSITORY / "fixtures" / "002_gpt_1024npu.txt"))
    assert isinstance(workload, Workload)
    given = Parameters(world=4, tp=2, pp=1)
    fitted = calibrate(Setup(workload, given), _opened(GLOO))
    (within, _) = fitted.bandwidths
    assert within.after != within.before
    kinds = {one.name: one for one in fitted.kinds}
    assert kinds["dp"].measured_ns


def test_a_set_holds_the_step_that_is_shown_and_reads_again_for_another(tmp_path: Path) -> None:
    def without_the_last(number: int, data: dict[str, Any]) -> None:
        if number == 2:
            data["traceEvents"] = [
                event for event in data["traceEvents"] if event.get("name") != "ProfilerStep#4"
            ]

    found = _opened(_copy_of(GLOO, tmp_path, without_the_last))
    assert found.recorded is not None
    assert found.recorded.step == 3
    for one, other in zip(found.ranks, _opened(GLOO, step="3").ranks, strict=True):
        assert (one.ops.name, one.ops.start, one.ops.end) == (other.ops.name, other.ops.start, other.ops.end)


@pytest.mark.parametrize("path", [DLRM, GLOO], ids=["dlrm", "gloo"])
@pytest.mark.parametrize("step", [None, "all"])
def test_replay_with_nothing_changed_is_the_measured_step(path: Path, step: str | None) -> None:
    results = _results(path, step=step)
    assert abs(results.with_scales(Scales()).step_time_ns - results.step_time_ns) <= _NEAR_NS
    assert results.with_scales(Scales(comm=0.5)).step_time_ns <= results.step_time_ns
    assert results.with_scales(Scales(compute=0)).step_time_ns < results.step_time_ns


def test_shuffled_events_and_files_under_other_names_are_the_same_run(
    tmp_path: Path, few: RecordedRun
) -> None:
    drawn = random.Random(3)
    names = [f"{number}.json" for number in range(4)]
    drawn.shuffle(names)
    _copy(tmp_path, lambda _, data: drawn.shuffle(data["traceEvents"]))
    for name, path in zip(names, sorted(tmp_path.iterdir()), strict=True):
        path.rename(tmp_path / name)
    found = _results(tmp_path)
    assert [rank.rank for rank in found.measured.ranks] == list(range(4))
    assert _accounts(found) == _accounts(few)


def test_ranks_that_no_file_states_come_from_the_names_which_is_said(tmp_path: Path) -> None:
    found = _opened(_copy(tmp_path, lambda number, data: data["distributedInfo"].pop("rank")))
    assert [rank.rank for rank in found.ranks] == list(range(4))
    assert "rank 0-3" in _said(found)["rank-from-name"]


def test_a_missing_rank_is_named_and_the_others_are_matched(tmp_path: Path) -> None:
    _copy(tmp_path)
    next(tmp_path.glob("worker2_*")).unlink()
    results = _results(tmp_path)
    assert "rank 2 of 4 is missing" in _said(results.measured)["ranks-missing"]
    assert [len(one.calls) for one in results.rendezvous.matches.meetings] == [3] * 8


def test_a_rank_that_is_cut_in_the_middle_is_shown_with_what_it_has(tmp_path: Path) -> None:
    _copy(tmp_path)
    cut = next(tmp_path.glob("worker2_*"))
    whole = cut.read_bytes()
    cut.write_bytes(whole[: len(whole) * 9 // 10])
    found = _opened(tmp_path)
    assert f"at byte {len(whole) * 9 // 10}" in _said(found)["cut-file"]
    assert [rank.rank for rank in found.ranks] == list(range(4))


def test_two_jobs_in_one_directory_are_two_runs(tmp_path: Path, few: RecordedRun) -> None:
    for name, text in _few_events().items():
        (tmp_path / f"first_{name}").write_bytes(text)
        data = json.loads(text)
        _shift(data, 60_000_000)
        (tmp_path / f"second_{name}").write_bytes(msgspec.json.encode(data))
    found = _opened(tmp_path)
    assert len(found.ranks) == 4
    assert "--run" in _said(found)["other-runs"]
    (other,) = found.others
    assert _accounts(_results(tmp_path, run=other)) == _accounts(few)


def test_ranks_of_other_worlds_are_another_job(tmp_path: Path) -> None:
    _copy(tmp_path, lambda number, data: data["distributedInfo"].update(world_size=4 if number < 3 else 8))
    found = _opened(tmp_path)
    assert len(found.ranks) == 3
    assert found.others


def test_new_and_old_time_units_are_the_same_run(tmp_path: Path, few: RecordedRun) -> None:
    base = 1694128200 * 10**9

    def newer(number: int, data: dict[str, Any]) -> None:
        if number % 2:
            data["baseTimeNanoseconds"] = base - number * 10**6
            for event in data["traceEvents"]:
                if "ts" in event:
                    event["ts"] = event["ts"] - data["baseTimeNanoseconds"] / 1000

    assert _accounts(_results(_copy(tmp_path, newer))) == _accounts(few)


def test_old_categories_and_other_vendors_are_read(tmp_path: Path) -> None:
    old = {
        "kernel": "Kernel",
        "cuda_runtime": "Runtime",
        "gpu_memcpy": "Memcpy",
        "gpu_memset": "Memset",
        "cpu_op": "Operator",
    }

    def older(number: int, data: dict[str, Any]) -> None:
        for event in data["traceEvents"]:
            event["cat"] = old.get(event.get("cat"), event.get("cat"))

    # Those of the host, too: what it had not launched yet is another account.
    assert _accounts(_results(_copy_of(DLRM, tmp_path, older))) == _accounts(_results(DLRM))


def test_a_host_without_a_device_says_so_and_its_groups_are_found_by_their_ends() -> None:
    results = _results(GLOO)
    assert "no device" in _said(results.measured)["no-device"]
    members = {
        (one.kind, tuple(call.rank for call in one.calls)) for one in results.rendezvous.matches.meetings
    }
    assert {("tp", (0, 1)), ("tp", (2, 3)), ("dp", (0, 2)), ("dp", (1, 3))} <= members
    # `Whose members end within 70.225 us` was the middle: one pair ends 4.4 ms from its usual difference.
    by_ends = [one.message for one in results.measured.diagnostics if one.code == "group-by-ends"]
    said(by_ends, "of dp", "70.225 us", "4.377 ms")
    # Rank 3 costs the step something, rank 1 nothing, though its sentence stood first.
    assert results.figures.words[0].startswith("Rank 3 is slow: ")
    assert results.figures.words[1].startswith("Rank 1 computes longer: ")


def test_steps_are_runs_of_a_set(tmp_path: Path) -> None:
    found = _opened(GLOO)
    assert found.recorded is not None
    assert [step.step_number for step in found.recorded.steps] == [2, 3, 4]
    assert found.recorded.step == 4
    assert _opened(GLOO, step="3").recorded == _opened(GLOO, run=found.others[1]).recorded
    with pytest.raises(UsageError, match="--step 7: no such step"):
        _opened(GLOO, step="7")
    with pytest.raises(UsageError, match="expected a step's number or all"):
        _opened(GLOO, step="last")


def test_some_ranks_alone() -> None:
    assert [rank.rank for rank in _opened(DLRM, ranks="0-2,7").ranks] == [0, 1, 2, 7]
    with pytest.raises(UsageError, match="expected ranks such as"):
        _opened(DLRM, ranks="7-1")


def test_names_that_communicate_can_be_added() -> None:
    one = next(DLRM.glob("worker0*"))
    before, after = _results(one), _results(one, comm_names="sgemm")
    assert len(after.rendezvous.matches.meetings) > len(before.rendezvous.matches.meetings) == 8
    with pytest.raises(UsageError, match="expected a regular expression"):
        _opened(one, comm_names="(")


def test_nested_folders_are_one_set(tmp_path: Path, few: RecordedRun) -> None:
    for number, text in enumerate(_few_events().values()):
        data = json.loads(text)
        for step in (10, 11):
            folder = tmp_path / f"iteration_{step}"
            folder.mkdir(exist_ok=True)
            _call_step(data, step)
            (folder / f"rank{number}.json").write_bytes(msgspec.json.encode(data))
            _shift(data, 100_000)
    found = _opened(tmp_path)
    assert found.recorded is not None
    assert [step.step_number for step in found.recorded.steps] == [10, 11]
    assert _accounts(_results(tmp_path, step="10")) == _accounts(few)


def test_two_windows_of_each_rank_in_one_directory_are_one_job(tmp_path: Path, few: RecordedRun) -> None:
    for number, text in enumerate(_few_events().values()):
        data = json.loads(text)
        for step in (4, 5):
            _shift(data, 100_000)
            _call_step(data, step)
            (tmp_path / f"rank{number}.window{step}.json").write_bytes(msgspec.json.encode(data))
    last = _results(tmp_path)
    assert last.measured.recorded is not None
    assert [step.step_number for step in last.measured.recorded.steps] == [4, 5]
    assert last.measured.recorded.step == 5
    assert all("window5" in rank.path for rank in last.measured.ranks)
    first = _results(tmp_path, step="4")
    assert all("window4" in rank.path for rank in first.measured.ranks)
    assert _accounts(first) == _accounts(last) == _accounts(few)


def test_nothing_to_show_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [{"ph": "M", "name": "process_name"}]}')
    with pytest.raises(InputError, match="found no event of a device"):
        _opened(path)
