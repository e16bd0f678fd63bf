"""Trace maps: files of rules that say what the spans of a Chrome trace are."""

from __future__ import annotations

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.kineto.chrome.rules import Rule, parse_rules
from simcore.kineto.chrome.tables import starter_map
from simcore.kineto.events import decode_file
from simcore.kineto.loading import most_bytes
from simcore.kineto.reading import is_chrome_trace
from simcore.model.toml_text import Location, TomlProblem, parse_toml, read_text
from simcore.workload.opening import read_file

_WHAT = "a map of a trace's spans"


def read_trace_map(path: str) -> tuple[Rule, ...]:
    """Returns the rules of `--trace-map`. Raises InputError for a file that is none."""
    try:
        text = read_text(path, _WHAT)
        return parse_rules(parse_toml(text, _WHAT))
    except FileNotFoundError:
        raise _refusal(path, "there is no such file") from None
    except TomlProblem as problem:
        raise _refusal(path, problem.message, problem.location) from None
    except UsageError as error:
        raise _refusal(path, str(error)) from None


def make_trace_map(path: str) -> str:
    """Returns a map to begin with, for the Chrome trace at `path`. Raises InputError, UsageError for another
    file.
    """
    file, damage = decode_file(path, data := read_file(path, most_bytes(path), is_part_enough=True))
    if not is_chrome_trace(data, file):
        raise UsageError(f"--save-map: {printable(path, 60)} is no Chrome trace that needs a map")
    return starter_map(path, file, damage)


def _refusal(path: str, message: str, location: Location | None = None) -> InputError:
    return InputError(Diagnostic("error", "bad-trace-map", message, path, *(location or ())))
