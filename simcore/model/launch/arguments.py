"""Launch arguments of a trainer: those that were found, and the table that makes parameters of them and back.

A table is a tuple of rows. An `Argument` is one argument of a trainer and one field here; a `Rule` is some
of both that depend on each other. Fields are those of `Parameters`, and of a model `model.layers`,
`moe.experts`, `mla.q_lora_rank`; reading fills a dictionary of them from the first row to the last, so that a
row may use what the rows before it found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, did_you_mean, printable
from simcore.model.launch.shell import plain_text, unset_name
from simcore.records import NamedTuple, Struct
from simcore.units import is_whole

Location = tuple[int | None, int | None]
Fields = dict[str, Any]
_MOST = 1 << 40


class FoundArgument(NamedTuple):
    """An argument as it was found."""

    value: Any
    """Of a command line the words behind it, of a file its value."""
    location: Location = (None, None)
    """Its line and column, from 1; None where they are not known."""


class Arguments:
    """The arguments that were found, each read once: one that is never read means nothing here.

    words: how an argument is quoted, `--{}` on a command line. notes: filled while they are read.
    """

    def __init__(self, path: str, found_arguments: Mapping[str, FoundArgument], form: str) -> None:
        self.path, self.form = path, form
        self.arguments = dict(found_arguments)
        self.used: set[str] = set()
        self.notes: list[Diagnostic] = []

    def __contains__(self, name: str) -> bool:
        return name in self.arguments

    def quote(self, name: str) -> str:
        """Returns an argument as the trainer has it."""
        return self.form.format(name)

    def use(self, *names: str) -> str | None:
        """Returns the first of the names that is there; all of them count as read."""
        self.used.update(names)
        return next((name for name in names if name in self.arguments), None)

    def has(self, *names: str) -> bool:
        """Returns whether a switch is on under any of the names."""
        name = self.use(*names)
        if name is None:
            return False
        value = self.arguments[name].value
        if isinstance(value, tuple):
            if [word for word in value if not unset_name(word)]:
                raise self.refusal(
                    name, f"found {self._words(name)} behind it, expected nothing: it is a switch"
                )
            return True
        if not isinstance(value, bool):
            raise self.refusal(name, f"found {self._words(name)}, expected true or false")
        return value

    def text(self, *names: str) -> str | None:
        """Returns the value of an argument as a text; None without it."""
        name = self.use(*names)
        if name is None:
            return None
        value = self.arguments[name].value
        if not isinstance(value, tuple):
            return str(value).lower() if isinstance(value, bool) else str(value)
        if not value:
            raise self.refusal(name, "found no value, expected one")
        unset = unset_name(" ".join(value))
        if unset:
            raise self.refusal(name, f"found {self._words(name)}: {_unset_words(unset)}")
        return " ".join(value)

    def count(self, *names: str, least: int = 1) -> int | None:
        """Returns the value of an argument as a whole number; None without it."""
        name = self.use(*names)
        if name is None:
            return None
        value = self.arguments[name].value
        if isinstance(value, tuple):
            text = self.text(name) or ""
            value = int(text) if is_whole(text.removeprefix("-"), 13) else text
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
            raise self.refusal(name, f"found {self._words(name)}, expected a whole number from {least} on")
        return value

    def choice(self, words: Mapping[str, Any], *names: str) -> Any:
        """Returns what the word of an argument is here; None without it."""
        name = self.use(*names)
        if name is None:
            return None
        text = self.text(name) or ""
        if text not in words:
            expected = ", ".join(words)
            near = did_you_mean(text, words)
            raise self.refusal(name, f"found {printable(text, 40)}, expected one of {expected}{near}")
        return words[text]

    def refusal(self, name: str, message: str) -> InputError:
        """Returns the error for an argument, with its position."""
        line, column = self.arguments[name].location if name in self.arguments else (None, None)
        # Here, so that no value of a file is forgotten.
        text = f"{self.quote(name)}: {printable(message, 600)}"
        return InputError(Diagnostic("error", "launch-argument", text, self.path, line, column))

    def warn(self, name: str, why: str) -> None:
        """Notes that an argument changes the step in a way that cannot be stated here. why: what is taken."""
        line, column = self.arguments[name].location if name in self.arguments else (None, None)
        words = self._words(name)
        text = f"{self.quote(name)}{f' {words}' if words else ''}: {why}"
        self.notes.append(Diagnostic("warning", "launch-argument-unpriced", text, self.path, line, column))

    def assume(self, name: str, message: str) -> None:
        """Notes what was taken for an argument that is not there, or that does not say it."""
        line, column = self.arguments[name].location if name in self.arguments else (None, None)
        self.notes.append(Diagnostic("note", "launch-argument-assumed", message, self.path, line, column))

    @property
    def rest(self) -> dict[str, Any]:
        """The arguments that were not read, with their values, in their order."""
        return {name: one.value for name, one in self.arguments.items() if name not in self.used}

    def _words(self, name: str) -> str:
        value = self.arguments[name].value if name in self.arguments else ""
        text = (
            " ".join(value)
            if isinstance(value, tuple)
            else str(value).lower()
            if isinstance(value, bool)
            else str(value)
        )
        return printable(plain_text(text), 60)


def _unset_words(name: str) -> str:
    if is_whole(name):
        return f"it is an argument of the script; behind the script's name ${name} would fit"
    if not name.replace("_", "").isalnum():
        return "what a command prints is not known; a number in its place would fit"
    return f'the script does not say what {name} is; "{name}=... SCRIPT" would fit'


class Argument(Struct, frozen=True):
    """One argument of a trainer that is one field here."""

    name: str
    """As the trainer has it, without dashes."""
    field: str
    """The field."""
    on: Any = None
    """Of a switch what the field is with it; None for an argument with a value."""
    words: Mapping[str, Any] | None = None
    """What the words of the trainer are here, the first of several that it writes; None for a number."""
    default: Any = None
    """What the field is without the argument."""
    aliases: tuple[str, ...] = ()
    """Other names that it has or had."""
    least: int = 1
    """The least value of a number."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field,)

    def read(self, arguments: Arguments, fields: Fields) -> None:
        """Fills the field if the argument is there, or has a default."""
        value: Any
        if self.on is not None:
            value = self.on if arguments.has(*self.names) else None
        elif self.words is not None:
            value = arguments.choice(self.words, *self.names)
        else:
            value = arguments.count(*self.names, least=self.least)
        if value is None:
            value = self.default
        if value is not None:
            fields[self.field] = value

    def write(self, fields: Fields) -> dict[str, Any]:
        """Returns the argument with its value; nothing where the field is at the default."""
        value = fields.get(self.field)
        if value is None or value == self.default:
            return {}
        if self.on is not None:
            return {self.name: True} if value == self.on else {}
        if self.words is not None:
            word = next((word for word, ours in self.words.items() if ours == value), None)
            return {} if word is None else {self.name: word}
        return {self.name: value}


