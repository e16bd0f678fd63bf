"""Running `wltui` as a user does: a process of its own, with pipes where a terminal would be."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from tui.cli import main

ROOT = Path(__file__).resolve().parents[2]
SEED_002 = "fixtures/002_gpt_1024npu.txt"
# A quarter of the processor time of 002 for what any file shows; its screens a fifth.
SEED_001 = "fixtures/001_moe_128npu_with_mistakes.txt"
# Reports of these take some hundredths of a second: a workload, an operation table, and a trace.
OLD_HEADER = "fixtures/000_gpt13b_tp4_old_header.txt"
TABLE = "fixtures/003_gpt2_large_op_table.txt"
TRACE = "fixtures/004_megatron_rank7_trace.txt"
HEADER = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4"

# No keymap of who runs the tests is read.
_NO_KEYMAP = {"XDG_CONFIG_HOME": "/nonexistent"}

Done = subprocess.CompletedProcess[str]


def environment(**more: str) -> dict[str, str]:
    """As in a terminal: what is printed is kept back until it fills a buffer."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return plain | {"PYTHONUTF8": "1"} | _NO_KEYMAP | more


def process(words: list[str], env: dict[str, str] | None = None, **keywords: Any) -> Done:
    """Run a command in the checkout; stdout and stderr are caught unless `stdout` says where it goes."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | keywords
    env = environment() if env is None else env
    return subprocess.run(words, cwd=ROOT, env=env, encoding="utf-8", timeout=60, check=False, **pipes)


def wltui(*words: str, **more: str) -> Done:
    """Run `wltui` with these words and, besides its own, these environment variables."""
    return process([sys.executable, "-m", "tui", *words], environment(**more))


def wltui_here(*words: str, encoding: str = "utf-8", **more: str) -> Done:
    """What `wltui` prints with these words and environment variables, from this process: a process each takes
    0.1 to 0.4 s longer. A traceback is an exception here. encoding: of what is printed.
    """
    out, err = io.TextIOWrapper(io.BytesIO(), encoding=encoding), io.StringIO()
    with (
        mock.patch.dict(os.environ, _NO_KEYMAP | more),
        # A sweep makes its process nice, which this one would stay.
        mock.patch.object(os, "nice", return_value=0),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        status = main(list(words))
        out.flush()
    return Done(words, status, out.buffer.getvalue().decode(encoding), err.getvalue())  # type: ignore[attr-defined]


def wltui_into(stdout: int, *words: str) -> Done:
    """Run `wltui` with these words; it writes to an open file."""
    return process([sys.executable, "-m", "tui", *words], stdout=stdout)


def shell(words: str) -> Done:
    """Run a line of bash in which WLTUI stands for `wltui`; any part that fails sets the status."""
    return process(["bash", "-c", "set -o pipefail; " + words.replace("WLTUI", f"{sys.executable} -m tui")])


def workload_file(folder: Path, *rows: str) -> str:
    """A file of rows with two NPUs a TP group; cells are given with blanks between them."""
    path = folder / "made.txt"
    lines = [HEADER, str(len(rows)), *("\t".join(row.split()) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)
