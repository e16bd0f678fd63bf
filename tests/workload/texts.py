"""Small workload texts: a header, rows, and how a test reads them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from simcore.diagnostics import InputError
from simcore.workload import Workload
from simcore.workload.opening import read_source
from simcore.workload.source import Source

REPOSITORY = Path(__file__).parents[2]
SHARED = REPOSITORY.parent / "shared"
FIXTURES = REPOSITORY / "fixtures"

POLICY = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
HEADER = f"{POLICY} model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 8"
NOTHING = "NONE 0"


def row(name: str = "attention_row", fwd: str = NOTHING, ig: str = NOTHING, wg: str = NOTHING) -> str:
    """A row with compute times 10, 20, 30 ns and the collectives given as `TYPE SIZE`."""
    return f"{name} -1 10 {fwd} 20 {ig} 30 {wg} 100"


def text_of(*rows: str, header: str = HEADER, count: int | str | None = None) -> str:
    """A workload text; the count is the number of rows if it is not given."""
    return "\n".join([header, str(len(rows) if count is None else count), *rows]) + "\n"


def read(text: str | bytes, path: str = "w.txt") -> Workload:
    """The workload in a text, read as the program reads standard input."""
    data = text if isinstance(text, bytes) else text.encode()
    return read_source(path, Source(path, BytesIO(data).read))


def told(text: str | bytes) -> list[str]:
    """The diagnostics of a text, as the user sees them."""
    return [one.text() for one in read(text).diagnostics]


def refused(text: str | bytes) -> str:
    """The message of the error that reading ends with."""
    with pytest.raises(InputError) as caught:
        read(text)
    return str(caught.value)


def shared_folder(name: str) -> Path:
    """A folder of the shared corpus; the test is skipped by the folder's name when it is not there."""
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return folder
