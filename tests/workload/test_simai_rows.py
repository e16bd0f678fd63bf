"""The rows of a SimAI workload: twelve cells each, and what may be odd about them."""

from __future__ import annotations

from array import array

import pytest

from tests.findings import finding, findings

from .texts import read, refused, row, text_of, told

INT64 = 2**63 - 1
TYPES = "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, _EP, _DP_EP"


def cells_with(cell: int, text: str) -> str:
    """A row in which one cell, counted from 0, is `text`; cells are one blank apart."""
    cells = row("r").split()
    cells[cell] = text
    return " ".join(cells)


def column_of(cell: int) -> int:
    return len(" ".join(row("r").split()[:cell])) + 2


def test_the_twelve_cells() -> None:
    text = text_of("mlp_row -1 1 ALLGATHER 2 3 REDUCESCATTER 4 5 ALLREDUCE 6 7")
    workload = read(text)
    assert len(workload) == 1
    assert (workload.name, workload.line, workload.process_ns) == (
        ["mlp_row"],
        array("q", [3]),
        array("q", [7]),
    )
    compute = [workload.cells(phase).compute_ns[0] for phase in ("fwd", "ig", "wg")]
    assert compute == [1, 3, 5]
    assert [workload.cells(phase).bytes[0] for phase in ("fwd", "ig", "wg")] == [2, 4, 6]
    assert workload.fwd.collective + workload.ig.collective + workload.wg.collective == [
        "ALLGATHER",
        "REDUCESCATTER",
        "ALLREDUCE",
    ]
    assert workload.fwd.group + workload.ig.group + workload.wg.group == ["tp", "tp", "dp"]
    assert (workload.format, workload.dialect, workload.declared_rows) == ("simai", "simai", 1)


@pytest.mark.parametrize("collective", ["ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"])
@pytest.mark.parametrize(
    ("suffix", "fwd", "wg"), [("", "tp", "dp"), ("_EP", "ep", "ep"), ("_DP_EP", "dp_ep", "dp_ep")]
)
def test_the_suffix_names_the_group(collective: str, suffix: str, fwd: str, wg: str) -> None:
    token = f"{collective}{suffix} 8"
    for written in (token, token.lower()):
        workload = read(text_of(row("r", written, written, written)))
        assert workload.fwd.collective == workload.ig.collective == workload.wg.collective == [collective]
        assert (workload.fwd.group, workload.ig.group, workload.wg.group) == ([fwd], [fwd], [wg])
        assert workload.diagnostics == ()


def test_a_size_of_none_means_nothing_and_a_collective_of_size_0_stays() -> None:
    workload = read(text_of(row("r", "NONE 50331648", "REDUCESCATTER 0", "none 7")))
    assert (workload.fwd.collective, workload.fwd.group, workload.fwd.bytes) == (
        [None],
        [None],
        array("q", [0]),
    )
    assert (workload.ig.collective, workload.ig.group, workload.ig.bytes) == (
        ["REDUCESCATTER"],
        ["tp"],
        array("q", [0]),
    )
    assert (workload.wg.collective, workload.wg.bytes) == ([None], array("q", [0]))
    assert workload.diagnostics == ()


def test_sizes_and_times_have_63_bits() -> None:
    workload = read(text_of(f"r -1 {2**40} ALLREDUCE 75611897856 0 NONE 0 0 ALLREDUCE {INT64} 0"))
    assert (workload.fwd.compute_ns[0], workload.fwd.bytes[0], workload.wg.bytes[0]) == (
        2**40,
        75611897856,
        INT64,
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace(" ", " \t  "),
        lambda text: text.replace("\n", "  \n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.rstrip("\n"),
        lambda text: "\ufeff" + text,
        lambda text: text + "\n\n  \n",
        lambda text: text.replace("\nb", "\n\n \t\nb"),
        lambda text: text.replace(" ", "\u00a0"),
    ],
)
def test_blanks_and_line_ends_of_any_kind_mean_nothing(spoil) -> None:  # type: ignore[no-untyped-def]
    plain = text_of(row("a", "ALLREDUCE 8"), row("b", wg="ALLGATHER 4"))
    workload, expected = read(spoil(plain)), read(plain)
    assert workload.diagnostics == ()
    assert (workload.name, workload.fwd, workload.ig, workload.wg) == (
        expected.name,
        expected.fwd,
        expected.ig,
        expected.wg,
    )


