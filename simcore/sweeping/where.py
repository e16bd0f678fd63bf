"""Conditions on the points of a sweep, `tp*pp <= 64 and schedule = interleaved`: a small grammar, never eval.

    condition   = all { "or" all }
    all         = one { "and" one }
    one         = "not" one | sum comparison sum { comparison sum } | "(" condition ")"
    comparison  = "<" | "<=" | ">" | ">=" | "=" | "==" | "!="
    sum         = product { ("+" | "-") product }
    product     = factor { ("*" | "/" | "%") factor }
    factor      = number | name | "-" factor | "(" sum ")"

A name that is none of a point's is a word: `recompute = full`. Words have quotes where they are no names.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from simcore.diagnostics import UsageError, did_you_mean, printable

_Node = Callable[[Mapping[str, Any]], Any]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)(?![\w.])|(?P<name>[A-Za-z_][\w.-]*\w|[A-Za-z_]|\d[\w.-]*[A-Za-z][\w.-]*)"
    r"|(?P<quoted>'[^']*'|\"[^\"]*\")|(?P<sign><=|>=|==|!=|[<>=+\-*/%()]))"
)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "=": operator.eq, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod,
}  # fmt: skip
# Deeper than any condition in use; the parser calls itself at each level.
_MAX_DEPTH = 60
_MAX_LENGTH = 2000


class Condition:
    """A parsed condition. text: as it was written. names: the values of a point that it uses."""

    def __init__(self, text: str, value_names: Collection[str]) -> None:
        """value_names: the names of a point's values. Raises `UsageError` with the position of
        what is wrong.
        """
        self.text = text
        self.names: list[str] = []
        self._value_names = value_names
        self._tokens = self._tokenize(text)
        self._index = self._depth = 0
        self._node = self._parse_or()
        if self._index < len(self._tokens):
            self._refuse("and, or, or the end is expected")

    def __reduce__(self) -> tuple[type[Condition], tuple[str, Collection[str]]]:
        # The parsed condition is functions, which cannot be sent to another process.
        return Condition, (self.text, self._value_names)

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Returns whether it holds for a point with these values. A value that a point does not have compares
        as false.
        """
        return bool(self._node(values))

    # -- tokens ----------------------------------------------------------------------

    def _tokenize(self, text: str) -> list[tuple[str, str, int]]:
        if len(text) > _MAX_LENGTH:
            raise UsageError(f"--where: {len(text)} characters, at most {_MAX_LENGTH} are read")
        tokens, at = [], 0
        while text[at:].strip():
            token = _TOKEN.match(text, at)
            if token is None:
                column = at + len(text[at:]) - len(text[at:].lstrip()) + 1
                raise UsageError(
                    f"--where {printable(text, 80)}: found {printable(text[column - 1], 4)} at character "
                    f"{column}, expected a name, a number or one of < <= > >= = != + - * / % ( )"
                )
            kind = token.lastgroup or ""
            word = self._name_in(token[kind]) if kind == "name" else token[kind]
            tokens.append((kind, word, token.start(kind) + 1))
            at = token.start(kind) + len(word)
        return tokens

    def _name_in(self, text: str) -> str:
        """Returns the part of a word that is a name: all of `virtual-stages`, and `dp` of `dp-tp`; all of
        `zb-h1`, which has none.
        """
        for end in (len(text), *(at for at in reversed(range(len(text))) if text[at] == "-")):
            if text[:end].replace("-", "_") in self._value_names:
                return text[:end]
        return text

    def _peek(self) -> tuple[str, str]:
        if self._index == len(self._tokens):
            return "end", ""
        kind, text, _ = self._tokens[self._index]
        return kind, text

    def _accept(self, *texts: str) -> str | None:
        kind, text = self._peek()
        if kind in ("sign", "name") and text in texts:
            self._index += 1
            return text
        return None

    def _refuse(self, expected: str) -> None:
        where = f"--where {printable(self.text, 80)}"
        if self._index == len(self._tokens):
            raise UsageError(f"{where}: it ends where {expected}")
        _, text, column = self._tokens[self._index]
        raise UsageError(f"{where}: found {printable(text, 30)} at character {column}; {expected}")

    # -- grammar ---------------------------------------------------------------------

    def _parse_or(self) -> _Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UsageError(
                f"--where {printable(self.text, 80)}: more than {_MAX_DEPTH} parts in each other"
            )
        parts = [self._parse_and()]
        while self._accept("or"):
            parts.append(self._parse_and())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else lambda values: any(part(values) for part in parts)

    def _parse_and(self) -> _Node:
        parts = [self._parse_not()]
        while self._accept("and"):
            parts.append(self._parse_not())
        return parts[0] if len(parts) == 1 else lambda values: all(part(values) for part in parts)

    def _parse_not(self) -> _Node:
        if self._accept("not"):
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                self._refuse("fewer `not` are expected")
            inner = self._parse_not()
            self._depth -= 1
            return lambda values: not inner(values)
        start = self._index
        if self._peek() == ("sign", "(") and self._is_condition():
            self._index += 1
            inner = self._parse_or()
            if not self._accept(")"):
                self._refuse(") is expected")
            return inner
        self._index = start
        return self._parse_comparison()

    def _is_condition(self) -> bool:
        """Returns whether the parenthesis at this token holds a comparison, and is no part of a sum."""
        depth = 0
        for index in range(self._index, len(self._tokens)):
            kind, text, _ = self._tokens[index]
            depth += (kind == "sign" and text == "(") - (kind == "sign" and text == ")")
            if kind == "sign" and text in _COMPARISONS and depth:
                return True
            if not depth:
                return False
        return False

    def _parse_comparison(self) -> _Node:
        sums, signs = [self._parse_sum()], []
        while (sign := self._accept(*_COMPARISONS)) is not None:
            signs.append(_COMPARISONS[sign])
            sums.append(self._parse_sum())
        if not signs:
            self._refuse("a comparison, < <= > >= = or !=, is expected")

        def compared(values: Mapping[str, Any]) -> bool:
            figures = [value_of(values) for value_of in sums]
            return all(
                _holds(sign, left, right)
                for sign, left, right in zip(signs, figures, figures[1:], strict=False)
            )

        return compared

    def _parse_sum(self) -> _Node:
        return self._parse_chain(self._parse_product, ("+", "-"))

    def _parse_product(self) -> _Node:
        return self._parse_chain(self._parse_factor, ("*", "/", "%"))

    def _parse_chain(self, part: Callable[[], _Node], signs: tuple[str, ...]) -> _Node:
        first = part()
        further: list[tuple[Callable[[Any, Any], Any], _Node]] = []
        while (sign := self._accept(*signs)) is not None:
            further.append((_ARITHMETIC[sign], part()))
        if not further:
            return first

        def whole(values: Mapping[str, Any]) -> Any:
            total = first(values)
            for apply, other in further:
                right = other(values)
                if not (_is_number(total) and _is_number(right)):
                    return None
                try:
                    total = apply(total, right)
                except (ZeroDivisionError, OverflowError):
                    return None
            return total

        return whole

    def _parse_factor(self) -> _Node:
        kind, text = self._peek()
        if kind == "number":
            self._index += 1
            constant = float(text) if "." in text else int(text)
            return lambda values: constant
        if kind == "quoted":
            self._index += 1
            return lambda values: text[1:-1]
        if kind == "name" and text not in ("and", "or", "not"):
            return self._parse_name(text)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._refuse("fewer parts in each other are expected")
        if self._accept("-"):
            inner = self._parse_factor()
            self._depth -= 1
            return lambda values: -figure if _is_number(figure := inner(values)) else None
        if self._accept("("):
            inner = self._parse_sum()
            self._depth -= 1
            if not self._accept(")"):
                self._refuse(") is expected")
            return inner
        self._refuse("a name, a number or ( is expected")
        raise AssertionError

    def _parse_name(self, text: str) -> _Node:
        """Returns the node of a value of the point or of a word, which is allowed only next to = or !=."""
        self._index += 1
        name = text.replace("-", "_")
        if name in self._value_names:
            self.names.append(name)
            return lambda values: values.get(name)
        neighbours = [sign for index in (self._index, self._index - 2) if (sign := self._sign_at(index))]
        if not any(sign in ("=", "==", "!=") for sign in neighbours):
            self._index -= 1
            names_text = (
                ", ".join(sorted(self._value_names)) if len(self._value_names) < 24 else "of a parameter"
            )
            self._refuse(f"a name {names_text} is expected{did_you_mean(name, self._value_names)}")
        return lambda values: text

    def _sign_at(self, index: int) -> str:
        if not 0 <= index < len(self._tokens):
            return ""
        kind, text, _ = self._tokens[index]
        return text if kind == "sign" else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _holds(sign: Callable[[Any, Any], bool], left: object, right: object) -> bool:
    """Returns the result of a comparison.

    Numbers and words are never equal, and have no order. Switches are `on` and `off`.
    """
    if sign in (operator.eq, operator.ne):
        return sign(_as_word(left), _as_word(right))
    return _is_number(left) and _is_number(right) and sign(left, right)


def _as_word(value: object) -> object:
    """Returns a value as it is written: `zero = 1` and `virtual-stages = none` mean the words, too."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "none"
    return value if not isinstance(value, float) or not value.is_integer() else int(value)
