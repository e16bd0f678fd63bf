"""The gallery: pages that `wltui export --format html` makes, and pictures of them: `make gallery`.

The five fixtures, two runs on one axis, a set of profiler traces (of a simulated step, written by
`--per-rank` in the form of PyTorch's profiler), and a sweep. The pictures are made by a headless Chromium;
without one the pages are made all the same, and it is said. Git keeps the pictures alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FOLDER = HERE / "gallery"
_SIZE = "1200,900"
_BROWSER_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--virtual-time-budget=4000", f"--window-size={_SIZE}",
)  # fmt: skip


class Page(NamedTuple):
    """name: of its file. words: what it shows. made_of: the words of `wltui export` but format and output.
    before: commands whose output it needs.
    """

    name: str
    words: str
    made_of: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()


PAGES = (
    Page("gpt13b", "GPT-13B by SimAI, layer by layer", ("fixtures/000_gpt13b_tp4_old_header.txt",)),
    Page("mistakes", "a file with mistakes, and what was made of them",
         ("fixtures/001_moe_128npu_with_mistakes.txt",)),
    Page("gpt-1024", "1,024 ranks, 16 stages: the bundled example", ("fixtures/002_gpt_1024npu.txt",)),
    Page("op-table", "GPT-2 by a table of ops", ("fixtures/003_gpt2_large_op_table.txt",)),
    Page("megatron-rank", "one rank of a Megatron job, as it was measured",
         ("fixtures/004_megatron_rank7_trace.txt",)),
    Page("compared", "two schedules on one axis",
         ("fixtures/000_gpt13b_tp4_old_header.txt", "--with",
          "--schedule 1f1b --overlap-grad-reduce")),
    Page("profiles", "a set of profiler traces, each rank a file", ("profiles",),
         (("export", "fixtures/001_moe_128npu_with_mistakes.txt", "--format", "chrome", "--per-rank",
           "--ranks", "0,8,16,24", "-o", "profiles"),)),
    Page("sweep", "96 layouts of Llama 3 8B on 64 GPUs, and the few worth running", ("results.jsonl",),
         (("sweep", "--model", "llama-3-8b", "--world", "64", "--gpu", "h100", "--microbatches", "32",
           "--vary", "tp=1,2,4,8", "--vary", "pp=1,2,4", "--vary", "microbatch-size=1,2",
           "--vary", "schedule=1f1b,zb-h1", "--vary", "recompute=none,full", "-o", "results.jsonl"),)),
)  # fmt: skip


def _wltui(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "tui", *words], cwd=folder, check=True, capture_output=True,
                   env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTHONUTF8": "1"})  # fmt: skip


def make(page: Page, folder: Path) -> Path:
    """Makes a page anew. folder: where what it needs is written."""
    for words in page.before:
        _wltui(folder, *words)
    out = FOLDER / f"{page.name}.html"
    _wltui(folder, "export", *page.made_of, "--format", "html", "-o", str(out), "--force")
    return out


def photograph(page: Path, browser: str) -> Path:
    """A picture of the top of a page, as a browser shows it."""
    out = page.with_suffix(".png")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run([browser, *_BROWSER_FLAGS, f"--user-data-dir={profile}", f"--screenshot={out}",
                        page.as_uri()], check=True, capture_output=True, timeout=120)  # fmt: skip
    return out


def index() -> str:
    """The page that lists them."""
    what = (
        "The tops of pages that `wltui export --format html` makes, for any browser. `make gallery` makes "
        "the pages themselves, in this folder."
    )
    lines = ["# Gallery", "", what, ""]
    for page in PAGES:
        lines += [f"## {page.words}", "", f"`{page.name}.html`", "", f"![{page.words}]({page.name}.png)", ""]
    return "\n".join(lines)


def main() -> int:
    """Makes all pages and pictures."""
    FOLDER.mkdir(exist_ok=True)
    browser = shutil.which("chromium")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # So that a page says which file of the checkout it is of.
        (folder / "fixtures").symlink_to(ROOT / "fixtures")
        for page in PAGES:
            made = make(page, folder)
            size = f"{made.stat().st_size / 1000:.0f} kB"
            if browser is not None:
                size += f", picture {photograph(made, browser).stat().st_size / 1000:.0f} kB"
            print(f"{made.relative_to(ROOT)}: {size}")
    if browser is None:
        print("no chromium: the pictures are as they were", file=sys.stderr)
    (FOLDER / "README.md").write_text(index(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
