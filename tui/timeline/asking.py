"""What the timeline asks: the search, which jumps while one types, the filter, which lanes, which mark."""

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
from tui.timeline.filtering import Filter, missing
from tui.timeline.jumps import first_match, match_words, new_search, no_match_words, place_of, return_to
from tui.timeline.margins import stretch_figures
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.search import Search

# Of many marks the stretches to the nearest ones: the chosen one stays in view.
_MOST_STRETCHES = 6
_ENDING = "a letter or Enter goes there, Delete removes, Esc closes this"


class MarksPanel(Panel):
    """Covers the screen with the marks; gives the letter of the one to go to."""

    CSS = "MarksPanel { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("apostrophe", "dismiss(None)", "back"),
        Binding("enter", "go", "go there"),
        Binding("delete,backspace", "remove", "remove the mark"),
    ]

    def __init__(self, model: TimelineModel, glyphs: Glyphs) -> None:
        super().__init__("Marks", self._make, glyphs, _ENDING)
        self._model, self._marks = model, model.marks
        self._chosen = 0
        self._choose(len(self._marks.all) - 1)

    def _choose(self, index: int) -> None:
        self._chosen = max(0, min(index, len(self._marks.all) - 1))
        self._lines.keep = self._chosen
        self._lines.more = lambda hidden: f"{hidden} more"

    def _make(self, width: int) -> list[Line]:
        """A line a mark, the newest last; then from the chosen one to the cursor and to the others."""
        axis, cursor, marks = self._model.source.axis, self._model.cursor_ns, self._marks.all
        if not marks:
            return [[("  no marks: m sets one at the cursor", "")]]
        lines: list[Line] = []
        for index, mark in enumerate(marks):
            sign = ">" if index == self._chosen else " "
            away = axis.length(abs(mark.time_ns - cursor))
            side = f"{away} before" if mark.time_ns < cursor else f"{away} after"
            if mark.time_ns == cursor:
                side = "at"
            words = f"{axis.clock(mark.time_ns)}   {mark.title:<20} {side} the cursor"
            lines.append([(f"{sign} {mark.letter}  ", "key"), (words, "accent" if sign == ">" else "")])
        chosen = marks[self._chosen]
        others = [(mark.letter, mark.time_ns) for mark in marks if mark is not chosen]
        others.sort(key=lambda mark: abs(mark[1] - chosen.time_ns))
        lines += [[], [(f"  From {chosen.letter}, on {self._model.whose}:", "")]]
        for name, time_ns in [("cursor", cursor), *others[:_MOST_STRETCHES]]:
            first, last = sorted((chosen.time_ns, time_ns))
            start: Line = [(f"  {chosen.letter} .. {name:<6} {axis.length(last - first):>10}  ", "bright")]
            lines.append(start + stretch_figures(self._model, first, last, start, width))
        return lines

    def on_key(self, event: events.Key) -> None:
        """A mark's letter goes there: before `j`, `k` and the others move."""
        if event.character and self._marks.of(event.character):
            event.stop()
            event.prevent_default()
            self.dismiss(event.character)

    def action_scroll(self, by: int) -> None:
        self._choose(self._chosen + by)
        self._lines.redraw()

    def action_go(self) -> None:
        marks = self._marks.all
        self.dismiss(marks[self._chosen].letter if marks else None)

    def action_remove(self) -> None:
        marks = self._marks.all
        if marks:
            self._marks.remove(marks[self._chosen].letter)
            self.action_scroll(0)


# A search works so long before it lets keys through.
_PIECE_SECONDS = 0.03
_ONLY = "only the lanes of"
_LANES = "stage 5, stages 2-4, ranks 0-7,64, or words of a name; nothing: all"


