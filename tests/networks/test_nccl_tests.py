"""What nccl-tests measured: its text and JSON, beside prices and as a network.

Planted, one at a time: in-place times are taken; the ranks of a process with several devices count once; the
size between two lines takes the lower one's time; groups inside a host take what was measured across; a label
of mpirun is not cut. Each of them failed here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.cluster import TransferShape, group_shape
from simcore.collectives import NAMES, bus_bandwidth
from simcore.collectives.nccl_tests import MeasuredCollective, MeasuredTime, is_measured, read_measured
from simcore.diagnostics import InputError
from simcore.networks.measured import choose_table
from simcore.networks.model import GroupCollective
from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.command_line.running import wltui_here
from tests.workload.texts import REPOSITORY

FOLDER = Path(__file__).parent / "nccl_tests"
TEXT, JSON, SEVERAL = FOLDER / "all_reduce_8.txt", FOLDER / "all_reduce_8.json", FOLDER / "several.txt"
MIB = 2**20
HEADING = "#       size         count      type   redop    root     time   algbw   busbw #wrong"


def written(folder: Path, text: str, name: str = "out.txt") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_table_has_its_sizes_and_times_out_of_place() -> None:
    [table] = read_measured(str(TEXT))
    assert (table.collective, table.ranks, table.hosts) == ("ALLREDUCE", 8, 1)
    assert [(time.size // MIB, time.ns) for time in table.times] == [
        (1, 30_000), (4, 50_000), (16, 90_000), (64, 320_000), (256, 1_000_000), (1024, 3_900_000),
    ]  # fmt: skip
    assert TEXT.read_text().splitlines()[(table.times[0].line or 0) - 1].split()[0] == str(MIB)


def test_text_and_json_of_a_run_are_one_measurement() -> None:
    [text], [as_json] = read_measured(str(TEXT)), read_measured(str(JSON))
    plain = [
        (table.collective, table.ranks, table.hosts, [(time.size, time.ns) for time in table.times])
        for table in (text, as_json)
    ]
    assert plain[0] == plain[1]
    assert is_measured(str(TEXT))
    assert is_measured(str(JSON))
    assert not is_measured(str(FOLDER / "none.txt"))


def test_a_file_may_have_several_tests() -> None:
    assert [(table.test, table.ranks, table.hosts) for table in read_measured(str(SEVERAL))] == [
        ("all_reduce_perf", 8, 1), ("all_reduce_perf", 16, 2), ("alltoall_perf", 16, 2),
        ("sendrecv_perf", 2, 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("devices", "config", "ranks"),
    [
        (range(16), {"ngpus": 1}, 16),
        ((0, 8), {"nthreads": 1, "ngpus": 8}, 16),
        ((0,), {"nthreads": 2, "ngpus": 4}, 8),
    ],
)
def test_a_process_names_the_first_of_its_devices(
    tmp_path: Path, devices: range, config: dict[str, object], ranks: int
) -> None:
    values = json.loads(JSON.read_text())
    named = [{"rank": rank, "group": 0, "hostname": f"node-{rank // 8}"} for rank in devices]
    values["config"] = config | {"devices": named}
    [table] = read_measured(written(tmp_path, json.dumps(values)))
    assert table.ranks == ranks


@pytest.mark.parametrize("label", ["[1,0]<stdout>:", "0: ", ""])
def test_labels_of_launchers_and_lines_of_nccl_do_not_matter(tmp_path: Path, label: str) -> None:
    lines = [label + line for line in TEXT.read_text().splitlines()]
    lines[20:20] = ["node-0:4000:4012 [0] NCCL INFO Channel 00/24 : 0 1 2 3 4 5 6 7"]
    assert [
        (time.size, time.ns) for time in read_measured(written(tmp_path, "\r\n".join(lines)))[0].times
    ] == [(time.size, time.ns) for time in read_measured(str(TEXT))[0].times]


def test_headings_of_older_versions_are_read(tmp_path: Path) -> None:
    """Without a root; with `error`; one of two times not measured; a size twice: the median counts."""
    heading = "# size count type redop time algbw busbw error time algbw busbw error"
    rows = [
        "0 0 float none 5.0 0.00 0.00 0e+00 5.0 0.00 0.00 0e+00",
        "1048576 262144 float none N/A N/A N/A N/A 30.00 34.95 30.58 0e+00",
        "2097152 524288 float none 40.0 52.43 45.88 N/A 30.00 34.95 30.58 0e+00",
        "2097152 524288 float none 60.0 34.95 30.58 N/A 30.00 34.95 30.58 0e+00",
    ]
    text = "\n".join(["./build/all_gather_perf -b 1M", heading, "# (B) (elements) (us) (GB/s) (GB/s)", *rows])
    [table] = read_measured(written(tmp_path, text))
    assert (table.collective, table.ranks) == ("ALLGATHER", 8)
    assert [(time.size, time.ns) for time in table.times] == [(MIB, 30_000), (2 * MIB, 50_000)]


@given(
    collective=st.sampled_from(["ALLREDUCE", "ALLGATHER", "ALLTOALL"]),
    ranks=st.integers(2, 64),
    us=st.floats(500, 5000),
)
def test_ranks_that_are_not_stated_follow_from_the_bandwidths(
    tmp_path_factory: pytest.TempPathFactory, collective: str, ranks: int, us: float
) -> None:
    """Or are not stated, where rounding leaves several."""
    ns = round(us * 1000)
    algbw = 2**28 / ns
    busbw = bus_bandwidth(collective, ranks, 2**28, ns)
    name = NAMES[collective].replace("-", "_")
    row = f"{2**28} {2**26} float sum -1 {us:.2f} {algbw:.2f} {busbw:.2f} 0"
    path = written(tmp_path_factory.mktemp("n"), f"{HEADING}\n{row}\n", f"{name}.txt")
    assert read_measured(path)[0].ranks in (ranks, None if ranks > 8 else ranks)


@pytest.mark.parametrize(
    ("text", "name", "line", "words"),
    [
        ("hello\n", "out.txt", None, "expected a heading"),
        (f"# all_reduce_perf\n{HEADING}\n", "out.txt", 2, "expected some"),
        (f"{HEADING}\n1024 256 float sum -1 1 1 1 0\n", "out.txt", 1, "# Collective test starting: "),
        (f"# all_reduce_perf\n{HEADING}\n1024 256 float sum -1 fast 1 1 0\n", "out.txt", 3, "found `fast`"),
        (f"# broadcast_perf\n{HEADING}\n1024 256 float sum -1 1 1 1 0\n", "out.txt", 2, "one of all_reduce"),
        (f"# all_reduce_perf\n#  Rank  0 Pid   1320 on  host device  0 [0x00] V100\n{HEADING}\n"
         "1024 256 float sum -1 1 1 1 0\n", "out.txt", 3, "a group of 2 or more"),
        ('{"results": [', "out.json", 1, "this is not JSON"),
        ('{"results": 1}', "out.json", None, "no list `results`"),
        ('{"results": [{"size": "1"}]}', "out.json", None, "results[0]"),
        ('{"results": [{"size": 1, "out_of_place": {"time": "nan"}}]}', "out.json", None, "results[0]"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_with_its_line(
    tmp_path: Path, text: str, name: str, line: int | None, words: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_measured(written(tmp_path, text, name))
    [diagnostic] = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.line) == ("nccl-tests", line)
    assert words in diagnostic.message


def test_calls_that_nccls_inspector_writes_are_tables_of_their_median_times(tmp_path: Path) -> None:
    """Of an all-gather it states the bytes of a rank. A line that is cut is passed over."""

    def call(coll: str, size: int, us: int, ranks: int, nodes: int) -> str:
        return json.dumps(
            {
                "header": {"id": "0x7f", "rank": 2, "n_ranks": ranks, "nnodes": nodes},
                "metadata": {"hostname": "node-0", "pid": 7},
                "coll_perf": {
                    "coll": coll, "coll_sn": 1, "coll_msg_size_bytes": size, "coll_exec_time_us": us,
                    "coll_algobw_gbs": 1.0, "coll_busbw_gbs": 1.0,
                },
            }
        )  # fmt: skip

    lines = [call("AllReduce", 2**20, us, 8, 1) for us in (30, 50, 40)]
    lines += [
        call("AllGather", 2**20, 100, 16, 2),
        call("Broadcast", 1, 1, 8, 1),
        call("AllReduce", 1, 1, 8, 1)[:80],
    ]
    path = written(tmp_path, "\n".join(lines), "job.log")
    assert is_measured(path)
    reduce, gather = read_measured(path)
    assert (reduce.words(), gather.words()) == (
        "all_reduce_perf, 8 ranks on 1 host", "all_gather_perf, 16 ranks on 2 hosts",
    )  # fmt: skip
    assert [(time.size, time.ns) for time in reduce.times] == [(2**20, 40_000)]
    assert [(time.size, time.ns) for time in gather.times] == [(2**24, 100_000)]


def measured(ranks: int | None, hosts: int | None, *times: tuple[int, float]) -> MeasuredCollective:
    rows = tuple(MeasuredTime(size, ns, None) for size, ns in times or ((1, 1.0),))
    return MeasuredCollective("out.txt", "ALLREDUCE", ranks, hosts, rows, None)


def test_times_are_linear_between_sizes_constant_below_and_of_one_bandwidth_above() -> None:
    table = measured(8, 1, (1000, 500.0), (3000, 1500.0), (4000, 3500.0))
    assert [table.ns_of(size) for size in (1, 1000, 2000, 3500, 4000, 8000)] == [
        500,
        500,
        1000,
        2500,
        3500,
        7000,
    ]
    assert table.busbw_of(2000) == bus_bandwidth("ALLREDUCE", 8, 2000, 1000)


def test_a_group_takes_what_was_measured_where_it_lies_and_nearest_to_its_size() -> None:
    tables = [measured(8, 1), measured(4, 1), measured(16, 2), measured(64, 8)]
    for members, across, index in (
        (8, False, 0), (2, False, 1), (16, False, 0), (8, True, 2), (16, True, 2), (512, True, 3),
    ):  # fmt: skip
        assert choose_table(tables, members, across) is tables[index]


def test_a_run_has_the_measured_prices_and_says_what_stands_in() -> None:
    workload = open_workload(str(REPOSITORY / "fixtures" / "002_gpt_1024npu.txt"))
    run = simulate(workload, Parameters(network=f"busbw:{SEVERAL}"))
    network, tables = run.network, read_measured(str(SEVERAL))
    assert network.words().count("all_reduce_perf") == 2
    [note] = [one for one in run.diagnostics if one.code == "busbw-stand-in"]
    assert "all-gather and reduce-scatter" in note.message
    # tp 8 lies in a server of 8, the 16 replicas on 16 servers, as the next stage does.
    size = 2**26
    inside = group_shape(run.setup.cluster, range(8))
    across = group_shape(run.setup.cluster, range(0, 128, 8))
    for group, shape, collective, expected in (
        ("tp", inside, "ALLREDUCE", tables[0].ns_of(size)),
        ("tp", inside, "ALLGATHER", tables[0].ns_of(size) / 2),
        ("dp", across, "ALLREDUCE", tables[1].ns_of(size)),
        ("ep", across, "ALLTOALL", tables[2].ns_of(size)),
    ):
        price = network.collective_ns(GroupCollective(group, shape, (), collective, size))  # type: ignore[arg-type]
        assert price == round(expected)
    transfer_ns = network.transfer_ns(TransferShape(()), (), size)
    assert transfer_ns == round(tables[3].ns_of(size))


def test_one_host_for_groups_over_several_is_warned_of() -> None:
    workload = open_workload(str(REPOSITORY / "fixtures" / "002_gpt_1024npu.txt"))
    run = simulate(workload, Parameters(network=f"busbw:{TEXT}"))
    assert [one.severity for one in run.diagnostics if one.code == "busbw-one-host"] == ["warning"]
    assert run.step_time_ns > 0


def test_the_command_shows_measured_beside_priced() -> None:
    done = wltui_here("collective", "--measured", str(TEXT), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["sizes"]
    priced = wltui_here("collective", "all-reduce", "--ranks", "0-7", "--size", "64MiB", "--json")
    assert rows[3]["time_ns"] == json.loads(priced.stdout)["time_ns"]
    assert [(row["bytes"], row["measured_ns"]) for row in rows][3] == (64 * MIB, 320_000)
    assert rows[3]["measured_busbw_gbps"] == pytest.approx(367.0, abs=0.01)
    table = wltui_here("collective", "--measured", str(TEXT), "--size", "4MiB..64MiB").stdout
    lines = [line.split() for line in table.splitlines() if not line.startswith("#")]
    assert [int(cells[0]) // MIB for cells in lines] == [4, 16, 64]
    assert [float(cells[1]) for cells in lines] == [50, 90, 320]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--ranks", "0-3"), "of 4 ranks is expected"),
        (("--size", "1KiB"), "no measured size"),
    ],
)
def test_what_the_file_has_not_is_refused(words: tuple[str, ...], expected: str) -> None:
    done = wltui_here("collective", "all-reduce", "--measured", str(TEXT), *words)
    assert done.returncode == 2
    assert expected in done.stderr
