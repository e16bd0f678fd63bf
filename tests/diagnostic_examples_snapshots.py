"""Examples of what is said of memory snapshots."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simcore.diagnostics import Diagnostic
from simcore.sources.checking import check_file_of
from simcore.sources.inputs import open_input
from tests.diagnostic_examples_measured import Example, relative
from tests.snapshots.made import random_run, snapshot


def changed(change: Callable[[dict[str, Any]], Any], most: int | None = None) -> Example:
    """What a check says of a snapshot that is changed. most: how many of its bytes are there."""

    def example(folder: Path) -> list[Diagnostic]:
        content = snapshot(random_run(3))
        change(content)
        path = folder / "snapshot.pickle"
        path.write_bytes(pickle.dumps(content)[:most])
        return relative(check_file_of(lambda: open_input(str(path))).diagnostics, folder)

    return example


_FAILURE = {"action": "oom", "device_free": 1 << 20, "size": 1 << 30, "stream": 0, "time_us": 1, "frames": []}
SNAPSHOTS: dict[str, Example] = {
    "out-of-memory": changed(lambda content: content["device_traces"][0].append(_FAILURE)),
    "bad-snapshot": changed(lambda content: None, 3000),
    "no-history": changed(lambda content: content.update(device_traces=[[]])),
    "unknown-action": changed(lambda content: content["device_traces"][0][5].update(action="user_defined")),
}
