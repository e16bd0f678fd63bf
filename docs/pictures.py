"""The pictures of the README and the pages, made by the program itself: `make pictures`.

Each is `wltui ... --snapshot KEYS --svg`, so a picture shows what the keys show, and can be made again.
Those of schedules are text: what stands behind `    $ wltui schedule ...` in their page is what that prints.
The life of one row, in the page on the architecture, is text too, with the figures of the example.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
import textwrap
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


def words_of(name: str) -> list[str]:
    """The words behind `wltui` that print a picture as SVG."""
    words, keys = PICTURES[name]
    return [*words, "--snapshot", keys, "--svg", "--size", "120x36"]


def picture(name: str) -> str:
    """A picture as SVG."""
    command = [sys.executable, "-m", "tui", *words_of(name)]
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


# A row of the example whose forward has a collective.
_ROW = "attention_row"
_BEGIN, _END = "<!-- made by python docs/pictures.py -->\n", "<!-- end -->\n"


def with_row(page: str) -> str:
    """The page with the life of one row between its marks."""
    head, _, rest = page.partition(_BEGIN)
    return head + _BEGIN + life_of_a_row() + _END + rest.partition(_END)[2]


def life_of_a_row() -> str:
    """What becomes of a row of the example, from its text to a cell of the screen."""
    from simcore.analysis.span_words import explain_duration
    from simcore.parameters import Parameters
    from simcore.program.ops import STREAMS, CollectiveCost
    from simcore.runs.simulated import SimulatedRun
    from simcore.simulation import simulate
    from simcore.sources.inputs import open_input, require_workload
    from simcore.sources.simulated import ACCOUNTS
    from simcore.units import duration, plural
    from tui.frame import BLOCKS, text_of
    from tui.timeline.drawing import draw_lane
    from tui.timeline.lanes import LaneSource
    from tui.timeline.window import Window

    workload = require_workload(open_input(str(ROOT / SEED)), "the life of a row:")
    simulation = simulate(workload, Parameters())
    results = SimulatedRun(simulation)
    row = workload.name.index(_ROW)
    text = (ROOT / SEED).read_text(encoding="utf-8").splitlines()[workload.line[row] - 1]
    timeline, accounts = simulation.timeline, results.accounts[0]
    ops, start, end = timeline.columns(0)
    op = next(op for op in range(len(ops)) if ops.row[op] == row and STREAMS[ops.stream[op]] == "tp")
    cost = simulation.program.costs[ops.cost[op]]
    assert isinstance(cost, CollectiveCost)
    at = accounts.at(start[op])
    source = LaneSource(results)
    window = Window(start[op] - 2 * 10**6, 9 * 10**6, timeline.step_time_ns)
    lane = text_of([draw_lane(source.lane(0), window, 60, BLOCKS, False).line])
    ranks = timeline.ranks_of(0).text()
    lines = [
        f"text      line {workload.line[row]} of {SEED}: {' '.join(text.split())}",
        f"cell      forward: {workload.fwd.compute_ns[row]} ns, then {cost.collective} of {cost.bytes} B",
        f"op        {op} of the {len(ops)} of stage 0: stream {STREAMS[ops.stream[op]]}, micro-batch "
        f"{ops.microbatch[op]}; compute waits for it",
        f"price     {end[op] - start[op]} ns: {' '.join(explain_duration(simulation, 0, op).split())}",
        f"span      of {plural(len(timeline.classes), 'class')} that of ranks {ranks}: "
        f"{start[op]} .. {end[op]} ns",
        f"account   {ACCOUNTS[accounts.account[at]]}, {duration(accounts.edge[at + 1] - accounts.edge[at])}",
        f"cells     {lane.rstrip()}, {duration(window.span_ns // 60)} each",
    ]
    wrapped = [textwrap.wrap(line, 105, subsequent_indent=" " * 10) for line in lines]
    return "".join(f"    {part}\n" for parts in wrapped for part in parts)


def main() -> None:
    """Make all pictures."""
    for name, made in (("schedules", with_schedules), ("architecture", with_row)):
        page = HERE / f"{name}.md"
        page.write_text(made(page.read_text(encoding="utf-8")), encoding="utf-8")
    for name in PICTURES:
        (HERE / "pictures" / f"{name}.svg").write_text(picture(name), encoding="utf-8")


if __name__ == "__main__":
    main()
