"""The words of a launch command in a shell script, found by following its variables; nothing of it is run.

Assignments, arrays, `${NAME:-default}`, `$((...))`, `if`, `case` and `[ ... ]` are followed. What a script
takes from commands, loops or a caller that is not known stays a variable: `Word.text` then has its name
between two marks, and whoever needs the value says so.

Import from here: `Word`, `argument_name`, `find_words`, `is_unset`, `plain_text`, `unset_name`.
"""

from __future__ import annotations

import ast
import fnmatch
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from simcore.diagnostics import UsageError
from simcore.records import NamedTuple
from simcore.units import is_whole

# Around the name of a variable whose value is not known.
_BEGIN, _END = "\ue000", "\ue001"
_UNKNOWN = re.compile(f"{_BEGIN}([^{_END}]*){_END}")
# Scripts expand some 20 kB; values that double themselves have no end.
_MOST_EXPANDED = 1 << 18
_MOST_NESTING = 50
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_DECLARING = ("export", "local", "declare", "readonly", "typeset")
_LOOPS = ("for", "while", "until", "select")
_SBATCH = re.compile(r"^#SBATCH\s+--?([a-zA-Z-]+)[= ]\s*(\S+)", re.MULTILINE)
# Directive of Slurm -> the variables that a job has of it.
_SLURM = {
    "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), "N": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "ntasks-per-node": ("SLURM_NTASKS_PER_NODE",), "gpus-per-node": ("SLURM_GPUS_PER_NODE",),
    "ntasks": ("SLURM_NTASKS",), "n": ("SLURM_NTASKS",),
}  # fmt: skip


class Word(NamedTuple):
    """A word of a command."""

    text: str
    offset: int
    """Where it begins in the script; -1 where it is not of it."""


def unset_name(text: str) -> str:
    """Returns the variable on which the value of a word depends; "" where all of it is known."""
    match_ = _UNKNOWN.search(text)
    return match_[1] if match_ else ""


def is_unset(text: str) -> bool:
    """Returns whether nothing of a word is known."""
    return _UNKNOWN.fullmatch(text) is not None


def plain_text(text: str) -> str:
    """Returns a word as the script has it, variables with their `$`."""
    return _UNKNOWN.sub(lambda match_: f"${match_[1]}", text)


# A value is a list of characters, each with its offset in the script.
Value = list[tuple[str, int]]


def _text_of(value: Iterable[tuple[str, int]]) -> str:
    return "".join(character for character, _ in value)


def _value_of(text: str, offset: int = -1) -> Value:
    return [(character, offset) for character in text]


def _unknown(name: str, offset: int) -> Value:
    return _value_of(f"{_BEGIN}{name}{_END}", offset)


class _Token(NamedTuple):
    """A word or an operator of a script."""

    kind: str
    """word, array or operator."""
    start: int
    end: int


