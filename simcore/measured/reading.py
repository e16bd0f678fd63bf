"""Reads a trace or plan file into the columns of its ranks.

The grammar of a trace's line: `rank:7:forward_step(key=value,...,sub_operations=['...', ...])`.

Values are not quoted: a description has commas, parentheses and slashes in it, a shape has
commas in brackets. So a comma ends a value only where `key=` follows and no bracket is open.
The list of sub-operations is a Python list of strings, whatever order the keys stand in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from simcore.diagnostics import Diagnostic, InputError, Severity, printable
from simcore.measured import vocabulary
from simcore.measured.columns import (
    FUSED,
    INSTANT,
    MEASURED,
    TOLERANCE_NS,
    UNTIMED,
    OpColumns,
    RankTrace,
    SubColumns,
)
from simcore.records import NamedTuple
from simcore.units import is_whole
from simcore.workload.formats.cell import Findings, TextCell, quoted, read_number
from simcore.workload.formats.format import is_comment, without_bom
from simcore.workload.model import LARGEST

# A step of 128 layers and 64 micro-batches has lines of some 100,000 characters.
LONGEST_LINE = 1 << 24
_OPENING = re.compile(r"\s*(rank|stage):([0-9]{1,9}):(\w+)\(")
_KEY = re.compile(r"([A-Za-z_]\w*)=")
_BREAK = re.compile(r",\s*(?=[A-Za-z_]\w*=)")
_LIST = re.compile(r"(?:(?<=\()|,)\s*sub_operations=\s*")
# Unrolled, so that a text matches in one way only: a string without its end fails in linear time.
_STRING = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"", re.DOTALL)
_BLANKS = re.compile(r"\s*")


class GrammarError(Exception):
    """A part of a line that does not fit the grammar. code: of the diagnostic. column: from 1, in
    characters.
    """

    def __init__(self, code: str, column: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.column = column
        self.message = message


class TraceField(NamedTuple):
    """A value with the column at which it begins, from 1; of a sub-operation, the list item's column."""

    text: str
    column: int


class TraceLine(NamedTuple):
    """One line: `rank` or `stage` and its id, the operation, its keys, its sub-operations' keys."""

    kind: str
    unit_number: int
    op: str
    fields: dict[str, TraceField]
    subs: list[dict[str, TraceField]]


def parse_line(text: str) -> TraceLine:
    """Returns a line of a trace. Raises `GrammarError` at the first position that does not fit."""
    opening = _OPENING.match(text)
    if opening is None:
        raise GrammarError("trace-line", 1, f"found {quoted(text)}, expected rank:N:operation(...)")
    if len(text) > LONGEST_LINE:
        problem = f"found a line of {len(text)} characters, expected at most {LONGEST_LINE}"
        raise GrammarError("trace-line-length", 1, problem)
    kind, unit_number, op = opening.groups()
    start, end = opening.end(), len(text.rstrip())
    marker = _LIST.search(text, start)
    subs: list[dict[str, TraceField]] = []
    if marker is None:
        if text[end - 1] != ")" or end <= start:
            raise _no_end(text, end)
        return TraceLine(kind, int(unit_number), op, split_fields(text[start : end - 1], start + 1), subs)
    fields = split_fields(text[start : marker.start()], start + 1)
    after, items = _list(text, marker.end())
    for item, column in items:
        subs.append(split_fields(item, column, same_column=True))
    rest = _BLANKS.match(text, after)
    after = rest.end() if rest is not None else after
    if text[after:end] == ")":
        return TraceLine(kind, int(unit_number), op, fields, subs)
    if text[after : after + 1] != "," or text[end - 1] != ")":
        raise _no_end(text, max(after, 0))
    for key, field in split_fields(text[after + 1 : end - 1], after + 2).items():
        fields.setdefault(key, field)
    return TraceLine(kind, int(unit_number), op, fields, subs)


