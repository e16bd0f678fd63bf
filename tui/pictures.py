"""A picture of the screen, as SVG or as text."""

from __future__ import annotations

import io
import re

from rich.console import Console
from textual.app import App

# The picture is to be seen without a network: the fonts at hand do.
_FONT_FACES = re.compile(r"\s*@font-face \{[^}]*\}")


def as_svg(app: App[None]) -> str:
    """The screen in colours; it names no address."""
    return _FONT_FACES.sub("", app.export_screenshot(title="wltui"))


def as_text(app: App[None]) -> str:
    """The rows of the screen, blanks at their ends left out."""
    width, height = app.size
    console = Console(
        width=width, height=height, file=io.StringIO(), force_terminal=True, record=True, color_system=None
    )
    # As `export_screenshot` does it, which has SVG alone: what lies under a prompt is seen, too.
    picture = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    console.print(picture)
    rows = console.export_text().split("\n")[:height]
    return "\n".join(row.rstrip() for row in rows) + "\n"