class _Scanner:
    """Cuts a script into tokens."""

    def __init__(self, text: str) -> None:
        self.text = text

    def tokens(self, position: int = 0, closes: bool = False) -> Iterator[_Token]:
        """Yields the tokens from a position on. closes: whether a `)` ends them."""
        text, here_documents = self.text, list[str]()
        while position < len(text):
            character = text[position]
            if text.startswith("\\\n", position):
                position += 2
            elif character in " \t\r":
                position += 1
            elif character == "#":
                end = text.find("\n", position)
                position = len(text) if end < 0 else end
            elif character == "\n":
                yield _Token("operator", position, position + 1)
                position += 1
                for word in here_documents:
                    match_ = re.compile(rf"^\t*{re.escape(word)}[ \t]*$", re.MULTILINE).search(text, position)
                    position = match_.end() if match_ else len(text)
                here_documents = []
            elif character == ")" and closes:
                yield _Token("close", position, position + 1)
                return
            elif match_ := re.compile(r"<<-?\s*(['\"]?)(\w+)\1").match(text, position):
                here_documents.append(match_[2])
                position = match_.end()
            elif match_ := re.compile(r"\d?[<>]&?\d?>?|&&|\|\||;;|&>|[;&|()]").match(text, position):
                yield _Token("operator", position, match_.end())
                position = match_.end()
            else:
                end = self.skip_word(position)
                match_ = _ASSIGNMENT.fullmatch(text[position:end])
                if match_ and text[end : end + 1] == "(":
                    for token in self.tokens(end + 1, True):
                        end = token.end
                    yield _Token("array", position, end)
                else:
                    yield _Token("word", position, end)
                position = end

    def skip_word(self, position: int) -> int:
        """Returns where a word ends."""
        text = self.text
        while position < len(text) and text[position] not in " \t\r\n;&|()<>":
            position = self.skip_part(position)
        return position

    def skip_part(self, position: int) -> int:
        """Returns where a character, a quoted text or an expansion ends, at the end of the text at most."""
        return min(self._end_of_part(position), len(self.text))

    def _end_of_part(self, position: int) -> int:
        text = self.text
        character = text[position]
        if character == "'":
            return self._after("'", position + 1)
        if character == '"':
            position += 1
            while position < len(text) and text[position] != '"':
                position = position + 1 if text[position] == "'" else self.skip_part(position)
            return position + 1
        if character == "`":
            return self._after("`", position + 1)
        if character == "\\":
            return position + 2
        if text.startswith("$(", position):
            return self._skip_nested(position + 2, "(", ")")
        if text.startswith("${", position):
            return self._skip_nested(position + 2, "{", "}")
        return position + 1

    def _after(self, mark: str, position: int) -> int:
        end = self.text.find(mark, position)
        return len(self.text) if end < 0 else end + 1

    def _skip_nested(self, position: int, opening: str, closing: str) -> int:
        depth = 1
        while position < len(self.text):
            character = self.text[position]
            if character in "'\"`\\$":
                position = self.skip_part(position)
                continue
            depth += (character == opening) - (character == closing)
            position += 1
            if not depth:
                break
        return position


