"""Comma-separated spans, parsed again by Python's reader: all of them, exact, and no formula among them.

Planted in a copy of simcore, one at a time: quotes are not doubled; an apostrophe is put behind a formula;
the ranks of a class are not cut to those that were chosen. Each of them failed here.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.diagnostics import UsageError, printable
from simcore.parameters import Parameters
from simcore.program.ops import STREAMS
from simcore.render.export.csv import COLUMNS, field
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.export.reading import exported, read_lines
from tests.export.test_chrome import HOSTILE, SEED_002
from tests.layout.rank_text import ranks_of_text
from tests.strategies import Case, Cell, Row, cases, make_workload


@settings(max_examples=40)
@given(cases(most_ranks=12), st.data())
def test_every_span_of_the_chosen_ranks_is_one_line(case: Case, data: st.DataObject) -> None:
    simulation = simulate(*case)
    timeline = simulation.timeline
    world = range(simulation.layout.world)
    some = data.draw(st.none() | st.sets(st.sampled_from(world), min_size=1))
    lines = read_lines(b"".join(exported("csv", *case, ranks=None if some is None else sorted(some)).chunks))
    found: dict[int, list[tuple[str, ...]]] = {}
    for line in lines:
        assert int(line["end_ns"]) - int(line["start_ns"]) == int(line["duration_ns"])
        ranks = ranks_of_text(line["ranks"])
        assert len(ranks) == int(line["rank_count"])
        if line["kind"] != "receive":
            keys = ("stage", "stream", "phase", "row", "microbatch", "start_ns", "end_ns")
            for rank in ranks:
                found.setdefault(rank, []).append(tuple(line[key] for key in keys))
    chosen = set(world if some is None else some)
    assert {
        rank for rank in chosen if timeline.stage_program(timeline.folding.class_of(rank)).ops
    } >= found.keys()
    for rank, spans in found.items():
        number = timeline.folding.class_of(rank)
        expected = [
            (
                timeline.classes[number].stage,
                one.stream,
                one.phase,
                *known(one.row, one.microbatch),
                one.start,
                one.end,
            )
            for one in (timeline.span(number, op) for op in range(len(timeline.columns(number)[0])))
        ]
        assert sorted(spans) == sorted(tuple(map(str, one)) for one in expected)


def known(*numbers: int) -> list[object]:
    return ["" if number < 0 else number for number in numbers]


def test_a_transfer_is_a_line_of_its_sender_and_one_of_its_receiver() -> None:
    lines = read_lines(b"".join(exported("csv", open_workload(SEED_002), ranks=[64, 128]).chunks))
    sent = [
        line
        for line in lines
        if line["kind"] == "send" and line["ranks"] == "64" and line["stream"] == "pp>next"
    ]
    taken = [
        line
        for line in lines
        if line["kind"] == "receive" and line["ranks"] == "128" and line["other_stage"] == "1"
    ]
    assert len(sent) == len(taken) == 16
    assert {line["stream"] for line in taken} == {"pp<prev"}
    for one, other in zip(sent, taken, strict=True):
        same = ("phase", "microbatch", "start_ns", "end_ns", "duration_ns", "bytes")
        assert [one[key] for key in same] == [other[key] for key in same]
        assert (one["other_stage"], one["row"], one["line"], one["layer"]) == ("2", "", "", "")


def test_a_line_has_what_the_page_says() -> None:
    lines = read_lines(b"".join(exported("csv", open_workload(SEED_002), Parameters(microbatches=2)).chunks))
    assert tuple(lines[0]) == COLUMNS
    assert {line["stream"] for line in lines} <= {*STREAMS, "pp<next", "pp<prev"}
    assert next(line for line in lines if line["kind"] == "all-reduce") == {
        "ranks": "0-63", "rank_count": "64", "stage": "0", "stream": "tp", "phase": "fwd",
        "kind": "all-reduce", "layer": "embedding_layer", "row": "6", "line": "9", "microbatch": "0",
        "start_ns": "2456810",
        "end_ns": "3029906", "duration_ns": "573096", "bytes": "134217728", "group": "tp", "group_size": "8",
        "blocking": "1", "other_stage": "",
    }  # fmt: skip


def test_a_file_a_rank_holds_that_rank_alone() -> None:
    workload = open_workload(SEED_002)
    export = exported("csv", workload, ranks=[0, 200], per_rank=True)
    assert export.files is not None
    files = {file.name: b"".join(file.chunks) for file in export.files}
    assert sorted(files) == ["rank-0.csv", "rank-200.csv"]
    for name, data in files.items():
        lines = read_lines(data)
        assert {line["ranks"] for line in lines} == {name[5:-4]}
        spans = {"rank-0.csv": 2521, "rank-200.csv": 2537}[name]  # the first stage sends one way alone
        assert len([line for line in lines if line["kind"] != "receive"]) == spans


@given(st.text())
def test_a_field_is_read_back_as_it_was_made_safe(text: str) -> None:
    safe = printable(text, 1000)
    lines = read_lines(f"a,b\n{field(safe)},1\n".encode())
    (line,) = lines
    expected = "'" + safe if safe[:1] in {"=", "+", "-", "@"} else safe
    assert line == {"a": expected, "b": "1"}
    assert line["a"][:1] not in {"=", "+", "-", "@", "\t", "\r"}


def test_names_of_any_kind_stay_in_their_cell() -> None:
    names = [*HOSTILE, "a,b", 'say "it"', "-2+3", "@SUM(A1)", "x" * 1_000_000]
    rows = [Row(name, Cell(10, "ALLREDUCE", "dp", 100)) for name in names]
    workload = make_workload(rows, tp=1, ep=1, pp=1, all_gpus=2)
    data = b"".join(exported("csv", workload).chunks)
    assert len(data) < 20_000
    layers = {line["layer"] for line in read_lines(data)}
    assert {"a,b", 'say "it"', "'-2+3", "'@SUM(A1)", "'=1+1", 'a"b\\c', "x" * 197 + "..."} <= layers


def test_a_rank_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        exported("csv", open_workload(SEED_002), Parameters(world=512), ranks=[512])
    assert str(caught.value) == "--ranks: found rank 512, expected ranks from 0 to 511"
