"""The stored runs of ASTRA-sim 2.x with their execution traces, ../shared/golden/chakra/runs.tar.gz."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from tests.workload.texts import SHARED

RUNS = SHARED / "golden" / "chakra" / "runs.tar.gz"
# Beside the other files of a set, where it has many traces.
_INNER = "ets.tar.gz"


def unpack(place: Path, wanted: Callable[[str], bool]) -> None:
    """Write the files of each set whose name is wanted into a folder of that name below `place`."""
    for name, files in _sets().items():
        if wanted(name):
            (place / name).mkdir(exist_ok=True)
            for file, data in files.items():
                _write(place / name, file, data)


def _write(folder: Path, file: str, data: bytes) -> None:
    if file != _INNER:
        (folder / file).write_bytes(data)
        return
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for path, its_data in _files(archive):
            (folder / path.name).write_bytes(its_data)


@cache
def _sets() -> dict[str, dict[str, bytes]]:
    """Set -> file -> what is in it. To look for one set is to read all: they are kept."""
    sets: dict[str, dict[str, bytes]] = {}
    with tarfile.open(RUNS) as archive:
        for path, data in _files(archive):
            sets.setdefault(path.parts[0], {})[path.name] = data
    return sets


def _files(archive: tarfile.TarFile) -> Iterator[tuple[Path, bytes]]:
    for member in archive:
        stream = archive.extractfile(member) if member.isfile() else None
        if stream is not None:
            yield Path(member.name), stream.read()
