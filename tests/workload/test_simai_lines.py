"""Rows are found by cells where lines do not tell them, and the row count is compared with them."""

from __future__ import annotations

import pytest

from tests.findings import finding, findings

from .texts import HEADER, read, refused, row, text_of, told

A, B, C = row("a", "ALLREDUCE 8"), row("b", wg="ALLGATHER_DP_EP 8"), row("c")


def halves(text: str, cells: int) -> str:
    """A row with a line break after so many cells."""
    parts = text.split()
    return " ".join(parts[:cells]) + "\n" + " ".join(parts[cells:])


@pytest.mark.parametrize("cells", range(1, 12))
def test_a_row_may_be_broken_anywhere(cells: int) -> None:
    content = text_of(A, halves(B, cells), C, count=3)
    workload = read(content)
    assert (workload.name, list(workload.line)) == (["a", "b", "c"], [3, 4, 6])
    assert (workload.wg.collective, workload.wg.group) == ([None, "ALLGATHER", None], [None, "dp_ep", None])
    assert findings(told(content)) == ["w.txt:4:1: note row-breaks 'b'"]


def test_every_cell_may_have_a_line_of_its_own() -> None:
    workload = read(text_of(*f"{A} {B} {C}".split(), count=3))
    assert (workload.name, list(workload.line)) == (["a", "b", "c"], [3, 15, 27])


def test_several_rows_in_one_line() -> None:
    content = text_of(f"{A} {B}\t{C}", count=3)
    workload = read(content)
    assert (workload.name, list(workload.line)) == (["a", "b", "c"], [3, 3, 3])
    assert findings(told(content)) == [f"w.txt:3:{len(A) + 2}: note row-breaks 'b', 2"]


@pytest.mark.parametrize("shift", range(1, 12))
def test_all_rows_shifted_against_the_lines(shift: int) -> None:
    cells = f"{A} {B} {C}".split()
    lines = [
        " ".join(cells[: 12 + shift]),
        " ".join(cells[12 + shift : 24 + shift]),
        " ".join(cells[24 + shift :]),
    ]
    assert read(text_of(*lines, count=3)).name == ["a", "b", "c"]


def test_cells_after_the_twelfth_are_ignored() -> None:
    content = text_of(f"{A} HYBRID_DATA_MODEL", f"{B} sha256:1 sha256:2 sha256:3", f"{C} 7")
    assert read(content).name == ["a", "b", "c"]
    assert findings(told(content)) == [
        f"w.txt:3:{len(A) + 2}: warning extra-cells 'HYBRID_DATA_MODEL', 12, 3"
    ]


def test_many_cells_after_the_twelfth_that_are_no_row_are_ignored() -> None:
    content = text_of(f"{A} " + " ".join("x" * 13), B)
    assert read(content).name == ["a", "b"]


def test_a_comment_after_a_row_is_ignored() -> None:
    content = text_of(f"{A} # the first", B)
    assert read(content).name == ["a", "b"]
    assert findings(told(content)) == [f"w.txt:3:{len(A) + 2}: warning extra-cells '#', 12"]


def test_comment_lines_are_skipped_even_within_a_row() -> None:
    content = text_of(
        "# one", A, "// two", halves(B, 5).replace("\n", "\n#three\n"), f"# {row('x')}", count=2
    )
    assert read(content).name == ["a", "b"]
    assert finding(told(content)[0]) == "w.txt:3:1: note comment '#', 4"


def test_a_commented_row_of_twelve_cells_is_a_comment() -> None:
    assert read(text_of(A, "#" + B, count=1)).name == ["a"]


@pytest.mark.parametrize("cells", range(1, 12))
def test_an_incomplete_last_row_is_an_error(cells: int) -> None:
    cut = " ".join(B.split()[:cells])
    assert finding(refused(text_of(A, f"  {cut}"))) == f"w.txt:4:3: error incomplete-row 'b', {cells}, 12"


def test_an_incomplete_last_row_in_the_line_of_another_is_an_error() -> None:
    assert (
        finding(refused(text_of(f"{A} b -1 10 NONE", count=2)))
        == f"w.txt:3:{len(A) + 2}: error incomplete-row 'b', 4, 12"
    )


@pytest.mark.parametrize("missing", range(12))
def test_an_incomplete_row_between_complete_ones_is_an_error(missing: int) -> None:
    cells = B.split()
    del cells[missing]
    content = text_of(A, " ".join(cells), C)
    assert finding(refused(content)) == f"w.txt:4:1: error incomplete-row '{cells[0]}', 11, 12"


def test_an_incomplete_row_before_a_bad_one_does_not_hide_it() -> None:
    assert findings(refused(text_of("a -1", C.replace("20", "x")))) == [
        "w.txt:3:1: error incomplete-row 'a', 2, 12",
        "w.txt:4:16: error not-a-number 'x'",
    ]


