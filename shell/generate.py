"""Writes the completion files of bash and zsh and the manual page, from the parsers of the commands, and the
types of the keywords of Python's front door.

`make shell` does it (`python -m shell.generate`); a test says when it was forgotten. shtab writes the
completions, argparse-manpage the page; neither is needed to run wltui. What the page says beyond
`--help` is in sections.man.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from shlex import join, quote

import shtab
from argparse_manpage.manpage import Manpage

from simcore import __version__
from simcore.api.sweeping import KEYWORDS
from simcore.api.values import keyword_types
from simcore.cluster.presets import PRESETS
from simcore.collectives import NAMES
from simcore.model.operations.alone import KINDS, PRECISIONS
from simcore.parameter_values.choices import choices
from simcore.parameters import FLAGS
from simcore.program.schedules import SCHEDULES
from simcore.render.export import FORMATS
from tui.cli import COMMANDS
from tui.commands import view
from tui.screens import SCREENS

HERE = Path(__file__).resolve().parent
_SUMMARY = "see where the step time of a distributed-training workload goes"

# The metavars of what may be a file or a directory.
_FILES = {"FILE", "FILE2", "NAME|FILE", "OUT", "PRESET|FILE", "TRACE", "WORKLOAD"}
# Flag, or metavar of what has none, behind its command where that has words of its own -> the words that it
# may be.
_WORDS: dict[str, tuple[str, ...]] = {
    **{flag.option: choices(flag.field) for flag in FLAGS if flag.kind == "word"},
    "--cluster": tuple(PRESETS),
    "--screen": tuple(SCREENS),
    "--format": tuple(known.name for known in FORMATS),
    "COLLECTIVE": tuple(NAMES.values()),
    "OPERATION": tuple(KINDS),
    "op --precision": PRECISIONS,
    # Of `wltui schedule`: a pipeline alone can be drawn.
    "NAME|FILE": tuple(name for name, one in SCHEDULES.items() if one.pipelined),
}
_GROUPS = list(dict.fromkeys(flag.group for flag in FLAGS))

# For shtab a parser has commands or a FILE first; wltui has either.
_BASH = """\
# The first word is a command or a FILE, and behind a FILE there is no command.
_shtab_wltui_pos_0_choices=("${_shtab_wltui_subparsers[@]}")
unset _shtab_wltui_pos_1_choices"""
_ZSH = """\
# The first word is a command or a FILE, whose flags are those of wltui itself.
_shtab_wltui() {{
  if (( CURRENT > 2 )); then
    case $words[2] in
      {commands})
        local options=_shtab_wltui_$words[2]_options
        shift words
        (( CURRENT-- ))
        _arguments -s ${{(P)options}}
        return ;;
    esac
  else
    _shtab_wltui_commands
  fi
  _arguments -s $_shtab_wltui_options
}}"""


def files() -> dict[str, str]:
    """The name of each file and what is in it."""
    preamble = {"bash": _BASH, "zsh": _ZSH.format(commands="|".join(COMMANDS))}
    return {
        "wltui.bash": shtab.complete(_completed(command_line()), "bash", preamble=preamble) + "\n",
        "_wltui": shtab.complete(_completed(command_line()), "zsh", preamble=preamble),
        "wltui.1": _page(command_line()),
        "../simcore/api/keywords.pyi": _keywords(),
    }


def _keywords() -> str:
    """The keywords of runs and sweeps as type checkers and editors read them."""
    return "\n".join([
        '"""Keywords of `run`, `with_` and `sweep`, for type checkers and editors; made by `make shell`."""',
        "",
        "from collections.abc import Iterable, Mapping",
        "from os import PathLike",
        "from typing import TypedDict",
        "",
        "class RunKeywords(TypedDict, total=False):",
        *(f"    {name}: {one}" for name, one in keyword_types().items()),
        "",
        "class SweepKeywords(TypedDict, total=False):",
        *(f"    {name}: {one}" for name, one in KEYWORDS.items()),
        "",
    ])  # fmt: skip


def command_line() -> argparse.ArgumentParser:
    """All parsers as one tree. The program builds the one it needs, this is for who reads them all."""
    root = view.build_parser()
    commands = root.add_subparsers(title="commands", metavar="COMMAND", prog="wltui")
    for name, place in COMMANDS.items():
        module = import_module(place)
        parser = module.build_parser()
        # The first line of the module says in a few words what the command is.
        summary = module.__doc__.partition("\n")[0].partition(": ")[2].rstrip(".")
        commands.add_parser(
            name, parents=[parser], add_help=False, help=summary, description=parser.description
        )
    return root


def _parsers(root: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of each command, and of none under the name ""."""
    found = {"": root}
    for action in root._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= action.choices
    return found


