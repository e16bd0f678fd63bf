"""What a span of a Chrome trace is, by what it is called: the first rule that fits decides.

A rule has up to three regular expressions, of the span's name, its category (`cat`) and its thread, which fit
the whole text, whatever its case. Named groups of the name's expression state more: `step`, `microbatch`,
`chunk`, `stage` (of the span), `to` and `from` (the stage at the other end of a transfer).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.records import NamedTuple
from simcore.units import plural
from simcore.workload.spans import COLLECTIVES, KINDS, TRANSFERS

# What a rule may say beside KINDS: that the span is a step, that it says who waits for what, or that it is
# not shown.
STEP, WAITING, IGNORED = "step", "waiting", "ignored"
SPECIAL = (STEP, WAITING, IGNORED)
# The ranks of a communication by the axis along which they lie; `embedding`: the first and the last stage.
AXES = ("tp", "dp", "pp", "ep", "embedding", "world")
NO_KIND = KINDS.index("compute")
_KEYS = ("name", "cat", "thread", "kind", "group")
_LONGEST_TEXT = 200
_COUNT = re.compile(r"[0-9]{1,12}")


class Rule(NamedTuple):
    """What spans are that are called so. "" of an expression: any text."""

    name: str = ""
    cat: str = ""
    thread: str = ""
    kind: str = "compute"
    group: str = ""
    """The ranks of a communication: one of AXES, "" where words of the span say it."""


class Meaning(NamedTuple):
    """What a rule says of a span."""

    kind: str
    group: str
    values: Mapping[str, str]
    """What named groups of the expression have found."""
    is_known: bool
    """Whether any rule fits."""


UNKNOWN = Meaning("compute", "", {}, False)
# The number of a micro-batch behind what it does.
_MB = r"(?:mb|mbs|micro[-_ ]?batch|micro)?[-_ #:]*(?P<microbatch>\d{1,9})"


def _rule_of(pattern: str, kind: str, group: str = "") -> Rule:
    return Rule(name=pattern, kind=kind, group=group)


# By names of spans; where none fits, of categories, then of threads.
_WORDS = (
    (r".*all[-_ ]?reduce.*", "all-reduce"), (r".*all[-_ ]?gather.*", "all-gather"),
    (r".*reduce[-_ ]?scatter.*", "reduce-scatter"), (r".*(?:all[-_ ]?to[-_ ]?all|a2a).*", "all-to-all"),
    (r"(?:.*[^a-z])?i?(?:recv|receive)(?:[^a-z].*)?", "receive"),
    (r"(?:.*[^a-z])?i?send(?:[^a-z].*)?", "send"),
    (r".*(?:optim|adam(?![a-z])|clip[-_ ]?(?:main[-_ ]?)?grad).*|(?:.*[^a-z])?opt", "optimizer"),
    (r"(?:.*[^a-z])?(?:backward|bwd|wgrad|dgrad|ig|wg|recompute)(?:[^a-z].*)?", "backward"),
    (r"(?:.*[^a-z])?(?:forward|fwd)(?:[^a-z].*)?", "forward"),
    (r".*(?:memcpy|memset|h2d|d2h|offload).*|copy(?:[^a-z].*)?", "copy"),
    (r"gc|garbage.*|(?:.*[^a-z])?(?:get[-_ ]?batch|data[-_ ]?load(?:er|ing)?|checkpoint|host|cpu|python)"
     r"(?:[^a-z].*)?", "host"),
    (r"compute(?:[-_ ].*)?|kernels?", "compute"),
)  # fmt: skip
RULES: tuple[Rule, ...] = (
    Rule(cat="waiting", kind=WAITING),
    # Of NCCL's profiler plugin calls of the host, which often begin at 0, and what a collective is made of.
    Rule(cat=r"(?:COLL|P2P|GROUP)_API|KERNEL_LAUNCH|GROUP", kind=IGNORED),
    Rule(name="KernelCh", cat="GPU", kind=IGNORED), Rule(cat="PROXY", kind=IGNORED),
    Rule(name=r"(?:Send|Recv)\w*Wait", cat="NET", kind=IGNORED), Rule(cat="NET_IB", kind=IGNORED),
    _rule_of(r"(?:ProfilerStep|(?:training[-_ ])?(?:step|iter(?:ation)?))[-_ #:]*(?P<step>\d{1,12})", STEP),
    _rule_of(r".*embedding[-_ ]?grads?[-_ ]?all[-_ ]?reduce.*", "all-reduce", "embedding"),
    # Of ndtimeline: the norm of all gradients, over all ranks.
    _rule_of(r"optimizer[-_ ]clip[-_ ]main[-_ ]grad", "all-reduce", "world"),
    _rule_of(r".*layer[-_ ]?norm[-_ ]?grads?[-_ ]?all[-_ ]?reduce.*", "all-reduce", "tp"),
    _rule_of(r".*(?:params?|grads?)[-_ ].*all[-_ ]?reduce.*", "all-reduce", "dp"),
    _rule_of(r".*params?[-_ ]all[-_ ]?gather.*", "all-gather", "dp"),
    _rule_of(r".*grads?[-_ ]reduce[-_ ]?scatter.*", "reduce-scatter", "dp"),
    # Pipelining of PyTorch: `0F3`, `1SEND_F2`; zero-bubble's drawings: `F_0,3`.
    _rule_of(r"(?P<stage>\d{1,6})F(?P<microbatch>\d{1,9})", "forward"),
    _rule_of(r"(?P<stage>\d{1,6})(?:B|I|W|BW)(?P<microbatch>\d{1,9})", "backward"),
    _rule_of(r"(?P<stage>\d{1,6})SEND_[FB](?P<microbatch>\d{1,9})", "send", "pp"),
    _rule_of(r"(?P<stage>\d{1,6})RECV_[FB](?P<microbatch>\d{1,9})", "receive", "pp"),
    _rule_of(r"F_(?P<stage>\d{1,6}),(?P<microbatch>\d{1,9})", "forward"),
    _rule_of(r"(?:B|I|W|BW)_(?P<stage>\d{1,6}),(?P<microbatch>\d{1,9})", "backward"),
    _rule_of(rf"(?:F|FWD|forward)[-_ ]?{_MB}", "forward"),
    _rule_of(rf"(?:B|BWD|I|W|backward)[-_ ]?{_MB}", "backward"),
    _rule_of(r"send to stage (?P<to>\d{1,6})(?: .*)?", "send", "pp"),
    _rule_of(r"receive from stage (?P<from>\d{1,6})(?: .*)?", "receive", "pp"),
    *(Rule(name=pattern, kind=kind) for pattern, kind in _WORDS[:4]),
    # Exports of wltui state the phase of compute as `compute,ig`: names are those of layers.
    Rule(cat=r"compute,(?:ig|wg|recompute)", kind="backward"),
    Rule(cat=r"compute,fwd", kind="forward"), Rule(cat=r"compute,opt", kind="optimizer"),
    *(Rule(name=pattern, kind=kind) for pattern, kind in _WORDS[4:]),
    # SimuMax names compute by layers, and its threads by phases.
    Rule(cat="compute", thread=r"fwd[-_ ].*", kind="forward"),
    Rule(cat="compute", thread=r"bwd[-_ ].*", kind="backward"),
    *(Rule(cat=pattern, kind=kind) for pattern, kind in _WORDS),
    *(Rule(thread=pattern, kind=kind) for pattern, kind in _WORDS if kind in ("copy", "host")),
)  # fmt: skip


def _compile(text: str) -> re.Pattern[str] | None:
    return re.compile(text, re.IGNORECASE | re.DOTALL) if text else None


# Of what wltui exports of a recording, categories and operations as `CollectiveInfo` has them.
_RECORDED = {"kernel": "compute"} | {
    kind: kind for kind in ("forward", "backward", "optimizer", "copy", "host")
}  # fmt: skip
_OPERATIONS = {kind.replace("-", ""): kind for kind in COLLECTIVES} | {
    "send": "send", "isend": "send", "recv": "receive", "irecv": "receive",
}  # fmt: skip


def recorded_meaning(cat: str, operation: object) -> Meaning | None:
    """Returns what a span is that wltui exported of a recording; None for what only rules can tell."""
    kind = _OPERATIONS.get(operation) if isinstance(operation, str) else _RECORDED.get(cat)
    return None if kind is None else Meaning(kind, "", {}, True)


class Rules(dict[tuple[str, str, str], Meaning]):
    """What spans are by (name, category, thread): by the rules of the user, then by those that are built in.
    Each text is judged once.
    """

    def __init__(self, own: Sequence[Rule] = ()) -> None:
        super().__init__()
        self._rules = [
            (_compile(rule.name), _compile(rule.cat), _compile(rule.thread), rule) for rule in (*own, *RULES)
        ]

    def __missing__(self, key: tuple[str, str, str]) -> Meaning:
        meaning = self[key] = self._find(*(text[:_LONGEST_TEXT] for text in key))
        return meaning

    def _find(self, name: str, cat: str, thread: str) -> Meaning:
        for of_name, of_cat, of_thread, rule in self._rules:
            match = None if of_name is None else of_name.fullmatch(name)
            if (
                (of_name is None or match is not None)
                and (of_cat is None or of_cat.fullmatch(cat))
                and (of_thread is None or of_thread.fullmatch(thread))
            ):
                groups = {} if match is None else match.groupdict()
                values = {key: text for key, text in groups.items() if text and _COUNT.fullmatch(text)}
                return Meaning(rule.kind, rule.group, values, True)
        return UNKNOWN


def parse_rules(table: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Returns the rules of a trace map. Raises UsageError for what is none."""
    others = [key for key in table if key != "rule"]
    if others:
        raise UsageError(f"found {printable(others[0], 40)}, expected [[rule]] tables alone")
    entries = table.get("rule", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError("rule: expected [[rule]] tables")
    return tuple(_parse_rule(rule_id, entry) for rule_id, entry in enumerate(entries, 1))


def _parse_rule(rule_id: int, entry: Mapping[str, Any]) -> Rule:
    for key, value in entry.items():
        if key not in _KEYS:
            raise UsageError(
                f"rule {rule_id}: found {printable(key, 40)}, expected one of {', '.join(_KEYS)}"
                f"{did_you_mean(key, _KEYS)}"
            )
        if not isinstance(value, str):
            raise UsageError(f"rule {rule_id}: {key}: found no text, expected one")
    rule = Rule(**entry)
    if not any(rule[:3]):
        raise UsageError(f"rule {rule_id}: expected an expression for name, cat or thread")
    for key, value, allowed in (("kind", rule.kind, (*KINDS, *SPECIAL)), ("group", rule.group, ("", *AXES))):
        if value not in allowed:
            raise UsageError(
                f"rule {rule_id}: {key}: found {printable(value, 40)}, expected one of "
                f"{', '.join(filter(None, allowed))}{did_you_mean(value, allowed)}"
            )
    for key, text in zip(_KEYS[:3], rule[:3], strict=True):
        try:
            re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(
                f"rule {rule_id}: {key}: found {printable(text, 60)}, expected a regular expression ({error})"
            ) from None
    return rule


def format_map(names: Sequence[tuple[str, str, str, Meaning, int]]) -> str:
    """Returns a trace map of what spans are called, a rule each, to be edited.

    names: (name, category, thread, what it is taken for, how many), those without a rule first.
    """
    lines = [
        "# What spans of a Chrome trace are: wltui FILE --trace-map THIS. The first rule that fits decides;",
        "# below all of them wltui's own follow. name, cat and thread are regular expressions of the whole",
        "# text; (?P<microbatch>\\d+) and (?P<step>\\d+) in that of the name state numbers.",
        f"# kind: {', '.join(KINDS)},",
        f"#       {', '.join(SPECIAL)}",
        f"# group, of a communication: {', '.join(AXES)}",
    ]
    for name, cat, thread, meaning, count in names:
        lines += ["", "[[rule]]" + ("" if meaning.is_known else "  # no rule knows it")]
        lines += [
            f"# {plural(count, 'span')}" + (f", first on thread {printable(thread, 60)}" if thread else "")
        ]
        lines += [f"{key} = {_toml(re.escape(text))}" for key, text in (("name", name), ("cat", cat)) if text]
        lines += [f'kind = "{meaning.kind}"']
        if meaning.group:
            lines += [f'group = "{meaning.group}"']
    return "\n".join(lines) + "\n"


def _toml(text: str) -> str:
    import json

    # A basic string of TOML is one of JSON but for the character DEL.
    return json.dumps(text).replace("\x7f", "\\u007f")


def communicates(kind: str) -> bool:
    """Returns whether spans of a kind have partners."""
    return kind in COLLECTIVES or kind in TRANSFERS
