"""The page on the architecture: its figures are the program's, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

from docs.pictures import with_row

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
# Where a path of the page may begin.
FROM = ("", "simcore", "tui", "simcore/report")


def test_the_life_of_a_row_is_what_the_program_makes_of_it() -> None:
    assert with_row(PAGE) == PAGE, "make pictures"


def test_each_file_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`([\w/.]+(?:\.(?:py|md|toml)|/))`", PAGE))
    # Of each kind of run, of each screen.
    named -= {name for name in named if "/" not in name and len(list(ROOT.rglob(name))) > 1}
    assert len(named) > 40
    missing = {name for name in named if not any((ROOT / first / name).exists() for first in FROM)}
    assert missing == set()
