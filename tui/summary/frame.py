"""The summary as a frame: panels in boxes on a large screen, under headings on a small one."""

from __future__ import annotations

import re

from simcore.trace.figures import each_words
from simcore.trace.run import Run
from tui.change_words import BOTH_HOLD
from tui.frame import Glyphs, Line, cells, rule
from tui.panels import BOTH_LISTS, WHAT_IF, box, fixes_in_front, join_panels, meaning_rows
from tui.summary.model import MAP, NOTES, PANELS, STAGES, WORST, SummaryModel
from tui.summary.panels import (
    ALL,
    ALL_IN_SHORT,
    assumption_title,
    change_lines,
    fit_sentences,
    fullest_stage_text,
    needs_and_keys,
    note_lines,
    notes_title,
    step_facts,
    step_lines,
    word_lines,
)
from tui.summary.side_panels import RankTable, SidePanel
from tui.summary.worst import worst_lines

_WIDE, _SPELLED, _TALL, _MANY = 100, 116, 26, 34
# Cells of the bars with whole names and their frame.
_LEAST_LEFT = 66
_TOP, _BOTTOM, _ADVICE_PERCENT = 7, 6, 60
# Places at most, changes while they are looked for, lines of a bar at most; more rows than any screen has.
_MAX_FINDINGS, _CHANGES, _HIGHEST, _UNLIMITED = 7, 12, 4, 1000
# What begins with what a step is bound by.
_VERDICT = re.compile(r"\S+-bound\. ")
# Rows of the table beside the bars that nothing else takes, and that words do not. Of a small screen: the
# rules over its parts, and the legend.
_SIDE_ROWS, _LEAST_ROWS = 8, 3
_RULES = 5
# Rows of a small screen that the worst places, the bars with their head and the words have at least.
_LEAST_WORST, _LEAST_BARS, _FEW_WORDS = 2, 4, 6
# Of a large one the bars with head, legend and frame, where stages or ranks share a row.
_JOINED_BARS = 12
_AROUND_BARS = 4


