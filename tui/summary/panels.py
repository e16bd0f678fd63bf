"""The summary as a frame: panels in boxes on a large screen, under headings on a small one.

Each panel is lines of the inner size of its frame; the step time stands in large digits, the one figure
that is read from across the room.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from simcore.diagnostics import Diagnostic
from simcore.run.figures import each_words, throughput_words
from simcore.units import change_percent, duration, signed, unbroken, whole_percent
from tui.change_words import SHARE_CELLS, UNKNOWN, change_name, gain_share
from tui.frame import Glyphs, Line, cells, rows_around, rule, shorter_sentences
from tui.notes.listing import ROLES, WEIGHT_CELLS, counted_weights, weight_word
from tui.panels import (
    BOTH_LISTS,
    MATTERS,
    WHAT_IF,
    beside,
    box,
    lists_and_meaning,
    meaning_rows,
)
from tui.summary.beside import BesidePanel, LateRanks, Waits
from tui.summary.model import MAP, NOTES, PANELS, STAGES, WORST, SummaryModel
from tui.summary.worst import worst_lines

if TYPE_CHECKING:
    from simcore.analysis.run import Run
    from simcore.cluster import Dimension
    from simcore.replay import MeasuredResults
    from simcore.run.findings import WhatIf


_DIGITS = {
    "0": ("█▀█", "█ █", "▀▀▀"), "1": ("▄█ ", " █ ", "▀▀▀"), "2": ("▀▀█", "█▀▀", "▀▀▀"),
    "3": ("▀▀█", "▀▀█", "▀▀▀"), "4": ("█ █", "▀▀█", "  ▀"), "5": ("█▀▀", "▀▀█", "▀▀▀"),
    "6": ("█▀▀", "█▀█", "▀▀▀"), "7": ("▀▀█", "  █", "  ▀"), "8": ("█▀█", "█▀█", "▀▀▀"),
    "9": ("█▀█", "▀▀█", "▀▀▀"), ".": (" ", " ", "▀"), "-": ("   ", "▀▀▀", "   "),
}  # fmt: skip


def large(words: str) -> list[str]:
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
    figure, more = figure_lines(duration(results.step_time_ns), glyphs), _step_facts(results, width)
    cost = next((words for words in costs if len(words) + 3 <= width), "")
    more += [[(f"   {cost}", "warn")]] if cost else []
    if len(figure) + len(more) > height:
        # What a micro-batch takes stands in the row on top, too; memory does not.
        more = [more[0], *more[2:]]
    if len(figure) + len(more) > height and cost:
        # How much of it is computed stands in the bars.
        more = more[1:]
    if results.memory_unknown and len(figure) + len(more) < height:
        why = results.memory_unknown
        short = why[why.index("no ") :]
        words = (f"memory not known: {why}", f"memory not known: {short}", f"memory: {short}")
        more.append([(f"  {next((text for text in words if len(text) <= width - 2), words[-1])}", "dim")])
    return [*figure, *more][:height]


def _step_facts(results: Run, width: int) -> list[Line]:
    """How much of the step a rank computes; of a replay what was measured, else what a micro-batch takes; and
    memory.
    """
    step, compute = results.step_time_ns, results.mean_busy_ns
    share = f" = {whole_percent(compute, step)} % of it" if step else ""
    if len(results.tracks) > 1:
        long, short = f"a rank computes {duration(compute)} on average", f"mean compute {duration(compute)}"
    else:
        long = short = f"each rank computes {duration(compute)}"
    forms = (f"{long}{share}", f"{short}{share}", f"{short}{share.removesuffix(' of it')}")
    more: list[Line] = [[(f"  {next((form for form in forms if len(form) <= width - 2), forms[-1])}", "")]]
    measured, count = results.measured_step_ns, results.microbatches
    if measured is not None:
        share = change_percent(measured, step)
        both = f"replayed {signed(step - measured)}{' = ' if share else ''}{share}"
        words = (f"measured {duration(measured)}, {both}", both, f"replayed {share}" if share else both)
        more.append([(f"  {next((text for text in words if len(text) <= width - 2), words[-1])}", "")])
    elif count:
        whole = throughput_words(results)
        short = whole.partition(", ")[0]
        more.append([(f"  {whole if len(whole) <= width - 2 else short}", "")])
    memory = _memory_words(results, width - 2)
    return [*more, *([[(f"  {memory}", "")]] if memory else [])]


def _memory_words(results: Run, room: int) -> str:
    """What the fullest stage needs, of what its GPU has where that is known; "" where nobody knows.

    room: cells; without them which stage it is goes before that it does not fit.
    """
    figures = results.model_figures
    if figures is not None:
        # Imported here, as in headlines: traces have none.
        from simcore.analysis.model_figures import memory_words, short_memory_words

        words = f"memory {memory_words(figures)}"
        return words if len(words) <= room else f"memory {short_memory_words(figures)}"
    fullest = max(results.file_memory, key=lambda memory: memory.total, default=None)
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
    return [[(f"  {row}", "bright")] for row in large(words)]


def note_lines(
    diagnostics: Sequence[Diagnostic], row: int, width: int, rows: int, focused: bool
) -> list[Line]:
    """The notes around the cursor, each behind what it is: a line each, in brief where its words have no room
    in it, and more of their words where rows are left over.
    """
    lines: list[Line] = []
    room = max(width - WEIGHT_CELLS - 2, 10)
    left = rows - len(diagnostics)
    for index in rows_around(row, len(diagnostics), rows):
        diagnostic, at = diagnostics[index], focused and index == row
        weight = diagnostic.weight
        # Of what was assumed the place is where something is missing.
        is_placed = diagnostic.line is not None and weight != "assumption"
        place = f"line {diagnostic.line}: " if is_placed else ""
        whole = f"{place}{cells(diagnostic.message, 2000)}"
        words = textwrap.wrap(whole, room, break_on_hyphens=False)
        if len(words) > max(left + 1, 1):
            if diagnostic.brief:
                brief = cells(diagnostic.brief, 200)
                # What is at stake stands at its end: it goes rather than that it is cut.
                words = textwrap.wrap(brief, room, break_on_hyphens=False)
                if len(words) > max(left + 1, 1):
                    brief = brief.rpartition("; ")[0] or brief
                    words = [cells(brief, room)]
                if len(place) + len(brief) <= room:
                    words = [f"{place}{brief}"]
            else:
                # What is left over of the last line ends with dots.
                most = max(left + 1, 1)
                words = textwrap.wrap(whole, room, break_on_hyphens=False, max_lines=most, placeholder="...")
        left -= len(words) - 1
        for number, text in enumerate(words):
            head = " " * (WEIGHT_CELLS + 1) if number else f"{'>' if at else ' '}{weight_word(diagnostic)}"
            lines.append([(head, "accent" if at else ROLES[weight]), (text, "accent" if at else "")])
    return lines or [[(" none", "dim")]]


def _notes_title(diagnostics: Sequence[Diagnostic], width: int = 0) -> str:
    """How many of each weight there are: they stand in this order. width: of a box, whose title has the key
    that shows all of them whole, too.
    """
    notes, counts = f"Notes ({len(diagnostics)})", counted_weights(diagnostics)
    if not width:
        return f"{notes}{counts}"
    # What is cut is a count, not the key.
    whole = f"{notes}{counts}, ! whole"
    if len(whole) + 7 <= width:
        return whole
    return f"{notes}, ! whole{re.sub('assumptions?', 'assumed', counts)}"


def help_lines(model: SummaryModel, width: int, rows: int, progress: str) -> list[Line]:
    """The changes that gain most, those around the cursor; below them what one of them does or replaces."""
    if not model.knobs:
        return [[(" nothing to change" if model.knobs is not None else f" {progress}", "dim")]]
    row, focused = model.row(WHAT_IF), model.panel == WHAT_IF
    step = model.base_ns
    size = max(width - 21, 14)
    shown, words = _in_sight(model.knobs, row, focused, rows, width)
    lines: list[Line] = [
        [(f" {MATTERS}", "dim")]
        if index is None
        else help_line(model.knobs[index], model.dims, step, size, focused and index == row)
        for index in shown
    ]
    return lines + [[(f" {line}", "dim")] for line in words]


def _in_sight(
    knobs: Sequence[WhatIf], row: int, focused: bool, rows: int, width: int
) -> tuple[list[int | None], list[str]]:
    """`lists_and_meaning` in a panel of so many rows and cells."""
    return lists_and_meaning(knobs, row, focused, rows, width - 2)


_TRIES, _ALL = "t tries it", "4 all"
# In what a change needs of memory where it says why that is no more than now, and that it is memory.
_WHY, _OF_MEMORY = "held", re.compile("needs|memory")


def _needs_and_keys(model: SummaryModel, width: int, rows: int, room: int) -> tuple[str, str]:
    """What stands in the title of the advice, in `room` cells together: what the change needs of memory, ""
    where nobody knows, and the keys. That screen 4 has more rows is said before `t`, which the last row has.

    width, rows: of the panel.
    """
    knobs, is_cut = model.knobs, True
    if knobs is not None:
        shown, _ = _in_sight(knobs, model.row(WHAT_IF), model.panel == WHAT_IF, rows, width)
        is_cut = model.left_out > 0 or sum(index is not None for index in shown) < len(knobs)
    forms = (f"{_TRIES}, {_ALL}", _ALL) if is_cut else (_TRIES, "")
    found = [(needs, keys) for keys in forms if (needs := model.needs_words(room - len(keys)))]
    if found:
        # Why it is no more, and of what it is, come before a key that the last row has.
        return max(found, key=lambda words: (_WHY in words[0], _OF_MEMORY.search(words[0]) is not None))
    return "", next((keys for keys in forms if len(keys) <= room), forms[-1])


def help_line(
    knob: WhatIf, dims: Sequence[Dimension], step: int, size: int, at: bool, with_time: bool = True
) -> Line:
    """A change in words, the step time with it, and the difference. with_time: as `change_words` has it."""
    share, role = ("", "") if knob.unknown else gain_share(step, knob)
    # What the share is of takes room from the name.
    size -= max(len(share) - SHARE_CELLS, 0)
    name = f"{'>' if at else ' '}{change_name(knob, dims, size - 1, with_time):<{size}}"
    if knob.unknown:
        return [(name, "accent" if at else ""), (f"{UNKNOWN:>20}", "dim")]
    return [(name, "accent" if at else ""), (f"{duration(knob.gain_ns):>10}", ""), (f" {share}", role)]


def word_lines(sentences: Sequence[str], width: int, rows: int) -> list[Line]:
    """Whole sentences, as many as there is room for: of one that is too long a later one has its place."""
    return _told_and_cut(sentences, width, rows)[0]


def whole_words(sentences: Sequence[str], width: int) -> list[Line]:
    """All sentences whole, a blank row between them."""
    lines: list[Line] = []
    for sentence in sentences:
        lines += [[] for _ in range(bool(lines))]
        lines += [[(" " + line.replace("\u00a0", " "), "")] for line in _wrapped(sentence, width)]
    return lines


def _said(sentences: Sequence[str], width: int, rows: int) -> list[list[Line]]:
    """The lines of each sentence that has room."""
    said: list[list[Line]] = []
    for sentence in sentences:
        held = _wrapped(sentence, width)
        if len(held) > rows:
            # What decides, without what explains it.
            shorter = (_wrapped(words, width) for words in shorter_sentences(sentence, _WHOLE_CLAUSE))
            held = next((lines for lines in shorter if len(lines) <= rows), held)
        if len(held) <= rows:
            rows -= len(held)
            said.append([[(" " + line.replace("\u00a0", " "), "")] for line in held])
    return said


def _wrapped(sentence: str, width: int) -> list[str]:
    return textwrap.wrap(unbroken(sentence), max(width - 2, 20), break_on_hyphens=False)


def _told_and_cut(sentences: Sequence[str], width: int, rows: int) -> tuple[list[Line], str]:
    """The lines of `word_lines`, and `3 of 7, Space all` where some of the sentences have no room or are told
    in short, "" where all have.
    """
    said = _said(sentences, width, rows)
    whole = [line for sentence in sentences for line in _wrapped(sentence, width)]
    cut = "Space whole" if sum(map(len, said)) < len(whole) else ""
    if len(said) < len(sentences):
        cut = f"{len(said)} of {len(sentences)}, Space all"
    return [line for lines in said for line in lines], cut


# Characters before a colon that are a sentence of their own: "Rank 7 is slow" alone says too little.
_WHOLE_CLAUSE = 60
_WIDE, _SPELLED, _TALL, _MANY = 100, 116, 26, 34
# Cells of the bars with whole names and their frame.
_LEAST_LEFT = 66
_TOP, _BOTTOM, _ADVICE_PERCENT = 7, 6, 60
# Places at most, changes while they are looked for, lines of a bar at most; more rows than any screen has.
_MOST_PLACES, _CHANGES, _HIGHEST, _ANY = 7, 12, 4, 1000
# What begins with what a step is bound by.
_VERDICT = re.compile(r"\S+-bound\. ")
# Rows of the table beside the bars that nothing else takes, and that words do not. Of a small screen: the
# rules over its parts, and the legend.
_BESIDE_ROWS, _LEAST_ROWS = 8, 3
_RULES = 5
# Rows of a small screen that the worst places, the bars with their head and the words have at least.
_LEAST_WORST, _LEAST_BARS, _FEW_WORDS = 2, 4, 6
# Of a large one the bars with head, legend and frame, where stages or ranks share a row.
_JOINED_BARS = 12
_STEP_TITLES = {"simulated": "Step time", "measured": "Measured step", "replayed": "Replayed step",
                "executed": "Step time"}  # fmt: skip


def draw(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """The lines of the screen, at most `height` of them. progress: of the what-if table."""
    if not model.results.timed:
        return _order(model, width, height, glyphs)
    if width >= _WIDE and height >= _TALL:
        return _boxes(model, width, height, glyphs, progress)
    return _headings(model, width, height, glyphs, progress)


def _bars(model: SummaryModel, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    """The bars, taller where a few have many rows."""
    model.fit(rows - 1)
    high = max(1, min((rows - 1) // max(len(model.bars.rows), 1), _HIGHEST))
    return model.bars.lines(width, model.row(STAGES), glyphs, model.panel == STAGES, high)


def _boxes(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    folded = model.beside.is_empty
    model.set_panels(tuple(panel for panel in PANELS if panel != MAP or not folded))
    size = _Sizes(model, width, height, folded)
    left, right = size.left, size.right

    def framed(panel: str, title: str, aside: str, lines: list[Line], cells_: tuple[int, int]) -> list[Line]:
        return box(title, aside, lines, *cells_, glyphs, model.panel == panel)

    room = width - size.figure - 2, size.top - 2
    words, cut = _told_and_cut(model.results.words, *room)
    step = step_lines(model.results, glyphs, size.figure - 2, size.top - 2, model.more_memory())
    top = beside(
        box(_STEP_TITLES[model.results.origin], "", step, size.figure, size.top, glyphs),
        box(_words_title(model, cut, width - size.figure), model.behind, words,
            width - size.figure, size.top, glyphs),
    )  # fmt: skip
    bars = _bars(model, left - 2, size.middle - 3, glyphs)
    bars += [[] for _ in range(size.middle - 3 - len(bars))]
    bars.append(model.bars.legend(left - 2, glyphs))
    where = framed(STAGES, model.bars.title, "% of step", bars, (left, size.middle))
    places = worst_lines(model, right - 2, size.worst - 2, model.panel == WORST)
    column = framed(WORST, "Worst on a rank, % of step", "Enter goes there", places, (right, size.worst))
    if not folded:
        table, rows = model.beside, size.middle - size.worst
        tabled = table.lines(right - 2, rows - 2, model.cursor(MAP), glyphs, model.panel == MAP)
        title = _counted(table.title, table, rows - 2)
        column = [*framed(MAP, title, table.aside, tabled, (right, rows)), *column]
    diagnostics = model.notes
    # Names of changes differ at their ends.
    advice = width * _ADVICE_PERCENT // 100
    notes = note_lines(
        diagnostics, model.row(NOTES), width - advice - 2, size.bottom - 2, model.panel == NOTES
    )
    changes = help_lines(model, advice - 2, size.bottom - 2, progress)
    helps = f"What would help most{model.base_words}, % of step"
    # Frame, corners and what stands between the two.
    needs, aside = _needs_and_keys(model, advice - 2, size.bottom - 2, advice - len(helps) - 12)
    helps += f"; {needs}" if needs else ""
    below = beside(
        framed(WHAT_IF, helps, aside, changes, (advice, size.bottom)),
        framed(NOTES, _notes_title(diagnostics, width - advice), "", notes, (width - advice, size.bottom)),
    )
    return [*top, *beside(where, column), *below]


def _words_title(model: SummaryModel, cut: str, width: int) -> str:
    """What the sentences are: the shares in those of a simulated run are of its step where they say no more.

    cut: as `_told_and_cut` has it. width: of the box, which may have what made the rows beside the title.
    """
    of_step = ", % of step" if model.results.origin == "simulated" else ""
    title, short = f"In words{of_step}{cut and '; '}{cut}", f"In words{cut and ', '}{cut}"
    # Two corners, the line and the blanks around both.
    room = width - len(model.behind) - 11 if model.behind else width
    forms = (title, title.removesuffix(" all"), short)
    return next((form for form in forms if len(form) <= room), short)


def _counted(title: str, table: BesidePanel, rows: int) -> str:
    """`Who waits for whom, 3 of 28` where a panel of `rows` lines, its head among them, has not all rows."""
    count, shown = table.extent[0], max(rows - 1, 1)
    if shown >= count or not isinstance(table, (Waits, LateRanks)):
        return title
    return f"{title.removesuffix(', in all')}, {shown} of {count}"


class _Sizes:
    """Rows and columns of the panels in boxes: what is left over goes to words, then to advice and notes that
    would be cut, then to the bars.

    figure: cells of the step time; left, right: of the two columns. top, middle, bottom: rows of the words,
    of the bars and of the advice; worst: of the worst places.
    """

    def __init__(self, model: SummaryModel, width: int, height: int, folded: bool) -> None:
        """folded: whether nothing stands over the worst places."""
        self.figure = max(40, width // 3)
        # What leads on is cut before the bars are.
        self.left = width * (_ADVICE_PERCENT if width >= _SPELLED else 56) // 100
        places = model.results.worst[:_MOST_PLACES]
        if width >= _SPELLED and model.results.rank_map is not None:
            # Bars are read as well with fewer cells: names of places are not.
            wanted = max((len(place.words) for place in places), default=0) + 12
            self.left = max(min(self.left, width - wanted), min(self.left, _LEAST_LEFT))
        self.right = width - self.left
        self.worst = len(places) + 2
        # A row more where there are many, for what memory the fullest stage needs.
        said_of_step = len(_step_facts(model.results, self.figure - 2)) + 5
        said_of_step += bool(model.results.memory_unknown)
        self.top, self.bottom = _TOP + (height >= _MANY and said_of_step > _TOP), _BOTTOM
        said = word_lines(model.results.words, width - self.figure - 2, _ANY)
        # Head, legend and frame around the bars.
        bars = model.bars.most_rows + 4
        # A long table beside them can be moved through; advice and words that are cut are not seen.
        beside, least = self.worst, self.worst
        if not folded:
            beside += min(model.beside.extent[0], _BESIDE_ROWS) + 6
            least += min(model.beside.extent[0], _LEAST_ROWS) + 4
        spare = height - self.top - self.bottom
        # The sentence that decides may be the second one: these two come before bars that can be joined.
        first = word_lines(model.results.words[:2], width - self.figure - 2, _ANY)
        more = max(min(len(first) + 2 - self.top, spare - max(min(bars, _JOINED_BARS), least)), 0)
        self.top, spare = self.top + more, spare - more
        self.top += max(min(len(said) + 2 - self.top, spare - max(bars, least)), 0)
        spare = height - self.top - self.bottom - max(bars, beside)
        changes = _CHANGES if model.knobs is None else len(model.knobs)
        # The heading between the lists, what a change does, and the frame.
        advice = width * _ADVICE_PERCENT // 100
        notes = note_lines(model.notes, 0, width - advice - 2, _ANY, False)
        changes += 1 + max(meaning_rows(model.knobs, advice - 4), 1)
        wanted = max(changes, len(notes)) + 2
        self.bottom += max(min(wanted - self.bottom, spare), 0)
        self.middle = height - self.top - self.bottom
        if folded:
            self.worst = self.middle


def _headings(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """A small screen: the same order, no frames; the table takes the place of the bars."""
    folded = model.beside.is_empty
    model.set_panels((MAP if model.panel == MAP and not folded else STAGES, WORST, WHAT_IF))
    diagnostics = model.notes
    # Five rules and the legend; the words and the bars before all else, then whatever would be cut.
    left = height - _RULES
    worst_rows, change_rows, note_rows = _LEAST_WORST, BOTH_LISTS, 1
    if model.knobs and model.knobs[0].fixes:
        # What fixes the file is none of those that gain.
        change_rows += 1
    bars = max(model.beside.extent[0] + 4, 3) if model.panel == MAP else max(model.bars.most_rows + 1, 2)
    # Few stages have a row each, or two of them share one, and a row stays blank.
    stages = len({track.stage for track in model.results.tracks})
    room = min(bars, _LEAST_BARS + (stages == _LEAST_BARS))
    if model.panel != MAP and stages <= _LEAST_BARS and room <= model.bars.least_rows <= _LEAST_BARS + 2:
        # The rank to blame has a row of its own.
        room = min(bars, model.bars.least_rows + 1)
    # The sentence that decides may be the second one: these two come before places and bars.
    words, said = model.results.words, left - worst_rows - change_rows - note_rows - room
    first = word_lines(words[:2], width, max(said, 1))
    if len(words) > 1 and _VERDICT.match(words[1]) and len(first) == len(word_lines(words[:1], width, _ANY)):
        # The first one tells to fix the file: what the step is bound by comes before a second place.
        further = word_lines(words[:2], width, said + 1)
        if len(further) > len(first):
            first, said, worst_rows = further, said + 1, worst_rows - 1
    if len(first) == len(word_lines(words[:1], width, max(said, 1))):
        # The second one is too long: what follows it, who is waited for mostly, has its place.
        first = word_lines(words[:3], width, max(said, 1))
    told = word_lines(words, width, max(len(first), min(_FEW_WORDS, said), 1))
    spare = max(said - len(told), 0)
    more = max(min(height // 5 - worst_rows, len(model.results.worst) - worst_rows, spare), 0)
    worst_rows, spare = worst_rows + more, spare - more
    more = min(bars - room, spare)
    if model.panel != MAP:
        # Rows that stages or ranks in groups leave blank are for words.
        model.fit(room + more - 1)
        more = min(more, max(len(model.bars.rows) + 1 - room, 0))
    room, spare = room + more, spare - more
    said = len(told)
    told, cut = _told_and_cut(words, width, said + spare)
    spare -= len(told) - said
    # Of a model the row on top has it.
    memory = _memory_words(model.results, width) if model.results.model_figures is None else ""
    costs = model.more_memory()
    # The longest that a row or a rule has room for: what a change costs goes before where it is.
    forms = [f"{memory}, {words}" for words in costs] if memory else []
    forms += [f"memory {words}" if words.startswith("+") else words for words in costs]
    fullest = memory
    forms = forms or [memory] * bool(memory)
    if spare and forms:
        memory = next((form for form in forms if len(form) + 3 <= width), forms[-1])
        told, spare = [*told, [(f" {memory[0].upper()}{memory[1:]}.", "warn" if costs else "")]], spare - 1
        forms = []
    wanted_rows = (_CHANGES if model.knobs is None else max(len(model.knobs), 1)) - change_rows
    more = max(min(wanted_rows, spare), 0)
    change_rows, spare = change_rows + more, spare - more
    more = max(min(len(diagnostics) - note_rows, spare), 0)
    note_rows, spare = note_rows + more, spare - more
    if spare > 0 and model.results.memory_unknown:
        told = [*told, [(f" Memory is not known: {model.results.memory_unknown}.", "dim")]]
        spare -= 1
    worst = worst_lines(model, width, worst_rows, model.panel == WORST)
    changes = help_lines(model, width, change_rows, progress)
    # Notes say more with it than a taller bar.
    spare = max(spare, 0) + worst_rows - len(worst) + change_rows - len(changes)
    notes = note_lines(diagnostics, 0, width, note_rows + (0 if model.panel == MAP else spare), False)
    room += spare + note_rows - len(notes)
    if model.panel == MAP:
        table = model.beside
        title = _counted(table.heading, table, room)
        body = table.lines(width, room, model.cursor(MAP), glyphs, True)[:room]
    else:
        each = each_words(model.results)
        body = _bars(model, width, room, glyphs)[:room]
        title = f"{model.bars.title}, % of step{'; ' if each else ''}{each}"
    body += [[] for _ in range(room - len(body))]
    # The words have no heading of their own: one below says that there are more, the first one with room.
    more_words = f"; in words {cut}" if cut else ""
    has_room = len(title) + len(more_words) + 4 <= width
    title += more_words if has_room else ""
    lines = [*told, rule(title, width, glyphs), *body, model.bars.legend(width, glyphs)]
    count = len(model.results.worst)
    cut = f" ({len(worst)} of {count})" if len(worst) < count else ""
    places = f"Worst on a rank, % of step{cut}"
    if not has_room:
        # Very narrow screens name the count alone.
        places += more_words if len(places) + len(more_words) + 4 <= width else more_words.partition(",")[0]
    # What stages hold more is no memory: both, or this first and the cost below it.
    of_memory = [form for form in forms if form.startswith("memory")] or forms
    fits = [form for form in [*of_memory, *costs] if len(places) + len(form) + 8 <= width]
    memory = max(fits, key=len, default="")
    if not memory and forms and len(places) + len(fullest) + 8 <= width:
        memory = fullest
    if memory:
        # The fullest stage is one of them, and there was no row for it.
        places += f"; {memory}"
        forms = list(costs) if memory == fullest else []
    lines += [rule(places, width, glyphs), *worst]
    advice = f"What would help most{model.base_words}, % of step"
    # The rule, and a comma and a semicolon with their blanks.
    needs, keys = _needs_and_keys(model, width, change_rows, width - len(advice) - 8)
    least = min(map(len, forms), default=0)
    if forms and (costs or not needs) and len(advice) + len(keys) + least + 10 > width:
        # The last row has the key, too; memory is nowhere else.
        keys = keys.removeprefix(_TRIES).removeprefix(", ")
    advice += f", {keys}" if keys else ""
    memory = next((form for form in forms if len(advice) + len(form) + 8 <= width), "")
    # What the change that was tried costs is said before what the next one would.
    needs = memory if memory and costs else needs or memory
    advice += f"; {needs}" if needs else ""
    lines += [rule(advice, width, glyphs), *changes]
    behind = f"; {model.behind}" if model.behind else ""
    lines += [rule(f"{_notes_title(diagnostics)}, ! all{behind}", width, glyphs), *notes]
    return lines[:height]


def _order(model: SummaryModel, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Of a plan there is an order and no time."""
    # Imported here: no other run has use for it.
    from simcore.replay.run_words import order_title
    from simcore.report.measured import order_lines

    run = cast("MeasuredResults", model.results).measured
    model.set_panels((NOTES,))
    notes = model.notes
    rows = min(len(notes), max(height // 4, 1))
    lines: list[Line] = [
        rule(f"{order_title(run)}: there is no step time, and nothing waits", width, glyphs),
        *([(f" {cells(line, 400)}", "")] for line in order_lines(run, width - 2)),
    ]
    below = [
        rule(f"{_notes_title(notes)}, ! all", width, glyphs),
        *note_lines(notes, model.row(NOTES), width, rows, True),
    ]
    room = height - len(below)
    if len(lines) > room:
        lines = [*lines[: room - 1], [(" ... 3 has all operations", "dim")]]
    return [*lines, *([[]] * (room - len(lines))), *below]