def _no_end(text: str, at: int) -> GrammarError:
    at = min(at, len(text.rstrip()))
    rest = quoted(text[at:]) if text[at:].strip() else "the end of the line"
    return GrammarError("trace-line-end", at + 1, f"found {rest}, expected ) at the end of the operation")


def split_fields(text: str, column: int, same_column: bool = False) -> dict[str, TraceField]:
    """Returns `key=value,key=value` as values by key; the first of a repeated key counts.

    column: where the text begins; `same_column`: every value gets that column. Brackets that never close (a
    description may hold any text) are taken as plain characters.
    """
    for opening, closing in (("[(", "])"), ("[", "]"), ("", "")):
        parts, balanced = _split(text, opening, closing)
        if balanced:
            break
    fields: dict[str, TraceField] = {}
    for start, part in parts:
        blanks = len(part) - len(part.lstrip())
        match = _KEY.match(part, blanks)
        if match is None:
            if not part.strip():
                continue
            at = column if same_column else column + start + blanks
            raise GrammarError("trace-key", at, f"found {quoted(part.strip())}, expected key=value")
        at = column if same_column else column + start + match.end()
        fields.setdefault(match.group(1), TraceField(part[match.end() :].strip(), at))
    return fields


def _split(text: str, opening: str, closing: str) -> tuple[list[tuple[int, str]], bool]:
    """Returns (start, part) between the commas outside brackets, and whether every bracket was closed."""
    parts: list[tuple[int, str]] = []
    first = last = depth = 0
    for comma in _BREAK.finditer(text):
        part = text[last : comma.start()]
        depth += sum(map(part.count, opening)) - sum(map(part.count, closing))
        last = comma.start()
        if depth <= 0:
            depth = 0
            parts.append((first, text[first : comma.start()]))
            first = comma.end()
    part = text[last:]
    depth += sum(map(part.count, opening)) - sum(map(part.count, closing))
    parts.append((first, text[first:]))
    return parts, depth <= 0


def _list(text: str, at: int) -> tuple[int, list[tuple[str, int]]]:
    """Returns (position behind it, [(item, column)]) of the list of strings that begins at `at`; None is
    empty.
    """
    if text.startswith("None", at):
        return at + 4, []
    if text[at : at + 1] != "[":
        raise _bad_list(text, at, "[ and a list of quoted strings")
    items: list[tuple[str, int]] = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        string = _STRING.match(text, at)
        if string is None:
            raise _bad_list(text, at, "a quoted string or ]")
        items.append((_unquoted(string.group(), at), at + 1))
        at = _skip(text, string.end())
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            raise _bad_list(text, at, ", or ] behind a string")
    return at + 1, items


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks is not None else at


def _bad_list(text: str, at: int, expected: str) -> GrammarError:
    rest = quoted(text[at : at + 40]) if text[at:].strip() else "the end of the line"
    return GrammarError("trace-list", at + 1, f"sub_operations: found {rest}, expected {expected}")


def _unquoted(literal: str, at: int) -> str:
    """Returns the text of a string literal; one without a backslash needs no evaluation."""
    if "\\" not in literal:
        return literal[1:-1]
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            # `\d` in a literal makes Python warn, which is no message for the user.
            warnings.simplefilter("ignore")
            return str(ast.literal_eval(literal))
    except (ValueError, SyntaxError):
        message = f"sub_operations: found {quoted(literal)}, expected a string without a broken escape"
        raise GrammarError("trace-list", at + 1, message) from None


_MS_NS = 10**6
_PLAIN_MS = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,6}))?")
_OP_KEYS = frozenset((
    "stage_id", "batch_id", "mg_state", "stage", "duration", "description", "group_kind", "input__shape",
    "input__dtype", "timestamp",
))  # fmt: skip
_MOST_STAGE = 2**31
# Reading one file with so many takes about 15 s; a step of a real run has some hundreds.
MOST_OPERATIONS = 100_000


