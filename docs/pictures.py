"""The pictures of the README and the guide, made by the program itself: `make pictures`.

Each is `wltui ... --snapshot KEYS --svg`, so a picture shows what the keys show, and can be made again.
"""

from __future__ import annotations

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


def main() -> None:
    """Make all pictures."""
    for name in PICTURES:
        (HERE / "pictures" / f"{name}.svg").write_text(picture(name), encoding="utf-8")


if __name__ == "__main__":
    main()
