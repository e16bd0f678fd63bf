"""The summary's widget: its keys, each a method of the model."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from simcore.units import plural
from tui.frame import Line
from tui.frame_view import binding
from tui.panel import Panel, TryPanel
from tui.panels import COMING
from tui.panels_view import PanelsView, panel_bindings
from tui.session import Run, Session
from tui.summary.frame import draw
from tui.summary.model import HOLDERS, MAP, NOTES, SummaryModel, has_description_behind
from tui.summary.panels import all_sentence_lines

ALL_EQUAL = "all ranks are equal: the bars have what a map of them would have"
# The keys that lead to what the screen has no room for.
_TO_MORE = (("Space", "all words"), ("4", "all changes"))
ONE_RANK = "a single rank: the bars have what a table of ranks would have"


class SummaryView(PanelsView):
    """Where the step goes at a glance."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *panel_bindings("summary"),
        binding("j,down", "move(1, 0)", "down", "summary.down"),
        binding("k,up", "move(-1, 0)", "up", "summary.up"),
        binding("pagedown", "move(10)", "ten rows down", "summary.page-down"),
        binding("pageup", "move(-10)", "ten rows up", "summary.page-up"),
        binding("g,home", "move(-10000000)", "first row", "summary.first"),
        binding("G,end", "move(10000000)", "last row", "summary.last"),
        binding("l,right", "move(0, 1)", "right", "summary.right"),
        binding("h,left", "move(0, -1)", "left", "summary.left"),
        binding("enter", "go", "show the place in the timeline, or the notes", "summary.go"),
        binding("space", "words", "all sentences, whole", "summary.words"),
        binding("t", "try", "try the first change, or the one at the cursor", "summary.try"),
        binding(
            "i",
            "next_side_panel",
            "beside the bars: other measures, kernels, waits, replay",
            "summary.beside",
        ),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.model: SummaryModel = SummaryModel(
            session.current, is_described=not has_description_behind(session.current)
        )
        self.hints = self._hints()

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Returns what keys do here and now."""
        if self.model.hang_rows:
            keys = ("jk", "row"), ("Enter", "its place"), ("Tab", "panel"), ("Space", "all sentences")
            return *keys, ("3", "collectives"), ("2", "timeline")
        if self.model.snapshot is not None:
            others = (("hl", "device"),) if len(self.model.snapshot.devices) > 1 else ()
            keys = ("jk", "row"), *others, ("Enter", "its place"), ("Tab", "panel")
            return *keys, ("Space", "all sentences"), ("3", "all stacks"), ("2", "timeline")
        if not self.model.results.timed:
            return ("jk", "note"), ("Enter", "all notes"), ("2", "timeline")
        model, side_panel = self.model, self.model.side_panel
        return (
            # The first keys stay on 80 columns.
            ("t", self.tries), *(pair for pair in _TO_MORE if pair[0] in model.keys_to_more),
            ("Tab", "panel"), (side_panel.moves, "move"), ("Enter", "go there"),
            ("i", side_panel.next_label), ("2", "timeline"), ("5", "parameters"),
        )  # fmt: skip

    def show(self, results: Run) -> None:
        self.model.is_described = not has_description_behind(results)
        super().show(results)

    def frame(self, width: int, height: int) -> list[Line]:
        self.model.is_described = not has_description_behind(self.model.results)
        recovered = (
            # What is described behind the picture has the processor for itself.
            self._app.models_behind.recovered(self.model.results) if self.model.is_described else None
        )
        opened, current = self.session.opened, self.model.results
        self.model.opened_run = (
            None if current is opened or current.setup.source is not opened.setup.source else opened
        )
        self.model.model_title = recovered.title() if recovered is not None else ""
        keys = self.model.keys_to_more
        lines = draw(self.model, width, height, self.glyphs, self.look_for_changes())
        if self.model.keys_to_more != keys:
            self.app.call_later(lambda: self.show_hints(self._hints()))
        return lines

    def action_move(self, rows: int, columns: int = 0) -> None:
        model = self.model
        if columns and model.panel != HOLDERS and (model.panel != MAP or model.side_panel.size[1] == 1):
            self._app.say(model.side_panel.sideways_text)
        else:
            super().action_move(rows, columns)

    async def action_go(self) -> None:
        if self.model.panel == NOTES:
            await self.app.run_action("open('notes')")
        else:
            await super().action_go()

    def action_words(self) -> None:
        """Shows all sentences about the run, over the screen."""
        sentences = self.model.words
        if not self.model.is_described:
            self._app.say(COMING)
            return
        if not sentences:
            self._app.say("nothing is said of this run")
            return
        title = f"In words: {plural(len(sentences), 'sentence')}"
        if not self.model.knobs:
            self._app.push_screen(
                Panel(title, lambda width: all_sentence_lines(sentences, width), self.glyphs)
            )
            return
        # The next step after reading what a change brings is to try it.
        ending = f"t tries {self.tries.removeprefix('try ')}, Esc closes"
        panel = TryPanel(title, lambda width: all_sentence_lines(sentences, width), self.glyphs, ending)
        self._app.push_screen(panel, lambda is_accepted: self.action_try() if is_accepted else None)

    def action_next_side_panel(self) -> None:
        model = self.model
        if not model.results.timed:
            self._app.say("an order without times has nothing that waits, and no replay")
        elif MAP in model.panels or model.side_panel.is_empty:
            model.next_side_panel()
            if model.side_panel.is_empty:
                is_alone = sum(len(track.ranks) for track in model.results.tracks) == 1
                self._app.say(ONE_RANK if is_alone else ALL_EQUAL)
        else:
            # A small screen has room for either the bars or the panel next to them.
            model.panel = MAP
        self.redraw()
