"""A CSV of spans: what a run is that was written as one, and what is said of files that are none.

Planted in a copy of simcore, one at a time: times of a step are not taken from its first span; calls are
numbered over all groups; the second line of a cell in quotes is not counted; a wait that takes no time comes
before one that does. Each of them failed here.
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simcore.diagnostics import Diagnostic, InputError, UsageError
from simcore.kineto import cache
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions, Parameters
from simcore.render.report.pages import run_page
from simcore.runs.measured import RecordedRun, run_recording
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.sources.inputs import open_input
from simcore.trace.run import sum_path
from simcore.workload import open_workload
from simcore.workload.formats import span_csv
from simcore.workload.spans import KINDS
from tests.fuzz.mutants import UNSAFE
from tests.kineto.simulated_spans import SIMULATED, as_csv
from tests.workload.texts import REPOSITORY
from tui.cli import main

CASES = Path(__file__).parent / "cases"
HEAD = "rank,stream,start_ns,end_ns,name,kind,group,step,microbatch"
# Two ranks: rank 1 comes 1000 ns later to the all-reduce, and waits 200 ns for what rank 0 sends.
TWO = (CASES / "spans.csv").read_text()


def written(folder: Path, text: str | bytes, name: str = "spans.csv") -> str:
    """The path of a file with this content."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    return str(path)


def opened(path: str, **asked: Any) -> MeasuredRun:
    run = open_input(path, OpeningOptions(**asked))
    assert isinstance(run, MeasuredRun)
    return run


def results(path: str, **asked: Any) -> RecordedRun:
    return run_recording(opened(path, **asked), Parameters())


def found(path: str) -> list[Diagnostic]:
    """What is said of a file, opened or not."""
    try:
        return list(opened(path).diagnostics)
    except InputError as error:
        return list(error.diagnostics)


def figures(of: RecordedRun) -> dict[int, dict[str, int]]:
    """The accounts of each rank that are not 0, ns."""
    return {
        rank.rank: {name: account.ns(name) for name in account.of.all if account.ns(name)}
        for rank, account in zip(of.measured.ranks, of.accounts, strict=True)
    }


# -- the proof: a simulated run ------------------------------------------------------------------

# Accounts of a simulation -> what the format can tell of them: no parts of a backward pass, and of a wait not
# whether a pipeline is the reason.
_TOLD = {
    "compute fwd": "forward", "compute ig": "backward", "compute wg": "backward",
    "compute recompute": "backward", "compute opt": "optimizer", "idle": "idle",
    "compute forward": "forward", "compute backward": "backward", "compute optimizer": "optimizer",
}  # fmt: skip
_KINDS = {
    "compute fwd": "compute forward", "compute ig": "compute backward", "compute wg": "compute backward",
    "compute recompute": "compute backward", "compute opt": "compute optimizer", "ep": "expert",
    "dp_ep": "expert",
}  # fmt: skip


def told(account: Any) -> Counter[str]:
    sums: Counter[str] = Counter()
    for name in account.of.all:
        sums[_TOLD.get(name, "communication and waiting")] += account.ns(name)
    return +sums


@pytest.mark.parametrize(("name", "given"), SIMULATED)
def test_a_simulated_run_is_the_same_run_as_a_csv(tmp_path: Path, name: str, given: dict[str, Any]) -> None:
    simulation = simulate(open_workload(str(REPOSITORY / "fixtures" / name)), Parameters(**given))
    simulated = SimulatedRun(simulation)
    read = results(written(tmp_path, as_csv(simulation)))
    assert read.measured.step_time_ns == simulation.timeline.step_time_ns
    assert {one.severity for one in read.measured.diagnostics} <= {"note"}
    for number, rank_class in enumerate(simulation.timeline.classes):
        for rank in rank_class.ranks:
            assert told(read.accounts[rank]) == told(simulated.accounts[number]), rank
    path: Counter[str] = Counter()
    for kind, ns in sum_path(simulated, "kind"):
        path[_KINDS.get(kind, kind)] += ns
    assert dict(sum_path(read, "kind")) == path


