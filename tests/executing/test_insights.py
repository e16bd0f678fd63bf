"""What a run of execution traces says in words: when it speaks, when it is silent, and its figures again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from simcore.chakra import find_set, open_set
from simcore.comparison import Comparison
from simcore.executing.execution_result import NO_PRICES, Execution
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.render.report.pages import run_page
from simcore.runs.executed import ExecutedRun, run_execution
from simcore.trace.run import path_parts
from simcore.units import largest_keys
from simcore.words.executed_sentences import find_sentences
from simcore.words.sentences.links import find_busiest_link
from simcore.words.sentences.mean_rank import find_mean_rank, find_printed_exposed
from simcore.words.sentences.members import MembersWait, find_member_waits
from simcore.words.sentences.no_time import NoPrice, NoTime
from simcore.words.sentences.path import PathCommunication, find_path_communication, find_path_names
from tests import says
from tests.analysis.test_beside import made_simulation, made_trace
from tests.executing.encoding import COLL, COMP, LOAD, RECV, SEND, write_json, write_set
from tests.findings import named
from tests.measured.made_steps import Layout

DIM = Parameters(dim=("switch:4:10:0",))


def opened(folder: Path, ranks: list[list[dict[str, Any]]], parameters: Parameters = DIM) -> ExecutedRun:
    found = find_set(write_set(folder, ranks))
    assert found is not None
    return run_execution(Execution(open_set(found), parameters))


def compute(number: int, micros: int, name: str = "fwd", **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "type": COMP, "micros": micros, "attributes": {}, **more}


def reduce(number: int, size: int, group: str = "", **more: Any) -> dict[str, Any]:
    attributes = {"comm_type": 0, "comm_size": size} | ({"pg_name": group} if group else {})
    return {"id": number, "name": f"reduce.{number}", "type": COLL, "attributes": attributes, **more}


def message(number: int, kind: int, source: int, target: int, size: int, **more: Any) -> dict[str, Any]:
    attributes = {"comm_src": source, "comm_dst": target, "comm_tag": number, "comm_size": size}
    return {"id": number, "type": kind, "attributes": attributes, **more}


def operations(number: int, **attributes: Any) -> dict[str, Any]:
    return compute(number, 0) | {"attributes": {"num_ops": 10**9, "tensor_size": 10**6, **attributes}}


def load(number: int, size: int = 50_000, **more: Any) -> dict[str, Any]:
    return {"id": number, "type": LOAD, "attributes": {"tensor_size": size}, **more}


def test_of_an_empty_step_only_that_is_said(tmp_path: Path) -> None:
    assert find_sentences(opened(tmp_path, [[compute(1, 0)]])) == [NoTime()]
    # With the cause where a price is missing.
    for name, node in (("operations", operations(1)), ("load", load(1))):
        (tmp_path / name).mkdir()
        run = opened(tmp_path / name, [[node]])
        (cause,) = [one.message for one in run.diagnostics if one.code in NO_PRICES]
        assert find_sentences(run) == [NoTime(), NoPrice(note=cause)]


def test_the_nodes_that_hold_most_of_the_critical_path_are_named_and_do(tmp_path: Path) -> None:
    ranks = [[compute(1, 70, "layer.1.mlp"), compute(2, 20, "layer.2.mlp", data=[1]),
              compute(3, 10, "head", data=[2])]]  # fmt: skip
    run = opened(tmp_path, ranks)
    (said,) = find_path_names(run)
    assert (said.ns_of, said.others) == ({"layer.#.mlp": 90_000, "head": 10_000}, 0)
    # Without them the step is that much shorter.
    without = [[compute(1, 0, "layer.1.mlp"), compute(2, 0, "layer.2.mlp", data=[1]), ranks[0][2]]]
    (tmp_path / "again").mkdir()
    assert opened(tmp_path / "again", without).step_time_ns == run.step_time_ns * (100 - 90) // 100


def test_the_group_that_holds_most_of_the_path_is_named_and_none_where_nothing_communicates(
    tmp_path: Path,
) -> None:
    ranks = []
    for rank in range(4):
        group = str(1 + rank // 2)
        ranks.append([compute(1, 10), reduce(2, 40_000 if rank < 2 else 10_000, group, data=[1]),
                      reduce(3, 1_000, data=[2])])  # fmt: skip
    groups = write_json(tmp_path / "groups.json", {"1": [0, 1], "2": [2, 3]})
    run = opened(tmp_path, ranks, replace(DIM, comm_groups=groups))
    (said,) = find_path_communication(run)
    ns = run.executed.end[0][1] - run.executed.begin[0][1]
    assert (said.grouping, largest_keys(said.ns_of), said.ns_of["group 1"]) == ("group", ["group 1"], ns)
    (tmp_path / "alone").mkdir()
    alone = opened(tmp_path / "alone", [[compute(1, 5)]])
    assert not [*find_path_communication(alone)]


def test_where_all_kinds_are_known_the_one_that_the_path_is_longest_is_named(tmp_path: Path) -> None:
    """One dp collective is longer than each of two tp groups', which come one after the other on the path."""

    def of_kind(number: int, size: int, group: str, kind: str, **more: Any) -> dict[str, Any]:
        found = reduce(number, size, group, **more)
        return found | {"attributes": found["attributes"] | {"wltui_kind": kind}}

    def ranks(kind: str) -> list[list[dict[str, Any]]]:
        first = [of_kind(1, 30_000, "1", kind), of_kind(2, 36_000, "3", "dp", data=[1])]
        second = [of_kind(2, 36_000, "3", "dp"), of_kind(3, 30_000, "2", kind, data=[2])]
        return [first, first, second, second]

    names = {"1": [0, 1], "2": [2, 3], "3": [0, 1, 2, 3]}
    known, unknown = (tmp_path / name for name in ("known", "unknown"))
    for folder in (known, unknown):
        folder.mkdir()
    parameters = replace(DIM, comm_groups=write_json(tmp_path / "groups.json", names))
    run = opened(known, ranks("tp"), parameters)
    (said,) = find_path_communication(run)
    assert (said.grouping, largest_keys(said.ns_of)) == ("kind", ["tp"])
    by_kind = {kind: 0 for kind, _ in path_parts(run, "kind")}
    for kind, ns in path_parts(run, "kind"):
        by_kind[kind] += ns
    assert by_kind["tp"] > by_kind["dp"] > by_kind["tp"] // 2
    assert said.ns_of == {kind: by_kind[kind] for kind in ("tp", "dp")}
    # Where nobody says what a group is, it is the group.
    other = opened(unknown, ranks("comm"), parameters)
    (said,) = find_path_communication(other)
    assert said.grouping == "group"