def test_a_rule_of_dashes_is_no_row() -> None:
    assert finding(refused(text_of(A, "-----", B))) == "w.txt:4:1: error incomplete-row '-----', 1, 12"


def test_a_name_with_a_blank_shifts_the_cells() -> None:
    assert finding(refused(text_of(row("my layer")))) == "w.txt:3:4: error not-a-number 'layer'"


def test_a_name_in_an_error_is_shown_safely() -> None:
    assert (
        finding(refused(text_of("\x1b[31mred -1"))) == "w.txt:3:1: error incomplete-row '\\x1b[31mred', 2, 12"
    )


@pytest.mark.parametrize("content", [HEADER, f"{HEADER}\n", f"{HEADER}\n0\n", f"{HEADER}\n\n5\n\n"])
def test_a_file_without_rows_is_an_error(content: str) -> None:
    assert finding(refused(content)) == "w.txt:1:1: error no-rows"


def test_more_rows_than_the_count_are_read() -> None:
    content = text_of(A, B, C, count=2)
    assert (len(read(content)), read(content).declared_rows) == (3, 2)
    assert findings(told(content)) == ["w.txt:2:1: warning row-count 3, 2, 2"]


def test_the_program_that_stops_after_the_count_is_the_one_that_runs_the_file() -> None:
    plain = A.rsplit(None, 1)[0].replace("attention_row", "conv")
    found = {
        content.split()[0]: told(content)[-1].rsplit("all are read, ", 1)[-1]
        for content in (
            f"HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n1\n{plain} 5\n{plain} 5\n",
            f"DATA\n1\n{A}\n{A}\n",
            # SimAI's engine crashes on it, whoever wrote it.
            f"MICRO\n1\n{A}\n{A}\n",
            f"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1\n1\n{A}\n{A}\n",
        )
    }
    assert found == {
        "HYBRID_TRANSFORMER": "ASTRA-sim stops after 1",
        "DATA": "ASTRA-sim stops after 1",
        "MICRO": "ASTRA-sim stops after 1",
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD": "SimAI stops after 1",
    }


def test_fewer_rows_than_the_count_are_read() -> None:
    content = text_of(A, B, count="  839 ")
    assert (len(read(content)), read(content).declared_rows) == (2, 839)
    assert findings(told(content)) == ["w.txt:2:3: warning row-count 2, 839"]


@pytest.mark.parametrize("count", ["2", "\t2  ", "2.0", "002", "\n\n2", "2\t\t\t"])
def test_the_count_may_be_padded(count: str) -> None:
    content = text_of(A, B, count=count)
    assert read(content).declared_rows == 2
    assert told(content) == []


def test_words_after_the_count_are_ignored() -> None:
    content = text_of(A, count="1 row in all")
    assert (len(read(content)), read(content).declared_rows) == (1, 1)
    assert findings(told(content)) == ["w.txt:2:3: note stray-value 'row'"]


def test_rows_in_the_line_of_the_count_are_read() -> None:
    workload = read(f"{HEADER}\n2 {A}\n{B}\n")
    assert (workload.name, workload.declared_rows, list(workload.line)) == (["a", "b"], 2, [2, 3])
    assert workload.diagnostics == ()


@pytest.mark.parametrize("first", [A, row("7"), row("a", "FOO 1"), f"{A} {B}"])
def test_without_a_count_the_rows_begin_in_its_place(first: str) -> None:
    workload = read(f"{HEADER}\n{first}\n{C}\n")
    name = first.split()[0]
    assert (workload.name[0], workload.name[-1], workload.declared_rows) == (name, "c", None)
    assert finding(workload.diagnostics[0].text()) == f"w.txt:2:1: warning no-row-count '{name}'"


@pytest.mark.parametrize("count", ["rows", "-3", "2.5", "nan", "rows many", str(2**63)])
def test_a_count_that_is_no_number_is_ignored(count: str) -> None:
    content = text_of(A, B, count=count)
    workload = read(content)
    assert (len(workload), workload.declared_rows) == (2, None)
    assert findings(told(content)) == [f"w.txt:2:1: warning no-row-count '{count.split()[0]}'"]


def test_odd_lines_far_from_each_other_leave_the_rows_between_as_they_are() -> None:
    rows = [row(f"a{number}") for number in range(1000)]
    rows[500] = halves(rows[500], 6)
    rows[127] += " extra"
    rows[999] = rows[999].replace("-1", "3")
    workload = read(text_of(*rows, count=1000))
    assert workload.name == [f"a{number}" for number in range(1000)]
    assert list(workload.line) == [*range(3, 504), *range(505, 1004)]
    assert [(one.code, one.line) for one in workload.diagnostics] == [
        ("extra-cells", 130),
        ("row-breaks", 503),
        ("dependency", 1003),
    ]