def test_an_exported_timeline_is_refused_with_the_format_that_opens(tmp_path: Path) -> None:
    target = str(tmp_path / "exported.csv")
    assert main(["export", written(tmp_path, TWO), "--format", "csv", "-o", target]) == 0
    (one,) = found(target)
    assert (one.code, "--format chrome" in one.message) == ("missing-column", True)


# -- what the columns mean -----------------------------------------------------------------------


def test_spans_are_accounted_for_by_hand(tmp_path: Path) -> None:
    read = results(written(tmp_path, TWO))
    assert read.measured.step_time_ns == 11000
    assert figures(read) == {
        0: {"compute forward": 4000, "compute backward": 1500, "exposed tp": 1500, "exposed pp": 400,
            "wait": 1000, "host": 1600, "idle": 1000},
        1: {"compute forward": 5000, "compute backward": 1300, "compute optimizer": 2600, "exposed tp": 1500,
            "exposed pp": 400, "wait": 200},
    }  # fmt: skip
    assert (read.measured.microbatches, read.measured.format) == (1, "span-csv")
    # A step is stated, the clock and the groups as well: nothing is assumed.
    assert read.measured.diagnostics == ()


def _shuffled(text: str) -> str:
    """The columns in another order, one more and one empty, the rows from the last to the first."""
    rows = [line.split(",") for line in text.splitlines()]
    rows = [rows[0], *reversed(rows[1:])]
    more = ["note", *[f"line {number}" for number in range(len(rows) - 1)]]
    return "".join(f"{','.join([*reversed(row), word])}\r\n" for row, word in zip(rows, more, strict=True))


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(TWO.encode()),
        b"\xef\xbb\xbf" + TWO.encode(),
        TWO.replace("\n", "\r\n").encode(),
        TWO.replace("\n", "\r").encode(),
        TWO.replace("\n", "\n\n").encode(),
        _shuffled(TWO).encode(),
        TWO.replace("tp:0-1", '"tp:0,1"').encode(),
        TWO.replace("tp:0-1", "tp-7").encode(),
        TWO.replace("all-reduce", "All_Reduce").replace(",3,0", ",3.0,0.0").encode(),
        TWO.replace(",compute,", ',"compute",').replace("\n0,", "\n 0 ,").encode(),
    ],
    ids=["gzip", "bom", "crlf", "cr", "blank-lines", "order", "listed", "named", "spelling", "quotes"],
)
def test_the_same_spans_written_otherwise_are_the_same(tmp_path: Path, data: bytes) -> None:
    read = results(written(tmp_path, data))
    assert figures(read) == figures(results(written(tmp_path, TWO, "plain.csv")))
    assert {one.severity for one in read.measured.diagnostics} <= {"note"}


def test_times_of_a_wall_clock_begin_with_the_step(tmp_path: Path) -> None:
    epoch = 1_700_000_000_000_000_000
    rows = [line.split(",") for line in TWO.splitlines()[1:]]
    late = [[*row[:2], str(epoch + int(row[2])), str(epoch + int(row[3])), *row[4:]] for row in rows]
    read = results(written(tmp_path, "\n".join([HEAD, *map(",".join, late)])))
    assert figures(read) == figures(results(written(tmp_path, TWO, "plain.csv")))
    assert read.measured.stamp == "20231114221320#3"


