"""The summary as a frame: panels in boxes on a large screen, under headings on a small one."""

from __future__ import annotations

from simcore.trace.run import Run
from simcore.units import plural
from tui.frame import Glyphs, Line, cells, count_title, rule
from tui.panels import BOTH_LISTS, WHAT_IF, box, fixes_in_front, join_panels, meaning_rows
from tui.summary.model import MAP, NOTES, PANELS, STAGES, WORST, SummaryModel
from tui.summary.panels import (
    UNLIMITED,
    VERDICT,
    change_lines,
    decisive_first,
    fullest_stage_text,
    leaves_out_changes,
    note_lines,
    note_rows,
    sentence_lines,
    step_facts,
    step_lines,
    word_lines,
)
from tui.summary.side_panels import RankTable, SidePanel
from tui.summary.worst import worst_lines

_WORST_TITLE, _OF_STEP = "Worst on a rank", "% of step"
_WIDE, _SPELLED, _TALL, _MANY = 100, 116, 26, 34
# A screen with fewer rows has none for memory, nor for an assumption behind the first note.
_LOW = 20
# Cells of the bars with full names and their frame.
_LEAST_LEFT = 66
# Cells of the kernels of a profile with their frame, and the least of the bars next to them; the least rows
# of kernels.
_KERNELS, _NARROW_BARS, _LEAST_KERNELS = 84, 52, 7
_TOP, _BOTTOM, _ADVICE_PERCENT = 7, 6, 60
# The most findings; the rows for changes while they are computed; the most lines of a bar.
_MAX_FINDINGS, _CHANGES, _HIGHEST = 7, 12, 4
# Rows of the table next to the bars that are taken neither by other panels, nor by the words. On a small
# screen: the rules over its parts, and the legend.
_SIDE_ROWS, _LEAST_ROWS = 8, 3
_RULES = 5
# The least rows of a small screen for the worst findings, for the bars with their heading, and for the words.
_LEAST_WORST, _LEAST_BARS, _FEW_WORDS = 2, 4, 6
# The least rows on a large screen for bars with heading, legend and frame, where stages or ranks share a row.
_JOINED_BARS = 12
_AROUND_BARS = 4


