"""The argument parser of all commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.units import is_whole


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are `UsageError`s, so that all commands report them in one form.

    examples: (command line, what it is for): `--help` begins with what the command does, and them. commands:
    the same for other commands, with which it ends.
    """

    def __init__(
        self,
        *,
        examples: tuple[tuple[str, str], ...] = (),
        commands: tuple[tuple[str, str], ...] = (),
        **keywords: Any,
    ) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Help, **keywords)
        self.examples, self.commands = examples, commands

    def format_help(self) -> str:
        """Returns what it does, examples, its usage in a line, then the options in their groups."""
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        # The options are listed below: their usage alone takes 29 lines of 80 columns.
        positionals = [action for action in self._actions if not action.option_strings]
        required = [action for action in self._actions if action.option_strings and action.required]
        usage_line = f"%(prog)s {_required_text(required)}[options]{_operands(positionals)}"
        formatter.add_usage(usage_line, [], [], "usage: ")
        for group in self._action_groups:
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        formatter.add_text(self.epilog)
        text = formatter.format_help()
        if self.commands:
            text += f"\nother commands:\n{_example_lines(self.commands)}"
        if not self.examples:
            return text
        head, usage, rest = text.partition("usage: ")
        return f"{head}{_example_lines(self.examples)}\n{usage}{rest}"

    def refuse_rest(self, file: str | None, words: Sequence[str]) -> None:
        """Raises `UsageError` for words that were not parsed; a second file is of `wltui compare`."""
        if words and file is not None and not words[0].startswith("-"):
            both = f"{printable(file, 60)} {printable(words[0], 60)}"
            raise UsageError(
                f"found two files, expected one: wltui compare {both} holds them beside each other"
            )
        if words:
            self.error(f"unrecognized arguments: {' '.join(words)}")

    def error(self, message: str) -> Any:
        unknown = message.partition("unrecognized arguments: ")[2].split(" ")[0].partition("=")[0]
        near = ""
        if unknown.startswith("--"):
            # Without the dashes: with them --tp would be completed to --help.
            options = [name[2:] for name in self._option_string_actions if name.startswith("--")]
            near = did_you_mean(unknown[2:], options).replace("did you mean ", "did you mean --")
        raise UsageError(f"{printable(message, 300)}{near} (see {self.prog} --help)")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Writes plainly: argparse hides a full disk or a closed pipe, which `guarded` handles."""
        (file or sys.stderr).write(message or "")


def _required_text(required: Sequence[argparse.Action]) -> str:
    return "".join(f"{action.option_strings[-1]} {action.metavar} " for action in required)


def _operands(positionals: Sequence[argparse.Action]) -> str:
    """Returns `FILE`, `[FILE]`, `FILE...` as argparse writes them."""
    forms = {None: " {}", "?": " [{}]", "*": " [{}...]", "+": " {}..."}
    return "".join(forms[action.nargs].format(action.metavar or action.dest) for action in positionals)  # type: ignore[index]


def _example_lines(examples: tuple[tuple[str, str], ...]) -> str:
    width = max(len(line) for line, _ in examples)
    if width + 4 + max(len(what) for _, what in examples) > _columns():
        return "".join(f"  {line}\n      {what}\n" for line, what in examples)
    return "".join(f"  {line:<{width}}  {what}\n" for line, what in examples)


class _Help(argparse.HelpFormatter):
    """Help as wide as the terminal.

    argparse makes one for each argument that is added, and asks shutil for the width, whose import is 4 of
    the 440 ms that `report` takes.
    """

    def __init__(self, prog: str, **keywords: Any) -> None:
        super().__init__(prog, **{"width": _columns() - 2, **keywords})


# Lines are no longer on a terminal that states more.
_MOST_COLUMNS = 1000


def _columns() -> int:
    """Returns COLUMNS, or else those of the terminal, or else 80: as `shutil.get_terminal_size`."""
    from_environment = os.environ.get("COLUMNS", "")
    if is_whole(from_environment) and int(from_environment):
        return min(int(from_environment), _MOST_COLUMNS)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80
