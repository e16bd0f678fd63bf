"""The prompts of the timeline: the search, which jumps while one types, the filter, which lanes,
which mark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget

from simcore.units import plural
from tui.frame import Glyphs, Line
from tui.panel import Panel
from tui.prompt import LivePrompt, Prompt
from tui.timeline.filtering import Filter, describe_missing
from tui.timeline.jumps import (
    current_position,
    find_position,
    first_match,
    match_text,
    no_match_text,
    return_to,
)
from tui.timeline.margins import stretch_figures
from tui.timeline.model import TimelineModel
from tui.timeline.query import Query, parse_query
from tui.timeline.search import Search

# Of many marks only the nearest ones have their stretch: the chosen one stays in view.
_MOST_STRETCHES = 6
_ENDING = "a letter or Enter goes there, Delete removes, Esc closes this"


class MarksPanel(Panel):
    """Covers the screen with the marks; its result is the letter of the one to go to."""

    CSS = "MarksPanel { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("apostrophe", "dismiss(None)", "back"),
        Binding("enter", "go", "go there"),
        Binding("delete,backspace", "remove", "remove the mark"),
    ]

    def __init__(self, model: TimelineModel, glyphs: Glyphs) -> None:
        super().__init__("Marks", self._build_lines, glyphs, _ENDING)
        self._model, self._marks = model, model.marks
        self._selected_index = 0
        self._select(len(self._marks.all) - 1)

    def _select(self, index: int) -> None:
        self._selected_index = max(0, min(index, len(self._marks.all) - 1))
        self._lines.keep = self._selected_index
        self._lines.more = lambda hidden: f"{hidden} more"

    @property
    def _index(self) -> int:
        """The index of the chosen mark, or of the last: a list that closes is drawn once more when the next
        one has removed marks.
        """
        return min(self._selected_index, len(self._marks.all) - 1)

    def _build_lines(self, width: int) -> list[Line]:
        """Returns a line a mark, the newest last; then from the chosen one to the cursor and to the
        others.
        """
        axis, cursor, marks = self._model.source.axis, self._model.cursor_ns, self._marks.all
        if not marks:
            return [[("  no marks: m sets one at the cursor", "")]]
        lines: list[Line] = []
        for index, mark in enumerate(marks):
            sign = ">" if index == self._index else " "
            distance = axis.length(abs(mark.time_ns - cursor))
            relation = f"{distance} before" if mark.time_ns < cursor else f"{distance} after"
            if mark.time_ns == cursor:
                relation = "at"
            words = f"{self._model.clock(mark.time_ns)}   {mark.title:<20} {relation} the cursor"
            lines.append([(f"{sign} {mark.letter}  ", "key"), (words, "accent" if sign == ">" else "")])
        selected = marks[self._index]
        others = [(mark.letter, mark.time_ns) for mark in marks if mark is not selected]
        others.sort(key=lambda mark: abs(mark[1] - selected.time_ns))
        lines += [[], [(f"  From {selected.letter}, on {self._model.whose}:", "")]]
        for name, time_ns in [("cursor", cursor), *others[:_MOST_STRETCHES]]:
            first, last = sorted((selected.time_ns, time_ns))
            start: Line = [(f"  {selected.letter} .. {name:<6} {axis.length(last - first):>10}  ", "bright")]
            lines.append(start + stretch_figures(self._model, first, last, start, width))
        return lines

    def on_key(self, event: events.Key) -> None:
        """Chooses a mark by its letter, before `j`, `k` and the other keys move."""
        if event.character and self._marks.of(event.character):
            event.stop()
            event.prevent_default()
            self.dismiss(event.character)

    def action_scroll(self, by: int) -> None:
        self._select(self._selected_index + by)
        self._lines.redraw()

    def action_go(self) -> None:
        marks = self._marks.all
        self.dismiss(marks[self._index].letter if marks else None)

    def action_remove(self) -> None:
        marks = self._marks.all
        if marks:
            self._marks.remove(marks[self._index].letter)
            self.action_scroll(0)


# A search works this long before it lets keys through.
_SLICE_SECONDS = 0.03
_ONLY = "only the lanes of"
_LANES = "stage 5, stages 2-4, ranks 0-7,64, or words of a name; nothing: all"


class Asking:
    """The prompts of a view's model."""

    def __init__(self, view: Widget, model: TimelineModel, redraw: Callable[[], None]) -> None:
        self._view, self._model, self._redraw = view, model, redraw
        self._prompt: LivePrompt | None = None
        self._search: Search | None = None

    def search(self) -> None:
        """Jumps to the first match while one types; Enter stays there, Esc goes back."""
        model = self._model
        self._start_position, self._previous_search = current_position(model), model.search
        self._search = None
        self._prompt = LivePrompt("/", "", self._search_typed)
        self._view.app.push_screen(self._prompt, self._finish_search)

    def _search_typed(self, text: str) -> None:
        model = self._model
        return_to(model, self._start_position)
        query = parse_query(text)
        self._search = None if query.is_empty and not query.problem else model.new_search(query)
        if self._search is None:
            model.notice = ""
            self._show_message("")
            self._redraw()
        else:
            self._continue_search(self._search)

    def _continue_search(self, search: Search) -> None:
        """Continues the search for one slice; another text may have been typed meanwhile."""
        if search is not self._search or self._prompt is None:
            return
        if not search.advance(_SLICE_SECONDS):
            self._show_message(f"{search.count} so far")
            self._view.call_later(self._continue_search, search)
            return
        self._show_message(self._jump(search))
        self._redraw()

    def _jump(self, search: Search) -> str:
        """Jumps to the first match, from where the prompt was opened; returns the message."""
        model = self._model
        return_to(model, self._start_position)
        model.notice = ""
        position_ns, problem = find_position(model, search.query)
        if problem:
            return problem
        if position_ns is not None and not search.problem and not search.query.of_spans:
            if search.count:
                first_match(model, search)
            model.jump_to(position_ns)
            model.notice = f"at {model.clock(position_ns)}"
            return f"{model.notice}: {model.whose}"
        if search.problem or not search.count:
            return no_match_text(search)
        match = first_match(model, search, position_ns)
        assert match is not None
        location = model.whose
        if not search.of_lanes:
            location += f" {model.clock(model.cursor_ns)}"
        return f"{match_text(search, match)}: {location}"

    def find(self, text: str) -> None:
        """Does what a search for a text does, without a prompt."""
        self._start_position, self._previous_search = current_position(self._model), self._model.search
        self._search = None
        self._finish_search(text)

    def _finish_search(self, text: str | None) -> None:
        model, self._prompt = self._model, None
        query = parse_query(text or "")
        if text is None or (query.is_empty and not query.problem):
            return_to(model, self._start_position)
            model.search = self._previous_search
            model.notice = ""
        else:
            search = self._search or model.new_search(query)
            while not search.advance(1.0):
                pass
            words = self._jump(search)
            if search.count:
                model.search = search
            else:
                model.notice = words
        self._search = None
        self._redraw()

    def _show_message(self, words: str) -> None:
        if self._prompt is not None:
            self._prompt.show_answer(words)

    # -- filter ------------------------------------------------------------------------

    def filter(self) -> None:
        """Asks what spans have to be; an empty text shows all."""
        self._prompt = LivePrompt("filter", self._initial_filter(), self._filter_typed)
        self._view.app.push_screen(self._prompt, self._finish_filter)

    def _initial_filter(self) -> str:
        """Returns the filter that is on, else the text of the last search."""
        model = self._model
        if model.filter.is_on or model.search is None:
            return model.filter.query.text
        return model.search.query.text

    def _filter_problem(self, query: Query) -> str:
        """Returns why a query is no filter, "" if it is one."""
        if query.has_position:
            return "a filter has no position: > 7.5 s is a length, / goes to a time"
        return query.problem or describe_missing(self._model.source, query)

    def _filter_typed(self, text: str) -> None:
        model = self._model
        query = parse_query(text)
        problem = self._filter_problem(query)
        if problem or query.is_empty:
            self._show_message(problem)
            return
        trial_filter = Filter()
        trial_filter.set(query)
        match_count = len(trial_filter.filter_lane(model.current, model.source).spans.start)
        span_count = sum(len(lane.spans.start) for lane in model.source.searched_lanes(model.current))
        self._show_message(f"{match_count} of {plural(span_count, 'span')} of this lane")

    def _finish_filter(self, text: str | None) -> None:
        model, self._prompt = self._model, None
        if text is not None:
            query = parse_query(text)
            problem = self._filter_problem(query)
            if problem:
                model.notice = f"not filtered: {problem}"
            else:
                model.filter.set(query)
                model.notice = "" if model.filter.is_on else "no filter: all spans are shown"
        self._redraw()

    # -- lanes -------------------------------------------------------------------------

    def lanes(self) -> None:
        """Asks for the lanes to show."""
        prompt = Prompt(_ONLY, self._model.arrangement.only, form=_LANES)
        self._view.app.push_screen(prompt, self._filter_lanes)

    def _filter_lanes(self, text: str | None) -> None:
        if text is None:
            return
        if not self._model.arrangement.show_only(text):
            # The prompt opens again with the typed text: the list has not changed.
            prompt = Prompt(_ONLY, text, form=f"no lane matches: {_LANES}")
            self._view.app.push_screen(prompt, self._filter_lanes)
        self._redraw()

    # -- marks -------------------------------------------------------------------------

    def marks(self, glyphs: Glyphs, go: Callable[[str | None], None]) -> None:
        """Shows the marks. go: moves to the mark with a letter, None for none."""
        self._view.app.push_screen(MarksPanel(self._model, glyphs), go)