def draw(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """Returns the lines of the screen, at most `height` of them. progress: of the what-if table."""
    model.keys_to_more = frozenset()
    if model.hang_rows:
        from tui.summary.hang import draw_hang

        return draw_hang(model, width, height, glyphs)
    if model.snapshot is not None:
        from tui.summary.snapshot import draw_snapshot

        return draw_snapshot(model, width, height, glyphs)
    if not model.results.timed:
        return _draw_plan(model, width, height, glyphs)
    if width >= _WIDE and height >= _TALL:
        return _draw_boxes(model, width, height, glyphs, progress)
    return _Headings(model, width, height).lines(glyphs, progress)


def _padded(lines: list[Line], rows: int) -> list[Line]:
    """Returns lines with blank ones behind them, `rows` in all."""
    return lines + [[] for _ in range(rows - len(lines))]


def _bars(model: SummaryModel, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    """Returns the bars, of several lines each where there are many rows for few bars."""
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
    words, count, is_cut = sentence_lines(model, *room)
    step = step_lines(model.results, glyphs, size.figure - 2, size.top - 2, model.more_memory())
    # The bars say what shares are of, too; nothing else names what made the rows.
    unit = model.model_title or (_OF_STEP if model.results.figures.states_shares else "")
    words_title = count_title("In words", count, len(model.words))
    top = join_panels(
        box(_step_title(model.results), "", step, size.figure, size.top, glyphs),
        box(words_title, unit, words, width - size.figure, size.top, glyphs),
    )
    bars = _bars(model, left - 2, size.middle - 3, glyphs)
    bars = [*_padded(bars, size.middle - 3), model.bars.legend(left - 2, glyphs)]
    bars_box = framed(STAGES, model.bars.title, _OF_STEP, bars, (left, size.middle))
    finding_lines = worst_lines(model, right - 2, size.worst - 2, model.panel == WORST)
    worst_title = count_title(_WORST_TITLE, len(finding_lines), len(model.findings))
    right_boxes = framed(WORST, worst_title, _OF_STEP, finding_lines, (right, size.worst))
    if not is_folded:
        table, rows = model.side_panel, size.middle - size.worst
        table_lines = table.lines(right - 2, rows - 2, model.cursor(MAP), glyphs, model.panel == MAP)
        title = _title_with_count(table.title, table, rows - 2)
        right_boxes = [*framed(MAP, title, table.unit, table_lines, (right, rows)), *right_boxes]
    # Names of changes differ at their ends.
    advice = width * _ADVICE_PERCENT // 100
    notes = note_lines(
        model.notes, model.row(NOTES), width - advice - 2, size.bottom - 2, model.panel == NOTES
    )
    changes = change_lines(model, advice - 2, size.bottom - 2, progress)
    _set_keys(model, is_cut, leaves_out_changes(model, advice - 2, size.bottom - 2))
    notes_title = count_title("Notes", size.bottom - 2, len(model.notes))
    bottom_boxes = join_panels(
        framed(WHAT_IF, model.advice_title, _OF_STEP, changes, (advice, size.bottom)),
        framed(NOTES, notes_title, "", notes, (width - advice, size.bottom)),
    )
    return [*top, *join_panels(bars_box, right_boxes), *bottom_boxes]


def _set_keys(model: SummaryModel, cuts_words: bool, cuts_changes: bool) -> None:
    """Sets the keys that lead to what the screen has no room for."""
    model.keys_to_more = frozenset(["Space"] * cuts_words + ["4"] * cuts_changes)


def _step_title(run: Run) -> str:
    recording = run.recording
    if recording is None:
        return "Step time"
    title = "Replayed step" if recording.is_replayed else "Measured step"
    if not recording.has_several_steps or recording.run.shown_step is None:
        return title
    count = max(len(one.columns) for one in recording.run.rank_steps)
    return f"{title} {recording.run.shown_step}, 8 has all {count}"


def _title_with_count(title: str, table: SidePanel, rows: int) -> str:
    """Returns `Who waits for whom, 3 of 28`, or `Ranks, 25 rows more`, where a panel of `rows` lines lacks
    some rows.
    """
    count, visible_count = table.size[0], table.visible_count(rows)
    if visible_count >= count or isinstance(table, RankTable):
        return count_title(title, visible_count, count)
    return f"{title}, {plural(count - visible_count, 'row')} more"


class _Sizes:
    """Rows and columns of the panels in boxes. Free rows go to the words, then to advice and notes that would
    be truncated, then to the bars.

    `figure` is the cells of the step time, `left` and `right` those of the two columns. `top`, `middle` and
    `bottom` are the rows of the words, of the bars and of the advice, `worst` those of the worst findings.
    """

    def __init__(self, model: SummaryModel, width: int, height: int, is_folded: bool) -> None:
        """Distributes the rows. is_folded: whether nothing stands over the worst findings."""
        self.figure = max(40, width // 3)
        # The panels on the right are truncated before the bars are.
        self.left = width * (_ADVICE_PERCENT if width >= _SPELLED else 56) // 100
        findings, finding_cells = model.findings_to_fit
        knobs = model.knobs_to_fit
        if width >= _SPELLED and model.results.shape.rank_map is not None:
            # Bars read as well with fewer cells: the names of findings do not.
            self.left = max(min(self.left, width - finding_cells - 12), min(self.left, _LEAST_LEFT))
        recording = model.results.recording
        has_kernels = recording is not None and recording.run.has_kernels
        if has_kernels:
            # Names of kernels are longer than anything of a rank.
            self.left = min(self.left, max(width - _KERNELS, _NARROW_BARS))
        self.right = width - self.left
        self.worst = min(findings, _MAX_FINDINGS) + 2
        # One row more where there are many, for the memory that the fullest stage needs.
        step_rows = len(step_facts(model.results, self.figure - 2)) + 5
        step_rows += bool(model.results.model.memory_unknown)
        self.top = _TOP + (height >= _MANY and step_rows > _TOP)
        self.bottom = _BOTTOM + fixes_in_front(knobs or ())
        all_lines = word_lines(model.words_to_fit, width - self.figure - 2, UNLIMITED)
        # Heading, legend and frame around the bars.
        bars = model.bars.most_rows + _AROUND_BARS
        # One can scroll a long table next to them; truncated advice and words are not seen.
        side_rows, least = self.worst, self.worst
        if not is_folded:
            side_rows += min(model.side_panel.size[0], _SIDE_ROWS) + 6
            least_rows = _LEAST_KERNELS if has_kernels else _LEAST_ROWS
            least += min(model.side_panel.size[0], least_rows) + 4
        spare = height - self.top - self.bottom
        # The sentence that decides may be the second one: both come before bars that can be merged.
        first_lines = word_lines(model.words_to_fit[:2], width - self.figure - 2, UNLIMITED)
        more_rows = max(min(len(first_lines) + 2 - self.top, spare - max(min(bars, _JOINED_BARS), least)), 0)
        self.top, spare = self.top + more_rows, spare - more_rows
        self.top += max(min(len(all_lines) + 2 - self.top, spare - max(bars, least)), 0)
        spare = height - self.top - self.bottom - max(bars, side_rows)
        changes = _CHANGES if knobs is None else len(knobs)
        # The heading between the lists, what a change does, and the frame.
        advice = width * _ADVICE_PERCENT // 100
        notes = note_rows(model, width - advice - 2)
        changes += 1 + max(meaning_rows(knobs, advice - 4), 1)
        needed = max(changes, notes) + 2
        self.bottom += max(min(needed - self.bottom, spare), 0)
        self.middle = height - self.top - self.bottom
        # Stages that share rows leave some blank: 16 stages in 13 rows take 8 of them.
        model.fit(self.middle - _AROUND_BARS)
        if len(model.bars.rows) < model.bars.most_rows:
            # A map next to them keeps its scale.
            blank_rows = min(self.middle - _AROUND_BARS - len(model.bars.rows), self.middle - least - 1)
            used_rows = max(min(blank_rows, needed - self.bottom), 0)
            self.bottom, self.middle = self.bottom + used_rows, self.middle - used_rows
        if is_folded:
            self.worst = self.middle


def _memory_line(model: SummaryModel, width: int) -> Line:
    """Returns what the fullest stage needs, and what the change that was tried needs more, in a row of a
    small screen; empty where neither is known, or the top row has it.
    """
    costs = model.more_memory()
    # The top row has it for a model.
    is_model = model.results.model.model_figures is not None
    fullest = "" if is_model else fullest_stage_text(model.results, width)
    # The additional memory comes before its place.
    forms = [f"{fullest}, {words.removeprefix('memory ')}" for words in costs if fullest]
    forms += [f"memory {words}" if words.startswith("+") else words for words in costs]
    forms += [fullest] if fullest else []
    if not forms:
        return []
    words = next((form for form in forms if len(form) + 3 <= width), forms[-1])
    return [(f" {words[0].upper()}{words[1:]}.", "warn" if costs else "")]


class _Headings:
    """A small screen: the same order without frames; the table replaces the bars. The words and the bars have
    their rows first, then whatever would be truncated.

    `worst`, `changes`, `notes` and `bars` are the rows of each part without its rule, `spare` the rows that
    no part needs. `sentence_lines` are the lines of the words, `cuts_words` is whether some have no room.
    """

    def __init__(self, model: SummaryModel, width: int, height: int) -> None:
        self.model, self.width, self.height = model, width, height
        has_map = model.panel == MAP and not model.side_panel.is_empty
        model.set_panels((MAP if has_map else STAGES, WORST, WHAT_IF))
        findings, _ = model.findings_to_fit
        knobs, words = model.knobs_to_fit, model.words_to_fit
        self.worst, self.changes, self.notes = _LEAST_WORST, BOTH_LISTS + fixes_in_front(knobs or ()), 1
        self.ordered_notes, note_rows = decisive_first(model.notes)
        if height >= _LOW:
            self.notes = note_rows
        most_bars, self.bars = self._rows_of_bars()
        memory_line = _memory_line(model, width)
        word_room = height - _RULES - self.worst - self.changes - self.notes - self.bars
        # What a change costs comes before what a further sentence says.
        has_memory_row = bool(memory_line) and (height >= _LOW or bool(model.more_memory()))
        word_room -= has_memory_row
        least, word_room = self._rows_of_words(word_room)
        first_lines = word_lines(words, width, least)
        self.spare = max(word_room - len(first_lines), 0)
        self.worst += self._take_rows(min(height // 5, findings) - self.worst)
        if model.panel != MAP:
            # Rows that stages or ranks in groups leave blank go to the words.
            model.fit(min(most_bars, self.bars + self.spare) - 1)
            most_bars = min(most_bars, len(model.bars.rows) + 1)
        self.bars += self._take_rows(most_bars - self.bars)
        all_lines = word_lines(words, width, len(first_lines) + self.spare)
        self.spare -= len(all_lines) - len(first_lines)
        self.sentence_lines, _, self.cuts_words = sentence_lines(model, width, len(all_lines))
        if memory_line and (has_memory_row or self.spare):
            self.sentence_lines.append(memory_line)
            self.spare -= not has_memory_row
        self.changes += self._take_rows((_CHANGES if knobs is None else len(knobs)) - self.changes)
        self.notes += self._take_rows(len(model.notes) - self.notes)
        if self.spare and model.results.model.memory_unknown:
            self.sentence_lines.append(
                [(f" Memory is not known: {model.results.model.memory_unknown}.", "dim")]
            )
            self.spare -= 1

    def _take_rows(self, rows: int) -> int:
        """Takes this many of the spare rows, or as many as there are, and returns how many."""
        used_rows = max(min(rows, self.spare), 0)
        self.spare -= used_rows
        return used_rows

    def _rows_of_bars(self) -> tuple[int, int]:
        """Returns the most rows that the bars with their heading can use, and the least that they get."""
        model = self.model
        most = (
            max(model.side_panel.size[0] + 4, 3) if model.panel == MAP else max(model.bars.most_rows + 1, 2)
        )
        stages = len({track.stage for track in model.results.tracks})
        # Few stages have a row each, or two of them share one, and a row stays blank.
        least = min(most, _LEAST_BARS + (stages == _LEAST_BARS))
        if model.panel != MAP and stages <= _LEAST_BARS and least <= model.bars.least_rows <= _LEAST_BARS + 2:
            # The slow rank has a row of its own.
            least = min(most, model.bars.least_rows + 1)
        return most, least

    def _rows_of_words(self, room: int) -> tuple[int, int]:
        """Returns the rows of the words that come before findings and bars, and the rows available for words.
        room: the available rows; the second finding may give up one.
        """
        words, width = self.model.words_to_fit, self.width
        # The sentence that decides may be the second one.
        first = len(word_lines(words[:2], width, max(room, 1)))
        if (
            len(words) > 1
            and VERDICT.match(words[1])
            and first == len(word_lines(words[:1], width, UNLIMITED))
        ):
            # The first sentence is about the file: what the step is bound by comes before a second finding.
            further = len(word_lines(words[:2], width, room + 1))
            if further > first:
                first, room = further, room + 1
                self.worst -= 1
        if first == len(word_lines(words[:1], width, max(room, 1))):
            # The second sentence is too long: the one that follows, who is waited for most, takes its rows.
            first = len(word_lines(words[:3], width, max(room, 1)))
        return max(first, min(_FEW_WORDS, room), 1), room

    def lines(self, glyphs: Glyphs, progress: str) -> list[Line]:
        """Returns the lines of the screen. progress: as in `draw`."""
        model, width = self.model, self.width
        worst = worst_lines(model, width, self.worst, model.panel == WORST)
        changes = change_lines(model, width, self.changes, progress)
        if model.is_long:
            # What comes later moves nothing.
            worst, changes = _padded(worst, self.worst), _padded(changes, self.changes)
        # Notes say more with the free rows than a taller bar.
        spare = self.spare + self.worst - len(worst) + self.changes - len(changes)
        room = self.notes + (0 if model.panel == MAP or model.is_long else spare)
        notes = note_lines(self.ordered_notes, 0, width, room, False)
        title, unit, body = self._bars_and_title(self.bars + spare + self.notes - len(notes), glyphs)
        _set_keys(model, self.cuts_words, leaves_out_changes(model, width, self.changes))
        worst_title = count_title(_WORST_TITLE, len(worst), len(model.findings))
        notes_title = count_title("Notes", max(room, self.notes), len(model.notes))
        lines = [
            *self.sentence_lines,
            *(rule(title, width, glyphs, unit), *body, model.bars.legend(width, glyphs)),
            *(rule(worst_title, width, glyphs, _OF_STEP), *worst),
            *(rule(model.advice_title, width, glyphs, _OF_STEP), *changes),
            *(rule(notes_title, width, glyphs, model.model_title), *notes),
        ]
        return lines[: self.height]

    def _bars_and_title(self, rows: int, glyphs: Glyphs) -> tuple[str, str, list[Line]]:
        """Returns (title, unit, lines) of the bars in this many rows, or of the table that replaces them."""
        model, width = self.model, self.width
        if model.panel == MAP:
            table = model.side_panel
            title, unit = _title_with_count(table.title, table, rows), table.unit
            body = table.lines(width, rows, model.cursor(MAP), glyphs, True)[:rows]
        else:
            body = _bars(model, width, rows, glyphs)[:rows]
            title, unit = model.bars.title, _OF_STEP
        return title, unit, _padded(body, rows)


def _draw_plan(model: SummaryModel, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Returns the screen of a plan, which has an order and no times."""
    # Imported here: no other run needs it.
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
        rule(count_title("Notes", rows, len(notes)), width, glyphs),
        *note_lines(notes, model.row(NOTES), width, rows, True),
    ]
    room = height - len(below)
    if len(lines) > room:
        lines = [*lines[: room - 1], [(" ... 3 has all operations", "dim")]]
    return [*lines, *([[]] * (room - len(lines))), *below]
