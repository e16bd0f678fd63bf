"""The timeline's widget: its keys, each a method of the model."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from tui.frame import Line
from tui.screen_view import ScreenView, binding
from tui.session import AnySession, Run
from tui.timeline.frame import TimelineFrame
from tui.timeline.model import TimelineModel

_ONLY = "only the lanes of (stage 5, dp 3, ranks 0-7,64; empty: all)"


class TimelineView(ScreenView):
    """Lanes over a time axis."""

    hints: tuple[tuple[str, str], ...] = (
        ("w s", "zoom"), ("a d", "pan"), ("hjkl", "cursor"), ("Space", "fold"), ("f", "fit"), (". ,", "span"),
        ("u", "back"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("w,plus,equals_sign", "zoom(1, 2)", "zoom in at the cursor", "timeline.zoom-in"),
        binding("s,minus", "zoom(2, 1)", "zoom out", "timeline.zoom-out"),
        binding("a", "pan(-1, 8)", "pan left", "timeline.pan-left"),
        binding("d", "pan(1, 8)", "pan right", "timeline.pan-right"),
        binding("A,shift+left", "pan(-1, 1)", "page left", "timeline.page-left"),
        binding("D,shift+right", "pan(1, 1)", "page right", "timeline.page-right"),
        binding("h,left", "cursor(-1)", "cursor left", "timeline.cursor-left"),
        binding("l,right", "cursor(1)", "cursor right", "timeline.cursor-right"),
        binding("j,down", "lane(1)", "next lane", "timeline.lane-down"),
        binding("k,up", "lane(-1)", "lane above", "timeline.lane-up"),
        binding("pagedown", "lane(10)", "ten lanes down", "timeline.lanes-down"),
        binding("pageup", "lane(-10)", "ten lanes up", "timeline.lanes-up"),
        binding("g", "lane(-1000000)", "first lane", "timeline.first-lane"),
        binding("G", "lane(1000000)", "last lane", "timeline.last-lane"),
        binding("home,circumflex_accent", "edge(0)", "cursor to the start of the step", "timeline.start"),
        binding("end,dollar_sign", "edge(1)", "cursor to the end of the step", "timeline.end"),
        binding(
            "space,enter",
            "fold",
            "show or hide the lanes below this one",
            "timeline.fold",
        ),
        binding("r", "ranks", "show these equal ranks one by one, or as one lane", "timeline.ranks"),
        binding("z", "open_level", "unfold all lanes of this level", "timeline.unfold-all"),
        binding("Z", "close_all", "fold all lanes", "timeline.fold-all"),
        binding("p", "pin", "pin this lane on top, or give it back its place", "timeline.pin"),
        binding("H", "hide", "hide this lane", "timeline.hide"),
        binding("U", "show_hidden", "show all hidden lanes", "timeline.show-hidden"),
        binding("o", "order", "sort by stage, busy, bubble, wait, exposed, end", "timeline.order"),
        binding("L", "lanes", "only the lanes of some ranks or stages", "timeline.lanes"),
        binding("full_stop", "span(1)", "next span of this lane", "timeline.next-span"),
        binding("comma", "span(-1)", "previous span of this lane", "timeline.previous-span"),
        binding("f", "focus_span", "fit the span under the cursor; again: the whole step", "timeline.focus"),
        binding("0", "all", "the whole step", "timeline.all"),
        binding("u", "back", "back to the view before", "timeline.back"),
        binding("ctrl+r", "forward", "forward again", "timeline.forward"),
    ]

    def __init__(self, session: AnySession, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.model = TimelineModel(session.current)
        # Only keys that do something here: nothing of a measured run can be changed.
        last = ("3", "operations") if session.measured else ("5", "change parameters")
        self.hints = (*self.hints, last)
        self._drawing: TimelineFrame | None = None

    def draw(self, width: int, height: int) -> list[Line]:
        if self._drawing is None:
            self._drawing = TimelineFrame(self.glyphs, self.colour)
        return self._drawing.draw(self.model, width, height)

    def show(self, results: Run) -> None:
        self.model.show(results)
        self.redraw()

    def go_to(self, number: int, start_ns: int, end_ns: int) -> None:
        """The cursor on the lane of rank class `number`, the view around start_ns..end_ns."""
        self.model.go_to(number, start_ns, end_ns)
        self.redraw()

    def action_zoom(self, numerator: int, denominator: int) -> None:
        self.model.zoom(numerator, denominator)
        self.redraw()

    def action_pan(self, numerator: int, denominator: int) -> None:
        self.model.pan(numerator, denominator)
        self.redraw()

    def action_cursor(self, by: int) -> None:
        self.model.move_cursor(by)
        self.redraw()

    def action_edge(self, end: int) -> None:
        self.model.move_to(self.model.window.step_ns if end else 0)
        self.redraw()

    def action_lane(self, by: int) -> None:
        self.model.move_lane(by)
        self.redraw()

    def action_fold(self) -> None:
        self.model.toggle_fold()
        self.redraw()

    def action_ranks(self) -> None:
        self.model.arrangement.toggle_ranks()
        self.redraw()

    def action_open_level(self) -> None:
        self.model.arrangement.open_level()
        self.redraw()

    def action_close_all(self) -> None:
        self.model.arrangement.close_all()
        self.redraw()

    def action_pin(self) -> None:
        self.model.arrangement.toggle_pin()
        self.redraw()

    def action_hide(self) -> None:
        self.model.arrangement.hide()
        self.redraw()

    def action_show_hidden(self) -> None:
        self.model.arrangement.show_hidden()
        self.redraw()

    def action_order(self) -> None:
        self.model.arrangement.next_order()
        self.redraw()

    def action_lanes(self) -> None:
        """Ask for the lanes to show."""
        from tui.prompt import Prompt

        self.app.push_screen(Prompt(_ONLY, self.model.arrangement.only), self._only_typed)

    def _only_typed(self, text: str | None) -> None:
        if text is None:
            return
        if not self.model.arrangement.show_only(text.strip()):
            # Asked again, with what was typed: nothing in the list has changed.
            from tui.prompt import Prompt

            self.app.push_screen(Prompt(f"no lane matches; {_ONLY}", text), self._only_typed)
        self.redraw()

    def action_span(self, direction: int) -> None:
        self.model.step_span(direction)
        self.redraw()

    def action_focus_span(self) -> None:
        self.model.focus()
        self.redraw()

    def action_all(self) -> None:
        self.model.show_all()
        self.redraw()

    def action_back(self) -> None:
        self.model.back()
        self.redraw()

    def action_forward(self) -> None:
        self.model.forward()
        self.redraw()