def test_a_file_a_rank_is_the_same_run(tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.mkdir()
    for rank in (0, 1):
        rows = [line for line in TWO.splitlines()[1:] if line.startswith(f"{rank},")]
        written(job, "\n".join([HEAD, *rows]), f"of {rank}.csv")
    (job / "notes.txt").write_text("by hand")
    read = results(str(job))
    assert figures(read) == figures(results(written(tmp_path, TWO)))
    assert [one.code for one in read.measured.diagnostics] == ["other-files"]


@pytest.mark.parametrize("step", [None, "1"])
def test_a_step_that_is_not_the_last_of_a_file_has_the_spans_of_each_of_its_ranks(
    tmp_path: Path, step: str | None
) -> None:
    """Of ranks 0 and 1 the file has a step more than that of rank 2, so that it is read again."""
    head = "rank,start_ns,end_ns,name,kind,step"
    of_step = "0,{0}00,{0}90,zero,compute,{0}\n1,{0}00,{0}50,one,compute,{0}"
    written(tmp_path, "\n".join([head, of_step.format(1), of_step.format(2)]), "a.csv")
    written(tmp_path, f"{head}\n2,100,170,two,compute,1", "b.csv")
    run = opened(str(tmp_path), step=step)
    assert [(rank.rank, rank.ops.name, list(rank.ops.end)) for rank in run.ranks] == [
        (0, ["zero"], [90]),
        (1, ["one"], [50]),
        (2, ["two"], [70]),
    ]


@pytest.mark.parametrize(("step", "ns"), [(None, 30), ("0", 10), ("1", 30), ("all", 130)])
def test_a_step_is_chosen_as_of_a_profile(tmp_path: Path, step: str | None, ns: int) -> None:
    rows = ("0,0,10,a,compute,0", "1,0,9,a,compute,0", "0,100,130,a,compute,1", "1,105,125,a,compute,1",
            "0,40,60,b,copy,")  # fmt: skip
    run = opened(written(tmp_path, _of(*rows, head="rank,start_ns,end_ns,name,kind,step")), step=step)
    assert (run.step_time_ns, run.ops) == (ns, 5 if step == "all" else 2)


def test_ranks_are_chosen_of_one_file(tmp_path: Path) -> None:
    path = written(tmp_path, TWO)
    assert [rank.rank for rank in opened(path, ranks="1").ranks] == [1]
    with pytest.raises(UsageError, match="no file of these ranks"):
        opened(path, ranks="2-9")


@pytest.mark.parametrize("option", ["comm_names", "step_names"])
def test_options_of_profilers_are_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(UsageError, match=option.replace("_", "-")):
        opened(written(tmp_path, TWO), **{option: "x"})


def test_calls_of_a_step_are_matched_by_group_and_order(tmp_path: Path) -> None:
    """However far apart their ends are; where no step is stated order is a guess, which ends may refute."""
    rows = "0,0,9000000,a,all-reduce,tp\n1,1000,3000000,a,all-reduce,tp\n"
    head = "rank,start_ns,end_ns,name,kind,group"
    stated = rows.replace("tp\n", "tp,0\n")
    meetings = [
        [len(meeting.calls) for meeting in results(written(tmp_path, text)).rendezvous.matches.meetings]
        for text in (f"{head},step\n{stated}", f"{head}\n{rows}")
    ]
    assert meetings == [[2], [1, 1]]


def test_calls_are_counted_in_their_group(tmp_path: Path) -> None:
    """Rank 0 is in two groups, the others in one each."""
    rows = ('0,0,10,a,all-reduce,"0,2",0', "0,10,20,a,all-reduce,0-1,0", "1,10,20,a,all-reduce,0-1,0",
            '2,0,10,a,all-reduce,"0,2",0')  # fmt: skip
    read = results(written(tmp_path, _of(*rows, head="rank,start_ns,end_ns,name,kind,group,step")))
    assert sorted(
        tuple(call.rank for call in meeting.calls) for meeting in read.rendezvous.matches.meetings
    ) == [
        (0, 1),
        (0, 2),
    ]


@pytest.mark.parametrize(
    ("group", "category", "label"),
    [
        ("tp:0-1", "tp", "tp"), ("dp-3", "dp", "dp"), ("ep 0", "expert", "ep"), ("mine", "comm", "mine"),
        ("0-1", "comm", "2 ranks"), ('"0,4"', "comm", "2 ranks by 4"), ("", "comm", "comm"),
        ("4-0", "comm", "4"),
    ],
)  # fmt: skip
def test_a_group_is_what_its_name_says(tmp_path: Path, group: str, category: str, label: str) -> None:
    text = f"rank,start_ns,end_ns,name,kind,group\n0,0,10,a,all-gather,{group}\n"
    (rank,) = opened(written(tmp_path, text)).ranks
    assert (rank.ops.category(0), rank.ops.group[0]) == (category, label)


def test_every_kind_is_read(tmp_path: Path) -> None:
    rows = "".join(f"0,{10 * at},{10 * at + 10},,{kind}\n" for at, kind in enumerate(KINDS))
    (rank,) = opened(written(tmp_path, f"rank,start_ns,end_ns,name,kind\n{rows}")).ranks
    # A span without a name has that of its kind.
    assert rank.ops.name == [*KINDS]
    assert [rank.ops.category(op) for op in range(len(KINDS))] == [
        "forward", "backward", "optimizer", "kernel", *["comm"] * 4, *["pp"] * 2, "copy", "host",
    ]  # fmt: skip


def test_a_stream_has_its_name_in_words_and_exports(tmp_path: Path) -> None:
    read = results(written(tmp_path, TWO.replace(",pp,", ",7,")))
    lanes = read.lanes
    assert [lanes.streams(0)[lane] for lane in lanes.streams(0) if lane.startswith("stream")] == [
        "stream 7", "stream compute", "stream tp", "stream host"
    ]  # fmt: skip


def test_columns_are_kept_for_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(cache, "_LEAST_BYTES", 1)
    monkeypatch.setattr(cache, "_ENDS", 16)
    many = "".join(f"0,s,{at},{at + 1},{'name' * 20},forward,,5,{at % 7}\n" for at in range(200))
    path = written(tmp_path, f"{HEAD}\n{many}")
    first = opened(path)
    monkeypatch.setattr(span_csv.FORMATS[0], "spans", None)
    assert opened(path) == first
    assert (first.microbatches, first.format) == (7, "span-csv")


# -- what is wrong in a file ---------------------------------------------------------------------

_ROW = "0,0,10,a,compute\n"


def _of(*rows: str, head: str = "rank,start_ns,end_ns,name,kind") -> str:
    return "\n".join([head, *rows])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_of(), [("no-rows", 1)]),
        (_of(_ROW, head="rank,start_ns,end,name,kind"), [("missing-column", 1)]),
        (_of(_ROW, head="rank,start_ns,end_ns,title,type"), [("missing-column", 1)]),
        (_of(_ROW + "0,ten,20,a,compute"), [("not-a-number", 3)]),
        (_of(_ROW + "x,10,20,a,compute"), [("not-a-number", 3)]),
        (_of("-1,10,20,a,compute"), [("not-a-number", 2)]),
        (_of("0,-10,20,a,compute"), [("negative-value", 2)]),
        (_of("0,,20,a,compute"), [("not-a-number", 2)]),
        (_of("0,nan,inf,a,compute"), [("not-a-number", 2)] * 2),
        (_of(f"0,10,{2**63},a,compute"), [("value-too-large", 2)]),
        (_of(f"0,10,{'9' * 5000},a,compute"), [("value-too-large", 2)]),
        (_of("99999999999,0,1,a,compute"), [("not-a-number", 2)]),
        (_of("0,20,10,a,compute"), [("reversed-times", 2)]),
        (_of("0,0,10,a,kernel"), [("unknown-kind", 2)]),
        (_of("0,0,10,a"), [("incomplete-row", 2)]),
        (_of("0,0,10,'a\nb',compute"), [("incomplete-row", 2), ("incomplete-row", 3)]),
        (_of('0,0,10,"a\nb",compute\n0,x,20,a,compute'), [("not-a-number", 4)]),
        (_of(f"0,0,10,{'a' * 140_000},compute"), [("bad-csv", 2)]),
        (_of("0,0,10,a,compute,,x", "0,10,20,a,compute"), [("extra-cells", 2), ("no-steps", 1)]),
        (_of("0,1.5,10,a,compute"), [("float-value", 2), ("no-steps", 1)]),
        (_of(_ROW.strip(), _ROW), [("no-steps", 1), ("repeated-span", 3)]),
        (_of(_ROW.strip(), "0,5,15,b,compute"), [("no-steps", 1), ("overlapping-spans", 3)]),
        (_of("5,0,10,a,all-reduce,0-3", head="rank,start_ns,end_ns,name,kind,group"),
         [("no-steps", 1), ("rank-not-in-group", 2)]),
        (_of(_ROW, head="rank,start_ns,end_ns,name,kind,name").replace("compute", "compute,b"),
         [("repeated-column", 1), ("no-steps", 1)]),
        (_of("0,0,10,\udce9,compute"), [("not-utf-8", 2), ("no-steps", 1)]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, said: list[tuple[str, int]]) -> None:
    one = found(written(tmp_path, text))
    assert sorted((each.code, each.line) for each in one if each.code != "ranks-missing") == sorted(said)