def test_lines_are_counted_over_blank_ones() -> None:
    assert list(read(text_of(row("a"), "", row("b"), count=2)).line) == [3, 5]


def test_names_are_kept_as_they_are() -> None:
    workload = read(text_of(row("mlp\0\x1b[31m"), row("层"), row("NONE"), row("7")))
    assert workload.name == ["mlp\0\x1b[31m", "层", "NONE", "7"]
    assert workload.diagnostics == ()


def test_bytes_that_are_no_utf_8_are_kept() -> None:
    text = text_of(row("a"), row("m\xe9lp_\xff_row")).encode("latin-1")
    assert read(text).name == ["a", "m\udce9lp_\udcff_row"]
    assert told(text) == [
        "w.txt:4:2: warning not-utf-8 found the byte 0xe9, expected UTF-8 text; kept, and shown escaped "
        "(2 times, first here)"
    ]


NUMBERS = {
    2: ("forward compute time", "nanoseconds"),
    4: ("forward size", "bytes"),
    5: ("input-gradient compute time", "nanoseconds"),
    7: ("input-gradient size", "bytes"),
    8: ("weight-gradient compute time", "nanoseconds"),
    10: ("weight-gradient size", "bytes"),
    11: ("process time", "nanoseconds"),
}


@pytest.mark.parametrize("cell", NUMBERS)
@pytest.mark.parametrize("text", ["x", "nan", "inf", "-", "1_000", "0x10", "1,5", ".", "1e", "１２", "1\x1b"])
def test_text_in_a_numeric_cell_is_an_error(cell: int, text: str) -> None:
    what, unit = NUMBERS[cell]
    shown = text.replace("\x1b", "\\x1b")
    assert refused(text_of(row("a"), cells_with(cell, text))) == (
        f"w.txt:4:{column_of(cell)}: error not-a-number {what}: found '{shown}', "
        f"expected {unit} as a whole number"
    )


@pytest.mark.parametrize("cell", NUMBERS)
@pytest.mark.parametrize("text", ["-1", "-0.5", "-9223372036854775809"])
def test_a_negative_number_is_an_error(cell: int, text: str) -> None:
    assert refused(text_of(cells_with(cell, text))) == (
        f"w.txt:3:{column_of(cell)}: error negative-value {NUMBERS[cell][0]}: found '{text}', "
        "expected 0 or more"
    )


@pytest.mark.parametrize("cell", NUMBERS)
@pytest.mark.parametrize("text", [str(INT64 + 1), "1e30", "9223372036854775807.5", "9" * 5000])
def test_a_number_beyond_63_bits_is_an_error(cell: int, text: str) -> None:
    shown = text if len(text) <= 40 else text[:37] + "..."
    assert refused(text_of(cells_with(cell, text))) == (
        f"w.txt:3:{column_of(cell)}: error value-too-large {NUMBERS[cell][0]}: found '{shown}', "
        f"expected at most {INT64}"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0),
        ("1.5", 2),
        ("2.5", 2),
        ("2.5000000000000000000001", 3),
        ("12.0", 12),
        ("1e3", 1000),
        ("1.25e1", 12),
        ("1.35E+1", 14),
        ("5e-1", 0),
        ("51e-2", 1),
        ("0.04", 0),
        ("0e9999", 0),
        ("9007199254740993.0", 9007199254740993),
        ("9223372036854775807.4", INT64),
    ],
)
def test_a_float_cell_is_rounded_half_to_even_without_loss(text: str, value: int) -> None:
    content = text_of(cells_with(2, text))
    assert read(content).fwd.compute_ns[0] == value
    assert findings(told(content)) == [f"w.txt:3:6: note float-value '{text}', {value}"]


