"""The op table and its JSON twin: units, groups, columns, and what is wrong in them."""

from __future__ import annotations

import json
import re

import pytest

from simcore.workload import Workload, open_workload
from tests.findings import finding, findings

from .texts import FIXTURES, read, refused, told

COLUMNS = [
    "name", "forward_compute_time", "forward_comm_type", "forward_comm_size", "backward_compute_time",
    "backward_comm_type", "backward_comm_size", "weight_grad_compute_time", "weight_grad_comm_type",
    "weight_grad_comm_size", "process_time",
]  # fmt: skip
HEAD = "\t".join(COLUMNS)


def row(name: str = "a", fwd: str = "1 None 0", bwd: str = "2 None 0", wg: str = "0 None 0") -> str:
    """A row with (time in ms, type, elements) of each phase."""
    return "\t".join([name, *fwd.split(), *bwd.split(), *wg.split(), "0"])


def table(*rows: str, head: str = HEAD) -> str:
    return "\n".join([head, *rows]) + "\n"


def twin(text: str, indent: bool = False) -> str:
    """The JSON twin of a table, its numbers as they are written there."""
    head, *rows = (line.split("\t") for line in text.rstrip("\n").split("\n"))
    end, inner = ("\n", "\n  ") if indent else ("", " ")
    objects = []
    for one in rows:
        values = [cell if re.fullmatch(r"[-0-9][-+.0-9e]*", cell) else json.dumps(cell) for cell in one]
        pairs = [f'"{key}": {value}' for key, value in zip(head, values, strict=True)]
        objects.append("{" + f",{inner}".join(pairs).replace('"None"', "null") + "}")
    return f"[{end}" + f",{end or ' '}".join(objects) + f"{end}]"


def content(workload: Workload) -> tuple[object, ...]:
    """All of a workload but places and diagnostics."""
    return (
        workload.name, workload.policy, workload.format, workload.fwd, workload.ig, workload.wg,
        workload.process_ns,
    )  # fmt: skip


def test_seed_003_reads_as_it_was_counted() -> None:
    workload = open_workload(str(FIXTURES / "003_gpt2_large_op_table.txt"))
    assert (workload.format, workload.policy, len(workload), workload.declared_rows) == (
        "op-table",
        "dp",
        51,
        None,
    )
    # awk -F'\t' 'NR>1 {printf "%.0f\n", $2*1e6}' over the file, summed
    assert sum(workload.fwd.compute_ns) == 187_539_528
    assert (workload.name[4], workload.line[4], workload.fwd.compute_ns[4]) == ("transformer_wte", 6, 50_280)
    assert (workload.ig.collective[3], workload.ig.group[3], workload.ig.bytes[3]) == (
        "ALLREDUCE",
        "dp",
        4 * 1310720,
    )
    assert len(workload.ig.asynchronous) == workload.ig.collective.count("ALLREDUCE") == 9
    assert [one.code for one in workload.diagnostics] == ["forward-only"]


@pytest.mark.parametrize(
    ("ms", "ns"),
    [
        ("4.791370158793459e-09", 0), ("0", 0), ("0.0", 0), ("1", 1_000_000), ("0.05028040846061094", 50_280),
        ("0.0000005", 0), ("0.0000015", 2), ("0.0000025", 2), ("2.5e-6", 2), ("2.50000000000001e-6", 3),
        ("1e3", 10**9), ("9223372036854.775807", 2**63 - 1), (".5", 500_000), ("-0.0", 0),
    ],
)  # fmt: skip
def test_milliseconds_become_ns_rounded_once_half_to_even(ms: str, ns: int) -> None:
    text = table(row(fwd=f"{ms} None 0"))
    assert list(read(text).fwd.compute_ns) == [ns]
    assert list(read(twin(text.replace("\t.5\t", "\t0.5\t"))).fwd.compute_ns) == [ns]


def test_elements_become_bytes_of_fp32() -> None:
    text = table(row("x_grad", bwd="0 ALLREDUCE 1310720"), row("y_grad", bwd="0 ALLREDUCE 1e3"))
    assert list(read(text).ig.bytes) == [5_242_880, 4000]


def test_the_twin_reads_as_the_table() -> None:
    text = (FIXTURES / "003_gpt2_large_op_table.txt").read_text()
    for indent in (False, True):
        assert content(read(twin(text, indent=indent))) == content(read(text))


