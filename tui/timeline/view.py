"""The timeline's widget: its keys, each a method of the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType
from textual.events import (
    Click,
    MouseDown,
    MouseEvent,
    MouseMove,
    MouseScrollDown,
    MouseScrollLeft,
    MouseScrollRight,
    MouseScrollUp,
)

from simcore.diagnostics import UsageError
from tui.frame import Line
from tui.frame_view import ScreenView, binding
from tui.panel import Panel
from tui.session import Run, Session
from tui.timeline import jumps, saved
from tui.timeline.frame import TimelineFrame
from tui.timeline.margins import make_details
from tui.timeline.model import TimelineModel
from tui.timeline.pointer import Area, Pointer
from tui.timeline.saved import SavedTimeline

if TYPE_CHECKING:
    from tui.frame_view import ScreenState
    from tui.host import Host
    from tui.timeline.prompts import Asking

_NO_EQUAL_RANKS = "this lane is of one rank: there are no equal ranks to show one by one"
_NO_RANK = "this lane is of many ranks: Space shows those below it"
NO_VIEW_BEFORE, NO_VIEW_AFTER = "no view before this one", "no view after this one"
RANGE_SCALED = "another run: the range is where it was as a share of the step"
NO_A = "no rank is A yet: ( takes the one of this lane, ) then compares it with another"
_ONE_ORDER = "these lanes have one order"


class TimelineView(ScreenView):
    """Lanes over a time axis."""

    mouse = (
        ("wheel", "zoom; with Shift or Ctrl: pan; over the names: scroll"),
        ("click, double click", "put the cursor, on a sign fold; fit the span"),
        ("drag", "mark out a range; on the minimap: move the view"),
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
        binding("space", "fold", "show or hide the lanes below this one", "timeline.fold"),
        binding("I", "ranks", "equal or similar ranks one by one, or as one lane", "timeline.ranks"),
        binding("z", "open_level", "unfold all lanes of this level", "timeline.unfold-all"),
        binding("Z", "close_all", "fold all lanes", "timeline.fold-all"),
        binding("p", "pin", "pin this lane on top, or give it back its place", "timeline.pin"),
        binding("H", "hide", "hide this lane", "timeline.hide"),
        binding("U", "show_hidden", "show all hidden lanes", "timeline.show-hidden"),
        binding("o", "order", "sort by stage, busy, bubble, wait, exposed, end", "timeline.order"),
        binding("L", "lanes", "only the lanes of some ranks or stages", "timeline.only-lanes"),
        binding("enter", "details", "all that is known of the span, and of the range", "timeline.details"),
        binding("full_stop", "span(1)", "next span of this lane", "timeline.next-span"),
        binding("comma", "span(-1)", "previous span of this lane", "timeline.previous-span"),
        binding("right_curly_bracket", "pass(1)", "next pass of a micro-batch", "timeline.next-pass"),
        binding("left_curly_bracket", "pass(-1)", "pass of a micro-batch before", "timeline.previous-pass"),
        binding("left_square_bracket", "follow(-1)", "what this span waited for", "timeline.cause"),
        binding("right_square_bracket", "follow(1)", "what this span holds back", "timeline.effect"),
        binding("c", "critical(1)", "next segment of the critical path", "timeline.next-critical"),
        binding("C", "critical(-1)", "critical segment before", "timeline.previous-critical"),
        binding("P", "path", "critical path on/off", "timeline.path"),
        binding("b", "wait(0)", "longest wait of this lane; again: the next", "timeline.longest-wait"),
        binding("B", "wait(1)", "longest wait of all lanes; again: the next", "timeline.longest-of-all"),
        binding("f", "focus_span", "fit the range or the span here; again: the whole step", "timeline.focus"),
        binding("0", "all", "the whole step", "timeline.all"),
        binding("u", "back", "back to the view before", "timeline.back"),
        binding("ctrl+r", "forward", "forward again", "timeline.forward"),
        binding(
            "slash",
            "search",
            "find a rank, a stage, a name, a time, a length of time",
            "timeline.search",
        ),
        binding("n", "match(1)", "next match", "timeline.next-match"),
        binding("N", "match(-1)", "match before", "timeline.previous-match"),
        binding("backslash", "filter", "show only spans that match", "timeline.filter"),
        binding("v", "range", "begin a range at the cursor; again: end it", "timeline.range"),
        binding("V", "take", "this span as the range; again: its pass; the step", "timeline.take-range"),
        binding("left_parenthesis", "as_a", "this rank as A, to be compared", "timeline.as-a"),
        binding("right_parenthesis", "as_b", "this rank as B: both side by side (6)", "timeline.as-b"),
        binding("m", "mark", "mark this place", "timeline.mark"),
        binding("apostrophe", "marks", "the marks: jump to one, remove one", "timeline.marks"),
        binding("escape", "leave", "end the range, the search, the filter; else back", "timeline.leave"),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.model = TimelineModel(session.current)
        self._pointer = Pointer(self.model)
        self._drawing: TimelineFrame | None = None
        self.hints = self._hints()

    @cached_property
    def _asking(self) -> Asking:
        """The prompts for a search, a filter, lanes or a mark."""
        # Imported here: not before a prompt opens.
        from tui.timeline.prompts import Asking

        return Asking(self, self.model, self.changed)

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Returns only the keys that do something here and now."""
        model = self.model
        hints = [("w s", "zoom"), ("a d", "pan"), ("hjkl", "cursor"), ("Space", "fold")]
        if model.selection.is_there:
            ending = [("v", "end range")] if model.selection.follows else []
            hints = [*ending, ("V", "more"), ("f", "fit range"), ("Esc", "no range"), *hints, (". ,", "span")]
        else:
            hints += [("f", "fit"), (". ,", "span"), ("v", "range")]
        hints.append(("/", "find"))
        if model.search is not None:
            hints.append(("n N", "match"))
        if (model.search is not None or model.filter.is_on) and not model.selection.is_there:
            hints.insert(0, ("Esc", "no filter" if model.search is None else "end find"))
        hints.append(("Enter", "details"))
        if self.session.rank_a is not None:
            hints.insert(0, (")", f"compare with rank {self.session.rank_a}"))
        return (*hints, ("5", "change parameters"))

    def frame(self, width: int, height: int) -> list[Line]:
        if self._drawing is None:
            self._drawing = TimelineFrame(self.glyphs, self.colour)
        return self._drawing.draw(self.model, width, height)

    def show(self, results: Run) -> None:
        self.model.show(results)
        scaled = self.model.selection.is_there
        self.model.notice = RANGE_SCALED if scaled else ""
        self.changed()

    def saved(self) -> SavedTimeline:
        return saved.save(self.model)

    def restore(self, state: ScreenState, keeps_positions: bool) -> None:
        assert isinstance(state, SavedTimeline)
        saved.restore(self.model, state, keeps_positions)
        self.hints = self._hints()

    def changed(self) -> None:
        """Shows the current state, and the keys that do something there."""
        self.redraw()
        self.show_hints(self._hints())

    def _do(self, move: Callable[[], object]) -> None:
        """Handles a key: the notice of the one before ends."""
        self.model.notice = ""
        move()
        self.changed()

    def go_to(self, track_id: int, start_ns: int, end_ns: int, stream: str | None = None) -> None:
        """Moves the cursor to the lane of a track or of a stream of it, with the view around
        start_ns..end_ns.
        """
        self._do(lambda: self.model.show_stretch(track_id, start_ns, end_ns, stream))

    def action_zoom(self, numerator: int, denominator: int) -> None:
        self._do(lambda: self.model.zoom(numerator, denominator))

    def action_pan(self, numerator: int, denominator: int) -> None:
        self._do(lambda: self.model.pan(numerator, denominator))

    def action_cursor(self, by: int) -> None:
        self._do(lambda: self.model.move_cursor(by))

    def action_edge(self, end: int) -> None:
        self._do(lambda: self.model.move_to(self.model.window.step_ns if end else 0))

    def action_lane(self, by: int) -> None:
        self._do(lambda: self.model.move_lane(by))

    def action_fold(self) -> None:
        self._do(self.model.toggle_fold)

    def action_ranks(self) -> None:
        self._do(lambda: self._rearrange(self.model.arrangement.toggle_ranks, self._no_equals_text))

    @property
    def _no_equals_text(self) -> str:
        similarity = self.model.source.of.facts.similar_text
        return (
            f"no other rank is {similarity} of the step, account by account"
            if similarity
            else _NO_EQUAL_RANKS
        )

    def action_open_level(self) -> None:
        self._do(self.model.arrangement.open_level)

    def action_close_all(self) -> None:
        self._do(self.model.arrangement.close_all)

    def action_pin(self) -> None:
        self._do(self.model.arrangement.toggle_pin)

    def action_hide(self) -> None:
        self._do(self.model.arrangement.hide)

    def action_show_hidden(self) -> None:
        self._do(self.model.arrangement.show_hidden)

    def action_order(self) -> None:
        self._do(lambda: self._rearrange(self.model.arrangement.next_order, _ONE_ORDER))

    def _rearrange(self, change: Callable[[], None], otherwise: str) -> None:
        """Arranges the lanes anew. otherwise: the notice where that changes nothing."""
        arrangement = self.model.arrangement
        before = arrangement.order, [row.key for row in arrangement.rows]
        change()
        if (arrangement.order, [row.key for row in arrangement.rows]) == before:
            self.model.notice = otherwise

    def action_lanes(self) -> None:
        self._do(self._asking.lanes)

    def action_span(self, direction: int) -> None:
        self._do(lambda: self.model.step_span(direction))

    def action_pass(self, direction: int) -> None:
        self._do(lambda: jumps.step_pass(self.model, direction))

    def action_wait(self, everywhere: int) -> None:
        self._do(lambda: jumps.go_to_longest_wait(self.model, bool(everywhere)))

    def action_follow(self, direction: int) -> None:
        self._do(lambda: jumps.follow(self.model, direction))

    def action_critical(self, direction: int) -> None:
        self._do(lambda: jumps.step_critical(self.model, direction))

    def action_as_a(self) -> None:
        rank = self.model.first_rank
        if rank is not None:
            self.session.rank_a = rank
            self.changed()
        message = (
            _NO_RANK if rank is None else f"rank {rank} is A: ) on the lane of another one compares them"
        )
        cast("Host", self.app).say(message)

    async def action_as_b(self) -> None:
        host, a, b = cast("Host", self.app), self.session.rank_a, self.model.first_rank
        if a is None or b is None:
            host.say(NO_A if a is None else _NO_RANK)
            return
        # Imported here: not before two runs are compared.
        from simcore.comparison import Comparison

        try:
            Comparison(self.session.current, self.session.current, (a, b))
        except UsageError as error:
            host.say(str(error))
            return
        self.session.ranks = a, b
        host.compare_again()
        await host.action_open("compare")

    def action_path(self) -> None:
        self._do(lambda: jumps.toggle_path(self.model))

    def action_focus_span(self) -> None:
        self._do(self.model.focus)

    def action_all(self) -> None:
        self._do(self.model.show_all)

    def action_back(self) -> None:
        self._do(lambda: self._go(self.model.back, NO_VIEW_BEFORE))

    def action_forward(self) -> None:
        self._do(lambda: self._go(self.model.forward, NO_VIEW_AFTER))

    def _go(self, move: Callable[[], None], nothing: str) -> None:
        """Moves to another view, or shows the notice `nothing` where there is none."""
        before = self.model.window
        move()
        if self.model.window == before:
            self.model.notice = nothing

    def action_search(self) -> None:
        self._do(self._asking.search)

    def find(self, text: str) -> None:
        """Moves the cursor to the first match of a text, as `/` and Enter."""
        self._do(lambda: self._asking.find(text))

    def action_match(self, direction: int) -> None:
        self._do(lambda: jumps.next_match(self.model, direction))

    def action_filter(self) -> None:
        self._do(self._asking.filter)

    def action_range(self) -> None:
        self._do(lambda: jumps.toggle_range(self.model))

    def action_take(self) -> None:
        self._do(lambda: jumps.extend_range(self.model))

    def action_mark(self) -> None:
        self._do(lambda: jumps.set_mark(self.model))

    def action_marks(self) -> None:
        self._asking.marks(self.glyphs, self._go_to_mark)

    def _go_to_mark(self, letter: str | None) -> None:
        mark = self.model.marks.of(letter) if letter else None
        self._do(lambda: None if mark is None else jumps.go_to_mark(self.model, mark))

    async def action_leave(self) -> None:
        """Clears the range, else the search, else the filter, else goes back to the previous screen."""
        model, app = self.model, cast("Host", self.app)
        origin, clears = app.came_from, model.search is not None or model.filter.is_on
        if origin and not model.selection.is_there and not clears:
            await app.action_open(origin)
        else:
            self._do(model.clear_last)

    def action_details(self) -> None:
        """Shows all details of the span at the cursor."""
        title = f"At the cursor, {self.model.source.axis.clock(self.model.cursor_ns)}"
        # Keys that come before the panel is open still move the timeline; another run may be shown under it.
        self.app.push_screen(Panel(title, make_details(self.model), self.glyphs))

    # -- mouse -------------------------------------------------------------------------

    @property
    def _area(self) -> Area:
        return self._drawing.area if self._drawing is not None else Area(0, 0, (), 0)

    def on_mouse_down(self, event: MouseDown) -> None:
        self.capture_mouse()
        self._do(lambda: self._pointer.press(self._area, event.x, event.y))

    def on_mouse_move(self, event: MouseMove) -> None:
        if self._pointer.part and self._pointer.drag(self._area, event.x):
            self._do(lambda: None)

    def on_mouse_up(self) -> None:
        self.release_mouse()
        self._pointer.release()

    def on_click(self, event: Click) -> None:
        if event.chain == 2 and self._area.part(event.x, event.y) == "lane":
            self._do(self.model.focus_span)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self._turn(event, -1, event.shift or event.ctrl)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self._turn(event, 1, event.shift or event.ctrl)

    def on_mouse_scroll_left(self, event: MouseScrollLeft) -> None:
        self._turn(event, -1, True)

    def on_mouse_scroll_right(self, event: MouseScrollRight) -> None:
        self._turn(event, 1, True)

    def _turn(self, event: MouseEvent, direction: int, pan: bool) -> None:
        self._do(lambda: self._pointer.turn(self._area, event.x, event.y, direction, pan))
