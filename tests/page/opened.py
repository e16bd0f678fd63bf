"""A page as a test reads it: its data unpacked here, its tables as cells."""

from __future__ import annotations

import base64
import json
import os
import re
import zlib
from html.parser import HTMLParser
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from simcore.parameters import Parameters
from simcore.render.export import FORMATS, Request
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.run import Run
from simcore.workload import open_workload

ROOT = Path(__file__).resolve().parents[2]
PAGES = next(one for one in FORMATS if one.name == "html")


def seed(number: str, **changed: Any) -> SimulatedRun:
    """The run of a fixture by the number its name begins with."""
    path = next((ROOT / "fixtures").glob(f"{number}_*"))
    return SimulatedRun(simulate(open_workload(str(path)), Parameters(**changed)))


def page_of(run: Run, against: Run | None = None) -> str:
    """The text of a run's page."""
    request = Request(run.setup.source, run.parameters, run=run, against=against)
    return b"".join(PAGES.build_export(request).chunks).decode()


def whole_page(folders: pytest.TempPathFactory) -> str:
    """That of seed 002, which takes ten seconds to make: once for all tests of a run, in whatever process."""
    folder = folders.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    path = folder / "page-of-seed-002.html"
    if not path.exists():
        made = folder / f"{path.name}.{os.getpid()}"
        made.write_text(page_of(seed("002")), encoding="utf-8")
        made.replace(path)
    return path.read_text("utf-8")


def packed_of(page: str) -> str:
    """The data of a page as they stand in it."""
    packed = re.search(r'id="data">([A-Za-z0-9+/=]+)<', page)
    assert packed is not None
    return packed[1]


def data_of(page: str) -> dict[str, Any]:
    """What the script of a page unpacks, with times summed up."""
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed_of(page))))
    for run in found["runs"]:
        for track in run["tracks"]:
            for lane in (track["lane"], *track["streams"]):
                for name in ("start", "to_start"):
                    lane[name] = list(accumulate(lane[name]))
    return found


class _Tables(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.section = ""
        self.sections: dict[str, list[list[list[str]]]] = {}
        self.text: dict[str, str] = {}
        self.tags: set[str] = set()
        self._cell: list[str] | None = None
        self._skipped = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "section":
            self.section = dict(attrs).get("id") or ""
        elif tag == "table":
            self.sections.setdefault(self.section, []).append([])
        elif tag == "tr":
            self.sections[self.section][-1].append([])
        elif tag in ("td", "th"):
            self._cell = []
        self._skipped = tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)
        if not self._skipped:
            self.text[self.section] = self.text.get(self.section, "") + data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None:
            self.sections[self.section][-1][-1].append("".join(self._cell))
            self._cell = None
        self._skipped = False


def tables_of(page: str) -> dict[str, list[list[list[str]]]]:
    """The tables of each section as rows of cells, the heading first."""
    parser = _Tables()
    parser.feed(page)
    return parser.sections


def text_of(page: str) -> dict[str, str]:
    """The text of each section, without what is no text."""
    parser = _Tables()
    parser.feed(page)
    return parser.text
