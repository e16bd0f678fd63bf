"""The step time in large digits: the one figure that is read from across the room."""

from __future__ import annotations

_DIGITS = {
    "0": ("█▀█", "█ █", "▀▀▀"), "1": ("▄█ ", " █ ", "▀▀▀"), "2": ("▀▀█", "█▀▀", "▀▀▀"),
    "3": ("▀▀█", "▀▀█", "▀▀▀"), "4": ("█ █", "▀▀█", "  ▀"), "5": ("█▀▀", "▀▀█", "▀▀▀"),
    "6": ("█▀▀", "█▀█", "▀▀▀"), "7": ("▀▀█", "  █", "  ▀"), "8": ("█▀█", "█▀█", "▀▀▀"),
    "9": ("█▀█", "▀▀█", "▀▀▀"), ".": (" ", " ", "▀"), "-": ("   ", "▀▀▀", "   "),
}  # fmt: skip


def large(words: str) -> list[str]:
    """Three rows of cells for a figure with its unit: `14.774 s`. The unit stands in plain letters."""
    figure, _, unit = words.rpartition(" ")
    rows = [" ".join(_DIGITS[char][row] for char in figure) for row in range(3)]
    return [rows[0], rows[1], f"{rows[2]} {unit}"]
