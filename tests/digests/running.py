"""A case run by the commands themselves, in this process: its parts as text, and as digests."""

from __future__ import annotations

import hashlib
import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from simcore import __version__
from tui.cli import SUCCESS, main

from .cases import FOLDERS, Case
from .parts import json_parts
from .places import inside, place_of
from .runs import RUN_VIEWS, opened_run, run_texts

_DIGITS = 12


def digests(case: Case) -> dict[str, str]:
    """Part -> the first digits of its SHA-256; a part is named as `texts` names it."""
    return {part: _digest(text) for part, text in texts(case).items()}


def texts(case: Case) -> dict[str, str]:
    """Part -> its text: `text`, `chrome`, `json step`, `compare words`.

    Of an error there is one part, the message: `json refused`.
    """
    with place_of(case.folder) as place:
        return _printed(case, place) | _of_the_run(case, place)


def _printed(case: Case, place: Path) -> dict[str, str]:
    """The parts of what commands print."""
    found: dict[str, str] = {}
    for view in case.views:
        if view in RUN_VIEWS:
            continue
        if view in FOLDERS:
            status, printed, said = _folder(case, view, place)
        else:
            status, printed, said = _run(_command(case, view), place)
        if status != SUCCESS:
            found[f"{view} refused"] = f"{status}\n{said}"
        elif view in ("json", "compare"):
            found |= {f"{view} {part}": text for part, text in json_parts(view, printed).items()}
        else:
            found[view] = printed
    return found


def _of_the_run(case: Case, place: Path) -> dict[str, str]:
    """The parts of the views that no command prints, of one run; none where it is refused."""
    views = [view for view in case.views if view in RUN_VIEWS]
    found: dict[str, str] = {}
    with inside(place):
        run = opened_run(case.arguments) if views else None
        if run is not None:
            for view in views:
                found |= run_texts(run, view)
    return found


def printed_json(case: Case, view: str) -> str | None:
    """What the command of a JSON view prints; None where it refuses."""
    with place_of(case.folder) as place:
        status, printed, _ = _run(_command(case, view), place)
    return printed if status == SUCCESS else None


def _command(case: Case, view: str) -> list[str]:
    """The words of `wltui` that give a view."""
    if view == "text":
        return ["report", *case.arguments]
    if view == "json":
        return ["report", "--json", *case.arguments]
    if view == "compare":
        return ["compare", "--json", *case.arguments]
    return ["export", "--format", view, "-o", "-", *case.arguments]


def _folder(case: Case, view: str, place: Path) -> tuple[int, str, str]:
    """As `_run`, of an export that is a folder: in place of what is printed each file with its digest."""
    words = ["export", *FOLDERS[view], *case.arguments]
    with TemporaryDirectory() as folder:
        status, _, said = _run([*words, "-o", str(Path(folder, "out"))], place)
        lines = [
            f"{file.name} {_digest(_without_version(file.read_bytes().decode('utf-8', 'surrogateescape')))}\n"
            for file in sorted(Path(folder).glob("out/*"))
        ]
    return status, "".join(lines), said


def _without_version(text: str) -> str:
    """The version is of the program that wrote, not of the run."""
    for before in ('"wltui":"', "simulated by wltui "):
        text = text.replace(f"{before}{__version__}", before)
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]


def _run(words: list[str], place: Path) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of `wltui` with these words, run from a folder."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    with inside(place), redirect_stdout(out), redirect_stderr(said):
        status = main(words)
        out.flush()
        said.flush()
    printed = out.buffer.getvalue().decode("utf-8", "surrogateescape")
    return status, _without_version(printed), said.buffer.getvalue().decode("utf-8", "surrogateescape")
