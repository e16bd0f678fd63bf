"""A widget that shows a frame and sends the terminal only the lines that changed; and the base of all
screens.

Roles of text become styles: chosen in 256 colour indices first, then 16; without colour the glyph says it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.frame import ASCII, BLOCKS, Glyphs, Line, as_ascii, fitted, shortened, width_of
from tui.session import Run, Session

_ROLES_256 = {
    "": "",
    "fwd": "color(74)", "bwd": "color(71)", "wg": "color(65)", "opt": "color(139)", "recompute": "color(67)",
    "tp": "color(215)", "dp": "color(209)", "dp_ep": "color(173)", "ep": "color(221)", "pp": "color(180)",
    "dp_shard": "color(209)", "dp_replicate": "color(173)", "offload": "color(146)",
    "embedding": "color(175)", "position": "color(168)", "comm": "color(216)", "host": "color(146)",
    "kernel": "color(110)", "copy": "color(109)",
    "all": "color(216)", "cp": "color(222)", "cp_a2a": "color(222)", "cp_p2p": "color(222)",
    "ep_intra": "color(221)", "ep_inter": "color(221)",
    "wait": "color(203)", "bubble": "color(240)", "idle": "",
    "allocated": "color(74)", "released": "color(139)", "reserved": "color(240)",
    "dim": "color(244)", "bright": "bold", "accent": "bold color(81)", "warn": "bold color(214)",
    "better": "bold color(114)", "worse": "bold color(209)", "neither": "color(244)", "key": "bold",
    "only-a": "color(111)", "only-b": "color(179)", "moved": "color(246)",
    "only-a-tint": "color(18)", "only-b-tint": "color(58)", "moved-tint": "color(238)",
    "heat 1": "color(61)", "heat 2": "color(67)", "heat 3": "color(73)", "heat 4": "color(108)",
    "heat 5": "color(143)", "heat 6": "color(179)", "heat 7": "color(173)", "heat 8": "color(167)",
}  # fmt: skip
_ROLES_16 = {
    "": "",
    "fwd": "blue", "bwd": "green", "wg": "dim green", "opt": "magenta", "recompute": "dim blue",
    "tp": "yellow", "dp": "bright_yellow", "dp_ep": "bright_yellow", "ep": "yellow", "pp": "cyan",
    "dp_shard": "bright_yellow", "dp_replicate": "bright_yellow", "offload": "white",
    "embedding": "bright_magenta", "position": "bright_magenta", "comm": "yellow", "host": "white",
    "kernel": "bright_blue", "copy": "bright_cyan",
    "all": "yellow", "cp": "yellow", "cp_a2a": "yellow", "cp_p2p": "yellow",
    "ep_intra": "yellow", "ep_inter": "yellow",
    "wait": "red", "bubble": "bright_black", "idle": "",
    "allocated": "blue", "released": "magenta", "reserved": "bright_black",
    "dim": "bright_black", "bright": "bold", "accent": "bold cyan", "warn": "bold yellow",
    "better": "bold green", "worse": "bold red", "neither": "bright_black", "key": "bold",
    "only-a": "bright_blue", "only-b": "bright_yellow", "moved": "white",
    "only-a-tint": "underline", "only-b-tint": "underline", "moved-tint": "underline",
    # 16 colours have no ramp: the heights alone say it.
    **dict.fromkeys((f"heat {height}" for height in range(1, 9)), ""),
}  # fmt: skip


class Styles(dict[str, Style]):
    """The style of each role. `A on B` (the colour of A before that of B, or its underline), `A underlined`,
    `A reversed` and `A underlined reversed` are made on demand.
    """

    def __missing__(self, role: str) -> Style:
        if role.endswith(" reversed"):
            style = self[role.removesuffix(" reversed")] + Style(reverse=True)
        elif role.endswith(" underlined"):
            style = self[role.removesuffix(" underlined")] + Style(underline=True)
        else:
            front, on, behind = role.partition(" on ")
            if not on:
                raise KeyError(role)
            sign = self[behind]
            style = self[front] + Style(bgcolor=sign.color, underline=sign.underline)
        self[role] = style
        return style


def styles(color_system: str | None) -> Styles:
    """Returns the style of each role on a terminal with this colour system.

    color_system: as rich names it: truecolor, 256, standard (16 colours), None for no colour.
    """
    plain = _ROLES_16 if color_system == "standard" else _ROLES_256
    by_role = Styles({role: Style.parse(words) for role, words in plain.items()})
    by_role.update({f"{role} reversed": style + Style(reverse=True) for role, style in list(by_role.items())})
    return by_role


class FrameView(Widget, can_focus=False):
    """Base of all views: a subclass defines `frame`, keys call `redraw` when something changed.

    A refresh of the whole widget would send every cell again; Textual keeps no cells to compare with. So the
    frame is compared line by line, and equal lines are left alone.
    """

    DEFAULT_CSS = """
    FrameView { width: 1fr; height: 1fr; }
    """

    def __init__(self, *, ascii_only: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs: Glyphs = ASCII if ascii_only else BLOCKS
        self._lines: list[Line] = []
        self._is_stale = False
        self._styles = styles(None)

    @property
    def colour(self) -> bool:
        """Whether the terminal shows colours; without them only glyphs tell kinds apart."""
        return not self.app.no_color and self.app.console.color_system is not None

    def frame(self, width: int, height: int) -> list[Line]:
        """Returns the lines to show, at most `height` of them. Only `frame` draws."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self._styles = styles(self.app.console.color_system)

    def on_resize(self) -> None:
        drawn_size = (width_of(self._lines[0]), len(self._lines)) if self._lines else self.size
        if drawn_size != self.size and self.size.area:
            self.redraw_all()

    def redraw_all(self) -> None:
        """Draws the frame anew and refreshes every line, whatever was there."""
        self._lines = []
        self._is_stale = False
        self.refresh()

    def redraw(self) -> None:
        """Draws the frame anew and refreshes the lines that differ, once for all keys that are queued."""
        if not self._lines or not self.display:
            # Nothing is on the terminal; the frame is made when Textual asks for its lines.
            self.redraw_all()
        elif not self._is_stale:
            self._is_stale = True
            # After the keys in the app's queue.
            self.app.call_later(self._redraw_stale)

    def _redraw_stale(self) -> None:
        if self._is_stale:
            self.redraw_now()

    def redraw_now(self) -> None:
        """Redraws at once: for what must be in one picture with something else."""
        self._is_stale = False
        before, self._lines = self._lines, self._composed()
        width, height = self.size
        if len(before) != height:
            self.refresh()
            return
        changed = [y for y, line in enumerate(self._lines) if line != before[y]]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def _composed(self) -> list[Line]:
        width, height = self.size
        lines = self.frame(width, height)[:height]
        lines = [shortened(line, width) for line in (as_ascii(lines) if self.glyphs is ASCII else lines)]
        return lines + [fitted([], width)] * (height - len(lines))

    def render_line(self, y: int) -> Strip:
        if not self._lines and self.size.width and self.size.height:
            self._lines = self._composed()
        if y >= len(self._lines):
            return Strip.blank(self.size.width, self._styles[""])
        # Every segment has a style: Textual's filters fail on one without.
        return Strip([Segment(text, self._styles[role]) for text, role in self._lines[y]], self.size.width)


