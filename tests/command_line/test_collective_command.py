"""`wltui collective`: text, table and JSON, and the exact words of its errors."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.ranks import RankSet, parse_ranks
from tests.command_line.running import wltui_here
from tests.command_line.test_imports import RUN, UNWANTED, loaded
from tests.says import said
from tui.commands.arguments import parse_size, parse_sizes


def test_one_size_says_when_ranks_are_done_the_bandwidths_and_what_ran() -> None:
    done = wltui_here("collective", "all-gather", "--size", "128MiB", "--ranks", "0-7")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "all-gather of 134217728 B over 8 ranks (0-7): 264.0 us\n"
        "  last rank done   264017 ns\n"
        "  first rank done  264017 ns\n"
        "  algbw            508.37 GB/s\n"
        "  busbw            444.82 GB/s\n"
        "\n"
        "all-gather, halving-doubling, group of 8 on dimension 0 (switch 8, 450 GB/s, 500 ns a hop): "
        "134 217 728 B gathered\n"
        "3 messages of 16 777 216 to 67 108 864 B: 117 440 512 B / 450 GB/s = 260 977, "
        "+ 6 hops x 500, + 4 x 10 endpoint = 264 017 ns\n"
    )


def test_chunks_are_said() -> None:
    words = ("--size", "1MiB", "--dim", "ring:8:53.6870912:500", "--local-mem-bw", "1600", "--splits", "4")
    done = wltui_here("collective", "all-reduce", *words)
    assert done.stdout.splitlines()[1] == "  last rank done   64440 ns"  # as ASTRA-sim 2.0 measured it
    assert done.stdout.splitlines()[6:] == [
        "all-reduce, ring, group of 8 on dimension 0 (ring 8, 50 GiB/s (53.69 GB/s), 500 ns a hop): "
        "1 048 576 B in 4 chunks of 262 144 B",
        "14 messages of 32 768 B: 458 752 B / 53.6870912 GB/s = 8 540, + 14 hops x 500, + 15 x 10 endpoint, "
        "+ 420 reducing = 16 110 ns a chunk; 4 chunks, 1 at a time on a dimension = 64 440 ns",
    ]


def test_a_range_of_sizes_is_a_table_as_nccl_tests_prints_it() -> None:
    done = wltui_here(
        "collective", "all-reduce", "--size", "1MiB..4MiB", "--dim", "fully-connected:8:400:500"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:6] == [
        "# all-reduce over 8 ranks (0-7) on fully-connected 8, 400 GB/s, 500 ns a hop",
        "#              size           time     algbw     busbw",
        "#               (B)           (us)    (GB/s)    (GB/s)",
        "            1048576           1.80    582.22   1018.88",
        "            2097152           2.57    814.74   1425.80",
        "            4194304           4.12   1018.53   1782.43",
    ]
    assert done.stdout.splitlines()[6].startswith("# all-reduce, direct, group of 8 on dimension 0")


def test_json_has_both_times() -> None:
    words = ("collective", "all-reduce", "--size", "800", "--dim", "fully-connected:8:1:100")
    tree = ("--algorithm", "0=double-binary-tree", "--local-mem-bw", "1e9", "--json")
    found = json.loads(wltui_here(*words, *tree).stdout)
    assert found == {
        "schema": "wltui.collective/1",
        "collective": "all-reduce",
        "rank_list": "0-7",
        "bytes": 800,
        "ranks": 8,
        "time_ns": 6 * 900 + 7 * 10,
        "first_done_ns": 3 * 900 + 4 * 10,
        "algbw_gbps": 800 / 5470,
        "busbw_gbps": 800 / 5470 * 2 * 7 / 8,
    }
    sizes = json.loads(wltui_here(*words, "--size", "1KiB..4KiB", "--json").stdout)["sizes"]
    assert [row["bytes"] for row in sizes] == [1024, 2048, 4096]
    assert set(sizes[0]) == {"bytes", "ranks", "time_ns", "first_done_ns", "algbw_gbps", "busbw_gbps"}


def test_files_of_astra_sim_are_taken_and_what_is_ignored_is_said(tmp_path: Path) -> None:
    network, system = tmp_path / "network.yml", tmp_path / "system.json"
    network.write_text("topology: [Ring]\nnpus_count: [8]\nbandwidth: [50.0]\nlatency: [500.0]\n")
    system.write_text('{"local-mem-bw": 1600, "boost-mode": 0}')
    words = ("--size", "1GiB", "--cluster", str(network), "--system", str(system), "--json")
    done = wltui_here("collective", "all-reduce", *words)
    assert json.loads(done.stdout)["time_ns"] == 36_768_756
    assert done.stderr == f"{system}:1:24: note cluster-key-ignored `boost-mode` is ignored\n"
    network.write_text("topology: [Ring]\nnpus_count: [8]\nbandwidth: [fast]\nlatency: [500.0]\n")
    done = wltui_here("collective", "all-reduce", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"{network}:3:13: error network-yml found `fast` in bandwidth, "
        "expected a number from 1e-6 to 1e9 (GiB/s)\n"
    )


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        ([], "0-7"),
        (["--cluster", "gb200-nvl72"], "0-71"),
        (["--cluster", "tpu-v4"], "0-15"),
        (["--dim", "ring:4:1:1", "--dim", "switch:8:1:1"], "0-31"),
        (["--ranks", "5"], "5"),
        (["--ranks", "0-7+64*3,1"], "0-7+64*3"),
    ],
)
def test_the_group_is_one_server_of_a_preset_or_all_of_a_given_cluster(words: list[str], ranks: str) -> None:
    done = wltui_here("collective", "all-reduce", "--size", "1", "--json", *words)
    assert json.loads(done.stdout)["rank_list"] == ranks


def test_a_group_that_is_no_grid_is_said() -> None:
    done = wltui_here("collective", "all-to-all", "--size", "3000", "--ranks", "6-8")
    assert done.returncode == 0
    said(done.stderr.splitlines(), "wltui: note --ranks:", "no grid", "dimension 1")
    assert done.stderr.count("\n") == 1
    said(done.stdout.splitlines(), "flat group", "3", "dimension 1")


@pytest.mark.parametrize("name", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"])
def test_a_group_of_one_is_free(name: str) -> None:
    done = wltui_here("collective", name, "--size", "1MiB", "--ranks", "3")
    assert done.stdout.splitlines()[0] == f"{name} of 1048576 B over 1 rank (3): 0 s"
    assert done.stdout.splitlines()[-1].endswith(": free")


SIZE = "a whole number of bytes from 1 to 2^63 - 1 is expected, for example 64MiB, 1.5GB or 4096"
REFUSED = [
    ([], "the following arguments are required: COLLECTIVE, --size (see wltui collective --help)"),
    (["all-reduce"], "the following arguments are required: --size (see wltui collective --help)"),
    (
        ["ALLREDUCE", "--size", "1"],
        "COLLECTIVE ALLREDUCE: one of all-reduce, all-gather, reduce-scatter, all-to-all is expected; "
        "did you mean all-reduce?",
    ),
    (["all-reduce", "--size", "1XB"], f"--size 1XB: {SIZE}"),
    (["all-reduce", "--size", "1KiB.."], f"--size : {SIZE}"),
    (
        ["all-reduce", "--size", "2KiB..1KiB"],
        "--size 2KiB..1KiB: the second size is less than the first",
    ),
    (
        ["all-reduce", "--size", "1", "--ranks", "0-7,x"],
        "--ranks 0-7,x: ranks are expected, for example 0-7,64 (found `x`)",
    ),
    (
        ["all-reduce", "--size", "1", "--ranks", "7-0"],
        "--ranks 7-0: `7-0` is not ascending from 0 to 999999",
    ),
    (
        ["all-reduce", "--size", "1", "--ranks", "0-8", "--dim", "ring:8:1:1"],
        "the cluster has 8 NPUs (ring 8), too few for 9 ranks: give dimensions whose product is 9 or more",
    ),
    (
        ["all-reduce", "--size", "1", "--world", "8"],
        "unrecognized arguments: --world 8 (see wltui collective --help)",
    ),
]


def test_wrong_usage_is_one_line_and_exit_status_2() -> None:
    for words, message in REFUSED:
        done = wltui_here("collective", *words)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"wltui: {message}\n"), words


SIZES = {
    "4096": 4096, "1B": 1, "64MiB": 2**26, "1.5GB": 1_500_000_000, "0.5KiB": 512,
    "2 kB": 2000, "9223372036854775807": 2**63 - 1, "1TiB": 2**40, "0.25": None,
    "0": None, "": None, "-1": None, "1e3": None, "1M": None, "1mib": None,
    "9223372036854775808": None, "8388608TiB": None, "\u0663": None, "1\n": None,
}  # fmt: skip


def test_sizes_as_they_are_written() -> None:
    for text, size in SIZES.items():
        if size is None:
            with pytest.raises(UsageError):
                parse_size("--size", text)
        else:
            assert parse_size("--size", text) == size, text


def test_a_range_doubles_up_to_its_end() -> None:
    assert parse_sizes("--size", "3..25") == [3, 6, 12, 24]
    assert parse_sizes("--size", "1KiB..1KiB") == [1024]
    assert len(parse_sizes("--size", "1KiB..1GiB")) == 21


@given(st.sets(st.integers(0, 200), min_size=1))
def test_ranks_are_read_as_reports_print_them(ranks: set[int]) -> None:
    assert set(parse_ranks("--ranks", RankSet.of(ranks).text())) == ranks
    assert set(parse_ranks("--ranks", ",".join(map(str, ranks)))) == ranks


def test_the_command_imports_nothing_of_the_screen() -> None:
    for words in (["collective", "all-reduce", "--size", "1MiB"], ["collective", "--help"]):
        assert loaded(RUN.format(words=words, unwanted=(*UNWANTED, "yaml", "tui.app"))) == []
