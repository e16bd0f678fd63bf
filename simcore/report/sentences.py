"""The sentences of a run as lines of text."""

from __future__ import annotations

import textwrap

from simcore.analysis import Results

_WIDTH = 110


def sentence_lines(results: Results, width: int = _WIDTH) -> list[str]:
    """`In words` and the sentences, wrapped, with an empty line behind them; nothing where none is said."""
    found = results.sentences
    if not found:
        return []
    lines = ["In words"]
    for number, sentence in enumerate(found):
        lead = "" if number else sentence.lead
        lines += textwrap.wrap(
            lead + sentence.text,
            width,
            initial_indent="  ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return [*lines, ""]