def read_trace(path: str, data: bytes) -> tuple[list[RankTrace], tuple[Diagnostic, ...]]:
    """Returns the ranks (stages, in a plan) whose lines are in `data`, by id, and the diagnostics.

    Times are the file's own clock in ns. Raises InputError with every bad line of the file.
    """
    text = without_bom(data).decode("utf-8", "surrogateescape")
    reader = _Reader(path)
    if not text.isascii() and any("\udc80" <= char <= "\udcff" for char in text):
        reader.findings.add(
            "warning", "not-utf-8", "found bytes that are not UTF-8 text; they are kept and shown escaped"
        )
    for line_number, line in enumerate(_lines(text), 1):
        if not line or line.isspace():
            continue
        if is_comment(line.lstrip()):
            reader.findings.add(
                "note", "comment", "found a comment; the line is ignored", TextCell(line, line_number, 1)
            )
            continue
        reader.take(line, line_number)
        if reader.lines > MOST_OPERATIONS:
            message = f"found more than {MOST_OPERATIONS} operations; this is the first too many"
            raise InputError(Diagnostic("error", "too-many-operations", message, path, line_number, 1))
    ranks = reader.finish()
    return ranks, reader.findings.diagnostics()


def _lines(text: str) -> Iterator[str]:
    """Yields the lines of a text one by one: a list of them would hold a second copy of a large file."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


class _Rank:
    """The state of one rank while its lines are read."""

    def __init__(self) -> None:
        self.ops = OpColumns()
        self.subs = SubColumns()
        self.stage: int | None = None
        # The last operation that is not a launch: untimed ones are placed behind it.
        self.last = -1
        self.timed = False


class _Reader:
    def __init__(self, path: str) -> None:
        self.path = path
        self.findings = Findings(path)
        self.ranks: dict[int, _Rank] = {}
        self.kind = ""
        self.lines = 0

    def finish(self) -> list[RankTrace]:
        """Returns the ranks by id; untimed operations before the first timed one begin with it."""
        traces = []
        for rank_id, rank in sorted(self.ranks.items()):
            ops = rank.ops
            first = min((time for time, how in zip(ops.start, ops.timing, strict=True) if how != UNTIMED),
                        default=0)  # fmt: skip
            for index in range(len(ops)):
                if ops.timing[index] != UNTIMED:
                    break
                ops.start[index] = ops.end[index] = first
            _set_sub_times(rank)
            traces.append(RankTrace(rank_id, rank.stage, self.path, rank.timed, ops, rank.subs))
        return traces

    def take(self, text: str, line_number: int) -> None:
        """Reads one line of the file."""
        self.lines += 1
        try:
            line = parse_line(text)
        except GrammarError as error:
            self.findings.add("error", error.code, error.message, TextCell(text, line_number, error.column))
            return
        self.kind = self.kind or line.kind
        if line.kind != self.kind:
            message = f"found {quoted(text)}, expected {self.kind}:N:operation(...) as on the lines before"
            self._error("trace-line", message, TextCell(text, line_number, 1))
            return
        rank = self.ranks.setdefault(line.unit_number, _Rank())
        self._op(rank, line, line_number)
        for keys in line.subs:
            self._sub(rank, keys, line_number)

    # -- operations ------------------------------------------------------------------

    def _op(self, rank: _Rank, line: TraceLine, line_number: int) -> None:
        ops, fields = rank.ops, line.fields
        state = _text(fields, "mg_state")
        stage = self._count(fields, "stage_id", line_number)
        stage_text = _text(fields, "stage")
        if stage_text is not None:
            # The other writer has the pipeline state under the key `stage`.
            if is_whole(stage_text, len(stage_text)) and stage is None:
                stage = self._count(fields, "stage", line_number)
            else:
                state = state or stage_text
        if stage is None and line.kind == "stage":
            stage = line.unit_number
        if rank.stage is None:
            rank.stage = stage
        elif stage is not None and stage != rank.stage:
            message = f"rank {line.unit_number}: found stage {stage}, expected stage {rank.stage} as before"
            self._note("warning", "stage-changes", f"{message}; it is ignored", line_number)
        batch = self._count(fields, "batch_id", line_number)
        group = vocabulary.group_of_op(line.op, _text(fields, "group_kind"))
        start, end, timing = self._times(fields, line_number)
        index = len(ops)
        if timing == UNTIMED:
            start = end = ops.end[rank.last] if rank.last >= 0 else 0
            if line.kind == "rank":
                message = f"{printable(line.op, 60)} has no time; it stands behind the operation before it"
                self._note("note", "untimed-operation", message, line_number)
        else:
            rank.timed = True
            if line.op != vocabulary.LAUNCH and rank.last >= 0:
                timing = self._check_overlap(rank, line.op, start, end, timing, line_number)
        if not vocabulary.is_known_op(line.op):
            message = f"operation {quoted(line.op)} is not one of the tracer's; it is shown under its name"
            self._note("note", "unknown-operation", message, line_number)
        self._note_unknown_group(group, line_number)
        ops.name.append(line.op)
        ops.state.append(state)
        ops.group.append(group)
        ops.batch.append(-1 if batch is None else batch)
        ops.start.append(start)
        ops.end.append(end)
        ops.timing.append(timing)
        ops.line.append(line_number)
        ops.description.append(_text(fields, "description"))
        ops.shape.append(_text(fields, "input__shape"))
        ops.dtype.append(_text(fields, "input__dtype"))
        extra = {key: field.text for key, field in fields.items() if key not in _OP_KEYS}
        if extra:
            ops.extra[index] = extra
        if line.op != vocabulary.LAUNCH:
            rank.last = index

    def _check_overlap(
        self, rank: _Rank, name: str, start: int, end: int, timing: int, line_number: int
    ) -> int:
        """Returns whether an operation's times are stated or derived, given the operation before it."""
        ops, last = rank.ops, rank.last
        if start >= ops.end[last] - TOLERANCE_NS or ops.timing[last] == UNTIMED:
            return timing
        both = {name, ops.name[last]}
        if (ops.start[last], ops.end[last]) == (start, end) and len(both & vocabulary.POINT_TO_POINT) == 2:
            sends = ops.name[last] not in vocabulary.RECEIVES
            if name in vocabulary.RECEIVES and sends and ops.timing[last] != FUSED:
                # Both wait for the data that is received.
                ops.timing[last] = FUSED
                return timing
            return FUSED
        message = (
            f"{printable(name, 60)} begins {(ops.end[last] - start) / _MS_NS:.2f} ms before the operation "
            "before it ends; both are shown as written"
        )
        self._note("warning", "operations-overlap", message, line_number)
        return timing

    def _times(self, fields: dict[str, TraceField], line_number: int) -> tuple[int, int, int]:
        """Returns (start, end, how they are known), ns: the timestamp is taken at the end."""
        end = self._ms(fields, "timestamp", line_number)
        if end is None:
            end = self._ms(fields, "launch_timestamp_ms", line_number)
        duration_text = _text(fields, "duration")
        duration = None
        if duration_text is not None and not duration_text[:1].isalpha():
            duration = self._ms(fields, "duration", line_number)
        if end is None or (end == 0 and not duration):
            return 0, 0, UNTIMED
        if duration is None:
            if duration_text is not None:
                message = f"duration: found {quoted(duration_text)}, no number; it is shown as an instant"
                self._note("note", "no-duration", message, line_number)
            return end, end, INSTANT
        return end - duration, end, INSTANT if duration == 0 else MEASURED

    # -- sub-operations --------------------------------------------------------------

    def _sub(self, rank: _Rank, fields: dict[str, TraceField], line_number: int) -> None:
        subs, parent = rank.subs, len(rank.ops) - 1
        start, end, timing = self._times(fields, line_number)
        group = _text(fields, "group")
        source = _text(fields, "trace_src_func")
        name = _text(fields, "func_name") or source or _text(fields, "comm_func") or "sub-operation"
        self._note_unknown_group(group, line_number)
        begin, over = rank.ops.start[parent], rank.ops.end[parent]
        outside = start < begin - TOLERANCE_NS or end > over + TOLERANCE_NS
        if outside and timing != UNTIMED and rank.ops.timing[parent] == MEASURED:
            message = (
                f"sub-operation {quoted(name)} does not lie inside {printable(rank.ops.name[parent], 60)}; "
                "it is shown as written"
            )
            self._note("warning", "sub-operation-outside", message, line_number)
        subs.parent.append(parent)
        subs.name.append(name)
        subs.source.append(source)
        subs.collective.append(_text(fields, "comm_func"))
        subs.group.append(group)
        subs.start.append(start)
        subs.end.append(end)
        subs.timing.append(timing)
        subs.shape.append(_text(fields, "input__shape"))
        subs.dtype.append(_text(fields, "input__dtype"))

    # -- values ----------------------------------------------------------------------

    def _ms(self, fields: dict[str, TraceField], key: str, line_number: int) -> int | None:
        """Returns a value in ms as ns, None where there is none or it is an error: exact to six decimals."""
        text = _text(fields, key)
        if text is None:
            return None
        plain = _PLAIN_MS.fullmatch(text)
        if plain is not None:
            return int(plain[1]) * _MS_NS + int((plain[2] or "").ljust(6, "0"))
        mantissa, _, exponent = text.lower().partition("e")
        fits = re.fullmatch(r"[+-]?[0-9]{1,3}", exponent or "0") and len(mantissa) <= 400
        value = read_number(f"{mantissa}e{int(exponent or 0) + 6}") if fits else None
        cell = TextCell(text, line_number, fields[key].column)
        if value is None:
            self._error("not-a-number", f"{key}: found {cell.quote()}, expected a number of ms", cell)
            return None
        if value.below_zero:
            self._error("negative-value", f"{key}: found {cell.quote()}, expected 0 or more", cell)
            return None
        if value.value > LARGEST:
            expected = f"at most {LARGEST} ns"
            self._error("value-too-large", f"{key}: found {cell.quote()} ms, expected {expected}", cell)
            return None
        return value.value

    def _count(self, fields: dict[str, TraceField], key: str, line_number: int) -> int | None:
        """Returns a whole number from 0, None where there is none or it is an error."""
        text = _text(fields, key)
        if text is None:
            return None
        if is_whole(text, 10) and int(text) < _MOST_STAGE:
            return int(text)
        cell = TextCell(text, line_number, fields[key].column)
        expected = "a whole number below 2147483648"
        self._error("not-a-number", f"{key}: found {cell.quote()}, expected {expected}", cell)
        return None

    def _note_unknown_group(self, group: str | None, line_number: int) -> None:
        if group is not None and group not in vocabulary.GROUPS:
            message = f"group kind {quoted(group)} is not one of the tracer's; it has a lane of its own"
            self._note("note", "unknown-group", message, line_number)

    def _error(self, code: str, message: str, cell: TextCell) -> None:
        self.findings.add("error", code, message, cell)

    def _note(self, severity: Severity, code: str, message: str, line_number: int) -> None:
        self.findings.add(severity, code, message, TextCell("", line_number, 1))


def _text(fields: dict[str, TraceField], key: str) -> str | None:
    """Returns a value as written; `None` and an empty text are None."""
    field = fields.get(key)
    return None if field is None or field.text in ("", "None") else field.text


def _set_sub_times(rank: _Rank) -> None:
    """Places sub-operations without a time where their parent begins."""
    subs = rank.subs
    for index, timing in enumerate(subs.timing):
        if timing == UNTIMED:
            subs.start[index] = subs.end[index] = rank.ops.start[subs.parent[index]]
