"""What stands in the panels of the summary: lines of so many cells. The step time stands in large digits, the
one figure that is read from across the room.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.diagnostics import Diagnostic
from simcore.trace.figures import throughput_words
from simcore.trace.run import mean_busy_ns
from simcore.units import change_percent, duration, keep_units_unbroken, signed_duration, whole_percent
from tui.change_words import UNKNOWN, name_and_share
from tui.frame import Glyphs, Line, cells, rows_around, shorter_sentences
from tui.notes.listing import ROLES, WEIGHT_CELLS, describe_weights, weight_word
from tui.panels import MATTERS, WHAT_IF, lists_and_meaning
from tui.summary.model import SummaryModel

if TYPE_CHECKING:
    from simcore.cluster import Dimension
    from simcore.trace.findings import WhatIf
    from simcore.trace.run import Run


_DIGITS = {
    "0": ("█▀█", "█ █", "▀▀▀"), "1": ("▄█ ", " █ ", "▀▀▀"), "2": ("▀▀█", "█▀▀", "▀▀▀"),
    "3": ("▀▀█", "▀▀█", "▀▀▀"), "4": ("█ █", "▀▀█", "  ▀"), "5": ("█▀▀", "▀▀█", "▀▀▀"),
    "6": ("█▀▀", "█▀█", "▀▀▀"), "7": ("▀▀█", "  █", "  ▀"), "8": ("█▀█", "█▀█", "▀▀▀"),
    "9": ("█▀█", "▀▀█", "▀▀▀"), ".": (" ", " ", "▀"), "-": ("   ", "▀▀▀", "   "),
}  # fmt: skip


def large_digits(words: str) -> list[str]:
    """Three rows of cells for a figure with its unit: `14.774 s`. The unit stands in plain letters."""
    figure, _, unit = words.rpartition(" ")
    rows = [" ".join(_DIGITS[char][row] for char in figure) for row in range(3)]
    return [rows[0], rows[1], f"{rows[2]} {unit}"]


def step_lines(
    results: Run, glyphs: Glyphs, width: int, height: int, costs: Sequence[str] = ()
) -> list[Line]:
    """The step time, large, and what there is to say of it, as much as there is room for. costs: what a
    change needs more of memory, as `more_memory` has it.
    """
    figure, facts = figure_lines(duration(results.step_time_ns), glyphs), step_facts(results, width)
    cost = next((words for words in costs if len(words) + 3 <= width), "")
    facts += [[(f"   {cost}", "warn")]] if cost else []
    if len(figure) + len(facts) > height:
        # What a micro-batch takes stands in the row on top, too; memory does not.
        facts = [facts[0], *facts[2:]]
    if len(figure) + len(facts) > height and cost:
        # How much of it is computed stands in the bars.
        facts = facts[1:]
    if results.model.memory_unknown and len(figure) + len(facts) < height:
        why = results.model.memory_unknown
        short = why[why.index("no ") :]
        words = (f"memory not known: {why}", f"memory not known: {short}", f"memory: {short}")
        facts.append([(f"  {next((text for text in words if len(text) <= width - 2), words[-1])}", "dim")])
    published = results.model.model_figures.trust if results.model.model_figures is not None else None
    if published is not None:
        # The last one: it goes where there is no row left.
        forms = published.short_words
        facts.append([(f"  {next((text for text in forms if len(text) <= width - 2), forms[-1])}", "dim")])
    return [*figure, *facts][:height]


def step_facts(results: Run, width: int) -> list[Line]:
    """How much of the step a rank computes; of a replay what was measured, else what a micro-batch takes; and
    memory.
    """
    step, compute = results.step_time_ns, mean_busy_ns(results)
    share = f" = {whole_percent(compute, step)} % of it" if step else ""
    if len(results.tracks) > 1:
        long, short = f"a rank computes {duration(compute)} on average", f"mean compute {duration(compute)}"
    else:
        long = short = f"each rank computes {duration(compute)}"
    forms = (f"{long}{share}", f"{short}{share}", f"{short}{share.removesuffix(' of it')}")
    facts: list[Line] = [[(f"  {next((form for form in forms if len(form) <= width - 2), forms[-1])}", "")]]
    count = results.shape.microbatches
    if results.recording is not None and results.recording.is_replayed:
        measured = results.recording.measured_step_ns
        share = change_percent(measured, step)
        change_text = f"replayed {signed_duration(step - measured)}{' = ' if share else ''}{share}"
        words = (
            f"measured {duration(measured)}, {change_text}",
            change_text,
            f"replayed {share}" if share else change_text,
        )
        facts.append([(f"  {next((text for text in words if len(text) <= width - 2), words[-1])}", "")])
    elif count:
        full_text = throughput_words(results.shape)
        short = full_text.partition(", ")[0]
        facts.append([(f"  {full_text if len(full_text) <= width - 2 else short}", "")])
    memory = fullest_stage_text(results, width - 2)
    return [*facts, *([[(f"  {memory}", "")]] if memory else [])]


def fullest_stage_text(results: Run, room: int) -> str:
    """What the fullest stage needs, of what its GPU has where that is known; "" where nobody knows.

    room: cells; without them which stage it is goes before that it does not fit.
    """
    figures = results.model.model_figures
    if figures is not None:
        # Imported here, as in headlines: traces have none.
        from simcore.analysis.model_figures import format_memory, format_memory_short

        words = f"memory {format_memory(figures)}"
        return words if len(words) <= room else f"memory {format_memory_short(figures)}"
    fullest = max(results.model.file_memory, key=lambda memory: memory.total, default=None)
    if fullest is None:
        return ""
    words = f"{fullest.total / 1e9:.1f} GB"
    if fullest.activations is None:
        # What schedules differ in is not in it.
        return f"memory at least {words}, activations not known"
    # The activations are those of layers that are not recomputed, which no row tells.
    return f"memory about {words} on stage {fullest.stage}"


def figure_lines(words: str, glyphs: Glyphs) -> list[Line]:
    """A figure with its unit in three rows: large, in plain letters where there is ASCII alone."""
    if glyphs.corners[0] == "+":
        return [[], [(f"  {words}", "bright")], []]
    return [[(f"  {row}", "bright")] for row in large_digits(words)]


def note_lines(
    diagnostics: Sequence[Diagnostic], row: int, width: int, rows: int, focused: bool
) -> list[Line]:
    """The notes around the cursor, each behind what it is: a line each, in brief where its words have no room
    in it, and more of their words where rows are left over.
    """
    lines: list[Line] = []
    room = max(width - WEIGHT_CELLS - 2, 10)
    spare_rows = rows - len(diagnostics)
    for index in rows_around(row, len(diagnostics), rows):
        diagnostic, is_at_cursor = diagnostics[index], focused and index == row
        weight = diagnostic.weight
        # Of what was assumed the place is where something is missing.
        is_placed = diagnostic.line is not None and weight != "assumption"
        location = f"line {diagnostic.line}: " if is_placed else ""
        full_text = f"{location}{cells(diagnostic.message, 2000)}"
        words = textwrap.wrap(full_text, room, break_on_hyphens=False)
        if len(words) > max(spare_rows + 1, 1):
            if diagnostic.brief:
                brief = cells(diagnostic.brief, 200)
                # What is at stake stands at its end: it goes rather than that it is cut.
                words = textwrap.wrap(brief, room, break_on_hyphens=False)
                if len(words) > max(spare_rows + 1, 1):
                    brief = brief.rpartition("; ")[0] or brief
                    words = [cells(brief, room)]
                if len(location) + len(brief) <= room:
                    words = [f"{location}{brief}"]
            else:
                # What is left over of the last line ends with dots.
                most = max(spare_rows + 1, 1)
                words = textwrap.wrap(
                    full_text, room, break_on_hyphens=False, max_lines=most, placeholder="..."
                )
        spare_rows -= len(words) - 1
        for line_index, text in enumerate(words):
            head = (
                " " * (WEIGHT_CELLS + 1)
                if line_index
                else f"{'>' if is_at_cursor else ' '}{weight_word(diagnostic)}"
            )
            lines.append(
                [
                    (head, "accent" if is_at_cursor else ROLES[weight]),
                    (text, "accent" if is_at_cursor else ""),
                ]
            )
    return lines or [[(" none", "dim")]]


# From this share of the step on what hangs on an assumption stands in a title that has no row for it.
_DECIDES = 0.05


def assumption_title(diagnostics: Sequence[Diagnostic], visible_count: int, width: int) -> str:
    """`Notes (12), assumed cluster h100-8, half the bandwidth +38.7 %`: in place of how many there are of
    each weight the assumption on which most hangs, where it is none of the `shown` first; "" where little
    does, or a rule of `width` cells has no room for it.
    """
    for diagnostic in diagnostics[visible_count:]:
        if diagnostic.weight == "assumption":
            words = cells(diagnostic.brief, 200).replace("; ", ", ")
            forms = [words.replace("half GB/s", "half the bandwidth"), words]
            titles = [f"Notes ({len(diagnostics)}), assumed {form}" for form in forms]
            # The key behind it, and the rule itself.
            fitting = [title for title in titles if len(title) + 12 <= width]
            return fitting[0] if fitting and words and diagnostic.effect >= _DECIDES else ""
    return ""


def notes_title(diagnostics: Sequence[Diagnostic], width: int = 0) -> str:
    """How many of each weight there are: they stand in this order. width: of a box, whose title has the key
    that shows all of them whole, too.
    """
    notes, counts = f"Notes ({len(diagnostics)})", describe_weights(diagnostics)
    if not width:
        return f"{notes}{counts}"
    # What is cut is a count, not the key.
    full_title = f"{notes}{counts}, ! whole"
    if len(full_title) + 7 <= width:
        return full_title
    return f"{notes}, ! whole{re.sub('assumptions?', 'assumed', counts)}"


def change_lines(model: SummaryModel, width: int, rows: int, progress: str) -> list[Line]:
    """The changes that gain most, those around the cursor; below them what one of them does or replaces."""
    if not model.knobs:
        return [[(" nothing to change" if model.knobs is not None else f" {progress}", "dim")]]
    row, focused = model.row(WHAT_IF), model.panel == WHAT_IF
    step = model.base_ns
    size = max(width - 21, 14)
    visible_rows, words = _visible_changes(model.knobs, row, focused, rows, width)
    lines: list[Line] = [
        [(f" {MATTERS}", "dim")]
        if index is None
        else change_line(model.knobs[index], model.dims, step, size, focused and index == row)
        for index in visible_rows
    ]
    return lines + [[(f" {line}", "dim")] for line in words]


def _visible_changes(
    knobs: Sequence[WhatIf], row: int, focused: bool, rows: int, width: int
) -> tuple[list[int | None], list[str]]:
    """`lists_and_meaning` in a panel of so many rows and cells."""
    return lists_and_meaning(knobs, row, focused, rows, width - 2)


TRIES, ALL, ALL_IN_SHORT = "t tries it", "4 has all", "4 all"
# In what a change needs where it says that it is of memory.
_OF_MEMORY = re.compile("needs|memory")


def needs_and_keys(model: SummaryModel, width: int, rows: int, room: int) -> tuple[str, str]:
    """What stands in the title of the advice, in `room` cells together: what the change needs of memory, ""
    where nobody knows, and the keys. That screen 4 has more rows is said before `t`, which the last row has.

    width, rows: of the panel.
    """
    knobs, is_cut = model.knobs, True
    if knobs is not None:
        visible_rows, _ = _visible_changes(knobs, model.row(WHAT_IF), model.panel == WHAT_IF, rows, width)
        is_cut = model.left_out_count > 0 or sum(index is not None for index in visible_rows) < len(knobs)
    forms = (f"{TRIES}, {ALL}", ALL, ALL_IN_SHORT) if is_cut else (TRIES, "")
    fitting_forms = [(needs, keys) for keys in forms if (needs := model.describe_memory(room - len(keys)))]
    if fitting_forms:
        # Of what it is, and of which row, come before a key that the last row has.
        return max(
            fitting_forms, key=lambda words: (bool(_OF_MEMORY.search(words[0])), words[0][:3] != "1st")
        )
    return "", next((keys for keys in forms if len(keys) <= room), forms[-1])


def change_line(
    knob: WhatIf, dims: Sequence[Dimension], step: int, size: int, at: bool, with_time: bool = True
) -> Line:
    """A change in words, the step time with it, and the difference. with_time: as `change_words` has it."""
    words, share, role = name_and_share(step, knob, dims, size - 1, with_time)
    name = f"{'>' if at else ' '}{words}"
    if knob.unknown:
        return [(name, "accent" if at else ""), (f"{UNKNOWN:>20}", "dim")]
    return [(name, "accent" if at else ""), (f"{duration(knob.gain_ns):>10}", ""), (f" {share}", role)]


# Characters before a colon that are a sentence of their own: "Rank 7 is slow" alone says too little.
_WHOLE_CLAUSE = 60


def word_lines(sentences: Sequence[str], width: int, rows: int) -> list[Line]:
    """Whole sentences, as many as there is room for: of one that is too long a later one has its place."""
    return fit_sentences(sentences, width, rows)[0]


def all_sentence_lines(sentences: Sequence[str], width: int) -> list[Line]:
    """All sentences whole, a blank row between them."""
    lines: list[Line] = []
    for sentence in sentences:
        lines += [[] for _ in range(bool(lines))]
        lines += [[(" " + line.replace("\u00a0", " "), "")] for line in _wrap_sentence(sentence, width)]
    return lines


def _fitting_sentences(sentences: Sequence[str], width: int, rows: int) -> list[list[Line]]:
    """The lines of each sentence that has room."""
    sentence_lines: list[list[Line]] = []
    for sentence in sentences:
        wrapped = _wrap_sentence(sentence, width)
        if len(wrapped) > rows:
            # What decides, without what explains it.
            shorter = (_wrap_sentence(words, width) for words in shorter_sentences(sentence, _WHOLE_CLAUSE))
            wrapped = next((lines for lines in shorter if len(lines) <= rows), wrapped)
        if len(wrapped) <= rows:
            rows -= len(wrapped)
            sentence_lines.append([[(" " + line.replace("\u00a0", " "), "")] for line in wrapped])
    return sentence_lines


def _wrap_sentence(sentence: str, width: int) -> list[str]:
    return textwrap.wrap(keep_units_unbroken(sentence), max(width - 2, 20), break_on_hyphens=False)


def fit_sentences(sentences: Sequence[str], width: int, rows: int) -> tuple[list[Line], str]:
    """The lines of `word_lines`, and `3 of 7, Space all` where some of the sentences have no room or are told
    in short, "" where all have.
    """
    fitting = _fitting_sentences(sentences, width, rows)
    all_lines = [line for sentence in sentences for line in _wrap_sentence(sentence, width)]
    omission_text = "Space whole" if sum(map(len, fitting)) < len(all_lines) else ""
    if len(fitting) < len(sentences):
        omission_text = f"{len(fitting)} of {len(sentences)}, Space all"
    return [line for lines in fitting for line in lines], omission_text
