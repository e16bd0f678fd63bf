"""`:`: every action of the program, and every thing of its runs, found by typing a part of its words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input, Label

from tui.frame import Glyphs, Line, end_cut, rule, scrolled, width_of
from tui.frame_view import FrameView, ScreenView
from tui.keys.actions import KeyAction, Keymap, list_actions
from tui.prompt import FieldScreen, PromptInput
from tui.screens import SCREENS, load, screens_of
from tui.search_index import BEGINS, FAR, WHOLE, WORD, SearchIndex, is_thing, nearness

NONE_MATCHES = "nothing has these words"
_KEYS_WIDTH = 24
_ENDS = {"app.quit", "app.quit-everywhere"}


def rank_matches(
    key_actions: Sequence[KeyAction], typed: str, meaning_ids: Sequence[str] = ()
) -> list[KeyAction]:
    """Returns the actions that match what was typed, the best first; all for an empty text.

    Complete words come before beginnings of words, those before fragments; of equal ones those of the open
    screen, then of others, then things. meaning_ids: those that words of the trade lead to, in their order.
    """
    if not typed.strip():
        return list(key_actions)
    typed = typed.strip().lower()

    def sort_key(action: KeyAction) -> tuple[bool, bool, int, int, int]:
        """Returns the sort key: an id or words typed in full are meant; what ends the program is not
        matched by chance.
        """
        stray = action.id in _ENDS and not action.words.startswith(typed)
        closeness = nearness(action, typed)
        if action.id.startswith("screen.") and closeness <= BEGINS:
            # No other action is requested as often.
            closeness = WHOLE - 1
        meaning = len(meaning_ids)
        if action.id in meaning_ids:
            meaning, closeness = meaning_ids.index(action.id), WHOLE - 1
        exact = typed in (action.id, action.words.lower())
        return not exact, stray, closeness, meaning, 2 if is_thing(action) else bool(action.screen)

    listed = [action for action in key_actions if action.id in meaning_ids or nearness(action, typed) < FAR]
    return sorted(listed, key=sort_key)


def nearest_words(key_actions: Sequence[KeyAction], typed: str) -> list[str]:
    """Returns up to three words of the actions that are written almost as a word that was typed."""
    from difflib import get_close_matches

    all_words = {word for action in key_actions for word in WORD.findall(action.words.lower())}
    near = [
        near
        for word in WORD.findall(typed.lower())
        for near in get_close_matches(word, all_words, cutoff=0.75)
    ]
    return list(dict.fromkeys(near))[:3]


def list_other_screens(
    screen: str, here: Sequence[KeyAction], keymap: Keymap, names: Iterable[str] = SCREENS
) -> list[KeyAction]:
    """Returns the actions of the screens but `screen`, without those that `here`, its own ones, have in the
    same words. names: the screens that there are.
    """
    others: list[KeyAction] = []
    own_names = {action.id for action in here} | {action.words for action in here}
    for name in names:
        if name == screen:
            continue
        for action in list_actions(load(name).BINDINGS, keymap, name):
            if own_names.isdisjoint((action.id, action.words)):
                others.append(action)
                own_names.add(action.id)
    return others


class ActionList(FrameView):
    """The actions that match, one of them selected.

    others: those of other screens, requested when something is typed: the screens are not imported before.
    things: what else there is for a text, and what words of the trade mean.
    """

    DEFAULT_CSS = "ActionList { width: 1fr; height: auto; max-height: 20; }"

    def __init__(
        self,
        here: list[KeyAction],
        others: Callable[[], list[KeyAction]],
        glyphs: Glyphs,
        things: SearchIndex,
    ) -> None:
        super().__init__()
        self._things = things
        self.glyphs = glyphs
        self._here = self.matching_actions = here
        self._others = others
        self._all: list[KeyAction] = []
        self._typed = ""
        self._nearest: list[str] = []
        self.selected_index = 0
        self.top = 0

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return len(self._here) + 1

    def type(self, typed: str) -> None:
        """Shows what matches, with the best selected; an unchanged text leaves the selection alone."""
        if typed == self._typed:
            return
        self._typed = typed
        if not self._all:
            self._all = [*self._here, *self._others()]
        self.matching_actions, self._nearest = self._here, []
        if typed.strip():
            candidates = [*self._all, *self._things.find(typed)]
            self.matching_actions = rank_matches(candidates, typed, self._things.meanings(typed))
            if not self.matching_actions:
                self._nearest = nearest_words(candidates, typed)
        self.selected_index = self.top = 0
        self.redraw()

    def move(self, by: int) -> None:
        """Selects another one."""
        self.selected_index = max(0, min(self.selected_index + by, len(self.matching_actions) - 1))
        self.redraw()

    def frame(self, width: int, height: int) -> list[Line]:
        rows = height - 1
        self.top = scrolled(self.top, len(self.matching_actions), rows, self.selected_index)
        lines: list[Line] = []
        for index, action in enumerate(self.matching_actions[self.top : self.top + rows], self.top):
            mark, role = (">", "accent") if index == self.selected_index else (" ", "")
            keys = "  ".join(action.keys)
            screen = SCREENS[action.screen] if action.screen else None
            where = f"  on {screen.key} {screen.title}" if screen else ""
            # The screen that it opens is shown in full; the id is left out where it does not fit.
            words = end_cut(action.words, width - _KEYS_WIDTH - 2 - len(where))
            line: Line = [(f"{mark} {keys:<{_KEYS_WIDTH}}", role or "key"), (words, role)]
            line.append((where, role or "dim"))
            name = "" if is_thing(action) else f"   {action.id}"
            lines.append([*line, (name, "dim")] if width_of(line) + len(name) <= width else line)
        if not self.matching_actions:
            nearest = f"; nearest: {', '.join(self._nearest)}" if self._nearest else ""
            lines.append([(f"  {NONE_MATCHES}{nearest}", "warn")])
        below = len(self.matching_actions) - self.top - rows
        title = f"{below} more below" if below > 0 else "Enter does it, Esc leaves"
        return [*lines, *[[] for _ in range(rows - len(lines))], rule(title, width, self.glyphs)]


class Palette(FieldScreen["KeyAction | None"]):
    """Asks for an action; its result is the one to do, None if it is cancelled."""

    CSS = """
    Palette { align: left top; background: transparent; }
    Palette Horizontal { height: 1; background: $background; }
    Palette Label { width: auto; padding: 0 1; text-style: bold; }
    Palette Input { width: 1fr; height: 1; border: none; padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "leave"),
        Binding("down,ctrl+n", "move(1)", "next"),
        Binding("up,ctrl+p", "move(-1)", "before"),
        Binding("pagedown", "move(10)", "ten on"),
        Binding("pageup", "move(-10)", "ten back"),
    ]

    def __init__(
        self, view: ScreenView, everywhere: Sequence[BindingType], keymap: Keymap, things: SearchIndex
    ) -> None:
        super().__init__(PromptInput("", select_on_focus=False))
        here = [*list_actions(view.BINDINGS, keymap), *list_actions(everywhere, keymap)]
        screen = view.id or ""
        screens = screens_of(view.session.current)
        self._list = ActionList(
            here, lambda: list_other_screens(screen, here, keymap, screens), view.glyphs, things
        )

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Label(":", markup=False)
            yield self._field
        yield self._list

    def on_input_changed(self) -> None:
        # Not the event's value: more may have been typed, and something selected, since.
        self._list.type(self._field.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        actions_shown = self._list.matching_actions
        self.dismiss(actions_shown[self._list.selected_index] if actions_shown else None)

    def action_move(self, by: int) -> None:
        # What was typed in the same burst is still queued.
        self._list.type(self._field.value)
        self._list.move(by)
