"""Stacks as the process that unpickles writes them: a frame a line, name, file and line number with tabs."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.units import is_whole


def frames_of(stack: str) -> Sequence[tuple[str, str, int]]:
    """Returns (function, file, line) of each frame of a stack, the innermost first."""
    frames = []
    for line in stack.split("\n") if stack else ():
        name, _, rest = line.partition("\t")
        file, _, sequence = rest.rpartition("\t")
        frames.append((name, file, int(sequence) if is_whole(sequence) else 0))
    return frames