def test_compute_has_a_phase_where_the_traces_say_one_and_a_range_where_ranks_lie_far_apart(
    tmp_path: Path,
) -> None:
    def said(name: str, *ranks: list[dict[str, Any]]) -> list[tuple[str, int, tuple[int, int] | None]]:
        (tmp_path / name).mkdir()
        (sentence,) = find_mean_rank(opened(tmp_path / name, list(ranks)))
        return [(part.name, part.ns // 1000, part.rank_range) for part in sentence.parts]

    assert said("silent", [compute(1, 50, "COMP_1")]) == [("compute", 50, None)]
    assert said("named", [compute(1, 50, "layer.fwd")]) == [("compute forward", 50, None)]
    # One node that does not say it, and nobody knows what the others are of.
    mixed = [compute(1, 50, "COMP_1"), compute(2, 50, "layer.bwd", data=[1])]
    assert said("mixed", mixed) == [("compute", 100, None)]
    told = [compute(1, 40, "layer.fwd"), compute(2, 60, "layer.bwd", data=[1])]
    assert said("told", told) == [("compute backward", 60, None), ("compute forward", 40, None)]
    far = said("far", [compute(1, 100, "COMP_1")], [compute(1, 80, "COMP_1")])
    assert far == [("compute", 90, (80_000, 100_000)), ("idle", 10, (0, 20_000))]
    near = said("near", [compute(1, 100, "COMP_1")], [compute(1, 92, "COMP_1")])
    assert near == [("compute", 96, None), ("idle", 4, None)]


def test_a_group_is_singled_out_where_there_is_another_one(tmp_path: Path) -> None:
    """`That of group 1` stood where no other is, `that of all ranks` where two groups have all ranks."""

    def said(name: str, *nodes: dict[str, Any]) -> PathCommunication:
        (tmp_path / name).mkdir()
        run = opened(tmp_path / name, [list(nodes)] * 2)
        own = [end - begin for begin, end in zip(run.executed.begin[0], run.executed.end[0], strict=True)]
        assert run.step_time_ns == sum(own)
        (sentence,) = find_path_communication(run)
        assert sentence.step_ns == run.step_time_ns
        return sentence

    one = said("alone", compute(1, 2), reduce(2, 10_000, "1", data=[1]))
    assert (one.is_alone, one.ns_of, one.step_ns) == (True, {"group 1": 1030}, 3030)
    two = said("unnamed", reduce(1, 10_000, "1"), reduce(2, 30_000, data=[1]))
    assert (largest_keys(two.ns_of), two.has_group_of_all, two.is_alone) == (["all ranks"], True, False)
    as_long = said("alike", reduce(1, 10_000, "1"), reduce(2, 9_900, "2", data=[1]))
    assert (as_long.ns_of, largest_keys(as_long.ns_of)) == (
        {"group 1": 1030, "group 2": 1020},
        ["group 1", "group 2"],
    )


def test_many_groups_are_held_against_messages_together(tmp_path: Path) -> None:
    """`Most is messages: 401.6 us` stood beside 553.7 us of collectives over five groups."""

    def said(name: str, *sizes: int) -> str | None:
        (tmp_path / name).mkdir()
        groups = [reduce(number, size, str(number), data=[number - 1] if number > 1 else [])
                  for number, size in enumerate(sizes, 1)]  # fmt: skip
        last = len(sizes)
        sends = [*groups, message(last + 1, SEND, 0, 1, 30_000, data=[last])]
        receives = [*groups, message(last + 1, RECV, 0, 1, 30_000, data=[last])]
        run = opened(tmp_path / name, [sends, receives])
        (sentence,) = find_path_communication(run)
        sums: dict[str, int] = {}
        for part, ns in path_parts(run, "group"):
            sums[part] = sums.get(part, 0) + ns
        of_groups = sum(ns for part, ns in sums.items() if part != "messages")
        assert (of_groups > sums["messages"]) == (sentence.grouping == "messages")
        if of_groups > sums["messages"]:
            assert sentence.ns_of == {"collectives": of_groups, "messages": sums["messages"]}
        (most,) = largest_keys(sentence.ns_of)
        return most

    assert said("many", 10_000, 12_000, 14_000) == "collectives"
    assert said("few", 10_000, 12_000) == "messages"


def test_what_the_whole_path_is_is_said_once_and_one_node_by_its_own_name(tmp_path: Path) -> None:
    def said(name: str, *nodes: dict[str, Any], on_path: int = 1) -> tuple[list[str], list[str]]:
        """The names that are the whole path, and the groups that are told."""
        (tmp_path / name).mkdir()
        run = opened(tmp_path / name, [list(nodes)] * 2)
        assert len(run.critical_path) == on_path
        (path,) = find_path_names(run)
        assert sum(path.ns_of.values()) == path.step_ns == run.step_time_ns
        return [*path.ns_of], [group for one in find_path_communication(run) for group in one.ns_of]

    one = reduce(1, 10_000, "1")
    assert said("one", one) == (["reduce.1"], [])
    two = reduce(2, 10_000, "1", data=[1])
    assert said("two", one, two, on_path=2) == (["reduce.#"], [])
    # Which group it is of is said where there is another one.
    assert said("groups", one, compute(3, 1), reduce(4, 10, "2")) == (["reduce.1"], ["group 1"])


def test_messages_that_are_the_whole_path_are_said_once(tmp_path: Path) -> None:
    def said(name: str, *before: dict[str, Any]) -> list[dict[str, int]]:
        (tmp_path / name).mkdir()
        send = message(2, SEND, 0, 1, 30_000, name="send.2", data=[node["id"] for node in before])
        run = opened(tmp_path / name, [[*before, send], [message(2, RECV, 0, 1, 30_000)]])
        sent = sum(ns for part, ns in path_parts(run, "group") if part == "messages")
        assert sent == 3000
        return [one.ns_of for one in (*find_path_names(run), *find_path_communication(run))]

    assert said("whole") == [{"send.2": 3000}]
    assert said("part", compute(1, 7, "head")) == [{"head": 7000, "send.2": 3000}, {"messages": 3000}]


def test_several_that_come_last_are_all_waited_for(tmp_path: Path) -> None:
    ranks = [[compute(1, ns), reduce(2, 1000, data=[1])] for ns in (100, 150, 150)]
    said = [*find_member_waits(opened(tmp_path, ranks, replace(DIM, no_fold=True)))]
    assert said == [MembersWait(ns=50_000, ns_of={1: 50_000, 2: 50_000})]


def test_waiting_for_the_last_member_is_said_from_a_hundredth_of_the_time_on(tmp_path: Path) -> None:
    def ranks(late: int) -> list[list[dict[str, Any]]]:
        return [
            [compute(1, 100 + (late if rank == 3 else 0)), reduce(2, 1000, data=[1])] for rank in range(4)
        ]

    run = opened(tmp_path, ranks(50))
    waits = [one.ns("wait") for one in run.accounts]
    assert waits == [50_000, 50_000, 50_000, 0]
    assert [*find_member_waits(run)] == [MembersWait(ns=150_000, ns_of={})]
    each = opened(tmp_path, ranks(50), replace(DIM, no_fold=True))
    assert [*find_member_waits(each)] == [MembersWait(ns=150_000, ns_of={3: 150_000})]
    as_others = opened(tmp_path, ranks(0), replace(DIM, no_fold=True))
    assert sum(one.ns("wait") for one in as_others.accounts) == 0, "waits for rank 3"
    (tmp_path / "even").mkdir()
    assert not [*find_member_waits(opened(tmp_path / "even", ranks(0)))]


def test_the_busiest_link_is_named_with_what_it_carried_and_only_under_links(tmp_path: Path) -> None:
    """Ranks 0 and 1 send to 2 at once: its link from the switch is busy twice as long as theirs."""

    received = [message(1, RECV, 0, 2, 30_000), message(2, RECV, 1, 2, 30_000)]
    ranks = [[message(1, SEND, 0, 2, 30_000)], [message(2, SEND, 1, 2, 30_000)], received, [compute(1, 1)]]
    run = opened(tmp_path, ranks, replace(DIM, network="links"))
    (said,) = find_busiest_link(run)
    assert (said.source < 0, said.target, said.links, said.equally_busy, said.dimension) == (
        True,
        2,
        3,
        0,
        None,
    )
    assert (said.busy_ns, said.bytes, said.queued_ns) == (6000, 60_000, 3000)
    assert said.step_ns == run.step_time_ns == 3000 + 3000 + 3000
    assert not [*find_busiest_link(opened(tmp_path, ranks))]


def test_compute_that_states_operations_and_no_duration_is_said_until_a_roofline_prices_it(
    tmp_path: Path,
) -> None:
    ranks = [[operations(1), operations(2), operations(3, is_cpu_op=True), compute(4, 0), compute(5, 7)]]

    def said(**asked: Any) -> list[str]:
        run = opened(tmp_path, ranks, replace(DIM, **asked))
        return [one.message for one in run.diagnostics if one.code == "no-durations"]

    (words,) = said()
    assert named(words) == ["0", "2", "num_ops", "0 ns", "--system", "FILE", "1"]
    assert opened(tmp_path, ranks).step_time_ns == 7000
    system = {"roofline-enabled": 1, "peak-perf": 1, "local-mem-bw": 1000}
    path = write_json(tmp_path / "system.json", system)
    assert said(system=path) == []
    assert opened(tmp_path, ranks, replace(DIM, system=path)).step_time_ns == 7000 + 2 * 1_000_000
    # A roofline takes bytes too: without them it prices nothing.
    whole, some = ranks[0], operations(6)
    del some["attributes"]["tensor_size"]
    ranks[:] = [[*whole, some]]
    assert named(said()[0])[-3:] == ["1", "2", "tensor_size"]
    ranks[:] = [[operations(1), some]]
    assert named(said()[0])[-2:] == ["1", "tensor_size"]
    assert "the one" in said()[0]
    ranks[:] = [[some]]
    assert named(said()[0])[-2:] == ["0 ns", "tensor_size"]
    assert opened(tmp_path, ranks, replace(DIM, system=path)).step_time_ns == 0
    # ASTRA-sim wants a rank for each of the four NPUs, and none of them on CPUs.
    ranks[:] = [[operations(1)]] * 4
    (said_there,) = said(dialect="astra-sim-2")
    assert "1 ns" in named(said_there)


def test_loads_without_a_price_are_counted_until_a_file_has_it(tmp_path: Path) -> None:
    ranks = [[load(1), load(2), compute(3, 1)]] * 4

    def said(**asked: Any) -> tuple[list[list[str]], int]:
        run = opened(tmp_path, ranks, replace(DIM, **asked))
        found = [named(one.message) for one in run.diagnostics if one.code == "remote-memory-missing"]
        return found, run.step_time_ns

    # Without a file it asks for one.
    assert said() == ([["8", "0 ns", "--remote-memory", "FILE"]], 1000)
    assert said(no_fold=True) == said()
    none = write_json(tmp_path / "none.json", {"memory-type": "NO_MEMORY_EXPANSION"})
    assert said(remote_memory=none) == ([["8", "0 ns", "--remote-memory"]], 1000)
    memory = {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 100, "remote-mem-bw": 50}
    priced = write_json(tmp_path / "memory.json", memory)
    assert said(remote_memory=priced) == ([], 2 * (100 + 50_000 // 50))


@pytest.mark.parametrize("no_fold", [False, True])
def test_what_is_priced_by_an_attribute_that_is_not_there_is_a_warning(tmp_path: Path, no_fold: bool) -> None:
    def said(name: str, *ranks: list[dict[str, Any]], **asked: Any) -> tuple[list[list[str]], int]:
        (tmp_path / name).mkdir()
        run = opened(tmp_path / name, list(ranks), replace(DIM, no_fold=no_fold, **asked))
        found = [one for one in run.diagnostics if one.code == "attribute-missing"]
        assert all(one.severity == "warning" and one.file.endswith(".et") for one in found)
        node = ranks[-1][0].get("name", "n1")
        assert all(one.message.startswith(f"node 1 ({node}) of ") for one in found)
        return [named(one.message) for one in found], run.step_time_ns

    def without(node: dict[str, Any], attribute: str) -> dict[str, Any]:
        left = {key: value for key, value in node["attributes"].items() if key != attribute}
        return node | {"attributes": left}

    whole = reduce(1, 10_000)
    ns = said("whole", *[[whole]] * 4)[1]
    assert said("priced", *[[whole]] * 4) == ([], ns)
    untyped = without(whole, "comm_type")
    # The node, its rank, and how many others lack what; what each counts as, but where that is its own time.
    none = ["1", "0", "3", "comm_type"]
    assert said("untyped", *[[untyped]] * 4) == ([[*none, "0 ns"]], 0)
    assert said("timed", *[[untyped | {"micros": 7}]] * 4) == ([none], 7000)
    unsized = without(whole, "comm_size")
    one = ["1", "3", "comm_size", "0"]
    assert said("unsized", *[[whole]] * 3, [unsized]) == ([one], ns)
    # A barrier moves nothing.
    barrier = whole | {"attributes": {"comm_type": 9}}
    assert said("barrier", *[[barrier]] * 4)[0] == []
    send = without(message(1, SEND, 0, 1, 0), "comm_size")
    receive = without(message(1, RECV, 0, 1, 0), "comm_size")
    found = said("sent", [send], [receive])
    assert found == ([["1", "n1", "0", "comm_size", "0"]], 0)
    memory = {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 100, "remote-mem-bw": 50}
    priced = write_json(tmp_path / "memory.json", memory)
    unsized = without(load(1), "tensor_size")
    found = said("load", [unsized], remote_memory=priced)
    assert found == ([["1", "n1", "0", "tensor_size", "0"]], 100)


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("mb0.transformer.1.mha.dwqkv@1_COMP", "backward"), ("in_emb.dw@0_COMP", "backward"),
        ("mb1.transformer.0.input_norm.dx@3_COMP", "backward"), ("stack_1_mha_d_k@1_COMP", "backward"),
        ("stack_1_ffn_dnorm@1_COMP", "backward"), ("mb0.transformer.1.mha.qkv@1_COMP", "forward"),
        ("mb0.transformer.1.moe.0.ldis.x_expert@1_COMP", "forward"), ("ffn.xdown1@2_COMP", "forward"),
        ("decoder.dw", "forward"), ("COMP_NODE_fc1_BWD_IG", "backward"), ("adam_step", "optimizer"),
    ],
)  # fmt: skip
def test_gradients_are_backward_by_the_names_that_stage_gives_them(
    tmp_path: Path, name: str, phase: str
) -> None:
    run = opened(tmp_path, [[compute(1, 5, name)]])
    assert run.accounts[0].ns(f"compute {phase}") == run.step_time_ns == 5000


def test_on_the_critical_path_communication_is_not_called_exposed(tmp_path: Path) -> None:
    """The collective is the path, and nothing of it is exposed but what outlasts the compute beside it."""
    ranks = [[compute(1, 5), reduce(2, 40_000)]] * 4
    run = opened(tmp_path, ranks)
    ns = run.executed.end[0][1]
    assert list(path_parts(run, "kind")) == [("comm", ns)]
    assert run.accounts[0].ns("exposed comm") == ns - 5000


def test_a_rank_is_not_idle_while_it_sends(tmp_path: Path) -> None:
    """Rank 0 sends twice over one channel, 1 us and 3 us, and has nothing to do behind it."""

    def ns_of(name: str, own: list[dict[str, Any]]) -> dict[str, int]:
        (tmp_path / name).mkdir()
        received = [message(1, RECV, 0, 1, 10_000), message(2, RECV, 0, 1, 30_000)]
        run = opened(tmp_path / name, [own, received])
        accounts = run.accounts[0]
        assert sum(accounts.total_ns) == run.step_time_ns
        return {which: accounts.ns(which) for which in ("exposed pp", "bubble", "idle") if accounts.ns(which)}

    sends = [message(1, SEND, 0, 1, 10_000), message(2, SEND, 0, 1, 30_000)]
    assert ns_of("alone", sends) == {"exposed pp": 4000}
    # Compute hides what is sent beside it; nothing is behind it once all is there.
    assert ns_of("beside", [*sends, compute(3, 3)]) == {"exposed pp": 1000}
    assert ns_of("over", [*sends, compute(3, 6)]) == {}
    # A rank that waits for a message waits, whatever it sends meanwhile.
    (tmp_path / "waits").mkdir()
    back = message(4, RECV, 1, 0, 10_000)
    late = [compute(3, 2), message(4, SEND, 1, 0, 10_000, data=[3])]
    run = opened(tmp_path / "waits", [[sends[0], back], [message(1, RECV, 0, 1, 10_000), *late]])
    assert [run.accounts[0].ns(which) for which in ("bubble", "exposed pp", "idle")] == [2000, 1000, 0]
    # A simulated rank ends with what its compute waits for: its export says how long a send took.
    stated = [send | {"attributes": send["attributes"] | {"wltui_ns": 1000}} for send in sends]
    assert ns_of("stated", stated) == {"idle": 4000}


def test_those_that_end_last_are_all_named(tmp_path: Path) -> None:
    alike = [[compute(1, 50)], [compute(1, 50)], [compute(1, 40)]]
    for name, ranks, who in (
        ("two", alike, "ranks 0-1"), ("all", alike[:2], "all ranks"), ("one", alike[1:], "rank 0")
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        assert (
            opened(tmp_path / name, ranks).figures.worst_findings[0].words == f"50.000 us, last to end: {who}"
        )


def test_worst_places_have_words_that_fit_their_column(tmp_path: Path) -> None:
    ranks = [[compute(1, 5 + rank), reduce(2, 40_000, data=[1])] for rank in range(4)]
    worst = opened(tmp_path, ranks).figures.worst_findings
    assert {one.what for one in worst} == {"end", "comm", "compute", "wait"}
    # Screen 1 gives them eight cells, the blank behind them included.
    assert all(len(one.what) < 8 for one in worst)


def test_two_runs_of_the_same_traces_are_told_by_their_flags(tmp_path: Path) -> None:
    whole = opened(tmp_path, [[compute(1, 70), reduce(2, 1000, data=[1])] for _ in range(2)])
    half = whole.with_parameters(replace(whole.parameters, time_scale=("all compute=0.5",)))
    a, b = Comparison(whole, half).side_texts
    assert a.endswith(": executed")
    assert b.endswith(": executed (--time-scale 'all compute=0.5')")
    assert half.step_time_ns == whole.step_time_ns - 35_000


def test_beside_another_run_ranks_are_said_to_be_paired_by_number(tmp_path: Path) -> None:
    """It said `Paired by stage alone`, and to which flags of the workload they would match; there is none."""
    traces = opened(tmp_path, [[compute(1, 70)] for _ in range(2)])
    layout = Layout(2, 1, 1, 1)
    for other in (made_simulation(layout), made_trace(layout, 1)):
        found = Comparison(traces, other)
        assert (found.is_by_rank, [pair.rank for pair in found.pairs]) == (True, [0, 1])
        (notice,) = found.notices
        says.said([notice], "layout", "A", "tp, dp, pp, micro-batches", "rank number")


def test_cycles_are_those_of_astra_sim_and_what_is_exposed_is_told_apart(tmp_path: Path) -> None:
    late = [compute(1, 90), reduce(2, 1 << 20, data=[1]), compute(3, 10, data=[2])]
    early = [compute(1, 20), reduce(2, 1 << 20, data=[1]), compute(3, 40, data=[2])]
    run = opened(tmp_path, [early, late], replace(DIM, dialect="astra-sim-2", dim=("switch:2:10:0",)))
    rank, end, exposed = max(run.executed.ranks, key=lambda one: one[1])
    step = f"{run.step_time_ns / 1e3:.1f} us"
    assert (rank, end, exposed) == (1, run.step_time_ns, run.step_time_ns - 100_000)
    (mean,), (said,) = find_mean_rank(run), find_printed_exposed(run)
    assert (mean.step_ns, mean.is_in_cycles) == (end, True)
    assert (said.rank, said.exposed_ns, sum(said.ns_of.values())) == (1, exposed, exposed)
    assert said.ns_of["communication"] == sum(run.accounts[1].exposed_ns().values())
    page = run_page(run)
    assert page.startswith(f"Step time  {step} ({end} cycles")
    assert re.search(rf"\n  1 +{end} +{exposed}\n", page)


def test_what_astra_sim_does_not_print_is_not_called_cycles(tmp_path: Path) -> None:
    ranks = [[compute(1, 20), reduce(2, 1 << 20, data=[1])]] * 4
    astra = replace(DIM, dialect="astra-sim-2")
    for asked in (DIM, replace(astra, time_scale=("all compute=0.5",))):
        run = opened(tmp_path, ranks, asked)
        assert not any("cycle" in words for words in run.figures.words)
        assert "cycles" not in run_page(run)
    assert "cycles" in run_page(opened(tmp_path, ranks, astra))
    replayed = replace(astra, system=write_json(tmp_path / "s.json", {"replay-only": 1}))
    ranks = [[compute(1, 20), reduce(2, 1 << 20, data=[1])]] * 4
    wraps = opened(tmp_path, ranks, replayed)
    assert wraps.executed.ranks[0][2] == 0 or not [*find_printed_exposed(wraps)]