class _Script:
    """Follows a script; `commands` are the words of each that it would run."""

    def __init__(self, text: str, words: Sequence[str], variables: Mapping[str, str]) -> None:
        self.text = text
        self.scanner = _Scanner(text)
        self.tokens = list(self.scanner.tokens())
        self.words = list(words)
        # Set by the caller: what the script cannot know does not take their place.
        self.pinned = frozenset(variables)
        self.variables: dict[str, list[Value]] = {
            name: [_value_of(value)] for name, value in variables.items()
        }
        self.arrays: set[str] = set()
        for match_ in _SBATCH.finditer(text):
            for name in _SLURM.get(match_[1], ()):
                self.variables.setdefault(name, [_value_of(match_[2], match_.start(2))])
        self.commands: list[list[Value]] = []
        self._index = 0
        self._depth = 0
        self._expanded = 0

    # -- expansion -------------------------------------------------------------------

    def expand(self, start: int, end: int, unset: str = "unknown") -> list[Value]:
        """Returns the fields that a word is; unquoted values are split at blanks. unset: what a variable that
        is not set is, `unknown` or `empty`.
        """
        fields: list[Value] = [[]]
        is_field = False
        position = start
        while position < end:
            character = self.text[position]
            after = min(self.scanner.skip_part(position), end)
            if character == "'":
                fields[-1] += self._characters(position + 1, after - 1)
                is_field = True
            elif character == '"':
                parts = self._expand_quoted(position + 1, after - 1, unset)
                for index, part in enumerate(parts):
                    if index:
                        fields.append([])
                    fields[-1] += part
                is_field = is_field or bool(parts)
            elif character == "\\":
                fields[-1] += (
                    [] if self.text[position + 1 : after] == "\n" else self._characters(position + 1, after)
                )
            elif character in "$`":
                values, after = self._expand_variable(position, unset)
                for index, part in enumerate(values):
                    words = _split(part)
                    if index or (words and part[0][0].isspace() and fields[-1]):
                        fields.append([])
                    for word_index, word in enumerate(words):
                        if word_index:
                            fields.append([])
                        fields[-1] += word
            else:
                fields[-1] += self._characters(position, after)
            position = after
        return [one for one in fields if one] or ([[]] if is_field else [])

    def _characters(self, start: int, end: int) -> Value:
        return [(self.text[position], position) for position in range(start, max(end, start))]

    def _expand_quoted(self, start: int, end: int, unset: str) -> list[Value]:
        """Returns what a text in double quotes is: one value, or those of an array."""
        parts: list[Value] = [[]]
        position = start
        while position < end:
            character = self.text[position]
            if character in "$`":
                values, after = self._expand_variable(position, unset)
                if not values and parts == [[]] and after >= end:
                    return []
                for index, part in enumerate(values):
                    if index:
                        parts.append([])
                    parts[-1] += part
                position = after
            elif character == "\\" and position + 1 < end:
                following = self.text[position + 1]
                if following != "\n":
                    kept_from = position + 1 if following in '"\\$`' else position
                    parts[-1] += self._characters(kept_from, position + 2)
                position += 2
            else:
                parts[-1].append((character, position))
                position += 1
        return parts

    def _expand_variable(self, position: int, unset: str) -> tuple[list[Value], int]:
        """Returns the values of what begins with `$` or a backquote, and where it ends."""
        values, after = self._expand_any(position, unset)
        self._expanded += sum(map(len, values)) + 1
        if self._expanded > _MOST_EXPANDED:
            raise UsageError(f"found values of more than {_MOST_EXPANDED} characters, expected arguments")
        return values, after

    def _expand_any(self, position: int, unset: str) -> tuple[list[Value], int]:
        text = self.text
        after = self.scanner.skip_part(position)
        if text[position] == "`" or text.startswith("$(", position):
            if text.startswith("$((", position):
                return [self._arithmetic(text[position + 3 : after - 2], position)], after
            return [_unknown("".join(text[position:after].split())[:40], position)], after
        if text.startswith("${", position):
            return self._expand_braces(position, after, unset), after
        match_ = _NAME.match(text, position + 1)
        if match_:
            return self._values_of(match_[0], position, unset), match_.end()
        following = text[position + 1 : position + 2]
        if following and following in "@*":
            return [_value_of(word, position) for word in self.words], position + 2
        if is_whole(following):
            return [self._positional(int(following), position)], position + 2
        if following and following in "#?$!-":
            known_value = (
                _value_of(str(len(self.words)), position)
                if following == "#"
                else _unknown(following, position)
            )
            return [known_value], position + 2
        return [_value_of("$", position)], position + 1

    def _expand_braces(self, position: int, after: int, unset: str) -> list[Value]:
        inner = self.text[position + 2 : after - 1]
        match_ = re.match(r"([A-Za-z_]\w*|\d+|[@*#])(\[[@*]\])?(?:(:?[-=+?])(.*))?$", inner, re.DOTALL)
        if match_ is None:
            return [_unknown("".join(inner.split())[:40], position)]
        name, _, rule, _ = match_.groups()
        values = (
            [self._positional(int(name), position)]
            if is_whole(name)
            else [_value_of(word, position) for word in self.words]
            if name in "@*"
            else self._values_of(name, position, "unknown")
        )
        if rule is None:
            return values if unset == "unknown" or is_whole(name) else self._values_of(name, position, unset)
        is_unset = (int(name) > len(self.words)) if is_whole(name) else name not in self.variables
        is_empty = is_unset or (":" in rule and not any(values))
        start = position + 2 + match_.start(4)
        if rule.endswith("+"):
            return [] if is_empty else self._nested(start, after - 1, unset)
        if rule.endswith("?") or not is_empty:
            return values
        return self._nested(start, after - 1, unset)

    def _nested(self, start: int, end: int, unset: str) -> list[Value]:
        self._depth += 1
        if self._depth > _MOST_NESTING:
            raise UsageError(f"found more than {_MOST_NESTING} nested expansions, expected arguments")
        fields = self.expand(start, end, unset)
        self._depth -= 1
        return [
            [
                character
                for index, one in enumerate(fields)
                for character in ([(" ", -1)] if index else []) + one
            ]
        ]

    def _positional(self, index: int, position: int) -> Value:
        if index == 0:
            return _unknown("0", position)
        if index <= len(self.words):
            return _value_of(self.words[index - 1], position)
        return _unknown(str(index), position)

    def _values_of(self, name: str, position: int, unset: str) -> list[Value]:
        if name not in self.variables:
            return [] if unset == "empty" else [_unknown(name, position)]
        return [one for one in self.variables[name] if one]

    def _arithmetic(self, text: str, position: int) -> Value:
        """Returns the value of an expression of whole numbers."""

        def numberof(match_: re.Match[str]) -> str:
            name = match_[1] or match_[2] or match_[3]
            if is_whole(name):
                value = self._positional(int(name), position)
            else:
                values = self._values_of(name, position, "unknown")
                value = values[0] if values else _value_of("0")
            text_of = _text_of(value).strip()
            return text_of if re.fullmatch(r"-?\d{1,18}", text_of) else _text_of(_unknown(name, position))

        text = re.sub(r"\$\{(\w+)\}|\$(\w+)|\b([A-Za-z_]\w*)", numberof, text)
        name = unset_name(text)
        result = None if name else calculate(text)
        return (
            _unknown(name or "".join(text.split())[:40], position)
            if result is None
            else _value_of(str(result), position)
        )

    # -- statements ------------------------------------------------------------------

    def run(self) -> None:
        """Follows the script to its end."""
        while self._index < len(self.tokens):
            self._run_until((), True)
            self._index += 1

    def _token_text(self, index: int) -> str:
        token = self.tokens[index] if index < len(self.tokens) else None
        return self.text[token.start : token.end] if token else ""

    def _run_until(self, stops: tuple[str, ...], is_active: bool) -> str:
        """Follows statements until one of the words begins one; returns it."""
        self._depth += 1
        if self._depth > _MOST_NESTING:
            raise UsageError(f"found more than {_MOST_NESTING} nested statements, expected arguments")
        skips_next = False
        while self._index < len(self.tokens):
            word = self._token_text(self._index)
            if word in stops:
                break
            is_run = is_active and not skips_next
            skips_next = False
            if self.tokens[self._index].kind == "operator":
                self._index += 1
            elif word == "if":
                self._run_if(is_run)
            elif word == "case":
                self._run_case(is_run)
            elif word in _LOOPS:
                self._index += 1
                self._run_until(("done",), False)
                self._index += 1
            elif word in ("{", "}", "do", "then", "!"):
                self._index += 1
            elif word == "function" or self._token_text(self._index + 1) == "(":
                self._run_until(("{",), False) if word == "function" else None
                while self._index < len(self.tokens) and self._token_text(self._index) != "{":
                    self._index += 1
                self._index += 1
                self._run_until(("}",), False)
                self._index += 1
            else:
                result = self._run_command(is_run)
                joint = self._token_text(self._index)
                skips_next = (joint == "&&" and result is not True) or (joint == "||" and result is not False)
        self._depth -= 1
        return self._token_text(self._index)

    def _run_if(self, is_active: bool) -> None:
        holds: bool | None = False
        while True:
            self._index += 1
            condition = self._condition(is_active and holds is False)
            is_chosen = is_active and holds is False and condition is True
            if holds is False and condition is not False:
                holds = condition
            self._index += 1
            word = self._run_until(("elif", "else", "fi"), is_chosen)
            if word == "else":
                self._index += 1
                word = self._run_until(("fi",), is_active and holds is False)
            if word != "elif":
                self._index += 1
                return

    def _condition(self, is_active: bool) -> bool | None:
        """Returns whether what stands before `then` holds, None where that is not known."""
        result: bool | None = True
        joint = ""
        while self._index < len(self.tokens) and self._token_text(self._index) != "then":
            word = self._token_text(self._index)
            if self.tokens[self._index].kind == "operator":
                joint = word if word in ("&&", "||") else joint
                self._index += 1
                continue
            is_negated = word == "!"
            self._index += is_negated
            one = self._run_command(is_active, as_condition=True)
            one = one if one is None or not is_negated else not one
            if joint == "&&":
                result = False if False in (result, one) else None if None in (result, one) else True
            elif joint == "||":
                result = True if True in (result, one) else None if None in (result, one) else False
            else:
                result = one
            joint = ""
        return result

    def _run_case(self, is_active: bool) -> None:
        subject = [*self._expand_token(self._index + 1, "empty"), []][0]
        text = _text_of(subject)
        is_over = not is_active or bool(unset_name(text))
        self._index += 2
        while self._index < len(self.tokens) and self._token_text(self._index) != "esac":
            word = self._token_text(self._index)
            if word in ("in", "\n", ";;", "("):
                self._index += 1
                continue
            patterns = []
            while self._index < len(self.tokens) and self._token_text(self._index) != ")":
                if self.tokens[self._index].kind == "word":
                    patterns += [_text_of(one) for one in self._expand_token(self._index, "empty")]
                self._index += 1
            self._index += 1
            is_chosen = not is_over and any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)
            is_over = is_over or is_chosen
            self._run_until((";;", "esac"), is_chosen)
        self._index += 1

    def _expand_token(self, index: int, unset: str = "unknown") -> list[Value]:
        if index >= len(self.tokens):
            return []
        token = self.tokens[index]
        return self.expand(token.start, token.end, unset)

    def _run_command(self, is_active: bool, as_condition: bool = False) -> bool | None:
        """Follows one command; returns whether it succeeds, None where that is not known."""
        first = self._index
        is_test = self._token_text(first) in ("[", "[[", "test")
        if self._token_text(first) == "(":
            self._index += 1
            return None
        while self._index < len(self.tokens):
            word = self._token_text(self._index)
            # `[[ a && b ]]` and `( )` in it belong to the test.
            is_inside = self._token_text(first) == "[[" and "]]" not in map(
                self._token_text, range(first, self._index)
            )
            if self.tokens[self._index].kind == "operator" and not (is_inside and word != "\n"):
                if not re.fullmatch(r"\d?[<>]&?\d?>?|&>", word):
                    break
                self._index += 1
                if word[-1] in "<>" and self._token_text(self._index) not in ("\n", ";"):
                    self._index += 1
                continue
            self._index += 1
        if not is_active:
            return None
        indices = range(first, min(self._index, len(self.tokens)))
        if is_test:
            return self._test(indices)
        return self._execute(indices, as_condition)

    def _execute(self, indices: range, as_condition: bool) -> bool | None:
        begins = True
        command: list[Value] = []
        for index in indices:
            token = self.tokens[index]
            match_ = _ASSIGNMENT.match(self.text, token.start)
            if match_ and (begins or (command and _text_of(command[0]) in _DECLARING)):
                self._assign(token, match_)
            elif token.kind == "word":
                begins = False
                command += self.expand(token.start, token.end)
        words = list(map(_text_of, command))
        if words[:1] == ["unset"]:
            for name in {*words[1:]} - self.pinned:
                self.variables.pop(name, None)
        if words[:1] == ["shift"]:
            self.words = self.words[int(words[1]) if words[1:] and is_whole(words[1]) else 1 :]
        if command:
            self.commands.append(command)
        return None if as_condition else True

    def _assign(self, token: _Token, match_: re.Match[str]) -> None:
        name, start = match_[1], match_.end()
        before = self.variables.get(name, []) if match_[2] else []
        if token.kind == "array":
            values: list[Value] = []
            for one in self.scanner.tokens(start + 1, True):
                if one.kind == "word":
                    values += self.expand(one.start, one.end)
            self.arrays.add(name)
        else:
            values = [self._expand_assigned(start, token.end)]
            if name in self.pinned and unset_name(_text_of(values[0])):
                return
            if before and name not in self.arrays:
                before, values = [], [before[0] + values[0]]
        self.variables[name] = [*before, *values]

    def _expand_assigned(self, start: int, end: int) -> Value:
        """Returns the value of an assignment, which is not split at blanks."""
        value: Value = []
        position = start
        while position < end:
            after = min(self.scanner.skip_part(position), end)
            character = self.text[position]
            if character in "$`":
                values, after = self._expand_variable(position, "unknown")
                value += _join_values(values)
            elif character == '"':
                value += _join_values(self._expand_quoted(position + 1, after - 1, "unknown"))
            elif character == "'":
                value += self._characters(position + 1, after - 1)
            else:
                value += self._characters(position + (character == "\\"), after)
            position = after
        return value

    # -- conditions ------------------------------------------------------------------

    def _test(self, indices: range) -> bool | None:
        """Returns whether a `[ ... ]` holds, None where that is not known."""
        words = []
        for index in indices:
            token = self.tokens[index]
            if token.kind == "operator":
                words.append(self.text[token.start : token.end])
            else:
                words += [_text_of(one) for one in self._expand_token(index, "empty")]
        return _holds_all([word for word in words[1:] if word not in ("]", "]]")])