def test_lines_of_the_twin_are_those_of_its_objects() -> None:
    text = twin(table(row("a"), row("b")), indent=True)
    assert list(read(text).line) == [2, 13]
    assert text.split("\n")[12].startswith("{")


@pytest.mark.parametrize(
    ("name", "phase", "cell", "expected"),
    [
        ("addmm_grad", "ig", "1 ALLREDUCE_ASYNC 8", ("ALLREDUCE", "dp", True)),
        ("addmm_grad", "ig", "0 allreduce 8", ("ALLREDUCE", "dp", False)),
        ("x", "ig", "1 ALLREDUCE_ASYNC 8", ("ALLREDUCE", "dp", True)),
        ("reduce_from_tensor_model_parallel_region_1", "fwd", "0 ALLREDUCE 8", ("ALLREDUCE", "tp", False)),
        ("sendrecv", "fwd", "0 SENDRECV 8", ("SENDRECV", "pp", False)),
        ("sendrecv", "ig", "0 SendRecv 8", ("SENDRECV", "pp", False)),
        ("x", "wg", "0 REDUCESCATTER 8", ("REDUCESCATTER", "dp", False)),
        ("x", "fwd", "0 NONE 8", (None, None, False)),
        ("x", "fwd", "0 none 0", (None, None, False)),
    ],
)
def test_type_and_name_tell_the_group(name: str, phase: str, cell: str, expected: tuple[object, ...]) -> None:
    workload = read(table(row(name, **{"bwd" if phase == "ig" else phase: cell})))
    cells = {"fwd": workload.fwd, "ig": workload.ig, "wg": workload.wg}[phase]
    assert (cells.collective[0], cells.group[0], 0 in cells.asynchronous) == expected
    assert cells.bytes[0] == (32 if expected[0] else 0)
    assert {one.code for one in workload.diagnostics} <= {"forward-only"}


def test_the_policy_names_the_kinds_of_communication() -> None:
    dp, tp = row("a_grad", bwd="1 ALLREDUCE_ASYNC 8"), row("b_tensor_model_parallel", fwd="1 ALLREDUCE 8")
    pp = row("sendrecv", fwd="1 SENDRECV 8")
    assert [read(table(row(), one)).policy for one in (dp, tp, pp, row())] == ["dp", "tp", "pp", "none"]
    assert read(table(pp, tp, dp)).policy == "dp+tp+pp"
    assert findings(told(table(tp, dp))) == ["w.txt: warning several-kinds dp, tp, dp, --tp, --pp"]


def test_columns_are_found_by_their_names() -> None:
    text = table(row("a", "1 ALLREDUCE 2", "3 ALLREDUCE 4", "5 ALLREDUCE 6"), row("b"))
    assert content(read(_renamed(text))) == content(read(text))


def _renamed(text: str) -> str:
    """The same table with two columns swapped and one more at its end; it still begins with `name`."""
    lines = [line.split("\t") for line in text.split("\n")[:-1]]
    for cells in lines:
        cells[1], cells[10] = cells[10], cells[1]
        cells.append("extra" if cells[0] == "name" else "7")
    return "\n".join("\t".join(cells) for cells in lines)


def test_other_columns_are_ignored_and_said() -> None:
    assert findings(told(_renamed(table(row())))) == [f"w.txt:1:{len(HEAD) + 2}: note unknown-column 'extra'"]


def test_crlf_a_byte_order_mark_blank_lines_comments_and_padding_do_not_matter() -> None:
    text = table(row("a"), row("b"))
    other = "\ufeff\n# predicted\n" + text.replace("\n", "\r\n\r\n").replace("\t1\t", "\t 1  \t")
    assert content(read(other)) == content(read(text))
    assert [one.code for one in read(other).diagnostics] == ["comment"]


def test_an_absent_type_may_be_empty() -> None:
    assert read(table("a\t1\t\t0\t2\t\t0\t0\t\t0\t0")).fwd.collective == [None]


