"""The sentences of a run as lines of text."""

from __future__ import annotations

import textwrap

from simcore.analysis import Results
from simcore.analysis.sentences import told

_WIDTH = 110


def sentence_lines(results: Results, width: int = _WIDTH) -> list[str]:
    """`In words` and the sentences, wrapped, with an empty line behind them; nothing where none is said."""
    found = results.sentences
    if not found:
        return []
    lines = ["In words"]
    for sentence in told(found):
        lines += textwrap.wrap(
            sentence,
            width,
            initial_indent="  ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return [*lines, ""]
