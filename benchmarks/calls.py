"""How many functions of ours a start of the timeline calls, and a key there.

Counted under `sys.setprofile`: functions that are called at least once, and the files that they stand in;
neither comprehensions nor the bodies of modules and classes. More than a figure it is a list to read: what a
key goes through is what has to be understood to change it.
Usage: python benchmarks/calls.py [--list] [--write]; --list prints the functions, --write puts the table into
benchmarks/README.md.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from simcore.parameters import RunInput

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import ROOT, SEED_002, Table, finished

OURS = (str(ROOT / "simcore"), str(ROOT / "tui"))
NOT_COUNTED = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>"})
SIZE = (120, 36)
START, KEY = "start to the first frame of the timeline", "a cursor key there"
# Functions and files at most.
BUDGETS = {START: (700, 90), KEY: (150, 25)}


@contextmanager
def counted() -> Iterator[set[CodeType]]:
    """The functions of ours that are called meanwhile, by any thread that was started meanwhile."""
    found: set[CodeType] = set()

    def look(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            found.add(frame.f_code)

    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(None)
        # A class body is no function: it has no fast locals.
        found -= {
            code
            for code in found
            if not code.co_filename.startswith(OURS)
            or code.co_name in NOT_COUNTED
            or not code.co_flags & inspect.CO_OPTIMIZED
        }


async def measured() -> tuple[set[CodeType], set[CodeType]]:
    """What the start calls, from opening the file, and what a cursor key of the timeline calls."""
    with counted() as start:
        from simcore.parameters import Parameters
        from simcore.runs import open_run
        from tui.app import WltuiApp
        from tui.commands.opened import open_input
        from tui.session import Session

        session = Session(open_run(RunInput(open_input(SEED_002), Parameters())))
        app = WltuiApp(session, first="timeline")
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause()
            sys.setprofile(None)
            with counted() as key:
                await pilot.press("l")
                await pilot.pause()
    return start, key


def main() -> int:
    """Print the table, and with --list what was called."""
    start, key = asyncio.run(measured())
    table = Table(f"functions of ours and the files they stand in, of seed 002 at {SIZE[0]}x{SIZE[1]}")
    for name, found in ((START, start), (KEY, key)):
        files = len({code.co_filename for code in found})
        table.add(f"{name:<42}{len(found):>5} in {files}")
        table.judge(f"functions, {name}", len(found), BUDGETS[name][0])
        table.judge(f"files, {name}", files, BUDGETS[name][1])
        if "--list" in sys.argv:
            here = len(str(ROOT)) + 1
            for code in sorted(found, key=lambda code: (code.co_filename, code.co_firstlineno)):
                print(f"{code.co_filename[here:]}:{code.co_firstlineno} {code.co_name}")
    return finished(__file__, table, sys.argv)


if __name__ == "__main__":
    raise SystemExit(main())