class Rule(Struct, frozen=True):
    """Arguments and fields that depend on each other."""

    names: tuple[str, ...]
    """The arguments."""
    fields: tuple[str, ...]
    """The fields of parameters that it writes."""
    read: Callable[[Arguments, Fields], None]
    """Fills the fields."""
    write: Callable[[Fields], dict[str, Any]]
    """Returns the arguments with their values."""


Table = tuple[Argument | Rule, ...]


def read_table(table: Table, arguments: Arguments) -> Fields:
    """Returns the fields that the arguments state. Raises InputError for one that is broken."""
    fields: Fields = {}
    for row in table:
        row.read(arguments, fields)
    return fields


def write_table(table: Table, fields: Fields) -> dict[str, Any]:
    """Returns the arguments that state these fields."""
    arguments: dict[str, Any] = {}
    for row in table:
        arguments |= row.write(fields)
    return arguments


def warn_unpriced(arguments: Arguments, unpriced: Mapping[str, str]) -> None:
    """Notes which of the arguments change the step and cannot be stated. unpriced: argument -> what is
    taken.
    """
    for name, why in unpriced.items():
        if name in arguments.rest and is_on(arguments.rest[name]):
            arguments.warn(name, why)


def is_on(value: Any) -> bool:
    """Returns whether the value of an argument asks for something."""
    text = " ".join(value) if isinstance(value, tuple) else value
    return text not in (False, None, 0, "none", "0", "false", "adam")


def list_rest(arguments: Arguments, names: Iterable[str]) -> tuple[Diagnostic, ...]:
    """Returns a note with the arguments of these names, which change nothing here."""
    quoted = [printable(arguments.quote(name), 60) for name in names]
    if not quoted:
        return ()
    message = f"arguments that mean nothing here: {', '.join(quoted)}"
    return (Diagnostic("note", "launch-argument-unused", message, arguments.path),)