def _holds_all(words: list[str]) -> bool | None:
    """Returns whether joined comparisons hold, None where that is not known."""
    for joint, both in (("||", any), ("-o", any), ("&&", all), ("-a", all)):
        if joint in words:
            at = words.index(joint)
            sides = [_holds(words[:at]), _holds_all(words[at + 1 :])]
            decides = both is any
            return decides if decides in sides else None if None in sides else not decides
    return _holds(words)


def _join_values(values: Iterable[Value]) -> Value:
    joined_value: Value = []
    for index, one in enumerate(values):
        joined_value += ([(" ", -1)] if index else []) + one
    return joined_value


def _split(value: Value) -> list[Value]:
    """Returns the words of a value."""
    words: list[Value] = []
    is_inside = False
    for character, offset in value:
        if character.isspace():
            is_inside = False
            continue
        if not is_inside:
            words.append([])
        words[-1].append((character, offset))
        is_inside = True
    return words


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq, "-ne": operator.ne, "-gt": operator.gt, "-ge": operator.ge, "-lt": operator.lt,
    "-le": operator.le,
}  # fmt: skip


def _holds(words: list[str]) -> bool | None:
    """Returns whether one comparison holds, None where that is not known."""
    if words[:1] == ["!"]:
        one = _holds(words[1:])
        return None if one is None else not one
    if any(map(unset_name, words)):
        return None
    if len(words) == 1:
        return bool(words[0])
    if len(words) == 2:
        return {"-z": words[1] == "", "-n": words[1] != ""}.get(words[0])
    if len(words) != 3:
        return None
    left, comparison, right = words
    if comparison in _COMPARISONS:
        whole = all(re.fullmatch(r"-?\d{1,18}", side) for side in (left, right))
        return _COMPARISONS[comparison](int(left), int(right)) if whole else None
    if comparison in ("=", "=="):
        return fnmatch.fnmatchcase(left, right)
    return not fnmatch.fnmatchcase(left, right) if comparison == "!=" else None


