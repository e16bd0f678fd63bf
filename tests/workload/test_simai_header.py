"""The header of a SimAI workload: keys of both ages, in any order, with or without colons."""

from __future__ import annotations

import pytest

from simcore.workload import Header
from tests.findings import finding, findings

from .texts import HEADER, POLICY, read, refused, row, text_of, told


def header_of(keys: str, rows: int = 1) -> Header:
    return read(text_of(*[row()] * rows, header=f"{POLICY} {keys}")).header


def note_of(keys: str, rows: int = 1) -> list[str]:
    return told(text_of(*[row()] * rows, header=f"{POLICY} {keys}"))


def error_of(keys: str) -> str:
    return refused(text_of(row(), header=f"{POLICY} {keys}"))


def test_all_keys_are_read_with_their_columns() -> None:
    header = header_of(
        "model_parallel_NPU_group: 8 ep: 4 pp: 4 vpp: 8 ga: 1 all_gpus: 128 checkpoints: 0 "
        "checkpoint_initiates: 0 pp_comm 50331648"
    )
    degrees = (header.tp, header.ep, header.pp, header.vpp, header.ga, header.all_gpus, header.pp_comm)
    assert degrees == (8, 4, 4, 8, 1, 128, 50331648)
    assert (header.checkpoints, header.checkpoint_initiates) == ((), ())
    start = len(POLICY) + 2
    assert header.column["model_parallel_NPU_group"] == header.column["tp"] == start
    assert header.column["ep"] == start + len("model_parallel_NPU_group: 8 ")
    assert header.column["pp_comm"] == start + len(
        "model_parallel_NPU_group: 8 ep: 4 pp: 4 vpp: 8 ga: 1 all_gpus: 128 checkpoints: 0 "
        "checkpoint_initiates: 0 "
    )


def test_missing_keys_are_none_and_have_no_column() -> None:
    header = read(text_of(row(), header=f"{POLICY}\tmodel_parallel_NPU_group: 4")).header
    assert header == Header(tp=4, column={"tp": len(POLICY) + 2, "model_parallel_NPU_group": len(POLICY) + 2})
    assert read(text_of(row(), header=POLICY)).header == Header()


def test_the_old_name_of_ep() -> None:
    header = header_of("expert_parallel_npu_group: 4")
    assert header.ep == 4
    assert header.column["ep"] == header.column["expert_parallel_npu_group"] == len(POLICY) + 2


@pytest.mark.parametrize(
    "keys", ["pp_comm: 5", "pp_comm 5", "pp_comm:5", "pp_comm : 5", "pp_comm :5", "pp_comm:\t5"]
)
def test_the_colon_may_stand_anywhere_or_be_missing(keys: str) -> None:
    assert header_of(keys).pp_comm == 5
    assert note_of(keys) == []


def test_key_and_value_without_a_blank() -> None:
    header = header_of("model_parallel_NPU_group:4 ep:2 checkpoints:1 0 pp:1")
    assert (header.tp, header.ep, header.checkpoints, header.pp) == (4, 2, (0,), 1)


def test_whole_floats_are_numbers_without_a_word() -> None:
    assert header_of("pp_comm: 2097152.0").pp_comm == 2097152
    assert header_of("pp_comm: 2e6").pp_comm == 2_000_000
    assert note_of("pp_comm: 2097152.0") == []


@pytest.mark.parametrize(("written", "value"), [("2.5", 2), ("3.5", 4), ("2.51", 3), (".5", 0)])
def test_other_floats_are_rounded_half_to_even(written: str, value: int) -> None:
    assert header_of(f"pp_comm: {written}").pp_comm == value
    column = len(POLICY) + 2 + len("pp_comm: ")
    assert findings(note_of(f"pp_comm: {written}")) == [
        f"w.txt:1:{column}: note float-value pp_comm, '{written}', {value}"
    ]


@pytest.mark.parametrize(("key", "field"), [("model_parallel_NPU_group", "tp"), ("ep", "ep"), ("pp", "pp")])
def test_a_degree_of_zero_is_one(key: str, field: str) -> None:
    assert getattr(header_of(f"{key}: 0"), field) == 1
    column = len(POLICY) + 2 + len(f"{key}: ")
    assert findings(note_of(f"{key}: 0")) == [f"w.txt:1:{column}: warning zero-degree {key}, '0', 1, 1"]


@pytest.mark.parametrize("key", ["vpp", "all_gpus"])
def test_other_zeros_without_a_meaning_are_not_given(key: str) -> None:
    assert getattr(header_of(f"{key}: 0"), key) is None
    column = len(POLICY) + 2 + len(f"{key}: ")
    assert findings(note_of(f"{key}: 0")) == [f"w.txt:1:{column}: warning zero-degree {key}, '0', 1"]


def test_no_micro_batches_and_a_free_transfer_are_kept() -> None:
    header = header_of("ga: 0 pp_comm: 0")
    assert (header.ga, header.pp_comm) == (0, 0)
    assert note_of("ga: 0 pp_comm: 0") == []


def test_unknown_keys_are_skipped_with_their_values() -> None:
    keys = "fold: 1 pp: 2 target_sha256: sha256:10e2 ep: 3 lone: ga: 4"
    header = header_of(keys)
    assert (header.pp, header.ep, header.ga) == (2, 3, 4)
    start = len(POLICY) + 2
    assert findings(note_of(keys)) == [
        f"w.txt:1:{start}: note unknown-key 'fold', '1'",
        f"w.txt:1:{start + 14}: note unknown-key 'target_sha256', 'sha256:10e2'",
        f"w.txt:1:{start + 47}: note unknown-key 'lone'",
    ]


