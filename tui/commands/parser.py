"""The argument parser of all commands."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from simcore.diagnostics import UsageError, printable


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is a `UsageError`, so that all read alike."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> Any:
        raise UsageError(f"{printable(message, 300)} (see {self.prog} --help)")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Plainly: argparse keeps to itself that a disk is full or a reader gone, which is for `guarded`."""
        (file or sys.stderr).write(message or "")
