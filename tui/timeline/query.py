"""What can be typed to search and to filter, and which spans it means.

A rank, a stage, words, a micro-batch, a length; all that is typed has to hold. A time, a share of the step
or a step says from where on (`7.5 s`, `at 50%`, `step 6`). A word is one of those that
the screen uses of spans (`forward`, `wait`, `all-reduce`, `tp`), or the beginning of one, or a part of a
layer's or operation's name.

The matching spans of a lane are a flag a span, a byte each, combined by the million in microseconds. A word
is looked up in the tables of `SearchColumns`, which are short, and `translate` does the rest: 1 ns a span. A
million spans take 100 to 150 ms the first time, and 10 ms for every letter after that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from operator import sub

from simcore.diagnostics import printable
from simcore.records import NamedTuple, Struct
from simcore.trace.lane_spans import SearchColumns, Spans
from simcore.units import plain_number

# A word of the screen -> what it stands for. Matching turns these into spans of a run.
KEYWORDS: dict[str, tuple[str, ...]] = {
    "forward": ("fwd",), "backward": ("ig", "wg", "recompute"), "optimizer": ("opt",),
    "recompute": ("recompute",), "compute": ("compute",), "exposed": ("exposed",), "wait": ("wait",),
    "bubble": ("bubble",), "idle": ("idle",), "gap": ("idle",), "host": ("host",),
    "tp": ("tp",), "ep": ("ep",), "dp": ("dp",), "dp_ep": ("dp_ep",), "all": ("all",), "cp": ("cp",),
    "dp_shard": ("dp_shard",), "dp_replicate": ("dp_replicate",), "offload": ("offload",), "pp": ("pp",),
    "cp_a2a": ("cp_a2a",), "cp_p2p": ("cp_p2p",), "ep_intra": ("ep_intra",), "ep_inter": ("ep_inter",),
    "all-reduce": ("all-reduce",), "all-gather": ("all-gather",), "reduce-scatter": ("reduce-scatter",),
    "all-to-all": ("all-to-all",), "send": ("send",), "receive": ("receive",),
    "transfer": ("send", "receive"), "activation": ("activation",), "gradient": ("gradient",),
    "input grad": ("ig",), "weight grad": ("wg",),
}  # fmt: skip
_FIRST_OF_TWO = ("input", "weight")
_LIMIT_NAMES = {"rank": "rank", "stage": "stage", "mb": "microbatch", "micro-batch": "microbatch",
           "microbatch": "microbatch", "step": "step"}  # fmt: skip
# The least letters of an unfinished word: with fewer, nearly every word begins like it.
_LEAST_LETTERS = 3
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_TOKEN = re.compile(r"[<>]=?|[^\s<>]+")
_WITH_UNIT = re.compile(r"([0-9.eE+-]*[0-9.])(ns|us|ms|s)")
_PERCENT = re.compile(r"([0-9.]+)%")
_LARGEST_NUMBER = 10**9
# `mb3` and `micro batch 3` are `mb 3`.
_GLUED = re.compile(r"\b(rank|stage|step|mb|micro-?batch)(?=[0-9]+(\s|$))")
_SPACED = re.compile(r"\bmicro batch\b")


class Word(NamedTuple):
    """A word of a query."""

    kinds: tuple[str, ...]
    """What the word stands for."""
    name: str
    """What names must contain where it stands for nothing; "" for a complete word."""
    whole: str = ""
    """A complete word as it was typed, "" for an unfinished one; without kinds a part of names must begin so.
    """

    def is_in(self, name: str) -> bool:
        """Returns whether a name contains it: at any position, or for a complete word without kinds at the
        beginning of a part, as `ep` in `ep_allreduce` and not in `forward_step`.
        """
        if self.name:
            return self.name in name.lower()
        if not self.whole or self.kinds:
            return False
        return re.search(rf"(?<![0-9a-z]){re.escape(self.whole)}", name.lower()) is not None


class Query(Struct, frozen=True):
    """What spans must be: all of it. Fields are None where the query states nothing."""

    text: str = ""
    rank: int | None = None
    stage: int | None = None
    microbatch: int | None = None
    least_ns: int | None = None
    """The least length."""
    most_ns: int | None = None
    """The greatest length."""
    words: tuple[Word, ...] = ()
    at_ns: int | None = None
    """The time from which on is searched."""
    at_percent: float | None = None
    """That time as a share of the step, %."""
    step: int | None = None
    """The step from whose start on is searched, 1 for the first."""
    problem: str = ""
    """Why the text cannot be understood, "" if it can."""

    @property
    def is_empty(self) -> bool:
        """Whether it restricts nothing."""
        return not self.of_spans and not self.of_lanes and not self.has_position

    @property
    def has_position(self) -> bool:
        """Whether it says from where on is searched; without anything else, it goes there."""
        return any(value is not None for value in (self.at_ns, self.at_percent, self.step))

    @property
    def of_lanes(self) -> bool:
        """Whether it restricts the lanes."""
        return self.rank is not None or self.stage is not None

    @property
    def of_spans(self) -> bool:
        """Whether it restricts the spans; if not, it means lanes."""
        return bool(self.words) or any(
            value is not None for value in (self.microbatch, self.least_ns, self.most_ns)
        )


def parse_query(text: str) -> Query:
    """Returns the query of a text. Nothing is raised: `problem` says what cannot be understood."""
    plain = _SPACED.sub("micro-batch", text.lower())
    tokens = _TOKEN.findall(_GLUED.sub(r"\1 ", plain))
    limits: dict[str, int] = {}
    at_percent: float | None = None
    words: list[Word] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        next_token = tokens[index + 1] if index + 1 < len(tokens) else ""
        at, used = _parse_position(tokens[index : index + 3])
        if used:
            if isinstance(at, int):
                limits["at_ns"] = at
            else:
                at_percent = at
            index += used
        elif token in _LIMIT_NAMES and not (token == "step" and _parse_number(next_token) is None):
            value = _parse_number(next_token)
            if value is None:
                return _not_understood(text, f"{token} 3", f"a number behind {token}", next_token)
            limits[_LIMIT_NAMES[token]] = value
            index += 2
        elif token[0] in "<>":
            length_ns, used = _parse_length(tokens[index + 1 : index + 3])
            if length_ns is None:
                return _not_understood(text, f"{token} 1 ms", "a length with its unit", next_token)
            limits["least_ns" if token[0] == ">" else "most_ns"] = length_ns
            index += 1 + used
        elif (value := _parse_number(token)) is not None:
            limits["rank"] = value
            index += 1
        elif token in _FIRST_OF_TWO and next_token.startswith("grad"):
            words.append(Word(KEYWORDS[f"{token} grad"], ""))
            index += 2
        else:
            words.append(_parse_word(token))
            index += 1
    return Query(
        text.strip(), limits.get("rank"), limits.get("stage"), limits.get("microbatch"),
        limits.get("least_ns"), limits.get("most_ns"), tuple(words),
        limits.get("at_ns"), at_percent, limits.get("step"),
    )  # fmt: skip


def _not_understood(text: str, example: str, expected: str, next_token: str) -> Query:
    instead = f"found {printable(next_token, 20)}" if next_token else "found nothing"
    return Query(text=text.strip(), problem=f"{expected} is expected ({example}), {instead}")


def _parse_number(token: str) -> int | None:
    if not (token.isascii() and token.isdecimal()) or len(token) > 12:
        return None
    return min(int(token), _LARGEST_NUMBER)


def _parse_length(tokens: list[str]) -> tuple[int | None, int]:
    """Returns (ns, tokens used) of `1 ms` or `1ms`."""
    if not tokens:
        return None, 0
    with_unit = _WITH_UNIT.fullmatch(tokens[0])
    text, unit, used = (with_unit[1], with_unit[2], 1) if with_unit else (tokens[0], "".join(tokens[1:]), 2)
    value = plain_number(text)
    if value is None or unit not in _UNITS or value * _UNITS[unit] >= 2**63:
        return None, 0
    return round(value * _UNITS[unit]), used


def _parse_position(tokens: list[str]) -> tuple[int | float | None, int]:
    """Returns (ns or percent, tokens used) of `7.5s`, `7.5 s`, `50%`, `50 %`, each perhaps behind `at`; 0
    tokens of anything else.
    """
    behind = tokens[0] == "at"
    tokens = tokens[behind:]
    percent = _PERCENT.fullmatch("".join(tokens[:2]) if tokens[1:2] == ["%"] else "".join(tokens[:1]))
    if percent is not None and (value := plain_number(percent[1])) is not None and value <= 100:
        return float(value), behind + 1 + (tokens[0][-1] != "%")
    length_ns, used = _parse_length(tokens[:2])
    # `at` is not needed, but what follows a number alone is: `7 s` is a time, `7` a rank.
    return (length_ns, behind + used) if length_ns is not None and length_ns >= 0 else (None, 0)


def _parse_word(token: str) -> Word:
    if token in KEYWORDS:
        return Word(KEYWORDS[token], "", token)
    kinds: list[str] = []
    if len(token) >= _LEAST_LETTERS:
        for word, keyword_kinds in KEYWORDS.items():
            if word.startswith(token):
                kinds += [kind for kind in keyword_kinds if kind not in kinds]
    return Word(tuple(kinds), token)


def match_spans(spans: Spans, searched: SearchColumns, query: Query) -> bytes:
    """Returns 1 for each span that the query means, else 0. Rank and stage are ignored."""
    flags = [_word_flags(searched, word) for word in query.words]
    if query.microbatch is not None:
        flags.append(_code_flags(searched.microbatch, {query.microbatch + 1}))
    return intersect_flags([*flags, length_flags(spans.start, spans.end, query)])


def _word_flags(searched: SearchColumns, word: Word) -> bytes:
    """Returns 1 for each span that a word means: by its kind, or by its name."""
    word_kinds = frozenset(word.kinds)
    kinds = {code for code, kind in enumerate(searched.kinds) if not word_kinds.isdisjoint(kind)}
    names = {code for code, entry_names in enumerate(searched.names) if any(map(word.is_in, entry_names))}
    by_name = _code_flags(searched.name, names)
    return unite_flags(_code_flags(searched.kind, kinds), by_name) if word_kinds else by_name


def _code_flags(codes: Sequence[int], selected: Collection[int]) -> bytes:
    """Returns 1 for each of the codes that is selected."""
    if isinstance(codes, bytes):
        return codes.translate(translation_table(code for code in selected if code < 256))
    return bytes(map(selected.__contains__, codes))


def intersect_flags(flags: Sequence[bytes]) -> bytes:
    """Returns 1 where all of the flags are 1."""
    # As integers: `&` of a million flags takes microseconds.
    together = int.from_bytes(flags[0], "little")
    for other in flags[1:]:
        together &= int.from_bytes(other, "little")
    return together.to_bytes(len(flags[0]), "little")


def unite_flags(left: bytes, other: bytes) -> bytes:
    """Returns 1 where one of the flags is 1."""
    together = int.from_bytes(left, "little") | int.from_bytes(other, "little")
    return together.to_bytes(len(left), "little")


def length_flags(start: Sequence[int], end: Sequence[int], query: Query) -> bytes:
    """Returns 1 for each span whose length the query allows."""
    flags = [b"\1" * len(start)]
    if query.least_ns is not None:
        flags.append(bytes(map(query.least_ns.__le__, map(sub, end, start))))
    if query.most_ns is not None:
        flags.append(bytes(map(query.most_ns.__ge__, map(sub, end, start))))
    return intersect_flags(flags)


def translation_table(values: Iterable[int]) -> bytes:
    """Returns a table for `translate`: 1 for each of the values."""
    flags = bytearray(256)
    for value in values:
        flags[value] = 1
    return bytes(flags)