_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


def calculate(text: str) -> int | None:
    """Returns the value of an expression of whole numbers as a shell has it; None for any other."""
    match_ = re.fullmatch(r"\s*(.+?)\?(.+):(.+)", text, re.DOTALL)
    if match_:
        chosen_value = calculate(match_[1])
        return None if chosen_value is None else calculate(match_[2] if chosen_value else match_[3])
    if len(text) > 200 or "**" in text or "_" in text:
        return None
    try:
        tree = ast.parse(
            text.replace("/", "//").replace("&&", " and ").replace("||", " or ").strip(), mode="eval"
        )
        return _evaluate(tree.body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _evaluate(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return int(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.left), _evaluate(node.right))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
        return int(_OPERATORS[type(node.ops[0])](_evaluate(node.left), _evaluate(node.comparators[0])))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand)
    if isinstance(node, ast.BoolOp):
        values = [bool(_evaluate(one)) for one in node.values]
        return int(all(values) if isinstance(node.op, ast.And) else any(values))
    raise ValueError


# -- the command -------------------------------------------------------------------------


def find_words(
    text: str, names: frozenset[str], words: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> list[Word]:
    """Returns the words of the command with the most of these arguments; [] where none has any.

    names: without their dashes, with `-` for `_`. words, variables: the script's own arguments and
    environment. A file that is nothing but arguments, over any number of lines, is one command.
    """
    text = text.replace("\r\n", "\n")
    try:
        script = _Script(_on_one_line(text), words, variables or {})
        script.run()
    except RecursionError:
        raise UsageError("found brackets in brackets without end, expected arguments") from None
    candidates = list(map(_flatten, [*script.commands, *script.variables.values()]))

    def count(candidate: list[Word]) -> int:
        return len({name for word in candidate if (name := argument_name(word.text)) in names})

    best: list[Word] = []
    for candidate in candidates:
        if count(candidate) >= max(count(best), 1):
            best = candidate
    return best


def argument_name(text: str) -> str:
    """Returns the name of an argument, without its dashes and its value; "" for another word."""
    return text[2:].partition("=")[0].replace("_", "-") if text.startswith("--") else ""


def _on_one_line(text: str) -> str:
    """Returns a text of arguments alone as one line; positions stay."""
    first = next(
        (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), ""
    )
    if not first.lstrip().startswith("--"):
        return text
    return re.sub(r"#[^\n]*|\n", lambda match_: " " * len(match_[0]), text)


def _flatten(command: list[Value]) -> list[Word]:
    """Returns the words of a command, texts that are commands themselves (`bash -c "..."`) split into
    theirs.
    """
    words: list[Word] = []
    for value in command:
        text = _text_of(value)
        if re.search(r"(^|\s)--\w", text) and re.search(r"\s", text):
            words += [
                Word(re.sub(r"['\"]", "", match_[0]), value[match_.start()][1])
                for match_ in re.finditer(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+", text)
            ]
        else:
            words.append(Word(text, value[0][1] if value else -1))
    return words
