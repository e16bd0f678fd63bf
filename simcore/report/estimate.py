"""SimAI's estimate line by line beside the step, as a table of text."""

from __future__ import annotations

import textwrap

from simcore.analysis import Results
from simcore.analysis.simai_beside import beside_estimate
from simcore.units import duration

_WIDTH = 110


def estimate_lines(results: Results) -> list[str]:
    """A line of figures for each line of SimAI's summary, with the sentence that explains it."""
    number, lines = beside_estimate(results)
    ranks = results.simulation.timeline.classes[number].ranks.text()
    found = [f"  line        SimAI        here, on rank{'s' if '-' in ranks or ',' in ranks else ''} {ranks}"]
    for one in lines:
        simai = "-" if one.simai_us is None else duration(round(one.simai_us * 1000))
        head = f"  {one.line:<8}{simai:>12}{duration(one.ours_ns):>12}   "
        found += textwrap.wrap(
            head + one.text,
            _WIDTH,
            subsequent_indent=" " * len(head),
            drop_whitespace=True,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return found