ERRORS = [
    (row(fwd="x None 0"), "2:3: error not-a-number forward_compute_time, 'x'"),
    (row(fwd="nan None 0"),
     "2:3: error not-a-number forward_compute_time, 'nan'"),
    ("a\t\tNone\t0\t1\tNone\t0\t1\tNone\t0\t0",
     "2:3: error not-a-number forward_compute_time"),
    (row(bwd="-1 None 0"),
     "2:12: error negative-value backward_compute_time, '-1', 0"),
    (row(fwd="1 None y"),
     "2:10: error not-a-number forward_comm_size, 'y'"),
    (row(fwd="1e40 None 0"),
     "2:3: error value-too-large forward_compute_time, '1e40', 9223372036854775807 ns"),
    (row("a_grad", bwd="1 ALLREDUCE 9223372036854775807"),
     "2:29: error value-too-large backward_comm_size, '9223372036854775807', 2305843009213693951"),
    ("a\t1\tNone", "2:1: error incomplete-row 'a', 3, 11"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "message"), ERRORS)
def test_a_wrong_cell_is_an_error_with_its_place(line: str, message: str) -> None:
    assert finding(refused(table(line))) == f"w.txt:{message}"


TYPES = "ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, _ASYNC"
NOTES = [
    (row(fwd="1 GATHER 0"),
     f"2:5: warning unknown-collective forward_comm_type, 'GATHER', {TYPES}, SENDRECV"),
    (row(wg="1 SENDRECV 1"),
     f"2:23: warning unknown-collective weight_grad_comm_type, 'SENDRECV', {TYPES}"),
    (row(fwd="1 ALLREDUCE 1"),
     "2:5: note group-assumed forward_comm_type, 'ALLREDUCE', _grad, tensor_model_parallel, tp"),
    (row(fwd="1 None 2.5"),
     "2:10: note float-value forward_comm_size, '2.5', 2"),
    (row() + "\t9", f"2:{len(row()) + 2}: warning extra-cells '9', 11"),
    (row()[:-1] + "5", f"2:{len(row())}: note process-time process_time, '5', 0"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "message"), NOTES)
def test_what_is_harmless_is_read_and_said(line: str, message: str) -> None:
    assert findings(told(table(line))) == [f"w.txt:{message}"]


def test_a_table_without_rows_or_columns_is_refused() -> None:
    assert finding(refused(HEAD)) == "w.txt:1:1: error no-rows"
    head = "\t".join(COLUMNS[:-2])
    assert (
        finding(refused(table("a", head=head)))
        == "w.txt:1:1: error missing-column weight_grad_comm_size, process_time, 11"
    )
    assert findings(told(table(row() + "\t1", head=f"{HEAD}\tname"))) == [
        f"w.txt:1:{len(HEAD) + 2}: warning repeated-column 'name'"
    ]


def test_a_line_of_a_million_columns_is_refused() -> None:
    assert finding(refused(HEAD + "\tx" * 1_000_000)) == "w.txt:1:1: error unknown-column 1000, 11"


GOOD = twin(table(row()))
JSON_ERRORS = [
    (GOOD[:-1], f"1:{len(GOOD)}: error bad-json found the end of the file, expected a comma or the end "
    f"of the list"),
    (GOOD[:40], "1:41: error bad-json this is not JSON: expecting ',' delimiter"),
    (GOOD + " x", f"1:{len(GOOD) + 2}: error bad-json found 'x', expected nothing after the list"),
    (f"[\n{GOOD[1:-1]},\n7]", "3:1: error bad-json found '7]', expected an object for each row"),
    (GOOD.replace('"name": "a", ', ""),
     "1:2: error missing-column found no key name, expected the 11 of an op table"),
    (GOOD.replace('_time": 1', '_time": true', 1),
     "1:40: error not-a-number forward_compute_time: found 'true', expected milliseconds"),
    (GOOD.replace('_time": 1', '_time": NaN', 1),
     "1:40: error not-a-number forward_compute_time: found 'NaN', expected milliseconds"),
    ('[{"forward_compute_time":' + "[" * 100_000,
     "1:2: error bad-json this JSON is nested too deeply for an op table"),
    ('["forward_compute_time"]', "1:2: error bad-json found '\"forward_compute_time\"]', "
     "expected an object for each row"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), JSON_ERRORS)
def test_what_is_wrong_in_the_twin_is_an_error_with_its_place(text: str, message: str) -> None:
    assert refused(text) == f"w.txt:{message}"


def test_other_keys_of_the_twin_are_said_once() -> None:
    text = twin(table(row("a") + "\t1", row("b") + "\t1", head=f"{HEAD}\tnote"))
    assert findings(told(text)) == ["w.txt:1:2: note unknown-column 'note', 2"]
