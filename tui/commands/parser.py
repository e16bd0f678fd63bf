"""The argument parser of all commands."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from simcore.diagnostics import UsageError, printable


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is a `UsageError`, so that all read alike."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Help, **keywords)

    def error(self, message: str) -> Any:
        raise UsageError(f"{printable(message, 300)} (see {self.prog} --help)")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Plainly: argparse keeps to itself that a disk is full or a reader gone, which is for `guarded`."""
        (file or sys.stderr).write(message or "")


class _Help(argparse.HelpFormatter):
    """Help as wide as the terminal. argparse makes one for each argument that is added, and asks shutil for
    the width, whose import is 4 of the 440 ms that `report` takes.
    """

    def __init__(self, prog: str, **keywords: Any) -> None:
        super().__init__(prog, **{"width": _columns() - 2, **keywords})


def _columns() -> int:
    """COLUMNS, or else those of the terminal, or else 80: as `shutil.get_terminal_size`."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated):
        return int(stated)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80
