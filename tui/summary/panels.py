"""The lines in the panels of the summary. The step time stands in large digits, which are legible from across
the room.
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
from tui.change_words import UNKNOWN, memory_cells, memory_text, name_and_share
from tui.frame import Glyphs, Line, cells, rows_around, shorter_sentences, wrapped
from tui.notes.listing import ROLES, WEIGHT_CELLS, weight_word
from tui.panels import COMING, MATTERS, WHAT_IF, lists_and_meaning
from tui.summary.model import SummaryModel

if TYPE_CHECKING:
    from simcore.cluster import Dimension
    from simcore.trace.findings import WhatIf
    from simcore.trace.run import Run


# More lines than any screen has.
UNLIMITED = 1000
_DIGITS = {
    "0": ("█▀█", "█ █", "▀▀▀"), "1": ("▄█ ", " █ ", "▀▀▀"), "2": ("▀▀█", "█▀▀", "▀▀▀"),
    "3": ("▀▀█", "▀▀█", "▀▀▀"), "4": ("█ █", "▀▀█", "  ▀"), "5": ("█▀▀", "▀▀█", "▀▀▀"),
    "6": ("█▀▀", "█▀█", "▀▀▀"), "7": ("▀▀█", "  █", "  ▀"), "8": ("█▀█", "█▀█", "▀▀▀"),
    "9": ("█▀█", "▀▀█", "▀▀▀"), ".": (" ", " ", "▀"), "-": ("   ", "▀▀▀", "   "),
}  # fmt: skip


def large_digits(words: str) -> list[str]:
    """Returns three rows of cells for a figure with its unit: `14.774 s`. The unit stands in plain
    letters.
    """
    figure, _, unit = words.rpartition(" ")
    rows = [" ".join(_DIGITS[char][row] for char in figure) for row in range(3)]
    return [rows[0], rows[1], f"{rows[2]} {unit}"]


def step_lines(
    results: Run, glyphs: Glyphs, width: int, height: int, costs: Sequence[str] = ()
) -> list[Line]:
    """Returns the step time, large, and the facts about it, as many as there is room for. costs: the
    additional memory of a change, as `more_memory` returns it.
    """
    figure, facts = figure_lines(duration(results.step_time_ns), glyphs), step_facts(results, width)
    cost = next((words for words in costs if len(words) + 3 <= width), "")
    facts += [[(f"   {cost}", "warn")]] if cost else []
    if len(figure) + len(facts) > height:
        # The time of a micro-batch stands in the top row, too; memory does not.
        facts = [facts[0], *facts[2:]]
    if len(figure) + len(facts) > height and cost:
        # The computed share stands in the bars.
        facts = facts[1:]
    if results.model.memory_unknown and len(figure) + len(facts) < height:
        why = results.model.memory_unknown
        short = why[why.index("no ") :]
        words = (f"memory not known: {why}", f"memory not known: {short}", f"memory: {short}")
        facts.append([(f"  {next((text for text in words if len(text) <= width - 2), words[-1])}", "dim")])
    published = results.model.model_figures.trust if results.model.model_figures is not None else None
    if published is not None:
        # The last fact: it is dropped first.
        forms = published.short_words
        facts.append([(f"  {next((text for text in forms if len(text) <= width - 2), forms[-1])}", "dim")])
    return [*figure, *facts][:height]


def step_facts(results: Run, width: int) -> list[Line]:
    """Returns how much of the step a rank computes; of a replay the measured step, else the time of a
    micro-batch; and memory.
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
        full_text = _inference_text(results) or throughput_words(results.shape)
        short = full_text.partition(", ")[0]
        facts.append([(f"  {full_text if len(full_text) <= width - 2 else short}", "")])
    memory = fullest_stage_text(results, width - 2)
    return [*facts, *([[(f"  {memory}", "")]] if memory else [])]


def _inference_text(results: Run) -> str:
    """Returns the time of a token and tokens a second of an inference step, "" of other runs."""
    figures = results.model.model_figures
    if figures is None or figures.inference is None:
        return ""
    # Imported here: most runs have no such figures.
    from simcore.analysis.model_figures import throughput_facts

    return ", ".join(throughput_facts(figures)[:3])