class Asking:
    """Asks of a view's model. redraw: shows where one is."""

    def __init__(self, view: Widget, model: TimelineModel, redraw: Callable[[], None]) -> None:
        self._view, self._model, self._redraw = view, model, redraw
        self._prompt: LivePrompt | None = None
        self._search: Search | None = None

    def search(self) -> None:
        """Jump to the first match while one types; Enter stays there, Esc goes back."""
        model = self._model
        self._place, self._before = place_of(model), model.search
        self._search = None
        self._prompt = LivePrompt("/", "", self._typed)
        self._view.app.push_screen(self._prompt, self._searched)

    def _typed(self, text: str) -> None:
        model = self._model
        return_to(model, self._place)
        query = parse_query(text)
        self._search = None if query.is_empty and not query.problem else self._new_search(text)
        if self._search is None:
            model.notice = ""
            self._say("")
            self._redraw()
        else:
            self._look_on(self._search)

    def _new_search(self, text: str) -> Search:
        return new_search(self._model, parse_query(text))

    def _look_on(self, search: Search) -> None:
        """A piece of the search; another text may have been typed meanwhile."""
        if search is not self._search or self._prompt is None:
            return
        if not search.advance(_PIECE_SECONDS):
            self._say(f"{search.count} so far")
            self._view.call_later(self._look_on, search)
            return
        self._say(self._jump(search))
        self._redraw()

    def _jump(self, search: Search) -> str:
        """To the first match, from where the prompt was opened; what there is to say."""
        model = self._model
        return_to(model, self._place)
        if search.problem or not search.count:
            model.notice = ""
            return no_match_words(search)
        match = first_match(model, search)
        assert match is not None
        where = model.whose
        if not search.of_lanes:
            where += f" {model.source.axis.clock(model.cursor_ns)}"
        return f"{match_words(search, match)}: {where}"

    def find(self, text: str) -> None:
        """What a search for a text does, without asking for it."""
        self._place, self._before = place_of(self._model), self._model.search
        self._search = None
        self._searched(text)

    def _searched(self, text: str | None) -> None:
        model, self._prompt = self._model, None
        query = parse_query(text or "")
        if text is None or (query.is_empty and not query.problem):
            return_to(model, self._place)
            model.search = self._before
            model.notice = ""
        else:
            search = self._search or self._new_search(text)
            while not search.advance(1.0):
                pass
            words = self._jump(search)
            if search.count:
                model.search = search
            else:
                model.notice = words
        self._search = None
        self._redraw()

    def _say(self, words: str) -> None:
        if self._prompt is not None:
            self._prompt.say(words)

    # -- filter ------------------------------------------------------------------------

    def filter(self) -> None:
        """Ask what spans have to be; nothing: all are shown."""
        self._prompt = LivePrompt("filter", self._begin_with(), self._filter_typed)
        self._view.app.push_screen(self._prompt, self._filtered)

    def _begin_with(self) -> str:
        """The filter that is on, else what was searched for last."""
        model = self._model
        if model.filter.is_on or model.search is None:
            return model.filter.query.text
        return model.search.query.text

    def _filter_typed(self, text: str) -> None:
        model = self._model
        query = parse_query(text)
        problem = query.problem or missing(model.source, query)
        if problem or query.is_empty:
            self._say(problem)
            return
        tried = Filter()
        tried.set(query)
        left = len(tried.of(model.current, model.source).spans.start)
        self._say(f"{left} of {plural(len(model.current.spans.start), 'span')} of this lane")

    def _filtered(self, text: str | None) -> None:
        model, self._prompt = self._model, None
        if text is not None:
            query = parse_query(text)
            problem = query.problem or missing(model.source, query)
            if problem:
                model.notice = f"not filtered: {problem}"
            else:
                model.filter.set(query)
                model.notice = "" if model.filter.is_on else "no filter: all spans are shown"
        self._redraw()

    # -- lanes -------------------------------------------------------------------------

    def lanes(self) -> None:
        """Ask for the lanes to show."""
        prompt = Prompt(_ONLY, self._model.arrangement.only, form=_LANES)
        self._view.app.push_screen(prompt, self._only_typed)

    def _only_typed(self, text: str | None) -> None:
        if text is None:
            return
        if not self._model.arrangement.show_only(text):
            # Asked again, with what was typed: nothing in the list has changed.
            prompt = Prompt(_ONLY, text, form=f"no lane matches: {_LANES}")
            self._view.app.push_screen(prompt, self._only_typed)
        self._redraw()

    # -- marks -------------------------------------------------------------------------

    def marks(self, glyphs: Glyphs, go: Callable[[str | None], None]) -> None:
        """Show the marks; go: to the one with a letter, None for none."""
        self._view.app.push_screen(MarksPanel(self._model, glyphs), go)
