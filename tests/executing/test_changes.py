"""Changes that somebody can make to a run of execution traces: each is a run; what has no effect says so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.chakra import find_set, open_set
from simcore.diagnostics import InputError, UsageError
from simcore.executing import what_if
from simcore.executing.execution_result import Execution
from simcore.names import ASTRA_SIM_2
from simcore.parameters import Parameters, flag_of
from simcore.records import asdict, replace
from simcore.render.report.pages import run_page
from simcore.runs.executed import ExecutedRun, run_execution
from simcore.trace.changes import WORTH, Change
from simcore.trace.findings import WhatIf
from simcore.units import change_percent
from tests.executing.encoding import COLL, COMP, RECV, SEND, write_network, write_set
from tests.executing.test_retimed import RULES, ran
from tests.findings import named
from tests.says import said

LINE = Parameters(dim=("ring:8:50:500",))
MIB = 1 << 20


def compute(number: int, micros: int = 50, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": f"fwd.{number}", "type": COMP, "micros": micros, "attributes": {}, **more}


def collective(number: int, kind: int, size: int = MIB, **more: Any) -> dict[str, Any]:
    attributes = {"comm_type": kind, "comm_size": size, **more}
    return {"id": number, "name": f"c.{number}", "type": COLL, "attributes": attributes, "data": [number - 1]}


def opened(folder: Path, ranks: list[list[dict[str, Any]]], parameters: Parameters = LINE) -> ExecutedRun:
    found = find_set(write_set(folder, ranks))
    assert found is not None
    return run_execution(Execution(open_set(found), parameters))


def changes_of(run: ExecutedRun) -> list[WhatIf]:
    return [one for one in run.what_if() if one.list == "change"]


def said_of_links(row: WhatIf) -> str | None:
    found = re.search(r"shared \(--network links\) (\S+ %)", row.meaning)
    return None if found is None else found[1]


def assert_changes_are_runs(run: ExecutedRun) -> None:
    for row in changes_of(run):
        assert row.parameters is not None
        after = run.with_parameters(row.parameters)
        assert after.step_time_ns == row.better10_ns, row.name
        assert run.step_time_ns - after.step_time_ns >= WORTH * run.step_time_ns
        words = [word for word in row.parameters.as_flags() if word not in run.parameters.as_flags()]
        assert set(row.flags.split()) >= set(words), "the flags are what is changed"
        for option, value in zip(row.flags.split()[::2], row.flags.split()[1::2], strict=True):
            has = getattr(row.parameters, option[2:].replace("-", "_"))
            assert value in has if isinstance(has, tuple) else value == str(has), row.flags
        share = said_of_links(row)
        if share is not None:
            now, then = (
                run.with_parameters(one.with_value("network", "links")).step_time_ns
                for one in (run.parameters, row.parameters)
            )
            assert share == change_percent(now, then)
            assert ("(no gain" in row.name) == (now - then < max(WORTH * now, 1))


@given(st.integers(0, 2**20), st.sampled_from(RULES))
@settings(max_examples=15)
def test_each_change_is_the_run_that_its_flags_ask_for(seed: int, rules: str) -> None:
    with ran(seed, rules) as run:
        if run is not None:
            assert_changes_are_runs(run)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", [None, ASTRA_SIM_2])
def test_the_best_are_first_and_what_they_give_together(tmp_path: Path, dialect: str | None) -> None:
    nodes = [compute(1), collective(2, 0), collective(3, 2), compute(4)]
    run = opened(tmp_path, [nodes] * 16, Parameters(dim=("ring:4:50:500",) * 2, dialect=dialect))
    assert_changes_are_runs(run)
    rows = changes_of(run)
    flags = [row.flags for row in rows]
    assert "--algorithm all-reduce:0=direct" in flags
    assert "--algorithm all-gather:0=direct" in flags
    together = min(rows, key=lambda row: row.better10_ns)
    assert together.flags.count("--") > 2
    assert together.name.startswith(
        what_if._TOGETHER if len(together.flags) > what_if._MOST_FLAGS else together.flags
    )
    holding = [row.better10_ns for row in rows if "(no gain" not in row.name]
    assert holding == sorted(holding)
    assert (
        run.figures.changes_summary.endswith("tried") or "without any effect" in run.figures.changes_summary
    )
    page = run_page(run, with_what_if=True)
    said(page.splitlines(), "Changes", f"{run.step_time_ns / 1e3:.1f} us")
    assert together.flags in page


def test_a_gain_that_is_whole_bandwidth_for_every_message_says_so(tmp_path: Path) -> None:
    # On a ring of links a shard that is sent to all goes over many of them.
    run = opened(tmp_path, [[compute(1, 1), collective(2, 2)]] * 8, replace(LINE, dialect=ASTRA_SIM_2))
    direct = next(row for row in changes_of(run) if row.flags == "--algorithm all-gather:0=direct")
    assert direct.better10_ns < run.step_time_ns / 2
    assert direct.name.startswith("--algorithm all-gather:0=direct (no gain")
    on_links = run.with_parameters(run.parameters.with_value("network", "links"))
    # It is said where it is assumed.
    assert all(said_of_links(row) is None for row in changes_of(on_links))
    assert "--algorithm all-gather:0=direct" not in [row.flags for row in changes_of(on_links)]


def test_messages_alone_have_no_changes_but_the_protocol(tmp_path: Path) -> None:
    sent = {"comm_tag": 1, "comm_size": MIB}
    ranks: list[list[dict[str, Any]]] = [[compute(1)] for _ in range(8)]
    ranks[0].append({"id": 2, "type": SEND, "data": [1], "attributes": {"comm_dst": 1, **sent}})
    ranks[1].append({"id": 2, "type": RECV, "data": [1], "attributes": {"comm_src": 0, **sent}})
    asked = replace(LINE, dialect=ASTRA_SIM_2)
    run = opened(tmp_path, ranks, asked)
    assert (changes_of(run), run.figures.changes_summary) == ([], "")
    slow = opened(tmp_path, ranks, replace(asked, rendezvous_protocol="true"))
    assert [row.flags for row in changes_of(slow)] == ["--rendezvous-protocol false"]
    assert_changes_are_runs(slow)


def test_compute_alone_has_nothing_to_change(tmp_path: Path) -> None:
    run = opened(tmp_path, [[compute(1)]] * 8)
    assert (changes_of(run), run.figures.changes_summary) == ([], "")
    assert not any(row.name.startswith("dimension") for row in run.what_if())


def test_times_that_the_files_state_are_not_held_against_prices(tmp_path: Path) -> None:
    nodes = [compute(1), collective(2, 0, wltui_ns=7000)]
    run = opened(tmp_path, [nodes] * 8, Parameters())
    assert changes_of(run) == []
    assert named(run.figures.changes_summary) == ["--cluster", "--dim", "--system"], "what prices them"
    assert not any(row.name.startswith("dimension") for row in run.what_if())
    on_a_network = opened(tmp_path, [nodes] * 8)
    assert changes_of(on_a_network) != []
    assert any(row.name == "dimension 0 bandwidth" for row in on_a_network.what_if())


def test_a_large_run_says_what_was_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(what_if, "_MOST_OF_ONE", 1)
    run = opened(tmp_path, [[compute(1), collective(2, 0)]] * 8)
    assert changes_of(run) == []
    assert re.match(r"\d+ not tried", run.figures.changes_summary)
    page = run_page(run, with_what_if=True)
    said(page.splitlines(), "No change", "0.1 %", run.figures.changes_summary)


GIVEN: list[dict[str, Any]] = [
    {"active_chunks": 4}, {"splits": 3}, {"algorithm": ("0=direct",)}, {"algorithm": ("all-to-all:0=ring",)},
    {"endpoint_delay": 0}, {"local_mem_bw": 10.0}, {"collective_optimization": "baseline"},
    {"num_queues_per_dim": 2}, {"injection_scale": 2.0}, {"rendezvous_protocol": "true"},
]  # fmt: skip
OF_ASTRA = ("num_queues_per_dim", "injection_scale", "rendezvous_protocol")


@given(st.integers(0, 2**20), st.sampled_from(("wltui", ASTRA_SIM_2)), st.sampled_from(GIVEN))
@settings(max_examples=40)
def test_a_parameter_without_effect_says_so_and_no_other(
    seed: int, rules: str, asked: dict[str, Any]
) -> None:
    (field,) = asked
    with ran(seed, rules) as before:
        if before is None or (rules == "wltui" and field in OF_ASTRA):
            return
        given_before = asdict(before.parameters)[field] != flag_of(field).default
        try:
            run = before.with_parameters(replace(before.parameters, **asked))
        except (InputError, UsageError):
            return
        try:
            without = before.with_parameters(before.parameters.with_value(field, flag_of(field).default))
        except (InputError, UsageError):
            return
        alike = (run.executed.start, run.executed.end) == (without.executed.start, without.executed.end)
        option = flag_of(field).option
        ignored = [one.message for one in run.diagnostics if one.code == "parameter-ignored" and one.file]
        assert any(message.startswith(option) for message in ignored) == alike
        if not given_before:
            assert not any(one.message.startswith(option) for one in before.diagnostics)


def test_one_chunk_alone_makes_active_chunks_idle_and_two_do_not(tmp_path: Path) -> None:
    nodes = [compute(1), collective(2, 0)]
    write_network(tmp_path / "net.yml", [("Ring", 8, 50.0, 500.0)])
    asked = Parameters(cluster=str(tmp_path / "net.yml"), dialect=ASTRA_SIM_2, active_chunks=2)
    (one,) = opened(tmp_path, [nodes] * 8, asked).diagnostics
    assert one.code == "parameter-ignored"
    assert named(one.message) == ["--active-chunks"]
    assert opened(tmp_path, [nodes] * 8, replace(asked, splits=2)).diagnostics == ()


def test_algorithms_of_several_changes_stand_behind_those_that_are_there() -> None:
    one, other = (Change({"algorithm": (word,)}) for word in ("all-reduce:0=ring", "all-gather:1=direct"))
    both = what_if._together(one, other)
    assert both.flags == "--algorithm all-reduce:0=ring --algorithm all-gather:1=direct"
    given = Execution(None, Parameters(algorithm=("0=direct",)))  # type: ignore[arg-type]
    applied = what_if._apply_change(given, both)
    assert applied.parameters.algorithm == ("0=direct", "all-reduce:0=ring", "all-gather:1=direct")
    assert what_if._together(one, Change({"splits": 4})).flags == "--algorithm all-reduce:0=ring --splits 4"
