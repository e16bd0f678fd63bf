"""The two text forms of an order: PyTorch's, a line of cells for each rank, and a plain text of stages.

PyTorch (torch.distributed.pipelining): cells between commas; `0F7` is stage 0, forward, micro-batch 7, `B` a
backward, `I` and `W` its input and weight gradients apart; `(0F7;7B3)OVERLAP_F_B` two that run side by side;
an empty cell is waiting. Communication has cells of its own: `0SEND_F7`, `1RECV_F7`, `0SEND_B7`,
`0UNSHARD`, `0RESHARD`, `0REDUCE_GRAD`. In PyTorch's older words, of files without `I`, a `B` beside a `W` is
the input gradient alone, and `BW` the whole backward. Plain: `0: F0 F1 B0 W0`, a line a stage; `2F0` where
a stage has several parts of the model, `F7+7B3` for a pair, `.` for waiting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from simcore.diagnostics import Diagnostic, printable
from simcore.program.order import Kind, Order
from simcore.records import NamedTuple

# More is no schedule: a million actions are 1,000 micro-batches on 64 ranks with 8 chunks.
MOST_CELLS = 4_000_000
_ACTION = re.compile(r"(\d{1,9})?(BW|[FBIW])(\d{1,9})")
_TRANSFER = re.compile(r"(\d{1,9})(SEND|RECV)_([FB])(\d{1,9})")
# Some versions write a micro-batch behind it.
_OTHER = re.compile(r"(\d{1,9})(UNSHARD|RESHARD|REDUCE_GRAD)\d{0,9}")
_PAIR = re.compile(r"\d{0,9}\(([^;()]*);([^;()]*)\)OVERLAP_F_B")
_STAGE_LINE = re.compile(r"\s*(?:stage|rank)?\s*(\d{1,9})\s*:", re.IGNORECASE)
_WAITING = (".", "-", "_")


class OrderCell(NamedTuple):
    """An action as a file states it."""

    rank: int
    """The rank that does it."""
    kind: Kind
    """Its letter."""
    microbatch: int
    """From 0."""
    position: int
    """Its position of the model."""
    paired: bool
    """Whether it is the first of a pair."""
    line: int
    """From 1."""
    column: int
    """From 1."""
    is_whole: bool = False
    """Whether it is a `BW`."""

    def words(self) -> str:
        """Returns the cell as PyTorch writes it."""
        return f"{self.position}{self.kind}{self.microbatch}"


class Transfer(NamedTuple):
    """A SEND or RECV of a file."""

    rank: int
    """The rank in whose line it is."""
    sends: bool
    """Whether it is a SEND."""
    forward: bool
    """Whether it carries an activation, not a gradient."""
    microbatch: int
    """From 0."""
    position: int
    """The position of the model that its cell names."""
    after: int
    """How many actions of its rank come before it."""
    line: int
    """From 1."""
    column: int
    """From 1."""

    def words(self) -> str:
        """Returns the transfer as PyTorch writes it."""
        kind = "F" if self.forward else "B"
        return f"{self.position}{'SEND' if self.sends else 'RECV'}_{kind}{self.microbatch}"


class OrderText(NamedTuple):
    """The cells of a schedule file."""

    form: str
    """`pytorch` or `plain`."""
    ranks: int
    """How many ranks have a line."""
    cells: list[OrderCell]
    """The actions of all ranks, rank after rank, each in its order."""
    transfers: list[Transfer]
    """The SENDs and RECVs."""
    others: list[tuple[str, int, int, int, int]]
    """(word, position, rank, line, column) of what is left out."""


def format_order(order: Order) -> str:
    """Returns the order as PyTorch writes it, a line for each rank."""
    lines = []
    for stage, actions in enumerate(order.stages):
        cells: list[str] = []
        first = ""
        for action in actions:
            text = f"{order.placement.position(stage, action.chunk)}{action.kind}{action.microbatch}"
            if action.paired:
                first = text
            else:
                cells.append(f"({first};{text})OVERLAP_F_B" if first else text)
                first = ""
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def read_text(path: str, text: str) -> tuple[OrderText, list[Diagnostic]]:
    """Returns the cells in the text of a schedule file, and an error for each that cannot be read."""
    lines = [(line_number, line) for line_number, line in enumerate(text.splitlines(), 1)]
    lines = [(index, line) for index, line in lines if line.strip() and not line.lstrip().startswith("#")]
    if lines and _STAGE_LINE.match(lines[0][1]):
        order_text, errors = _Reader(path, "plain").plain(lines)
    else:
        order_text, errors = _Reader(path, "pytorch").pytorch(lines)
    return _in_newer_words(order_text), errors


def _in_newer_words(order_text: OrderText) -> OrderText:
    """Returns the cells with `I` for the input gradient alone, in a file that has no `I`."""
    cells = order_text.cells
    if any(cell.kind == "I" for cell in cells):
        return order_text
    split = {(cell.position, cell.microbatch) for cell in cells if cell.kind == "W"}
    newer = [
        cell._replace(kind="I")
        if cell.kind == "B" and not cell.is_whole and (cell.position, cell.microbatch) in split
        else cell
        for cell in cells
    ]
    return order_text._replace(cells=newer)


class _Reader:
    """Collects the cells in the lines of a file."""

    def __init__(self, path: str, form: str) -> None:
        self._path = path
        self._errors: list[Diagnostic] = []
        self._order_text = OrderText(form, 0, [], [], [])
        self._action_count = 0

    def pytorch(self, lines: list[tuple[int, str]]) -> tuple[OrderText, list[Diagnostic]]:
        """Returns the cells of a file with a line for each rank, in the order of ranks."""
        for rank, (line_number, line) in enumerate(lines):
            column = 1
            self._action_count = 0
            for cell in line.split(","):
                text = cell.strip().strip('"')
                if text and text != "None":
                    self._cell(text, rank, line_number, column + len(cell) - len(cell.lstrip()))
                column += len(cell) + 1
        return self._order_text._replace(ranks=len(lines)), self._errors

    def plain(self, lines: list[tuple[int, str]]) -> tuple[OrderText, list[Diagnostic]]:
        """Returns the cells of a file with a line for each stage, which begins with its number."""
        line_of_rank: dict[int, int] = {}
        for line_number, line in lines:
            match = _STAGE_LINE.match(line)
            if match is None:
                self._error(
                    line.strip(), "a line that begins with its stage, `0: F0 F1 B0 ...`", line_number, 1
                )
                continue
            rank = int(match[1])
            if rank in line_of_rank:
                message = f"stage {rank} has a line already, line {line_of_rank[rank]}"
                self._errors.append(
                    Diagnostic("error", "schedule-twice", message, self._path, line_number, 1)
                )
                continue
            line_of_rank[rank] = line_number
            self._action_count = 0
            for word in re.finditer(r"[^\s,]+", line[match.end() :].partition("#")[0]):
                if word.group() not in _WAITING:
                    self._plain_word(word.group(), rank, line_number, match.end() + word.start() + 1)
        for rank in range(len(line_of_rank)):
            if rank not in line_of_rank:
                message = f"{len(line_of_rank)} stages have a line, and none is of stage {rank}"
                self._errors.append(Diagnostic("error", "schedule-missing", message, self._path))
                break
        return self._order_text._replace(ranks=len(line_of_rank)), self._errors

    def _plain_word(self, word: str, rank: int, line: int, column: int) -> None:
        first, plus, second = word.partition("+")
        if plus:
            self._pair(word, first, second, rank, line, column)
        else:
            self._cell(word, rank, line, column)

    def _cell(self, text: str, rank: int, line: int, column: int) -> None:
        pair = _PAIR.fullmatch(text)
        if pair:
            self._pair(text, pair[1].strip(), pair[2].strip(), rank, line, column)
        elif transfer := _TRANSFER.fullmatch(text):
            position, word, kind, microbatch = transfer.groups()
            location = (int(microbatch), int(position), self._action_count, line, column)
            self._order_text.transfers.append(Transfer(rank, word == "SEND", kind == "F", *location))
        elif other := _OTHER.fullmatch(text):
            self._order_text.others.append((other[2], int(other[1]), rank, line, column))
        else:
            self._action(text, rank, False, line, column)

    def _pair(self, text: str, first: str, second: str, rank: int, line: int, column: int) -> None:
        kinds = [match[2] if (match := _ACTION.fullmatch(action)) else "" for action in (first, second)]
        if kinds[0] != "F" or kinds[1] not in ("B", "BW", "I"):
            self._error(text, "a forward and a backward, `(0F7;7B3)OVERLAP_F_B`", line, column)
            return
        self._action(first, rank, True, line, column)
        self._action(second, rank, False, line, column)

    def _action(self, text: str, rank: int, paired: bool, line: int, column: int) -> None:
        match = _ACTION.fullmatch(text)
        if match is None or (match[1] is None and self._order_text.form == "pytorch"):
            fitting = "`0F0` (stage, one of F B I W, micro-batch)"
            if self._order_text.form == "plain":
                fitting = "`F0` or `2F0` (stage, one of F B I W, micro-batch)"
            self._error(text, fitting, line, column)
            return
        position = rank if match[1] is None else int(match[1])
        self._action_count += 1
        is_whole = match[2] == "BW"
        kind: Kind = "B" if is_whole else match[2]  # type: ignore[assignment]
        cell = OrderCell(rank, kind, int(match[3]), position, paired, line, column, is_whole)
        self._order_text.cells.append(cell)

    def _error(self, text: str, fitting: str, line: int, column: int) -> None:
        message = f"found `{printable(text, 40)}`, expected {fitting}"
        self._errors.append(Diagnostic("error", "schedule-text", message, self._path, line, column))


def cells_by_rank(order_text: OrderText) -> Iterator[list[OrderCell]]:
    """Yields the actions of each rank, in their order."""
    cells_of: list[list[OrderCell]] = [[] for _ in range(order_text.ranks)]
    for cell in order_text.cells:
        if cell.rank < order_text.ranks:
            cells_of[cell.rank].append(cell)
    return iter(cells_of)
