"""Of a diagnostic its place, code, figures and names are kept, and no word of its prose."""

from __future__ import annotations

import errno
import os

import pytest

from tests.findings import facts, finding

CASES = [
    ("the row 'b': found 4 cells, expected 12; read as NONE", "'b', 4, 12, NONE"),
    ("a rank's share, 2 048 B, of the devices' time, 32 times", "2 048 B, 32"),
    ("--schedule 1f1b --stage-layout megatron: stage 0", "--schedule 1f1b, --stage-layout megatron, 0"),
    ("--algorithm 0=ring: dimension 1 has none; --tp or --pp gives it", "--algorithm 0=ring, 1, --tp, --pp"),
    ("mlp_row of h100-8 (tp) needs TP.allreduce, aten::mm", "mlp_row, h100-8, tp, TP.allreduce, aten::mm"),
    ("the step would be 7.700 ms (-7.6 %), which /tmp/a/w.txt says", "7.700 ms, -7.6 %, /tmp/a/w.txt"),
    (f"the file cannot be read: {os.strerror(errno.EACCES)}", os.strerror(errno.EACCES)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kept"), CASES)
def test_figures_and_names_are_kept_and_no_prose(text: str, kept: str) -> None:
    assert facts(text) == kept


def test_a_finding_begins_with_its_place_and_code() -> None:
    said = "forward compute time: found 'x', expected a whole number"
    assert finding(f"w.txt:3:6: error not-a-number {said}\n") == "w.txt:3:6: error not-a-number 'x'"
    assert finding(f"note not-a-number {said}") == "note not-a-number 'x'"
    assert finding("f: error no-such-file there is none") == "f: error no-such-file"
    with pytest.raises(AssertionError):
        finding("w.txt is not there")