def fullest_stage_text(results: Run, room: int) -> str:
    """Returns what the fullest stage needs, of its GPU's capacity where that is known; "" where the need is
    unknown.

    room: cells; where they are short, the stage is dropped before the note that it does not fit.
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
    # The activations are those of layers that are not recomputed, which no row states.
    return f"memory about {words} on stage {fullest.stage}"


def figure_lines(words: str, glyphs: Glyphs) -> list[Line]:
    """Returns a figure with its unit in three rows: large, or in plain letters where there is only ASCII."""
    if glyphs.corners[0] == "+":
        return [[], [(f"  {words}", "bright")], []]
    return [[(f"  {row}", "bright")] for row in large_digits(words)]


def first_sentences(texts: Sequence[str], width: int, most: int) -> list[Line]:
    """Returns sentences, the first one bright: all lines of that one, of the others as many as fit into
    `most` lines.
    """
    lines: list[Line] = []
    for index, text in enumerate(texts):
        of_text = wrapped(text, max(width - 4, 20))
        if lines and len(lines) + len(of_text) > most - (index < len(texts) - 1):
            lines.append([("  Space has the other sentences", "dim")])
            break
        role = "bright" if not index else ""
        lines += [[(f"{'  ' if not at else '    '}{line}", role)] for at, line in enumerate(of_text)]
    return lines


def note_lines(
    diagnostics: Sequence[Diagnostic], row: int, width: int, rows: int, focused: bool
) -> list[Line]:
    """Returns the notes around the cursor, each behind its weight: a line each, in brief where the full words
    do not fit, and with more of their words where there are spare rows.
    """
    lines: list[Line] = []
    room = max(width - WEIGHT_CELLS - 2, 10)
    spare_rows = rows - len(diagnostics)
    for index in rows_around(row, len(diagnostics), rows):
        diagnostic, is_at_cursor = diagnostics[index], focused and index == row
        weight = diagnostic.weight
        # The place of an assumption is where something is missing.
        is_placed = diagnostic.line is not None and weight != "assumption"
        location = f"line {diagnostic.line}: " if is_placed else ""
        full_text = f"{location}{cells(diagnostic.message, 2000)}"
        words = textwrap.wrap(full_text, room, break_on_hyphens=False)
        if len(words) > max(spare_rows + 1, 1):
            if diagnostic.brief:
                brief = cells(diagnostic.brief, 200)
                # The effect stands at the end: it is dropped rather than truncated.
                words = textwrap.wrap(brief, room, break_on_hyphens=False)
                if len(words) > max(spare_rows + 1, 1):
                    brief = brief.rpartition("; ")[0] or brief
                    words = [cells(brief, room)]
                if len(location) + len(brief) <= room:
                    words = [f"{location}{brief}"]
            else:
                # The rest of the last line ends with dots.
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


def note_rows(model: SummaryModel, width: int) -> int:
    """Returns the lines that all notes in full need; of a long run, whose notes get more words behind the
    picture, a line each.
    """
    if model.is_long:
        return len(model.notes)
    return len(note_lines(model.notes, 0, width, UNLIMITED, False))


# An assumption with an effect of this share of the step or more comes before notes of more weight.
_DECIDES = 0.05


def decisive_first(notes: Sequence[Diagnostic]) -> tuple[list[Diagnostic], int]:
    """Returns (notes, rows): the assumption of the largest effect behind the first note, where it decides the
    step; and how many rows that needs.
    """
    decisive = next((at for at, note in enumerate(notes) if note.weight == "assumption"), 0)
    if not decisive or notes[decisive].effect < _DECIDES:
        return list(notes), 1
    return [notes[0], notes[decisive], *notes[1:decisive], *notes[decisive + 1 :]], 2


def change_lines(model: SummaryModel, width: int, rows: int, progress: str) -> list[Line]:
    """Returns the changes that gain most, those around the cursor; below them what one of them does or
    replaces.
    """
    if not model.knobs:
        return [[(" nothing to change" if model.knobs is not None else f" {progress}", "dim")]]
    row, focused = model.row(WHAT_IF), model.panel == WHAT_IF
    step = model.base_ns
    size, memory_size = max(width - 21, 14), memory_cells(model.knobs, width)
    visible_rows, words = _visible_changes(model.knobs, row, focused, rows, width)
    lines: list[Line] = [
        [(f" {MATTERS}", "dim")]
        if index is None
        else change_line(
            model.knobs[index], model.dims, step, size, focused and index == row, memory_size=memory_size
        )
        for index in visible_rows
    ]
    return lines + [[(f" {line}", "dim")] for line in words]


def _visible_changes(
    knobs: Sequence[WhatIf], row: int, focused: bool, rows: int, width: int
) -> tuple[list[int | None], list[str]]:
    """Returns `lists_and_meaning` in a panel of this many rows and cells."""
    return lists_and_meaning(knobs, row, focused, rows, width - 2)


def leaves_out_changes(model: SummaryModel, width: int, rows: int) -> bool:
    """Returns whether screen 4 has more changes than a panel of this many rows and cells."""
    if model.knobs is None:
        return True
    visible_rows, _ = _visible_changes(model.knobs, model.row(WHAT_IF), model.panel == WHAT_IF, rows, width)
    return model.left_out_count > 0 or sum(index is not None for index in visible_rows) < len(model.knobs)


def change_line(
    knob: WhatIf,
    dims: Sequence[Dimension],
    step: int,
    size: int,
    at: bool,
    with_time: bool = True,
    memory_size: int = 0,
) -> Line:
    """Returns a change in words, the memory and the step time with it, and the difference. with_time: as in
    `change_words`. size: cells of the words and of the memory, `memory_size` of them.
    """
    words, share, role = name_and_share(step, knob, dims, size - memory_size - 1, with_time)
    words += memory_text(knob, memory_size)
    name = f"{'>' if at else ' '}{words}"
    if knob.unknown:
        return [(name, "accent" if at else ""), (f"{UNKNOWN:>20}", "dim")]
    return [(name, "accent" if at else ""), (f"{duration(knob.gain_ns):>10}", ""), (f" {share}", role)]


# Characters before a colon that are a sentence of their own: "Rank 7 is slow" alone says too little.
_WHOLE_CLAUSE = 60


def word_lines(sentences: Sequence[str], width: int, rows: int) -> list[Line]:
    """Returns full sentences, as many as there is room for: a later one replaces one that is too long."""
    return fit_sentences(sentences, width, rows)[0]


def all_sentence_lines(sentences: Sequence[str], width: int) -> list[Line]:
    """Returns all sentences in full, a blank row between them."""
    lines: list[Line] = []
    verdict = _find_verdict(sentences)
    for sentence in sentences:
        lines += [[] for _ in range(bool(lines))]
        lines += _sentence_lines(_wrap_sentence(sentence, width), sentence == verdict)
    return lines


# The beginning of the sentence that says what a step is bound by, and its figures.
VERDICT = re.compile(r"\S+-bound\. ")
_FIGURE = re.compile(r"[+-]?\d[\d.,]*\u00a0(?:%|[mun]?s|[kMGT]?B)(?!\w)")


def _find_verdict(sentences: Sequence[str]) -> str:
    """Returns the sentence on what the step is bound by, else the first one; "" where there is none."""
    return next((sentence for sentence in sentences if VERDICT.match(sentence)), next(iter(sentences), ""))


def _sentence_lines(texts: Sequence[str], is_verdict: bool) -> list[Line]:
    """Returns the lines of a sentence; the first word of the verdict and its first figure are bold."""
    lines: list[Line] = [[(f" {text}", "")] for text in texts]
    figure = next(((at, match) for at, text in enumerate(texts) if (match := _FIGURE.search(text))), None)
    if is_verdict and figure is not None:
        at, match = figure
        text = texts[at]
        lines[at] = [
            (f" {text[: match.start()]}", ""),
            (match[0], "bright"),
            (text[match.end() :], ""),
        ]
    if is_verdict and texts:
        word, blank, rest = lines[0][0][0][1:].partition(" ")
        lines[0][:1] = [(f" {word}", "bright"), (f"{blank}{rest}", "")]
    return [[(text.replace("\u00a0", " "), role) for text, role in line] for line in lines]


def _fitting_sentences(sentences: Sequence[str], width: int, rows: int) -> list[list[Line]]:
    """Returns the lines of each sentence that has room."""
    sentence_lines: list[list[Line]] = []
    verdict = _find_verdict(sentences)
    for sentence in sentences:
        texts = _wrap_sentence(sentence, width)
        if len(texts) > rows:
            # The statement without its explanation.
            shorter = (_wrap_sentence(words, width) for words in shorter_sentences(sentence, _WHOLE_CLAUSE))
            texts = next((lines for lines in shorter if len(lines) <= rows), texts)
        if len(texts) <= rows:
            rows -= len(texts)
            sentence_lines.append(_sentence_lines(texts, sentence == verdict))
    return sentence_lines


def _wrap_sentence(sentence: str, width: int) -> list[str]:
    return textwrap.wrap(keep_units_unbroken(sentence), max(width - 2, 20), break_on_hyphens=False)


def sentence_lines(model: SummaryModel, width: int, rows: int) -> tuple[list[Line], int, bool]:
    """Returns the lines of the sentences as `fit_sentences` does; of a long run exactly `rows`."""
    lines, count, is_cut = fit_sentences(model.words, width, rows)
    if not model.is_described:
        lines = [[(f" {COMING}", "dim")]]
    return lines + [[] for _ in range(rows - len(lines)) if model.is_long], count, is_cut


def fit_sentences(sentences: Sequence[str], width: int, rows: int) -> tuple[list[Line], int, bool]:
    """Returns the lines of `word_lines`, how many of the sentences they are, and whether any of these is
    shortened.
    """
    fitting = _fitting_sentences(sentences, width, rows)
    all_lines = [line for sentence in sentences for line in _wrap_sentence(sentence, width)]
    return (
        [line for lines in fitting for line in lines],
        len(fitting),
        sum(map(len, fitting)) < len(all_lines),
    )
