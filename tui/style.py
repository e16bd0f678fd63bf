"""Roles to styles: chosen in 256 colour indices first, then 16; without colour the glyph says it."""

from __future__ import annotations

from rich.style import Style

_ROLES_256 = {
    "": "",
    "fwd": "color(74)", "bwd": "color(71)", "wg": "color(65)", "opt": "color(139)", "recompute": "color(67)",
    "tp": "color(215)", "dp": "color(209)", "dp_ep": "color(173)", "ep": "color(221)", "pp": "color(180)",
    "embedding": "color(175)", "position": "color(168)", "comm": "color(216)", "host": "color(146)",
    "kernel": "color(110)", "copy": "color(109)",
    "all": "color(216)", "cp": "color(222)", "wait": "color(203)", "bubble": "color(240)", "idle": "",
    "dim": "color(244)", "bright": "bold", "accent": "bold color(81)", "warn": "bold color(214)",
    "better": "bold color(114)", "worse": "bold color(209)", "key": "bold",
    "only-a": "color(111)", "only-b": "color(179)", "moved": "color(246)",
    "only-a-tint": "color(18)", "only-b-tint": "color(58)",
}  # fmt: skip
_ROLES_16 = {
    "": "",
    "fwd": "blue", "bwd": "green", "wg": "dim green", "opt": "magenta", "recompute": "dim blue",
    "tp": "yellow", "dp": "bright_yellow", "dp_ep": "bright_yellow", "ep": "yellow", "pp": "cyan",
    "embedding": "bright_magenta", "position": "bright_magenta", "comm": "yellow", "host": "white",
    "kernel": "bright_blue", "copy": "bright_cyan",
    "all": "yellow", "cp": "yellow", "wait": "red", "bubble": "bright_black", "idle": "",
    "dim": "bright_black", "bright": "bold", "accent": "bold cyan", "warn": "bold yellow",
    "better": "bold green", "worse": "bold red", "key": "bold",
    "only-a": "bright_blue", "only-b": "bright_yellow", "moved": "white",
    "only-a-tint": "", "only-b-tint": "",
}  # fmt: skip


class Styles(dict[str, Style]):
    """Style of each role. `A on B` (the colour of A before that of B) and `A reversed` are made when
    first asked for.
    """

    def __missing__(self, role: str) -> Style:
        if role.endswith(" reversed"):
            made = self[role.removesuffix(" reversed")] + Style(reverse=True)
        else:
            front, on, behind = role.partition(" on ")
            if not on:
                raise KeyError(role)
            made = self[front] + Style(bgcolor=self[behind].color)
        self[role] = made
        return made


def styles(color_system: str | None) -> Styles:
    """The style of each role on a terminal with this colour system.

    color_system: as rich names it: truecolor, 256, standard (16 colours), None for no colour.
    """
    plain = _ROLES_16 if color_system == "standard" else _ROLES_256
    found = Styles({role: Style.parse(words) for role, words in plain.items()})
    found.update({f"{role} reversed": style + Style(reverse=True) for role, style in list(found.items())})
    return found
