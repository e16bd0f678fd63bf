"""ASTRA-sim 1.0's texts: headers by policy, rows of 13 and 21 cells, rows without a header."""

from __future__ import annotations

import pytest

from simcore.workload.policies import POLICIES
from tests.findings import finding, findings

from .texts import read, refused, row, told

# Not 100 in the last cell of both rows: that would be SimAI's MICRO.
A, B = row("a", wg="ALLREDUCE 8"), row("b").replace(" 100", " 10")
EXPECTED = "DATA, MODEL, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA, MICRO, DISTRIBUTED_INFERENCE"
BARE = [policy for policy in POLICIES if "DLRM" not in policy and "TRANSFORMER" not in policy
        and policy != "HYBRID_CUSTOMIZED"]  # fmt: skip


@pytest.mark.parametrize("policy", BARE)
def test_a_policy_without_parameters(policy: str) -> None:
    for head in ("{}\n2\n", "{}\t\t\r\n2\t\r\n\r\n", "{} 2\n", "{} 2 "):
        text = head.format(policy if "\n" in head else policy.lower()) + f"{A}\r\n{B}"
        workload = read(text)
        assert (workload.policy, workload.name, workload.declared_rows) == (policy, ["a", "b"], 2)
        assert (workload.dialect, workload.format, workload.row_policy) == ("astra-sim-1", "astra-sim-1", ())
    assert told(f"{policy}\n2\n{A}\n{B}\n") == []


@pytest.mark.parametrize("policy", ["HYBRID_DLRM", "HYBRID_DLRM_ENHANCED"])
@pytest.mark.parametrize(
    "head", ["{} 1\n2\n", "{}\n1\n2\n", "{} 1 2\n", "{}\n1 2\n", "{}\t1 \t\r\n 2\t\r\n",
             "{} DLRM_LAST_BOTTOM_LAYER: 1\n2\n", "{}\nDLRM_LAST_BOTTOM_LAYER: 1\n2\n", "{}\n\n1\n\n2 "],
)  # fmt: skip
def test_the_last_row_of_the_bottom_mlp_is_a_bare_number_or_simais_key(policy: str, head: str) -> None:
    text = head.format(policy) + f"{A}\n{B}\n"
    workload = read(text)
    assert (workload.header.last_bottom_layer, workload.declared_rows, len(workload)) == (1, 2, 2)
    assert told(text) == []


@pytest.mark.parametrize("head", ["HYBRID_DLRM\n2\n", "HYBRID_DLRM\n", "HYBRID_DLRM x\n2\n"])
def test_hybrid_dlrm_needs_the_last_row_of_its_bottom_mlp(head: str) -> None:
    assert finding(refused(f"{head}{A}\n{B}\n")) == "w.txt:1:1: error last-bottom-layer HYBRID_DLRM"


def test_a_bottom_mlp_that_ends_behind_the_file() -> None:
    assert findings(told(f"HYBRID_DLRM 2\n2\n{A}\n{B}\n")) == [
        "w.txt:1:13: warning last-bottom-layer 2, 0, 1"
    ]


def test_a_bad_last_row_of_the_bottom_mlp() -> None:
    assert (
        finding(refused(f"HYBRID_DLRM -1\n1\n{A}\n"))
        == "w.txt:1:13: error negative-value DLRM_LAST_BOTTOM_LAYER, '-1', 0"
    )


@pytest.mark.parametrize(
    "rows",
    [f"{A} DATA\n{B}\tMODEL \n", f"{A}\nDATA\n{B} MODEL", f"{A} data {B} Model", f"{A}\nDATA {B}\nMODEL\n"],
)
def test_rows_of_hybrid_customized_have_a_policy_of_their_own(rows: str) -> None:
    workload = read(f"HYBRID_CUSTOMIZED\n2\n{rows}")
    assert (workload.name, workload.row_policy) == (["a", "b"], ("DATA", "MODEL"))


def test_a_row_of_hybrid_customized_may_be_named_like_a_policy() -> None:
    workload = read(f"HYBRID_CUSTOMIZED\n2\n{A} DATA\n{row('MODEL')} MODEL\n")
    assert (workload.name, workload.row_policy) == (["a", "MODEL"], ("DATA", "MODEL"))


def test_a_row_of_hybrid_customized_without_its_policy() -> None:
    assert (
        finding(refused(f"HYBRID_CUSTOMIZED\n2\n{A}\n{B} MODEL\n"))
        == f"w.txt:3:1: error row-policy 'a', 12, {EXPECTED}"
    )


def test_a_row_of_hybrid_customized_with_an_unknown_policy() -> None:
    assert findings(refused(f"HYBRID_CUSTOMIZED\n2\n{A} FOO\n{B} HYBRID_DLRM\n")) == [
        f"w.txt:3:{len(A) + 2}: error row-policy 'FOO', {EXPECTED}",
        f"w.txt:4:{len(B) + 2}: error row-policy 'HYBRID_DLRM', {EXPECTED}",
    ]


@pytest.mark.parametrize("sizes", ["12544 147 64", "M K N"])
def test_a_fork_has_matrix_sizes_after_each_time(sizes: str) -> None:
    wide = f"a -1 10 {sizes} NONE 0 20 {sizes} NONE 0 30 {sizes} ALLREDUCE 8 100"
    text = f"DATA\n2\n{wide}\n{wide}\n"
    assert read(text).wg == read(f"DATA\n2\n{A}\n{A}\n").wg
    assert findings(told(text)) == ["w.txt:3:1: note gemm-columns 'a', 2"]


def test_21_cells_that_are_no_row_with_matrix_sizes() -> None:
    assert read(f"DATA\n1\n{A} {' '.join('x' * 9)}\n").name == ["a"]


def test_cells_behind_a_row_are_ignored() -> None:
    assert findings(told(f"DATA\n1\n{A} h1 h2 h3 h4 h5\n")) == [
        f"w.txt:3:{len(A) + 2}: warning extra-cells 'h1', 12"
    ]


def test_rows_alone_have_no_policy_and_no_count() -> None:
    workload = read(f"# made\n{A}\n{B}\n")
    assert (workload.policy, workload.dialect, workload.declared_rows) == ("LIBRA", "astra-sim-1", None)
    assert (workload.name, list(workload.line)) == (["a", "b"], [2, 3])
    assert findings(told(f"{A}\n{B}\n")) == ["w.txt:1:1: warning no-policy astra-sim-1, HYBRID_TRANSFORMER"]


def test_a_policy_of_astra_sim_alone_is_of_its_dialect() -> None:
    # Every last cell is 100, which tells SimAI's files only where both have the policy.
    text = f"2\n{row('grad_gather')}\n{row('norm')}\n"
    assert read(f"DATA\n{text}").dialect == "astra-sim-1"
    assert read(f"MICRO\n{text}").dialect == "simai"
    assert read(f"HYBRID_TRANSFORMER\n{text}").dialect == "simai"


@pytest.mark.parametrize("text", ["DATA is what we need\nmore of\n", "MODEL\nT\n", "MICRO"])
def test_short_policy_words_of_prose_are_no_policy(text: str) -> None:
    assert "error unknown-format" in refused(text)