class ScreenState(Protocol):
    """A screen's part of a session, as the session file keeps it."""

    def as_json(self) -> dict[str, Any]:
        """Returns the values as JSON takes them."""


class ScreenView(FrameView, can_focus=True):
    """One screen. `hints` are the texts of the last row for its keys, most useful first, `mouse` those of the
    help for the mouse.
    """

    # On a screen without changes to try the key says where they are.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("t", "app.try_elsewhere", show=False)]

    hints: tuple[tuple[str, str], ...] = ()
    mouse: tuple[tuple[str, str], ...] = ()

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(ascii_only=ascii_only, id=id)
        self.session = session

    def has_key(self, key: str) -> bool:
        """Returns whether a key does something of the screen's own."""
        return any(
            isinstance(key_binding, Binding) and key in key_binding.key.split(",")
            for key_binding in self.BINDINGS
        )

    def show_hints(self, hints: tuple[tuple[str, str], ...]) -> None:
        """Shows these hints in the last row, if it has others."""
        if hints != self.hints:
            self.hints = hints
            for footer in self.app.query("Footer").results(FrameView):
                footer.redraw()

    def saved(self) -> ScreenState | None:
        """Returns what the session file keeps of this screen, None for nothing."""
        return None

    def restore(self, state: ScreenState, keeps_positions: bool) -> None:
        """Restores what was saved. keeps_positions: whether positions in time still mean the same."""

    @property
    def compared_runs(self) -> tuple[Run, Run] | None:
        """The runs that this screen compares, A and B; None of a screen of one run."""
        return None

    @property
    def command(self) -> str | None:
        """The command line of what is at the cursor, None where that is the run on the screen."""
        return None

    def leads_to(self, name: str) -> bool:
        """Returns whether this screen opens another one by itself, for instance with its marks; if so, it
        does.
        """
        return False

    def show(self, results: Run) -> None:
        """Shows the figures of another run in this view."""
        self.redraw()


def binding(keys: str, action: str, words: str, id: str) -> Binding:
    """Returns a key of a screen: `id` names it in a keymap, `words` explain it in the help."""
    return Binding(keys, action, words, show=False, id=id)
