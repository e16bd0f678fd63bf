"""What `:` finds besides actions: parameters and their values, rows of the layer table, ranks, stages, runs,
and the files that are open. Each is an action that leads to the thing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from simcore.cluster.placement import crossed_dimensions
from simcore.diagnostics import UsageError
from simcore.parameter_values.choices import choices
from simcore.units import duration
from tui.frame import cells
from tui.keys.actions import KeyAction
from tui.parameters.fields import AlgorithmField, DimensionField, FlagField, FormField

if TYPE_CHECKING:
    from tui.layers.table import Table
    from tui.layers.view import LayersView
    from tui.parameters.source import FormSource
    from tui.parameters.view import ParametersView
    from tui.runs.runs import RunsHost
    from tui.timeline.view import TimelineView

# The letters from which on the rows of the layer table are searched, and how many of them are listed.
_LEAST_TYPED, _MOST_ROWS = 2, 8
# A parameter's words and a figure: `microbatches 4`, `bandwidth = 100`.
_VALUE = re.compile(r"\s*(\S{2}.*?)[\s=]+([0-9][\w.]*)\s*$")
_RANK_OR_STAGE = re.compile(r"(?:\b(rank|stage)\s*|^\s*)([0-9]{1,7})\s*$")


class SearchIndex:
    """Finds things in the runs of an app, by what was typed."""

    def __init__(self, app: RunsHost) -> None:
        self._app = app

    def find(self, typed: str) -> list[KeyAction]:
        """Returns the things that `typed` may mean; the caller checks which have its words."""
        return [
            *self._fixed_actions,
            *self._values(typed),
            *self._ranks_and_stages(typed),
            *self._positions(typed),
            *self._rows(typed),
        ]

    def meanings(self, typed: str) -> list[str]:
        """Returns the ids that words of the trade lead to in this run: `tp bandwidth`, `mfu`, `nic`."""
        from tui.synonyms import meanings

        cluster, layout = (getattr(self._form[1], name, None) for name in ("cluster", "layout"))
        # A draft's network may have fewer places than the draft has ranks.
        if cluster is None or layout is None or not cluster.dims or layout.world > cluster.npus:
            return meanings(typed, 0, {})
        return meanings(typed, len(cluster.dims), crossed_dimensions(cluster, layout))

    @cached_property
    def _fixed_actions(self) -> list[KeyAction]:
        """The actions that do not depend on what was typed."""
        return [*self._parameters(), *self._runs(), *self._files()]

    # -- parameters ------------------------------------------------------------------

    @cached_property
    def _form(self) -> tuple[FormSource, Any, Sequence[FormField]]:
        """The form, the context of the draft, and the fields."""
        from tui.parameters.form import form_source

        source = form_source(self._app.session.opened)
        now: Any = source.make_context(self._app.session.current)
        context: Any = source.make_draft_context(now.setup.with_parameters(self._app.session.draft), now)
        return source, context, source.fields(now)

    def _parameters(self) -> Iterator[KeyAction]:
        _, context, fields = self._form
        for field in fields:
            value = field.displayed_value(context)
            words = f"parameter {field.label} = {cells(value, 30)} {field.unit}".rstrip()
            yield _thing(words, _id_of(field), self._to_field(field.label))
            for choice in _choices_of(field):
                if choice != value:
                    change = f"{field.label} {choice}"
                    yield _thing(f"parameter {change}, now {cells(value, 30)}", change,
                                 self._to_field(field.label, choice))  # fmt: skip

    def _values(self, typed: str) -> Iterator[KeyAction]:
        """Yields parameters with the figure that was typed behind their words, where they can have it."""
        match = _VALUE.match(typed)
        if match is None:
            return
        name, value = match[1], match[2]
        source, context, fields = self._form
        for field in fields:
            # A field of a single rank or operation must be named in full: `rank 7` is no value 7.
            named_whole = not getattr(field, "key", "") or _closeness(name, field.label) == WHOLE
            if not named_whole or _closeness(f"{field.label} {field.option}", name) > BEGINS:
                continue
            now = field.displayed_value(context)
            try:
                changed = context.setup.with_changes(**field.parse_text(context, value))
                is_change = field.displayed_value(source.make_draft_context(changed, context)) != now
            except UsageError:
                continue
            if is_change:
                change = f"{field.label} {value}"
                act = self._to_field(field.label, value)
                yield _thing(f"parameter {change}, now {cells(now, 30)}", change, act)

    def _to_field(self, label: str, value: str | None = None) -> Callable[[], Any]:
        async def go() -> None:
            await self._app.action_open("parameters")
            cast("ParametersView", self._app.current_view).go_to_field(label, value)

        return go

    # -- runs and files --------------------------------------------------------------

    def _runs(self) -> Iterator[KeyAction]:
        session, runs = self._app.session, self._app.runs
        for run in session.history:
            title = session.title_of(run)
            name = run.name or run.label or " ".join(run.parameters.as_flags()) or "as opened"
            step = "" if run.step_ns is None else f", {duration(run.step_ns)}"

            def show(run: Any = run) -> None:
                if run is not session.find_in_history(session.current):
                    runs.show(run, runs.say_run)

            yield _thing(f"{title}: {cells(name, 60)}{step}", title, show)

    def _files(self) -> Iterator[KeyAction]:
        session = self._app.session
        opened = [session.opened, *([session.against] if session.against is not None else [])]
        for run in opened:
            yield _thing(f"file {cells(run.path, 80)}: its notes", "file", self._to_notes)

    async def _to_notes(self) -> None:
        await self._app.action_open("notes")

    # -- ranks, stages, layers -------------------------------------------------------

    def _ranks_and_stages(self, typed: str) -> Iterator[KeyAction]:
        match = _RANK_OR_STAGE.search(typed.lower())
        if match is None:
            return
        rank_or_stage, tracks = int(match[2]), self._app.session.current.tracks
        has_kind = {
            "rank": any(rank_or_stage in track.ranks for track in tracks),
            "stage": any(track.stage == rank_or_stage for track in tracks),
        }
        for kind in (match[1],) if match[1] else has_kind:
            if has_kind[kind]:
                name = f"{kind} {rank_or_stage}"
                yield _thing(f"{name} on the timeline", name, self._to_lane(name))

    def _positions(self, typed: str) -> Iterator[KeyAction]:
        """Yields the time, step or micro-batch that was typed: `7.5 s`, `at 50%`, `step 6`, `mb 12`."""
        from tui.timeline.query import parse_query

        query = parse_query(typed)
        if not query.problem and not query.words and (query.has_position or query.microbatch is not None):
            yield _thing(f"{query.text} on the timeline", query.text.lower(), self._to_lane(query.text))

    def _to_lane(self, name: str) -> Callable[[], Any]:
        async def go() -> None:
            await self._app.action_open("timeline")
            cast("TimelineView", self._app.current_view).find(name)

        return go

    @cached_property
    def _table(self) -> Table:
        from tui.layers.view import table_of

        view = cast("LayersView | None", self._app.views.get("layers"))
        return view.table if view is not None else table_of(self._app.session.current)

    def _rows(self, typed: str) -> Iterator[KeyAction]:
        """Yields rows of the layer table that contain what was typed."""
        query = typed.strip().removeprefix("layer ").strip()
        if len(query) < _LEAST_TYPED:
            return
        table, line = self._table, 0
        heading = table.columns_for(200)[0].heading
        listed_names: set[str] = set()
        for _ in range(_MOST_ROWS):
            row = table.find(query, line, 1)
            if row is None or row < line:
                return
            name = table.texts(row)[heading].strip()
            if name and name not in listed_names:
                listed_names.add(name)
                words = f"{heading} {name} in the table"
                yield _thing(words, f"{heading} {query}", self._to_row(query, row))
            line = row + 1
            if line >= len(table.lines):
                return

    def _to_row(self, query: str, line: int) -> Callable[[], Any]:
        async def go() -> None:
            await self._app.action_open("layers")
            cast("LayersView", self._app.current_view).go_to_line(query, line)

        return go


def _thing(words: str, id: str, act: Callable[[], Any]) -> KeyAction:
    return KeyAction(id, words, (), "", "", act)


def _id_of(field: FormField) -> str:
    """Returns the option of a field; of the fields of one dimension, which share it, the words."""
    of_dimension = isinstance(field, (DimensionField, AlgorithmField))
    return " ".join(field.label.split()) if of_dimension else field.option


def _choices_of(field: FormField) -> tuple[str, ...]:
    """Returns the values that a field may have, where they are words."""
    flag = field.flag if isinstance(field, FlagField) else None
    if flag is None or flag.kind not in ("word", "switch"):
        return ()
    return choices(flag.field) if flag.kind == "word" else ("on", "off")


def is_thing(action: KeyAction) -> bool:
    """Returns whether it leads to something of the runs, and is no action of a screen."""
    return action.act is not None


# How well an action matches what was typed: complete words, beginnings of words, a fragment of them; less.
WHOLE, BEGINS, FRAGMENT, FAR = range(4)
WORD = re.compile(r"[^\s,:=]+")


def nearness(action: KeyAction, typed: str) -> int:
    """Returns WHOLE where every word that was typed is one of the action's, BEGINS where each begins one of
    them, FRAGMENT where the text as typed is in it, else FAR.
    """
    return _closeness(f"{action.words} {action.id.replace('.', ' ')} {action.id}", typed)


def _closeness(text: str, typed: str) -> int:
    typed_words, text = WORD.findall(typed.lower()), text.lower()
    words = set(WORD.findall(text)) | {part for word in WORD.findall(text) for part in word.split("-")}
    if typed_words and all(word in words for word in typed_words):
        return WHOLE
    if typed_words and all(any(candidate.startswith(word) for candidate in words) for word in typed_words):
        return BEGINS
    return FRAGMENT if typed.lower().strip() in text else FAR