def test_float_cells_are_told_once() -> None:
    content = text_of(cells_with(2, "1.5"), cells_with(11, "99.9"))
    assert findings(told(content)) == ["w.txt:3:6: note float-value '1.5', 2, 2"]


def test_signs_and_leading_zeros_are_harmless() -> None:
    content = text_of("r -1 +5 ALLREDUCE 007 -0 NONE 0 0 NONE 0 100")
    workload = read(content)
    assert (workload.fwd.compute_ns[0], workload.fwd.bytes[0], workload.ig.compute_ns[0]) == (5, 7, 0)
    assert workload.diagnostics == ()


def test_a_dependency_is_ignored_with_a_note() -> None:
    content = text_of(row("a"), cells_with(1, "0"), cells_with(1, "2"), cells_with(1, "-1.0"))
    assert findings(told(content)) == ["w.txt:4:3: note dependency '0', -1, 3"]
    assert len(read(content)) == 4


def test_a_dependency_that_is_no_number_is_an_error() -> None:
    assert refused(text_of(cells_with(1, "layer"))) == (
        "w.txt:3:3: error not-a-number dependency: found 'layer', expected a whole number"
    )


@pytest.mark.parametrize("token", ["BROADCAST", "ALLREDUCEALLTOALL", "ALLREDUCE_TP", "NONE_EP", "12"])
def test_an_unknown_collective_is_none(token: str) -> None:
    content = text_of(row("a", f"{token} 8"))
    workload = read(content)
    assert (workload.fwd.collective, workload.fwd.group, workload.fwd.bytes[0]) == ([None], [None], 0)
    assert findings(told(content)) == [f"w.txt:3:9: warning unknown-collective '{token}', {TYPES}, NONE"]


def test_an_unknown_collective_is_told_once_for_each_token() -> None:
    content = text_of(*[row("a", "BROADCAST 8", wg="broadcast 8")] * 300, row("b", ig="GATHER 1"))
    assert findings(told(content)) == [
        f"w.txt:3:9: warning unknown-collective 'BROADCAST', {TYPES}, NONE, 600",
        f"w.txt:303:19: warning unknown-collective 'GATHER', {TYPES}, NONE",
    ]


def test_many_unknown_collectives_do_not_flood() -> None:
    found = told(text_of(*[row("a", f"X{number} 8") for number in range(1000)]))
    assert len(found) == 21
    assert finding(found[-1]) == "w.txt:23:9: warning unknown-collective 980"


def test_many_errors_do_not_flood() -> None:
    lines = refused(text_of(*[cells_with(2, f"x{number}") for number in range(1000)])).splitlines()
    assert len(lines) == 21
    assert finding(lines[-1]) == "w.txt:23:6: error not-a-number 980"


def test_process_times_that_are_not_counted_are_told_once() -> None:
    content = text_of(row("a"), cells_with(11, "0"), cells_with(11, "10"), cells_with(11, "7"))
    assert list(read(content).process_ns) == [100, 0, 10, 7]
    assert findings(told(content)) == [f"w.txt:5:{column_of(11)}: note process-time 10 ns, astra-sim-1, 2"]


def test_names_and_collectives_are_shared_between_rows() -> None:
    workload = read(text_of(*[row("attention_row_with_a_long_name", "ALLREDUCE 8")] * 3))
    assert len({id(name) for name in workload.name}) == 1
    assert len({id(collective) for collective in workload.fwd.collective}) == 1


def test_reading_ends_at_ten_thousand_errors() -> None:
    rows = [f"a{number} -1 x{number} NONE 0 1 NONE 0 1 NONE 0 100" for number in range(30_000)]
    lines = refused(text_of(*rows)).split("\n")
    assert len(lines) == 21
    assert finding(lines[-1]) == "w.txt:23:8: error not-a-number 9980, 10000"
