"""The files of benchmarks/reading.py, half a hundredth as large: each is answered, and soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks.reading import inputs
from simcore.sources.checking import check_file_of
from simcore.sources.inputs import open_input

SHARE = 0.005
SECONDS = 1.0  # of this process; 20 s is the limit for the whole size
INPUTS = list(inputs(SHARE))


@pytest.mark.slow
@pytest.mark.parametrize("content", [content for _, content in INPUTS], ids=[name for name, _ in INPUTS])
def test_a_large_file_is_answered_soon(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    begin = time.process_time()
    checked = check_file_of(lambda: open_input(str(path)))
    assert time.process_time() - begin < SECONDS
    assert checked.opened is not None or checked.errors