def test_words_without_a_key_are_ignored() -> None:
    keys = "4 ep: 2 7 : pp: 2"
    header = header_of(keys)
    assert (header.ep, header.pp) == (2, 2)
    start = len(POLICY) + 2
    assert findings(note_of(keys)) == [
        f"w.txt:1:{start}: note stray-value '4'",
        f"w.txt:1:{start + 8}: note stray-value '7'",
        f"w.txt:1:{start + 10}: note stray-value ':'",
    ]


def test_of_a_repeated_key_the_last_counts() -> None:
    keys = "ep: 2 expert_parallel_npu_group: 4 ep: 8"
    header = header_of(keys)
    start = len(POLICY) + 2
    assert (header.ep, header.column["ep"]) == (8, start + 35)
    assert findings(note_of(keys)) == [
        f"w.txt:1:{start + 6}: warning repeated-key 'expert_parallel_npu_group'",
        f"w.txt:1:{start + 35}: warning repeated-key 'ep'",
    ]


@pytest.mark.parametrize(
    ("value", "column", "message"),
    [
        ("eight", 4, "not-a-number ep: found 'eight', expected a number"),
        ("nan", 4, "not-a-number ep: found 'nan', expected a number"),
        ("inf", 4, "not-a-number ep: found 'inf', expected a number"),
        ("1_0", 4, "not-a-number ep: found '1_0', expected a number"),
        ("٣", 4, "not-a-number ep: found '٣', expected a number"),
        ("", 0, "not-a-number ep: found nothing, expected a number"),
        ("-1", 4, "negative-value ep: found '-1', expected 0 or more"),
        ("-0.2", 4, "negative-value ep: found '-0.2', expected 0 or more"),
        (
            "9223372036854775808",
            4,
            "value-too-large ep: found '9223372036854775808', expected at most 9223372036854775807",
        ),
        ("1e300", 4, "value-too-large ep: found '1e300', expected at most 9223372036854775807"),
    ],
)
def test_what_is_no_number_of_the_header_is_an_error(value: str, column: int, message: str) -> None:
    place = len(POLICY) + 2 + column
    assert error_of(f"ep: {value}") == f"w.txt:1:{place}: error {message}"


def test_all_errors_are_told_at_once() -> None:
    start = len(POLICY) + 2
    text = text_of("a -1 x NONE 0 1 NONE 0 1 NONE 0 100", header=f"{POLICY} ep: a pp: b")
    assert findings(refused(text)) == [
        f"w.txt:1:{start + 4}: error not-a-number ep, 'a'",
        f"w.txt:1:{start + 10}: error not-a-number pp, 'b'",
        "w.txt:3:6: error not-a-number 'x'",
    ]


def test_checkpoint_lists_are_row_indices() -> None:
    header = header_of("checkpoints: 2 0 2 checkpoint_initiates: 1 1", rows=3)
    assert (header.checkpoints, header.checkpoint_initiates) == ((0, 2), (1,))


@pytest.mark.parametrize(
    ("keys", "column", "message"),
    [
        ("checkpoints: 2 1", 13, " 1, 2, 2"),
        ("checkpoints: 0 1", 13, " 1, 0, 0"),
        ("checkpoints: ep: 1", 0, ""),
    ],
)
def test_a_checkpoint_list_of_the_wrong_length_is_an_error(keys: str, column: int, message: str) -> None:
    place = len(POLICY) + 2 + column
    assert finding(error_of(keys)) == f"w.txt:1:{place}: error checkpoint-list{message}"


@pytest.mark.parametrize(
    ("keys", "column", "message"),
    [
        ("checkpoints: x", 13, "not-a-number checkpoints: found 'x', expected a number"),
        ("checkpoints: 1 x", 15, "not-a-number checkpoints: found 'x', expected a row index"),
        ("checkpoints: 1 -1", 15, "negative-value checkpoints: found '-1', expected 0 or more"),
    ],
)
def test_what_is_no_number_in_a_checkpoint_list_is_an_error(keys: str, column: int, message: str) -> None:
    assert error_of(keys) == f"w.txt:1:{len(POLICY) + 2 + column}: error {message}"


def test_a_checkpoint_beyond_the_rows_is_left_out() -> None:
    keys = "checkpoints: 2 0 3"
    assert header_of(keys, rows=3).checkpoints == (0,)
    assert findings(note_of(keys, rows=3)) == [
        f"w.txt:1:{len(POLICY) + 19}: warning checkpoint-range 3, 0, 2"
    ]


def test_a_header_may_go_on_in_further_lines_as_in_a_token_stream() -> None:
    text = f"{POLICY}\nep: 2\npp: x\n1\n{row()}\n"
    assert finding(refused(text)) == "w.txt:3:5: error not-a-number pp, 'x'"
    header = read(text.replace("x", "4")).header
    assert (header.ep, header.pp) == (2, 4)


def test_a_row_with_the_name_of_a_key_is_a_row() -> None:
    workload = read(f"{HEADER}\n{row('pp')}\n{row('ep:')}\n")
    assert workload.name == ["pp", "ep:"]
    assert workload.header.pp == 1


def test_many_unknown_keys_do_not_flood() -> None:
    found = note_of(" ".join(f"k{number}: {number}" for number in range(100)))
    assert len(found) == 21
    assert finding(found[-1]) == "w.txt:1:173: note unknown-key 80"
