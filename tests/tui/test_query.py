"""What can be typed to search and to filter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.timeline.query import KEYWORDS, Query, Word, parse_query


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("37", {"rank": 37}),
        ("rank 37", {"rank": 37}),
        ("rank37", {"rank": 37}),
        ("stage 5", {"stage": 5}),
        ("STAGE 5", {"stage": 5}),
        ("micro-batch 3", {"microbatch": 3}),
        ("micro batch 3", {"microbatch": 3}),
        ("microbatch 3", {"microbatch": 3}),
        ("mb 3", {"microbatch": 3}),
        ("mb3", {"microbatch": 3}),
        ("> 1 ms", {"least_ns": 10**6}),
        (">1ms", {"least_ns": 10**6}),
        (">= 2.5 us", {"least_ns": 2500}),
        ("< 1 s", {"most_ns": 10**9}),
        ("forward", {"words": (Word(("fwd",), "", "forward"),)}),
        ("input grad", {"words": (Word(("ig",), ""),)}),
        ("weight gradient", {"words": (Word(("wg",), ""),)}),
        ("tp", {"words": (Word(("tp",), "", "tp"),)}),
        ("all-reduce", {"words": (Word(("all-reduce",), "", "all-reduce"),)}),
        ("forw", {"words": (Word(("fwd",), "forw"),)}),
        ("mlp_row", {"words": (Word((), "mlp_row"),)}),
        ("", {}),
        ("   ", {}),
    ],
)
def test_what_is_typed_is_understood(text: str, expected: dict[str, object]) -> None:
    assert parse_query(text) == Query(text=text.strip(), **expected)  # type: ignore[arg-type]


def test_all_that_is_typed_has_to_hold() -> None:
    query = parse_query("stage 5 forward mb 3 > 1 ms 37")
    assert (query.stage, query.microbatch, query.least_ns, query.rank) == (5, 3, 10**6, 37)
    assert query.words == (Word(("fwd",), "", "forward"),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("stage", "a number behind stage is expected (stage 3), found nothing"),
        ("stage five", "a number behind stage is expected (stage 3), found five"),
        ("mb x", "a number behind mb is expected (mb 3), found x"),
        ("> 1", "a length with its unit is expected (> 1 ms), found 1"),
        ("> 1 h", "a length with its unit is expected (> 1 ms), found 1"),
        ("<", "a length with its unit is expected (< 1 ms), found nothing"),
        ("> nan ms", "a length with its unit is expected (> 1 ms), found nan"),
        ("rank \x1b[31m", "a number behind rank is expected (rank 3), found \\x1b[31m"),
    ],
)
def test_what_cannot_be_understood_is_said(text: str, problem: str) -> None:
    assert parse_query(text).problem == problem


def test_a_word_of_two_letters_is_a_part_of_a_name_alone() -> None:
    assert parse_query("fo").words == (Word((), "fo"),)


def test_lanes_and_spans_are_told_apart() -> None:
    assert parse_query("37").of_lanes
    assert not parse_query("37").of_spans
    assert parse_query("wait").of_spans
    assert not parse_query("wait").of_lanes
    assert parse_query("> 1 s").of_spans
    assert parse_query(" ").is_empty


@given(st.text(max_size=60))
def test_any_text_gives_a_query_or_a_problem(text: str) -> None:
    query = parse_query(text)
    assert query.is_empty or not query.problem


@given(st.lists(st.sampled_from([*KEYWORDS, "mlp", "37", "stage 2", "mb 1", "> 3 us"]), max_size=6))
def test_every_part_of_a_query_is_kept(parts: list[str]) -> None:
    query = parse_query(" ".join(parts))
    assert not query.problem
    kept = bool(query.words), query.rank, query.stage, query.microbatch, query.least_ns
    assert kept == (
        any(part in KEYWORDS or part == "mlp" for part in parts),
        37 if "37" in parts else None,
        2 if "stage 2" in parts else None,
        1 if "mb 1" in parts else None,
        3000 if "> 3 us" in parts else None,
    )
