"""The summary as a frame: panels in boxes on a large screen, under headings on a small one."""

from __future__ import annotations

import re

from simcore.trace.figures import each_words
from simcore.trace.run import Run
from tui.change_words import BOTH_HOLD
from tui.frame import Glyphs, Line, cells, rule
from tui.panels import BOTH_LISTS, WHAT_IF, beside, box, fixes_in_front, meaning_rows
from tui.summary.beside import BesidePanel, RankTable
from tui.summary.model import MAP, NOTES, PANELS, STAGES, WORST, SummaryModel
from tui.summary.panels import (
    ALL,
    ALL_IN_SHORT,
    fullest_words,
    help_lines,
    needs_and_keys,
    note_lines,
    notes_title,
    step_facts,
    step_lines,
    titled_by_stake,
    told_and_cut,
    word_lines,
)
from tui.summary.worst import worst_lines

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
_AROUND_BARS = 4


def draw(model: SummaryModel, width: int, height: int, glyphs: Glyphs, progress: str) -> list[Line]:
    """The lines of the screen, at most `height` of them. progress: of the what-if table."""
    model.tells_where_all_are = True
    if not model.results.timed:
        return _order(model, width, height, glyphs)
    if width >= _WIDE and height >= _TALL:
        return _boxes(model, width, height, glyphs, progress)
    return _Headings(model, width, height).lines(glyphs, progress)


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
    words, cut = told_and_cut(model.results.figures.words, *room)
    step = step_lines(model.results, glyphs, size.figure - 2, size.top - 2, model.more_memory())
    top = beside(
        box(_step_title(model.results), "", step, size.figure, size.top, glyphs),
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
    helps = model.advice_title(advice)
    # Frame, corners and what stands between the two.
    needs, aside = needs_and_keys(model, advice - 2, size.bottom - 2, advice - len(helps) - 12)
    helps += f"; {needs}" if needs else ""
    below = beside(
        framed(WHAT_IF, helps, aside, changes, (advice, size.bottom)),
        framed(NOTES, notes_title(diagnostics, width - advice), "", notes, (width - advice, size.bottom)),
    )
    return [*top, *beside(where, column), *below]


def _step_title(run: Run) -> str:
    if run.recording is None:
        return "Step time"
    return "Replayed step" if run.recording.is_replayed else "Measured step"


def _words_title(model: SummaryModel, cut: str, width: int) -> str:
    """What the sentences are: the shares in those of a simulated run are of its step where they say no more.

    cut: as `told_and_cut` has it. width: of the box, which may have what made the rows beside the title.
    """
    of_step = ", % of step" if model.results.figures.in_shares else ""
    title, short = f"In words{of_step}{cut and '; '}{cut}", f"In words{cut and ', '}{cut}"
    # Two corners, the line and the blanks around both.
    room = width - len(model.behind) - 11 if model.behind else width
    forms = (title, title.removesuffix(" all"), short)
    return next((form for form in forms if len(form) <= room), short)


def _counted(title: str, table: BesidePanel, rows: int) -> str:
    """`Who waits for whom, 3 of 28` where a panel of `rows` lines, its head among them, has not all rows."""
    count, shown = table.extent[0], max(rows - 1, 1)
    if shown >= count or not isinstance(table, RankTable):
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
        places = model.results.figures.worst[:_MOST_PLACES]
        if width >= _SPELLED and model.results.shape.rank_map is not None:
            # Bars are read as well with fewer cells: names of places are not.
            wanted = max((len(place.words) for place in places), default=0) + 12
            self.left = max(min(self.left, width - wanted), min(self.left, _LEAST_LEFT))
        self.right = width - self.left
        self.worst = len(places) + 2
        # A row more where there are many, for what memory the fullest stage needs.
        said_of_step = len(step_facts(model.results, self.figure - 2)) + 5
        said_of_step += bool(model.results.model.memory_unknown)
        self.top = _TOP + (height >= _MANY and said_of_step > _TOP)
        self.bottom = _BOTTOM + fixes_in_front(model.knobs or ())
        said = word_lines(model.results.figures.words, width - self.figure - 2, _ANY)
        # Head, legend and frame around the bars.
        bars = model.bars.most_rows + _AROUND_BARS
        # A long table beside them can be moved through; advice and words that are cut are not seen.
        beside, least = self.worst, self.worst
        if not folded:
            beside += min(model.beside.extent[0], _BESIDE_ROWS) + 6
            least += min(model.beside.extent[0], _LEAST_ROWS) + 4
        spare = height - self.top - self.bottom
        # The sentence that decides may be the second one: these two come before bars that can be joined.
        first = word_lines(model.results.figures.words[:2], width - self.figure - 2, _ANY)
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
        # Stages that share rows leave some blank: 16 in 13 rows are 8.
        model.fit(self.middle - _AROUND_BARS)
        if len(model.bars.rows) < model.bars.most_rows:
            # A map beside them keeps its scale.
            blank = min(self.middle - _AROUND_BARS - len(model.bars.rows), self.middle - least - 1)
            taken = max(min(blank, wanted - self.bottom), 0)
            self.bottom, self.middle = self.bottom + taken, self.middle - taken
        if folded:
            self.worst = self.middle


class _Memory:
    """What a small screen says of memory, once, in a row or in a rule with room for it: what the fullest
    stage needs, and what the change that was tried needs more.

    costs: the second alone, as `more_memory` has it. left: what is still to be said, the longest form first.
    """

    def __init__(self, model: SummaryModel, width: int) -> None:
        # Of a model the row on top has it.
        self._fullest = (
            fullest_words(model.results, width) if model.results.model.model_figures is None else ""
        )
        self._width = width
        self.costs = model.more_memory()
        # What a change costs goes before where it is.
        behind = [words.removeprefix("memory ") for words in self.costs]
        self.left = [f"{self._fullest}, {words}" for words in behind] if self._fullest else []
        self.left += [f"memory {words}" if words.startswith("+") else words for words in self.costs]
        self.left = self.left or [self._fullest] * bool(self._fullest)

    def row(self) -> Line:
        """All of it in a row of the words."""
        words = next((form for form in self.left if len(form) + 3 <= self._width), self.left[-1])
        self.left = []
        return [(f" {words[0].upper()}{words[1:]}.", "warn" if self.costs else "")]

    def behind_places(self, places: str) -> str:
        """The title of the worst places with it: the fullest stage is one of them."""
        if not self.left:
            return places
        # Both, or what the change costs: that is news, and what it needs was said of it before. In fewer
        # words, `15 mb held`, it was taken for bytes: what the shares are of stands over the bars, too.
        titles = (places, places.replace(", % of step", "")) if self.costs else (places,)
        forms = ((title, form) for title in titles for form in (*self.left, *self.costs))
        fits = [(title, form) for title, form in forms if len(title) + len(form) + 8 <= self._width]
        if not fits:
            return places
        self.left = []
        title, words = max(fits, key=lambda both: len(both[1]))
        return f"{title}; {words}"

    def behind_advice(self, advice: str, needs: str, keys: str) -> str:
        """The title of the advice with its keys and what its first change needs, else with what the run
        needs, where that is still to be said. What its own change costs would be taken for the next one's.
        """
        left = "" if self.costs or not self.left else self.left[0]
        if left and not needs and len(advice) + len(keys) + len(left) + 10 > self._width:
            # The last row has the key, too; memory is nowhere else.
            keys = ALL_IN_SHORT if keys.endswith(ALL) else ""
        advice += f", {keys}" if keys and len(advice) + len(keys) + 7 <= self._width else ""
        if left and len(advice) + len(left) + 8 <= self._width:
            needs = needs or left
        return f"{advice}; {needs}" if needs else advice


class _Headings:
    """A small screen: the same order, no frames; the table takes the place of the bars. The words and the
    bars have their rows before all else, then whatever would be cut.

    worst, changes, notes, bars: rows of each part, its rule not among them. told: the lines of the words;
    cut: as `told_and_cut` has it. spare: rows that none of them needs.
    """

    def __init__(self, model: SummaryModel, width: int, height: int) -> None:
        self.model, self.width, self.height = model, width, height
        has_map = model.panel == MAP and not model.beside.is_empty
        model.set_panels((MAP if has_map else STAGES, WORST, WHAT_IF))
        self.worst, self.changes, self.notes = _LEAST_WORST, BOTH_LISTS + fixes_in_front(model.knobs or ()), 1
        most_bars, self.bars = self._rows_of_bars()
        self.memory = _Memory(model, width)
        said = height - _RULES - self.worst - self.changes - self.notes - self.bars
        least, said = self._rows_of_words(said)
        told = word_lines(model.results.figures.words, width, least)
        self.spare = max(said - len(told), 0)
        self.worst += self._take(min(height // 5, len(model.results.figures.worst)) - self.worst)
        if model.panel != MAP:
            # Rows that stages or ranks in groups leave blank are for words.
            model.fit(min(most_bars, self.bars + self.spare) - 1)
            most_bars = min(most_bars, len(model.bars.rows) + 1)
        self.bars += self._take(most_bars - self.bars)
        self.told, self.cut = told_and_cut(model.results.figures.words, width, len(told) + self.spare)
        self.spare -= len(self.told) - len(told)
        if self.spare and self.memory.left:
            self.told.append(self.memory.row())
            self.spare -= 1
        self.changes += self._take((_CHANGES if model.knobs is None else len(model.knobs)) - self.changes)
        self.notes += self._take(len(model.notes) - self.notes)
        if self.spare and model.results.model.memory_unknown:
            self.told.append([(f" Memory is not known: {model.results.model.memory_unknown}.", "dim")])
            self.spare -= 1

    def _take(self, rows: int) -> int:
        """So many of the rows that are left over, or as many as there are."""
        taken = max(min(rows, self.spare), 0)
        self.spare -= taken
        return taken

    def _rows_of_bars(self) -> tuple[int, int]:
        """The rows that the bars with their head can have, and those that they have in any case."""
        model = self.model
        most = max(model.beside.extent[0] + 4, 3) if model.panel == MAP else max(model.bars.most_rows + 1, 2)
        stages = len({track.stage for track in model.results.tracks})
        # Few stages have a row each, or two of them share one, and a row stays blank.
        least = min(most, _LEAST_BARS + (stages == _LEAST_BARS))
        if model.panel != MAP and stages <= _LEAST_BARS and least <= model.bars.least_rows <= _LEAST_BARS + 2:
            # The rank to blame has a row of its own.
            least = min(most, model.bars.least_rows + 1)
        return most, least

    def _rows_of_words(self, said: int) -> tuple[int, int]:
        """The rows of the words that come before places and bars, and how many there are for words. said: how
        many there would be; the second place may give one.
        """
        words, width = self.model.results.figures.words, self.width
        # The sentence that decides may be the second one.
        first = len(word_lines(words[:2], width, max(said, 1)))
        if len(words) > 1 and _VERDICT.match(words[1]) and first == len(word_lines(words[:1], width, _ANY)):
            # The first one is of the file: what the step is bound by comes before a second place.
            further = len(word_lines(words[:2], width, said + 1))
            if further > first:
                first, said = further, said + 1
                self.worst -= 1
        if first == len(word_lines(words[:1], width, max(said, 1))):
            # The second one is too long: what follows it, who is waited for mostly, has its place.
            first = len(word_lines(words[:3], width, max(said, 1)))
        return max(first, min(_FEW_WORDS, said), 1), said

    def lines(self, glyphs: Glyphs, progress: str) -> list[Line]:
        """The screen. progress: as `draw` has it."""
        model, width = self.model, self.width
        worst = worst_lines(model, width, self.worst, model.panel == WORST)
        changes = help_lines(model, width, self.changes, progress)
        # Notes say more with what these leave than a taller bar.
        spare = self.spare + self.worst - len(worst) + self.changes - len(changes)
        room = self.notes + (0 if model.panel == MAP else spare)
        notes = note_lines(model.notes, 0, width, room, False)
        title, body = self._bars_and_title(self.bars + spare + self.notes - len(notes), glyphs)
        # The words have no heading of their own: one below says that there are more, the first one with room.
        more_words = f"; in words {self.cut}" if self.cut else ""
        count = len(model.results.figures.worst)
        places = f"Worst on a rank, % of step{f' ({len(worst)} of {count})' if len(worst) < count else ''}"
        behind = f"; {model.behind}" if model.behind else ""
        about_notes = f"{notes_title(model.notes)}, ! all"
        by_stake = titled_by_stake(model.notes, len(notes), width)
        if by_stake:
            titled = f"{by_stake}, ! all"
            forms = [(titled, behind)]
            if model.behind.startswith("AICB: "):
                # Which model it is nothing else on a small screen says: its name alone, or it in place of the
                # assumption.
                name = f"; {model.behind.removeprefix('AICB: ').partition(',')[0]}"
                forms += [(titled, name), (about_notes, behind)]
            fits = [form for form in forms if sum(map(len, form)) + 4 <= width]
            about_notes, behind = fits[0] if fits else forms[0]
        if len(title) + len(more_words) + 4 <= width:
            title, more_words = title + more_words, ""
        elif self.memory.costs:
            # What a change costs is nowhere else.
            places = self.memory.behind_places(places)
        # Very narrow screens name the count alone.
        for words in (more_words, more_words.partition(",")[0]):
            if len(places) + len(words) + 4 <= width:
                places += words
                break
            if len(about_notes) + len(words) + 4 <= width:
                about_notes += words
                break
        places = self.memory.behind_places(places)
        if len(about_notes) + len(behind) + 4 <= width:
            about_notes += behind
        advice = self._advice_title()
        lines = [
            *self.told,
            *(rule(title, width, glyphs), *body, model.bars.legend(width, glyphs)),
            *(rule(places, width, glyphs), *worst),
            *(rule(advice, width, glyphs), *changes),
            *(rule(about_notes, width, glyphs), *notes),
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
        why = model.needs_words(width - len(short) - 6)
        model.tells_where_all_are = BOTH_HOLD not in why or BOTH_HOLD in needs
        if not model.tells_where_all_are:
            title, needs, keys = short, why, ""
        return self.memory.behind_advice(title, needs, keys)

    def _bars_and_title(self, rows: int, glyphs: Glyphs) -> tuple[str, list[Line]]:
        """The bars in so many rows, or the table in their place, and what stands over them."""
        model, width = self.model, self.width
        if model.panel == MAP:
            table = model.beside
            title = _counted(table.heading, table, rows)
            body = table.lines(width, rows, model.cursor(MAP), glyphs, True)[:rows]
        else:
            # Of 16 stages with 16 micro-batches it was asked which the 16 are.
            each = each_words(model.results.shape, " mb")
            body = _bars(model, width, rows, glyphs)[:rows]
            title = f"{model.bars.title}, % of step{'; ' if each else ''}{each}"
        return title, body + [[] for _ in range(rows - len(body))]


def _order(model: SummaryModel, width: int, height: int, glyphs: Glyphs) -> list[Line]:
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