def draw(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """The lines of the screen, at most `height` of them. progress: of the what-if table."""
    model.shows_all_key = True
    if not model.results.timed:
        return _draw_plan(model, width, height, glyphs)
    if width >= _WIDE and height >= _TALL:
        return _draw_boxes(model, width, height, glyphs, progress)
    return _Headings(model, width, height).lines(glyphs, progress)


def _bars(model: SummaryModel, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    """The bars, taller where a few have many rows."""
    model.fit(rows - 1)
    high = max(1, min((rows - 1) // max(len(model.bars.rows), 1), _HIGHEST))
    return model.bars.lines(width, model.row(STAGES), glyphs, model.panel == STAGES, high)


def _draw_boxes(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    is_folded = model.side_panel.is_empty
    model.set_panels(tuple(panel for panel in PANELS if panel != MAP or not is_folded))
    size = _Sizes(model, width, height, is_folded)
    left, right = size.left, size.right

    def framed(panel: str, title: str, aside: str, lines: list[Line], cells_: tuple[int, int]) -> list[Line]:
        return box(title, aside, lines, *cells_, glyphs, model.panel == panel)

    room = width - size.figure - 2, size.top - 2
    words, omission_text = fit_sentences(model.results.figures.words, *room)
    step = step_lines(model.results, glyphs, size.figure - 2, size.top - 2, model.more_memory())
    top = join_panels(
        box(_step_title(model.results), "", step, size.figure, size.top, glyphs),
        box(_words_title(model, omission_text, width - size.figure), model.model_title, words,
            width - size.figure, size.top, glyphs),
    )  # fmt: skip
    bars = _bars(model, left - 2, size.middle - 3, glyphs)
    bars += [[] for _ in range(size.middle - 3 - len(bars))]
    bars.append(model.bars.legend(left - 2, glyphs))
    bars_box = framed(STAGES, model.bars.title, "% of step", bars, (left, size.middle))
    finding_lines = worst_lines(model, right - 2, size.worst - 2, model.panel == WORST)
    right_boxes = framed(
        WORST, "Worst on a rank, % of step", "Enter goes there", finding_lines, (right, size.worst)
    )
    if not is_folded:
        table, rows = model.side_panel, size.middle - size.worst
        table_lines = table.lines(right - 2, rows - 2, model.cursor(MAP), glyphs, model.panel == MAP)
        title = _title_with_count(table.title, table, rows - 2)
        right_boxes = [*framed(MAP, title, table.aside, table_lines, (right, rows)), *right_boxes]
    diagnostics = model.notes
    # Names of changes differ at their ends.
    advice = width * _ADVICE_PERCENT // 100
    notes = note_lines(
        diagnostics, model.row(NOTES), width - advice - 2, size.bottom - 2, model.panel == NOTES
    )
    changes = change_lines(model, advice - 2, size.bottom - 2, progress)
    advice_title = model.advice_title(advice)
    # Frame, corners and what stands between the two.
    needs, aside = needs_and_keys(model, advice - 2, size.bottom - 2, advice - len(advice_title) - 12)
    advice_title += f"; {needs}" if needs else ""
    bottom_boxes = join_panels(
        framed(WHAT_IF, advice_title, aside, changes, (advice, size.bottom)),
        framed(NOTES, notes_title(diagnostics, width - advice), "", notes, (width - advice, size.bottom)),
    )
    return [*top, *join_panels(bars_box, right_boxes), *bottom_boxes]


def _step_title(run: Run) -> str:
    if run.recording is None:
        return "Step time"
    return "Replayed step" if run.recording.is_replayed else "Measured step"


def _words_title(model: SummaryModel, omission_text: str, width: int) -> str:
    """What the sentences are: the shares in those of a simulated run are of its step where they say no more.

    cut: as `told_and_cut` has it. width: of the box, which may have what made the rows beside the title.
    """
    of_step = ", % of step" if model.results.figures.states_shares else ""
    title, short = (
        f"In words{of_step}{omission_text and '; '}{omission_text}",
        f"In words{omission_text and ', '}{omission_text}",
    )
    # Two corners, the line and the blanks around both.
    room = width - len(model.model_title) - 11 if model.model_title else width
    forms = (title, title.removesuffix(" all"), short)
    return next((form for form in forms if len(form) <= room), short)


def _title_with_count(title: str, table: SidePanel, rows: int) -> str:
    """`Who waits for whom, 3 of 28` where a panel of `rows` lines, its head among them, has not all rows."""
    count, visible_count = table.extent[0], max(rows - 1, 1)
    if visible_count >= count or not isinstance(table, RankTable):
        return title
    return f"{title.removesuffix(', in all')}, {visible_count} of {count}"


class _Sizes:
    """Rows and columns of the panels in boxes: what is left over goes to words, then to advice and notes that
    would be cut, then to the bars.

    figure: cells of the step time; left, right: of the two columns. top, middle, bottom: rows of the words,
    of the bars and of the advice; worst: of the worst places.
    """

    def __init__(self, model: SummaryModel, width: int, height: int, is_folded: bool) -> None:
        """folded: whether nothing stands over the worst places."""
        self.figure = max(40, width // 3)
        # What leads on is cut before the bars are.
        self.left = width * (_ADVICE_PERCENT if width >= _SPELLED else 56) // 100
        findings = model.results.figures.worst_findings[:_MAX_FINDINGS]
        if width >= _SPELLED and model.results.shape.rank_map is not None:
            # Bars are read as well with fewer cells: names of places are not.
            needed = max((len(finding.words) for finding in findings), default=0) + 12
            self.left = max(min(self.left, width - needed), min(self.left, _LEAST_LEFT))
        self.right = width - self.left
        self.worst = len(findings) + 2
        # A row more where there are many, for what memory the fullest stage needs.
        step_rows = len(step_facts(model.results, self.figure - 2)) + 5
        step_rows += bool(model.results.model.memory_unknown)
        self.top = _TOP + (height >= _MANY and step_rows > _TOP)
        self.bottom = _BOTTOM + fixes_in_front(model.knobs or ())
        sentence_lines = word_lines(model.results.figures.words, width - self.figure - 2, _UNLIMITED)
        # Head, legend and frame around the bars.
        bars = model.bars.most_rows + _AROUND_BARS
        # A long table beside them can be moved through; advice and words that are cut are not seen.
        side_rows, least = self.worst, self.worst
        if not is_folded:
            side_rows += min(model.side_panel.extent[0], _SIDE_ROWS) + 6
            least += min(model.side_panel.extent[0], _LEAST_ROWS) + 4
        spare = height - self.top - self.bottom
        # The sentence that decides may be the second one: these two come before bars that can be joined.
        first_lines = word_lines(model.results.figures.words[:2], width - self.figure - 2, _UNLIMITED)
        more_rows = max(min(len(first_lines) + 2 - self.top, spare - max(min(bars, _JOINED_BARS), least)), 0)
        self.top, spare = self.top + more_rows, spare - more_rows
        self.top += max(min(len(sentence_lines) + 2 - self.top, spare - max(bars, least)), 0)
        spare = height - self.top - self.bottom - max(bars, side_rows)
        changes = _CHANGES if model.knobs is None else len(model.knobs)
        # The heading between the lists, what a change does, and the frame.
        advice = width * _ADVICE_PERCENT // 100
        notes = note_lines(model.notes, 0, width - advice - 2, _UNLIMITED, False)
        changes += 1 + max(meaning_rows(model.knobs, advice - 4), 1)
        needed = max(changes, len(notes)) + 2
        self.bottom += max(min(needed - self.bottom, spare), 0)
        self.middle = height - self.top - self.bottom
        # Stages that share rows leave some blank: 16 in 13 rows are 8.
        model.fit(self.middle - _AROUND_BARS)
        if len(model.bars.rows) < model.bars.most_rows:
            # A map beside them keeps its scale.
            blank_rows = min(self.middle - _AROUND_BARS - len(model.bars.rows), self.middle - least - 1)
            used_rows = max(min(blank_rows, needed - self.bottom), 0)
            self.bottom, self.middle = self.bottom + used_rows, self.middle - used_rows
        if is_folded:
            self.worst = self.middle


class _Memory:
    """What a small screen says of memory, once, in a row or in a rule with room for it: what the fullest
    stage needs, and what the change that was tried needs more.

    costs: the second alone, as `more_memory` has it. left: what is still to be said, the longest form first.
    """

    def __init__(self, model: SummaryModel, width: int) -> None:
        # Of a model the row on top has it.
        self._fullest = (
            fullest_stage_text(model.results, width) if model.results.model.model_figures is None else ""
        )
        self._width = width
        self.costs = model.more_memory()
        # What a change costs goes before where it is.
        behind = [words.removeprefix("memory ") for words in self.costs]
        self.remaining_forms = [f"{self._fullest}, {words}" for words in behind] if self._fullest else []
        self.remaining_forms += [
            f"memory {words}" if words.startswith("+") else words for words in self.costs
        ]
        self.remaining_forms = self.remaining_forms or [self._fullest] * bool(self._fullest)

    def sentence_row(self) -> Line:
        """All of it in a row of the words."""
        words = next(
            (form for form in self.remaining_forms if len(form) + 3 <= self._width), self.remaining_forms[-1]
        )
        self.remaining_forms = []
        return [(f" {words[0].upper()}{words[1:]}.", "warn" if self.costs else "")]

    def findings_title(self, plain_title: str) -> str:
        """The title of the worst places with it: the fullest stage is one of them."""
        if not self.remaining_forms:
            return plain_title
        # Both, or what the change costs: that is news, and what it needs was said of it before. In fewer
        # words, `15 mb held`, it was taken for bytes: what the shares are of stands over the bars, too.
        titles = (plain_title, plain_title.replace(", % of step", "")) if self.costs else (plain_title,)
        forms = ((title, form) for title in titles for form in (*self.remaining_forms, *self.costs))
        fits = [(title, form) for title, form in forms if len(title) + len(form) + 8 <= self._width]
        if not fits:
            return plain_title
        self.remaining_forms = []
        title, words = max(fits, key=lambda both: len(both[1]))
        return f"{title}; {words}"

    def full_advice_title(self, advice: str, needs: str, keys: str) -> str:
        """The title of the advice with its keys and what its first change needs, else with what the run
        needs, where that is still to be said. What its own change costs would be taken for the next one's.
        """
        run_needs = "" if self.costs or not self.remaining_forms else self.remaining_forms[0]
        if run_needs and not needs and len(advice) + len(keys) + len(run_needs) + 10 > self._width:
            # The last row has the key, too; memory is nowhere else.
            keys = ALL_IN_SHORT if keys.endswith(ALL) else ""
        advice += f", {keys}" if keys and len(advice) + len(keys) + 7 <= self._width else ""
        if run_needs and len(advice) + len(run_needs) + 8 <= self._width:
            needs = needs or run_needs
        return f"{advice}; {needs}" if needs else advice


class _Headings:
    """A small screen: the same order, no frames; the table takes the place of the bars. The words and the
    bars have their rows before all else, then whatever would be cut.

    worst, changes, notes, bars: rows of each part, its rule not among them. told: the lines of the words;
    cut: as `told_and_cut` has it. spare: rows that none of them needs.
    """

    def __init__(self, model: SummaryModel, width: int, height: int) -> None:
        self.model, self.width, self.height = model, width, height
        has_map = model.panel == MAP and not model.side_panel.is_empty
        model.set_panels((MAP if has_map else STAGES, WORST, WHAT_IF))
        self.worst, self.changes, self.notes = _LEAST_WORST, BOTH_LISTS + fixes_in_front(model.knobs or ()), 1
        most_bars, self.bars = self._rows_of_bars()
        self.memory = _Memory(model, width)
        word_room = height - _RULES - self.worst - self.changes - self.notes - self.bars
        least, word_room = self._rows_of_words(word_room)
        first_lines = word_lines(model.results.figures.words, width, least)
        self.spare = max(word_room - len(first_lines), 0)
        self.worst += self._take_rows(
            min(height // 5, len(model.results.figures.worst_findings)) - self.worst
        )
        if model.panel != MAP:
            # Rows that stages or ranks in groups leave blank are for words.
            model.fit(min(most_bars, self.bars + self.spare) - 1)
            most_bars = min(most_bars, len(model.bars.rows) + 1)
        self.bars += self._take_rows(most_bars - self.bars)
        self.sentence_lines, self.omission_text = fit_sentences(
            model.results.figures.words, width, len(first_lines) + self.spare
        )
        self.spare -= len(self.sentence_lines) - len(first_lines)
        if self.spare and self.memory.remaining_forms:
            self.sentence_lines.append(self.memory.sentence_row())
            self.spare -= 1
        self.changes += self._take_rows(
            (_CHANGES if model.knobs is None else len(model.knobs)) - self.changes
        )
        self.notes += self._take_rows(len(model.notes) - self.notes)
        if self.spare and model.results.model.memory_unknown:
            self.sentence_lines.append(
                [(f" Memory is not known: {model.results.model.memory_unknown}.", "dim")]
            )
            self.spare -= 1

    def _take_rows(self, rows: int) -> int:
        """So many of the rows that are left over, or as many as there are."""
        used_rows = max(min(rows, self.spare), 0)
        self.spare -= used_rows
        return used_rows

    def _rows_of_bars(self) -> tuple[int, int]:
        """The rows that the bars with their head can have, and those that they have in any case."""
        model = self.model
        most = (
            max(model.side_panel.extent[0] + 4, 3) if model.panel == MAP else max(model.bars.most_rows + 1, 2)
        )
        stages = len({track.stage for track in model.results.tracks})
        # Few stages have a row each, or two of them share one, and a row stays blank.
        least = min(most, _LEAST_BARS + (stages == _LEAST_BARS))
        if model.panel != MAP and stages <= _LEAST_BARS and least <= model.bars.least_rows <= _LEAST_BARS + 2:
            # The rank to blame has a row of its own.
            least = min(most, model.bars.least_rows + 1)
        return most, least

    def _rows_of_words(self, room: int) -> tuple[int, int]:
        """The rows of the words that come before places and bars, and how many there are for words. said: how
        many there would be; the second place may give one.
        """
        words, width = self.model.results.figures.words, self.width
        # The sentence that decides may be the second one.
        first = len(word_lines(words[:2], width, max(room, 1)))
        if (
            len(words) > 1
            and _VERDICT.match(words[1])
            and first == len(word_lines(words[:1], width, _UNLIMITED))
        ):
            # The first one is of the file: what the step is bound by comes before a second place.
            further = len(word_lines(words[:2], width, room + 1))
            if further > first:
                first, room = further, room + 1
                self.worst -= 1
        if first == len(word_lines(words[:1], width, max(room, 1))):
            # The second one is too long: what follows it, who is waited for mostly, has its place.
            first = len(word_lines(words[:3], width, max(room, 1)))
        return max(first, min(_FEW_WORDS, room), 1), room

    def lines(self, glyphs: Glyphs, progress: str) -> list[Line]:
        """The screen. progress: as `draw` has it."""
        model, width = self.model, self.width
        worst = worst_lines(model, width, self.worst, model.panel == WORST)
        changes = change_lines(model, width, self.changes, progress)
        # Notes say more with what these leave than a taller bar.
        spare = self.spare + self.worst - len(worst) + self.changes - len(changes)
        room = self.notes + (0 if model.panel == MAP else spare)
        notes = note_lines(model.notes, 0, width, room, False)
        title, body = self._bars_and_title(self.bars + spare + self.notes - len(notes), glyphs)
        # The words have no heading of their own: one below says that there are more, the first one with room.
        more_words = f"; in words {self.omission_text}" if self.omission_text else ""
        count = len(model.results.figures.worst_findings)
        findings_title = (
            f"Worst on a rank, % of step{f' ({len(worst)} of {count})' if len(worst) < count else ''}"
        )
        model_text = f"; {model.model_title}" if model.model_title else ""
        notes_heading = f"{notes_title(model.notes)}, ! all"
        effect_title = assumption_title(model.notes, len(notes), width)
        if effect_title:
            full_title = f"{effect_title}, ! all"
            forms = [(full_title, model_text)]
            if model.model_title.startswith("AICB: "):
                # Which model it is nothing else on a small screen says: its name alone, or it in place of the
                # assumption.
                name = f"; {model.model_title.removeprefix('AICB: ').partition(',')[0]}"
                forms += [(full_title, name), (notes_heading, model_text)]
            fits = [form for form in forms if sum(map(len, form)) + 4 <= width]
            notes_heading, model_text = fits[0] if fits else forms[0]
        if len(title) + len(more_words) + 4 <= width:
            title, more_words = title + more_words, ""
        elif self.memory.costs:
            # What a change costs is nowhere else.
            findings_title = self.memory.findings_title(findings_title)
        # Very narrow screens name the count alone.
        for words in (more_words, more_words.partition(",")[0]):
            if len(findings_title) + len(words) + 4 <= width:
                findings_title += words
                break
            if len(notes_heading) + len(words) + 4 <= width:
                notes_heading += words
                break
        findings_title = self.memory.findings_title(findings_title)
        if len(notes_heading) + len(model_text) + 4 <= width:
            notes_heading += model_text
        advice = self._advice_title()
        lines = [
            *self.sentence_lines,
            *(rule(title, width, glyphs), *body, model.bars.legend(width, glyphs)),
            *(rule(findings_title, width, glyphs), *worst),
            *(rule(advice, width, glyphs), *changes),
            *(rule(notes_heading, width, glyphs), *notes),
        ]
        return lines[: self.height]

    def _advice_title(self) -> str:
        """What stands over the advice, with what its first change needs of memory, and the keys. Why that is
        as much as now comes before what the shares are of, which stands over the bars, and before the key of
        screen 4, which the row of the screens has.
        """
        model, width = self.model, self.width
        title = model.advice_title(width)
        short = title.replace(", % of step", "")
        # The rule, and a comma and a semicolon with their blanks.
        needs, keys = needs_and_keys(model, width, self.changes, width - len(title) - 8)
        why = model.describe_memory(width - len(short) - 6)
        model.shows_all_key = BOTH_HOLD not in why or BOTH_HOLD in needs
        if not model.shows_all_key:
            title, needs, keys = short, why, ""
        return self.memory.full_advice_title(title, needs, keys)

    def _bars_and_title(self, rows: int, glyphs: Glyphs) -> tuple[str, list[Line]]:
        """The bars in so many rows, or the table in their place, and what stands over them."""
        model, width = self.model, self.width
        if model.panel == MAP:
            table = model.side_panel
            title = _title_with_count(table.heading, table, rows)
            body = table.lines(width, rows, model.cursor(MAP), glyphs, True)[:rows]
        else:
            # Of 16 stages with 16 micro-batches it was asked which the 16 are.
            each = each_words(model.results.shape, " mb")
            body = _bars(model, width, rows, glyphs)[:rows]
            title = f"{model.bars.title}, % of step{'; ' if each else ''}{each}"
        return title, body + [[] for _ in range(rows - len(body))]


def _draw_plan(model: SummaryModel, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Of a plan there is an order and no time."""
    # Imported here: no other run has use for it.
    from simcore.render.report.measured import order_lines

    recording = model.results.recording
    assert recording is not None
    model.set_panels((NOTES,))
    notes = model.notes
    rows = min(len(notes), max(height // 4, 1))
    lines: list[Line] = [
        rule(f"{model.results.figures.title}: there is no step time, and nothing waits", width, glyphs),
        *([(f" {cells(line, 400)}", "")] for line in order_lines(recording.run, width - 2)),
    ]
    below = [
        rule(f"{notes_title(notes)}, ! all", width, glyphs),
        *note_lines(notes, model.row(NOTES), width, rows, True),
    ]
    room = height - len(below)
    if len(lines) > room:
        lines = [*lines[: room - 1], [(" ... 3 has all operations", "dim")]]
    return [*lines, *([[]] * (room - len(lines))), *below]
