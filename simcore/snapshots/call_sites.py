"""Where in a program an allocation was made: the frame of its stack that a reader looks for."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.unpickling.stacks import frames_of

_OF_PYTHON, _PACKAGES = "/lib/python", ("site-packages", "dist-packages")


def _is_library(file: str) -> bool:
    """Returns whether a file is PyTorch's or of Python itself; other packages have the models that run."""
    is_package = any(word in file for word in _PACKAGES)
    return "/torch/" in file or file.startswith("<") or (_OF_PYTHON in file and not is_package)


def call_site(stack: str) -> tuple[str, str, int] | None:
    """Returns the innermost frame of the program itself, else of Python, else of all; None without any."""
    frames: Sequence[tuple[str, str, int]] = frames_of(stack)
    of_python = [frame for frame in frames if frame[1].endswith(".py")]
    own = (frame for frame in of_python if not _is_library(frame[1]))
    return next(own, next(iter(of_python), next(iter(frames), None)))


def site_text(stack: str) -> str:
    """Returns `forward  model.py:12`, raw text of the file; "" without a frame."""
    site = call_site(stack)
    if site is None:
        return ""
    name, file, line = site
    return f"{name}  {file.rsplit('/', 1)[-1]}:{line}"
