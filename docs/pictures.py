"""The pictures of the README and the pages, made by the program itself: `make pictures`.

Each is `wltui ... --snapshot KEYS --svg`, so a picture shows what the keys show, and can be made again.
Those of schedules are text: what stands behind `    $ wltui schedule ...` in their page is what that prints.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SEED = "fixtures/002_gpt_1024npu.txt"
# Name -> the words behind `wltui`, the keys.
PICTURES = {
    "summary": ([SEED], ""),
    "timeline": ([SEED, "--screen", "timeline"], "jjjjj Space j"),
    "zoomed": ([SEED, "--screen", "timeline"], "jjjjj Space j wwwwwwwww"),
    "why": ([SEED, "--screen", "why"], ""),
    "parameters": ([SEED, "--screen", "parameters"], "Tab Tab jjjjj shift+Right"),
    "compare": ([SEED], "t 6"),
}


def picture(name: str) -> str:
    """A picture as SVG."""
    words, keys = PICTURES[name]
    command = [sys.executable, "-m", "tui", *words, "--snapshot", keys, "--svg", "--size", "120x36"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, encoding="utf-8")
    return done.stdout


def with_schedules(page: str) -> str:
    """The page of schedules with the text of each `$ wltui schedule` behind it, 80 columns wide."""
    block = r"^    \$ wltui schedule (.*)\n(?:    .*\n|\n(?=    [^$]))*"
    return re.sub(block, _drawn, page, flags=re.MULTILINE)


def _drawn(match: re.Match[str]) -> str:
    from tui.commands import schedule

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        # Four columns are the indent of the page.
        schedule.main([*shlex.split(match[1]), "--width", "80"])
    lines = [f"    {line}".rstrip() for line in printed.getvalue().splitlines()]
    return "\n".join([f"    $ wltui schedule {match[1]}", *lines]) + "\n"


def main() -> None:
    """Make all pictures."""
    page = HERE / "schedules.md"
    page.write_text(with_schedules(page.read_text(encoding="utf-8")), encoding="utf-8")
    for name in PICTURES:
        (HERE / "pictures" / f"{name}.svg").write_text(picture(name), encoding="utf-8")


if __name__ == "__main__":
    main()