def test_an_unknown_kind_says_which_there_are_and_the_nearest(tmp_path: Path) -> None:
    (error,) = found(written(tmp_path, _of("0,0,10,a,all-reduse")))
    assert "forward, backward" in error.message
    assert error.message.endswith("all-reduce?")
    assert error.column == 10


def test_one_mistake_in_all_rows_is_told_once(tmp_path: Path) -> None:
    (error,) = found(written(tmp_path, _of(*["0,0,10,a,kernel"] * 5000)))
    assert "5000 times" in error.message


def test_a_file_that_ends_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    for cut in range(0, len(TWO), 7):
        for one in found(written(tmp_path, TWO[:cut])):
            assert one.severity != "error" or (one.line is not None and one.column is not None), cut


def test_gzip_data_that_ends_early_is_said(tmp_path: Path) -> None:
    (error,) = found(written(tmp_path, gzip.compress(TWO.encode())[:-20]))
    assert error.code == "bad-gzip"


@pytest.mark.parametrize("words", [["report"], ["report", "--what-if"], ["report", "--json"], ["check"]])
def test_names_of_a_file_reach_no_terminal_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """Planted: the table of streams prints the names of groups as they are written."""
    text = (
        TWO.replace("embed", "em\x1b[2Jbed")
        .replace("tp:0-1", "t\x08p\x1b[2J\u202e")
        .replace(",tp,", ",t\x07p,")
    )
    assert main([*words, written(tmp_path, text)]) == 0
    assert not UNSAFE.search(capsys.readouterr().out)


def test_the_example_of_the_page_opens(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "traces.md").read_text(encoding="utf-8")
    lines = page[page.index(f"    {HEAD}") :].partition("\n\n")[0].splitlines()
    read = results(written(tmp_path, "\n".join(line.strip() for line in lines)))
    assert figures(read) == figures(results(written(tmp_path, TWO, "two.csv")))
    assert read.measured.diagnostics == ()


def test_operations_of_a_step_of_microseconds_are_told_in_microseconds(tmp_path: Path) -> None:
    spans = (
        "rank,stream,start_ns,end_ns,name,kind\n0,compute,0,5000,a,forward\n0,compute,5000,9000,b,backward\n"
    )
    page = run_page(results(written(tmp_path, spans)))
    lines = page.splitlines()
    (title,) = [at for at, line in enumerate(lines) if line.split()[:3] == ["operation", "compute", "us"]]
    assert lines[title + 1].split()[:3] == ["a", "5.000", "0.000"]
