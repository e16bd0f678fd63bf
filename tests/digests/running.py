"""A case run by the commands themselves, in this process: its parts as text, and as digests."""

from __future__ import annotations

import hashlib
import io
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from simcore import __version__
from simcore.diagnostics import InputError, UsageError
from tests.workload.texts import REPOSITORY
from tui.cli import DONE, main

from .cases import Case
from .parts import json_parts

_EXPORTS = ("chrome", "csv", "simai")
_DIGITS = 12


def digests(case: Case) -> dict[str, str]:
    """Part -> the first digits of its SHA-256; a part is named as `texts` names it."""
    return {part: _digest(text) for part, text in texts(case).items()}


def texts(case: Case) -> dict[str, str]:
    """Part -> its text: `text`, `chrome`, `json step`, `compare words`.

    Of an error there is one part, the message: `json refused`.
    """
    found: dict[str, str] = {}
    for view in case.views:
        if view == "slack":
            slack = _op_slack(case)
            if slack is not None:
                found["slack of ops"] = slack
            continue
        status, printed, said = _run(_command(case, view))
        if status != DONE:
            found[f"{view} refused"] = f"{status}\n{said}"
        elif view in ("json", "compare"):
            found |= {f"{view} {part}": text for part, text in json_parts(view, printed).items()}
        else:
            found[view] = printed
    return found


def printed_json(case: Case, view: str) -> str | None:
    """What the command of a JSON view prints; None where it refuses."""
    status, printed, _ = _run(_command(case, view))
    return printed if status == DONE else None


def _command(case: Case, view: str) -> list[str]:
    """The words of `wltui` that give a view."""
    if view == "text":
        return ["report", *case.arguments]
    if view == "json":
        return ["report", "--json", *case.arguments]
    if view == "compare":
        return ["compare", "--json", *case.arguments]
    return ["export", "--format", view, "-o", "-", *case.arguments]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]


def _run(words: list[str]) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of `wltui` with these words, run from the checkout."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    with _in_the_checkout(), redirect_stdout(out), redirect_stderr(said):
        status = main(words)
        out.flush()
        said.flush()
    printed = out.buffer.getvalue().decode("utf-8", "surrogateescape")
    # The version is of the program that wrote, not of the run.
    printed = printed.replace(f'"wltui":"{__version__}"', '"wltui":""')
    return status, printed, said.buffer.getvalue().decode("utf-8", "surrogateescape")


@contextmanager
def _in_the_checkout() -> Iterator[None]:
    """Paths are named from there, so that no output knows where the checkout is."""
    before = os.getcwd()
    # `export` puts its own in their place.
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in ending}
    os.chdir(REPOSITORY)
    try:
        yield
    finally:
        os.chdir(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _op_slack(case: Case) -> str | None:
    """Per class the slack of each op, ns, which no command prints; None where a run has none.

    None also of a run that is refused: the message is in another part.
    """
    from simcore.analysis import Results
    from simcore.simulation import simulate
    from simcore.workload import Workload
    from tui.commands.arguments import parameters_from
    from tui.commands.opened import open_input
    from tui.commands.report import build_parser

    with _in_the_checkout(), redirect_stderr(io.StringIO()):
        try:
            arguments = build_parser().parse_args(case.arguments)
            opened = open_input(arguments.file)
            if not isinstance(opened, Workload):
                return None
            slacks = Results(simulate(opened, parameters_from(arguments))).slacks
        except (InputError, UsageError):
            return None
    if slacks is None:
        return None
    return "\n".join(" ".join(map(str, column)) for column in slacks)
