"""The compare screen's widget: its keys, each a method of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from simcore.comparison import Comparison
from simcore.diagnostics import UsageError
from tui.compare.calibrating import Calibrating
from tui.compare.choice import Choice, RunChoice
from tui.compare.frame import draw
from tui.compare.model import DIFFERENCES, CompareModel
from tui.compare.source import ComparedLanes
from tui.frame import Line, rule, wrapped
from tui.frame_view import ScreenView, binding
from tui.panels import WHAT_IF
from tui.runs.runs import NO_CHANGE
from tui.screens import screens_of
from tui.session import Run, Session

if TYPE_CHECKING:
    from tui.runs.runs import RunsHost
    from tui.why.frame import WhyModel

ONE_RUN = "There is only one run: change a parameter (5), or try a change (t)."
SECOND_RUN = "What a second run could be"
_ONE_STEP_OF_MORE = "There is one step here: on 8, 6 compares a step with the median or a marked one."
_ONE_OF_MORE = "There is one run here: R has the other runs of the directory, Space and c there compare two."
NO_TIMES = "An order of operations without times has nothing to compare."
NO_OTHER = "there is no other run: r keeps one (5), --against FILE opens one beside it"
NOT_ON_SCREEN = "neither is the run on the screen, which the timeline shows: ) takes that as B again"

_HINTS = (
    ("w s", "zoom"), ("a d", "pan"), ("hjkl", "cursor"), ("Space", "fold"), ("i", "A B both"),
    ("|", "align ends"), (", .", "moved"), ("( )", "other A, B"), ("Tab", "what differs"),
    ("t", "best change"),
)  # fmt: skip

_CALIBRATE = (("F", "calibrate"),)
# The least rows for a list of changes.
_ADVICE_ROWS = 6
_NO_HINTS = (("2", "timeline"),)
_ADVICE_HINTS = (("jk", "row"), ("t", "try it"), *_NO_HINTS)


class CompareView(ScreenView):
    """The run on the screen, B, against another, A: one that was kept, or that was opened with it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        binding("w,plus,equals_sign", "zoom(1, 2)", "zoom in at the cursor, both runs", "compare.zoom-in"),
        binding("s,minus", "zoom(2, 1)", "zoom out", "compare.zoom-out"),
        binding("a", "pan(-1, 8)", "pan left", "compare.pan-left"),
        binding("d", "pan(1, 8)", "pan right", "compare.pan-right"),
        binding("A,shift+left", "pan(-1, 1)", "page left", "compare.page-left"),
        binding("D,shift+right", "pan(1, 1)", "page right", "compare.page-right"),
        binding("h,left", "cursor(-1)", "cursor left", "compare.cursor-left"),
        binding("l,right", "cursor(1)", "cursor right", "compare.cursor-right"),
        binding("j,down", "move(1)", "next pair of lanes, or next line", "compare.down"),
        binding("k,up", "move(-1)", "pair above, or line above", "compare.up"),
        binding("pagedown", "move(5)", "five on", "compare.page-down"),
        binding("pageup", "move(-5)", "five back", "compare.page-up"),
        binding("full_stop", "moved(1)", "next op that moved by over 1 % of the step", "compare.next-moved"),
        binding("comma", "moved(-1)", "the one before", "compare.previous-moved"),
        binding("f,0", "all", "both steps whole", "compare.all"),
        binding("space", "fold", "show or hide the streams of this pair", "compare.fold"),
        binding("i", "shown", "the lanes of A, of B, or of both", "compare.shown"),
        binding(
            "vertical_line",
            "ends",
            "lay the ends of the steps over each other, or the starts",
            "compare.ends",
        ),
        binding("tab", "panel", "to what differs most, and back", "compare.panel"),
        binding("enter", "go", "this lane on the timeline; what differs: in the lanes", "compare.go"),
        binding("F", "calibrate", "calibrate: fit the workload to the trace beside it", "compare.calibrate"),
        binding("t", "try", "try what a calibration fitted; else the best change", "compare.try"),
        binding("S", "save", "save the fitted parameters as a file, for --params", "compare.save"),
        binding("left_parenthesis", "other_a", "another run, or rank, as A", "compare.other"),
        binding("right_parenthesis", "other_b", "another run, or rank, as B", "compare.other-b"),
        binding("escape", "leave", "out of the calibration; else back to the timeline", "compare.leave"),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self._choice = Choice(session)
        # A and B, and the only two ranks of them that are shown.
        self._shown_runs: tuple[Run, Run, tuple[int, int] | None] | None = None
        self.names = ("", "")
        self.model: CompareModel | None = None
        self.refused = ""
        self.calibrating = Calibrating(self._app)
        # Where there is only one run, suggestions for a second one.
        self._advice: WhyModel | None = None
        self._compare()
        self.hints = self._hints_now()

    def _compare(self) -> None:
        """Makes the model of the chosen runs, or ranks of one: a new one only where these have changed."""
        if self.session.compared_run is not None:
            self.session.ranks = None
        pair, ranks = self._pair, self.session.ranks
        if pair is None:
            self.model, self._shown_runs = None, None
            return
        a, b = pair
        self.names = (a.name, b.name)
        previous = self._shown_runs
        if (
            previous is not None
            and previous[0] is a.results
            and previous[1] is b.results
            and previous[2] == ranks
        ):
            return
        self._shown_runs = a.results, b.results, ranks
        try:
            self.model, self.refused = CompareModel(ComparedLanes(Comparison(*self._shown_runs))), ""
        except UsageError as error:
            self.model, self.refused = None, str(error)

    @property
    def _pair(self) -> tuple[RunChoice, RunChoice] | None:
        """The chosen runs, or the run on the screen by the names of two ranks."""
        if self.session.ranks is None:
            return self._choice.pair
        a, b = (RunChoice(f"rank {rank}", self.session.current) for rank in self.session.ranks)
        return a, b

    @property
    def compared_runs(self) -> tuple[Run, Run] | None:
        """A and B where all of their ranks are shown."""
        if self.model is None or self._shown_runs is None or self._shown_runs[2] is not None:
            return None
        return self._shown_runs[:2]

    def frame(self, width: int, height: int) -> list[Line]:
        if self.calibrating.is_open:
            self.calibrating.update()
            lines = self.calibrating.draw(width, height, self.glyphs)
        else:
            lines = self._comparison(width, height)
        hints = self._hints_now()
        if hints != self.hints:
            self.hints = hints
            self._app.redraw_hints()
        return lines

    def _comparison(self, width: int, height: int) -> list[Line]:
        # A draft that was kept meanwhile has another name.
        self._compare()
        model = self.model
        if model is None:
            text_lines = wrapped(self.refused or self._one_run_text(), width - 4)
            lines = [rule("Compare", width, self.glyphs), *([(f"  {line}", "")] for line in text_lines)]
            return lines + ([] if self.refused else self._advice_lines(width, height - len(lines)))
        comparison = self._app.comparisons.request(
            model.compared, lambda _, is_cancelled: (model.compared.find(is_cancelled),)
        )
        return draw(model, self.names, width, height, self.glyphs, self.colour, comparison is not None)

    def _advice_lines(self, width: int, height: int) -> list[Line]:
        """Returns the changes that would make a second run, in a screen that has nothing else to show."""
        run = self.session.current
        if not run.timed or height < _ADVICE_ROWS:
            return []
        from tui.why.frame import WhyModel, what_if_lines

        if self._advice is None or self._advice.results is not run:
            self._advice = WhyModel(run, panel=WHAT_IF)
        advice = self._advice
        advice.knobs = self._app.runs.what_if(run)
        title = rule(f"{SECOND_RUN}{advice.base_words}", width, self.glyphs, "% of step")
        return [[], title, *what_if_lines(advice, width, height - 2, self._app.what_ifs.progress)]

    def _one_run_text(self) -> str:
        """Returns what one can do where there is only one run."""
        if not self.session.current.timed:
            return NO_TIMES
        if "steps" in screens_of(self.session.current):
            return _ONE_STEP_OF_MORE
        if self.session.opened.setup.others:
            return _ONE_OF_MORE
        # Runs of an earlier session, which are simulated when they are shown.
        others = len(self.session.history) - 1
        if others:
            which = "1 more run is" if others == 1 else f"{others} more runs are"
            return f"{which} kept: Enter in R shows one, then 6 compares it with this."
        return ONE_RUN

    @property
    def _app(self) -> RunsHost:
        return cast("RunsHost", self.app)

    def show(self, results: Run) -> None:
        self._compare()
        self.redraw()

    def _hints_now(self) -> tuple[tuple[str, str], ...]:
        calibrating = self.calibrating
        if calibrating.is_open:
            return calibrating.hints
        if self.model is None:
            return _ADVICE_HINTS if self._advice is not None and self._advice.knobs else _NO_HINTS
        return (*_HINTS[:4], *_CALIBRATE, *_HINTS[4:]) if calibrating.can_calibrate else _HINTS

    def _do(self, act: Callable[[CompareModel], object]) -> None:
        # What the panel covers does not change.
        if self.model is not None and not self.calibrating.is_open:
            act(self.model)
            self.redraw()

    def action_zoom(self, numerator: int, denominator: int) -> None:
        self._do(lambda model: model.zoom(numerator, denominator))

    def action_pan(self, numerator: int, denominator: int) -> None:
        self._do(lambda model: model.pan(numerator, denominator))

    def action_cursor(self, by: int) -> None:
        self._do(lambda model: model.move_cursor(by))

    def action_move(self, by: int) -> None:
        if self.calibrating.is_open:
            self.calibrating.scroll(by)
            self.redraw()
        elif self.model is None and self._advice is not None:
            self._advice.move(by)
            self.redraw()
        self._do(lambda model: model.move(by))

    def action_moved(self, direction: int) -> None:
        self._do(lambda model: self._app.say(model.go_to_shifted(direction)))

    def action_all(self) -> None:
        self._do(CompareModel.show_all)

    def action_fold(self) -> None:
        self._do(CompareModel.toggle_fold)

    def action_shown(self) -> None:
        if self.model is None and not self.calibrating.is_open:
            self._say_no_other()
        self._do(CompareModel.next_sides)

    def action_ends(self) -> None:
        self._do(CompareModel.toggle_ends)

    def action_panel(self) -> None:
        self._do(CompareModel.next_panel)

    async def action_go(self) -> None:
        model = self.model
        if model is None or self.calibrating.is_open:
            return
        if model.panel == DIFFERENCES:
            self._do(CompareModel.go_to_difference)
            return
        # The timeline has the run on the screen, which is B unless another was chosen.
        sides = [side for side in (1, 0) if model.compared.runs[side] is self.session.current]
        if sides:
            await self._app.go_to(*model.at_cursor(sides[0]))
        else:
            self._app.say(NOT_ON_SCREEN)

    def action_other_a(self) -> None:
        self._choose_other(self._choice.next_a) if self.session.ranks is None else self._other_rank(0)

    def action_other_b(self) -> None:
        self._choose_other(self._choice.next_b) if self.session.ranks is None else self._other_rank(1)

    def _other_rank(self, side: int) -> None:
        """Takes the first rank of the next track as A (0) or B (1), skipping that of the other side."""
        ranks = list(self.session.ranks or ())
        tracks = self.session.current.tracks
        track_indices = [
            next((at for at, track in enumerate(tracks) if rank in track.ranks), 0) for rank in ranks
        ]
        free = [at for at in range(len(tracks)) if at != track_indices[1 - side]]
        candidates = [at for at in free if at > track_indices[side]] or free
        ranks[side] = tracks[candidates[0]].first_rank
        self.session.ranks = (ranks[0], ranks[1])
        self._compare()
        self.redraw()

    def _choose_other(self, choose: Callable[[], bool]) -> None:
        if self.calibrating.is_open:
            return
        if choose():
            self._compare()
            self.redraw()
        else:
            self._say_no_other()

    def _say_no_other(self) -> None:
        self._app.say(NO_OTHER)

    # -- calibrating -----------------------------------------------------------------

    def action_calibrate(self) -> None:
        self.calibrating.open()
        self.redraw()

    def action_try(self) -> None:
        advice = self._advice if self.model is None else None
        if self.calibrating.can_calibrate:
            self.calibrating.try_it()
        else:
            # Two simulated runs show no list of changes: `t` tries the best one of the run on the screen.
            run = self.session.current
            knobs = self._app.runs.what_if(run) if advice is None else advice.knobs
            if knobs is None:
                self._app.runs.try_best()
            elif not knobs:
                self._app.say(NO_CHANGE)
            else:
                self._app.runs.try_change(knobs[0] if advice is None else advice.selected_change())
        self.redraw()

    def action_save(self) -> None:
        self.calibrating.save()

    async def action_leave(self) -> None:
        if self.calibrating.is_open:
            self.calibrating.leave()
            self.redraw()
        else:
            # With two ranks: the two runs are back when the screen is opened the next time.
            self.session.ranks = None
            self.show(self.session.current)
            await self._app.action_open("timeline")