def _completed(root: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """`root`, its arguments knowing what they may be."""
    for command, parser in _parsers(root).items():
        if parser is not root:
            # zsh shows it beside the command.
            parser.description = None
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                continue
            called = action.option_strings[-1] if action.option_strings else str(action.metavar)
            words = _WORDS.get(f"{command} {called}", _WORDS.get(called))
            is_file = action.metavar in _FILES
            if words is not None and (is_file or any(":" in word for word in words)):
                action.complete = _function(action.dest, words, is_file)  # type: ignore[attr-defined]
            elif words is not None:
                action.choices = words
            elif is_file:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            if isinstance(action.metavar, str):
                # shtab puts it into a double-quoted word of zsh, in which colons part the fields.
                action.metavar = "".join(f"\\{sign}" if sign in '":\\' else sign for sign in action.metavar)
    return root


def _function(name: str, words: tuple[str, ...], or_file: bool) -> dict[str, str | dict[str, str]]:
    """Completes one of the words (`NAME:FILE` is a word and a file behind it) or a file."""
    plain = [word for word in words if ":" not in word]
    before_file = [word.partition(":")[0] + ":" for word in words if ":" in word]
    # shtab tells by `_file` in a name of bash that directories are to be continued.
    bash = f"_wltui_{name}_or_file" if or_file else f"_wltui_{name}"
    in_bash = [f'compgen -W {quote(join(plain + before_file))} -- "$1"'] + ['compgen -f -- "$1"'] * or_file
    in_zsh = [f"compset -P {quote(word)} && {{ _files; return }}" for word in before_file]
    in_zsh += [f"compadd -- {join(plain)}"] + [f"compadd -S '' -- {quote(word)}" for word in before_file]
    in_zsh += ["_files"] * or_file
    bodies = {"bash": in_bash, "zsh": in_zsh}
    return {
        "bash": bash,
        "zsh": bash,
        "preamble": {
            shell: "\n  ".join([f"{bash}() {{", *lines]) + "\n}\n" for shell, lines in bodies.items()
        },
    }


def _page(root: argparse.ArgumentParser) -> str:
    """The manual page: parameters, which most commands share, stand in it once."""
    for name, parser in _parsers(root).items():
        # One line a paragraph: the page is filled by who shows it, and is the same wherever it is made.
        parser.formatter_class = partial(argparse.HelpFormatter, width=10_000)  # type: ignore[assignment]
        if name:
            _leave_out_parameters(parser)
    for group in root._action_groups:
        if group.title in _GROUPS:
            group.title += " parameters"
    # The commands before the options; --help lists them behind.
    groups = root._action_groups
    groups.insert(1, groups.pop(next(at for at, group in enumerate(groups) if group.title == "commands")))
    root.commands = ()
    for action in groups[1]._group_actions:
        # The page has their descriptions.
        action._choices_actions = []  # type: ignore[attr-defined]
    data = {
        "project_name": "wltui",
        "version": __version__,
        "description": _SUMMARY,
        "manual_title": "User Commands",
        "include": str(HERE / "sections.man"),
    }
    page = Manpage(root, data, format="single-commands-section")
    # The day on which it is made would differ each time.
    page.date = ""
    return str(page)


def _leave_out_parameters(parser: argparse.ArgumentParser) -> None:
    """Take the groups of parameters from a command, and say so in its usage."""
    has = [group for group in parser._action_groups if group.title in _GROUPS]
    gone = {id(action) for group in has for action in group._group_actions}
    parser._action_groups = [group for group in parser._action_groups if group not in has]
    parser._actions = [action for action in parser._actions if id(action) not in gone]
    usage = parser.format_usage().removeprefix("usage: ").strip()
    if has:
        named = "" if len(has) == len(_GROUPS) else "".join(f"{group.title} " for group in has).upper()
        usage += f" [{named}PARAMETERS]"
    parser.usage = usage.replace("%", "%%")


def main() -> int:
    """Write them into the folder of this file. Exit status 0."""
    for name, text in files().items():
        (HERE / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
