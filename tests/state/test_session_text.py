"""What a session file holds comes back as it was, and whatever else stands in one is refused in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.parameter_values.choices import choices
from simcore.parameters import FLAGS, Flag, Parameters
from simcore.program.schedules import SCHEDULES
from simcore.replay.step_table import MEASURES
from simcore.trace.contexts import StepWork
from tui.frame import cells
from tui.state.checking import MOST_NS, InvalidSession
from tui.state.files import Identity
from tui.state.session_content import FORMAT, Stored, StoredRun, format_session, parse_session
from tui.steps.saved import SavedSteps
from tui.timeline.saved import SavedMark, SavedTimeline

TIMES = st.integers(0, MOST_NS)
TEXTS = st.text(max_size=20)
NUMBERS = st.integers(-2, 2**40)
KEYS = st.tuples(st.lists(TEXTS, max_size=3).map(tuple), NUMBERS, NUMBERS, st.none() | TEXTS)
LISTS = st.lists(KEYS, max_size=3).map(tuple)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "switch": st.booleans(),
    "text": TEXTS,
    "count": st.integers(1, 1024),
    "positive": st.floats(1e-6, 1e12),
    "scale": st.floats(0, 1e12),
}
ITEMS = {
    "dim": "switch:8:450:500", "algorithm": "1=direct4", "overlap": "dp=0.5,tp=0.3",
    "layer_scale": "mlp \u202e:fwd=0.5", "slow_rank": "37=1.3", "slow_link": "1:37=0.5",
    "link_rate": "36-52=0.5",
    "kind_scale": "expert dp=0", "stage_scale": "none=0.5", "slow_host": "3=0.5",
    "without_lines": "82-83", "time_scale": "layer mlp \u202e=0.5",
}  # fmt: skip


def values_of(flag: Flag) -> st.SearchStrategy[Any]:
    """Values that a parameter may have."""
    if flag.kind == "word":
        return st.sampled_from([word for word in choices(flag.field) if ":" not in word])
    if flag.kind == "words":
        return st.lists(st.just(ITEMS[flag.field]), max_size=3).map(tuple)
    return VALUES[flag.kind]


PARAMETERS = st.fixed_dictionaries({}, optional={flag.field: values_of(flag) for flag in FLAGS}).map(
    lambda values: Parameters(**values)
)


@st.composite
def timelines(draw: st.DrawFn) -> SavedTimeline:
    """Any place in any timeline."""
    step = draw(st.integers(1, MOST_NS))
    span = draw(st.integers(1, step))
    times = st.integers(0, step)
    letters = draw(st.lists(st.sampled_from("abcz"), unique=True))
    return SavedTimeline(
        step, draw(st.integers(0, step - span)), span, draw(times),
        draw(st.integers(1, 500)), draw(st.integers(1, 500)), draw(KEYS), draw(st.integers(0, 10**6)),
        draw(TEXTS), draw(LISTS), draw(LISTS),
        draw(st.lists(st.tuples(NUMBERS, st.lists(NUMBERS, max_size=3).map(tuple)), max_size=3).map(tuple)),
        draw(LISTS), draw(LISTS), draw(TEXTS), draw(st.none() | st.lists(NUMBERS, max_size=3).map(tuple)),
        draw(TEXTS), draw(st.none() | times),
        draw(st.none() | st.lists(times, min_size=2, max_size=2).map(sorted).map(tuple)),
        tuple(SavedMark(letter, draw(times), draw(KEYS), draw(TEXTS)) for letter in letters),
    )  # fmt: skip


STEPS = st.builds(
    SavedSteps, st.sampled_from(MEASURES), TEXTS, st.booleans(), TEXTS, st.none() | st.integers(0, 2**40)
)
WORKS = st.builds(StepWork, st.lists(TIMES, min_size=1, max_size=3).map(tuple), TIMES, st.just(0) | TIMES)
RUNS = st.builds(StoredRun, PARAMETERS, TEXTS, st.none() | TIMES, st.none() | TEXTS, st.none() | WORKS)
SESSIONS = st.builds(
    Stored,
    st.builds(Identity, TIMES, st.integers(-(2**63) + 1, 2**63 - 1), st.none() | st.integers(0, 2**32 - 1)),
    TEXTS,
    st.sampled_from(["summary", "timeline", "notes"]),
    st.none() | PARAMETERS,
    st.lists(RUNS, max_size=3).map(tuple),
    st.fixed_dictionaries({}, optional={"timeline": timelines(), "steps": STEPS}),
    st.none() | TEXTS,
    st.just(""),
)


@given(SESSIONS)
def test_a_session_comes_back_as_it_was_written(session: Stored) -> None:
    text = format_session(session)
    assert text.isascii()
    assert parse_session(text) == session


def a_session(**changes: Any) -> dict[str, Any]:
    """A good file's values, and what is to be wrong with them: `screens.timeline.top=-1`."""
    timeline = SavedTimeline(1000, 100, 200, 150, 96, 20, ((), 2, -1, None), 0, marks=(
        SavedMark("a", 150, ((), 2, -1, None), "stage 2"),
    ))  # fmt: skip
    good = Stored(
        Identity(5, 6, 7), "0.1.0", "timeline", Parameters(tp=4), (StoredRun(Parameters(), "base", 9),),
        {"timeline": timeline},
    )  # fmt: skip
    values: dict[str, Any] = json.loads(format_session(good))
    # As wltui 0.1 wrote the replay of a trace.
    factors = {"compute": 2.0, "comm": 1.0, "gaps": 1.0, "host": 1.0}
    lists: dict[str, Any] = {"ops": [], "kinds": [], "ranks": [[7, 0.5]], "stages": []}
    values["replay"] = {"scales": factors | lists, "shown": True}
    for path, value in changes.items():
        *way, last = path.split("__")
        inner = values
        for name in way:
            inner = inner[int(name) if name.isdigit() else name]
        inner[last] = value
    return values


TIMELINE = "screens__timeline__"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "wltui.session/2"}, 'format: found "wltui.session/2", expected "wltui.session/1"'),
        ({"format": None}, 'format: found nothing, expected "wltui.session/1"'),
        ({"screen": "sumary"}, 'screen: found "sumary", expected one of summary, timeline, layers, why, '
                               "parameters, compare, sweep, steps, links, notes"),
        ({"screen": "\x1b[2J"}, 'screen: found "\\u001b[2J", expected one of summary, timeline, layers, '
                                "why, parameters, compare, sweep, steps, links, notes"),
        ({"screen": 7}, "screen: found 7, expected a text"),
        ({"version": "x" * 61},
         f'version: found "{"x" * 36}..., expected a text of at most 60 characters'),
        ({"input": []}, "input: found [], expected a table"),
        ({"input__size": 1.5}, f"input.size: found 1.5, expected a whole number from 0 to {MOST_NS}"),
        ({"input__content": -1}, "input.content: found -1, expected a whole number from 0 to 4294967295"),
        ({"parameters": {"tpp": 1}}, 'parameters: found "tpp", expected the name of a parameter'),
        ({"parameters": {"tp": 0}}, "parameters.tp: 0: a whole number from 1 to 2^40 is expected"),
        ({"parameters": {"tp": True}}, "parameters.tp: found true, expected a whole number"),
        ({"parameters": {"tp": 2.0}}, "parameters.tp: 2.0: a whole number from 1 to 2^40 is expected"),
        ({"parameters": {"jitter": float(10**13)}},
         "parameters.jitter: 10000000000000.0: a number of 0 or more (up to 1e12) is expected"),
        ({"parameters": {"no_fold": 1}}, "parameters.no_fold: found 1, expected true or false"),
        ({"parameters": {"dim": "ring"}}, 'parameters.dim: found "ring", expected a list'),
        ({"parameters": {"dim": [3]}}, "parameters.dim[0]: found 3, expected a text"),
        ({"parameters": {"dim": ["ring:8"]}},
         "parameters.dim[0]: ring:8: KIND:SIZE:GBPS:NS is expected, for example switch:8:450:500"),
        ({"parameters": {"algorithm": ["0=ring", "foo"]}},
         "parameters.algorithm[1]: foo: DIM=NAME is expected, for example 0=ring"),
        ({"parameters": {"schedule": "foo"}},
         f'parameters.schedule: found "foo", expected one of {", ".join(SCHEDULES)}'),
        ({"parameters": {"network": "busbw"}},
         'parameters.network: found "busbw", expected one of analytical, shared, busbw:FILE, simai-auto, '
         "links, flows"),
        ({"parameters": {"slow_rank": ["zz"]}},
         "parameters.slow_rank[0]: zz: R=X, for example 37=1.3 is expected, X above 0 and up to 1e6"),
        ({"runs__0__parameters": {"slow_link": ["1:99999999=2"]}},
         "runs[0].parameters.slow_link[0]: 1:99999999=2: no rank 99999999 in this run, only 0 to 16777215"),
        ({"parameters": {"layer_scale": ["mlp"]}},
         "parameters.layer_scale[0]: mlp: NAME:PHASE=X, or OP=X of a trace, is expected, X up to 1e6"),
        ({"parameters": {"stage_scale": ["first=2"]}},
         "parameters.stage_scale[0]: first=2: STAGE=X, for example 3=0.9 is expected"),
        ({"runs": {}}, "runs: found {}, expected a list"),
        ({"runs": [{}] * 201}, "runs: found 201 items, expected at most 200"),
        ({"runs": ["x"]}, 'runs[0]: found "x", expected a table'),
        ({"runs__0__step_ns": -1}, f"runs[0].step_ns: found -1, expected a whole number from 0 to {MOST_NS}"),
        ({"screens": 1}, "screens: found 1, expected a table"),
        ({"replay": 2}, "replay: found 2, expected a table"),
        ({"replay__shown": 1}, "replay.shown: found 1, expected true or false"),
        ({"replay__scales": []}, "replay.scales: found [], expected a table"),
        ({"replay__scales__compute": "2"}, 'replay.scales.compute: found "2", expected a factor'),
        ({"replay__scales__comm": True}, "replay.scales.comm: found true, expected a factor"),
        ({"replay__scales__gaps": -0.5},
         "replay.scales.gaps: found -0.5, expected a factor from 0 to 1e6"),
        ({"replay__scales__host": float(10**7)},
         "replay.scales.host: found 1e+07, expected a factor from 0 to 1e6"),
        ({"replay__scales__ranks": {"7": 1}}, 'replay.scales.ranks: found {"7": 1}, expected a list'),
        ({"replay__scales__ranks": [[7]]}, "replay.scales.ranks[0]: found [7], expected a pair"),
        ({"replay__scales__ranks": [["7", 2]]},
         'replay.scales.ranks[0]: found "7", expected a whole number from 0 to 1099511627776'),
        ({"replay__scales__ops": [[7, 2]]}, "replay.scales.ops[0]: found 7, expected a text"),
        ({TIMELINE + "span_ns": 0},
         "screens.timeline.span_ns: found 0, expected a whole number from 1 to 1000"),
        ({TIMELINE + "first_ns": 801},
         "screens.timeline.first_ns: found 801, expected a whole number from 0 to 800"),
        ({TIMELINE + "cursor_ns": "x"},
         'screens.timeline.cursor_ns: found "x", expected a whole number from 0 to 1000'),
        ({TIMELINE + "columns": 10**6},
         "screens.timeline.columns: found 1000000, expected a whole number from 1 to 10000"),
        ({TIMELINE + "lane": [1]}, "screens.timeline.lane: found [1], expected a list of 4"),
        ({"screens__steps": {"measure": "loss"}},
         'screens.steps.measure: found "loss", expected one of compute, waits, late by'),
        ({"screens__steps": {"measure": "waits", "descending": 1}},
         "screens.steps.descending: found 1, expected true or false"),
        ({TIMELINE + "fixed": [5, 4]},
         "screens.timeline.fixed: found [5, 4], expected a range that ends after it begins"),
        ({TIMELINE + "marks": [["A", 1, [[], 0, -1, None], ""]]},
         'screens.timeline.marks[0]: found "A", expected a letter from a to z'),
        ({TIMELINE + "apart": [[0, [-3]]]},
         "screens.timeline.apart[0][0]: found -3, expected a whole number from -2 to 1099511627776"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_refused_with_its_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSession) as refusal:
        parse_session(json.dumps(a_session(**changes)))
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: this is not JSON"),
        ('{"format": "wltui.session/1",', "line 1, column 30: this is not JSON"),
        ("[]", "the file: found [], expected a table"),
        ("[" * 100_000, "found too many nested lists"),
        ('{"step": NaN}', "found NaN, expected a number"),
        ('{"step": -Infinity}', "found -Infinity, expected a number"),
        ('{"step": ' + "9" * 100_000 + "}", "found a number of 100000 digits"),
    ],
    ids=["empty", "cut", "list", "nested", "NaN", "infinity", "digits"],
)
def test_a_text_that_is_no_session_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidSession) as refusal:
        parse_session(text)
    assert str(refusal.value) == message


def test_a_number_beyond_all_floats_is_refused() -> None:
    text = json.dumps(a_session(parameters={"jitter": 0.5})).replace("0.5", "1e400")
    with pytest.raises(InvalidSession) as refusal:
        parse_session(text)
    assert str(refusal.value) == "parameters.jitter: inf: a number of 0 or more (up to 1e12) is expected"


@given(st.data())
def test_any_value_in_any_place_is_read_or_refused(data: st.DataObject) -> None:
    values = a_session()
    inner: Any = values
    while True:
        place = data.draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
        if isinstance(inner[place], (dict, list)) and inner[place] and data.draw(st.booleans()):
            inner = inner[place]
            continue
        inner[place] = data.draw(
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
                lambda one: st.lists(one, max_size=4) | st.dictionaries(st.text(), one, max_size=3),
                max_leaves=8,
            )
        )
        break
    refusal = ""
    try:
        assert format_session(parse_session(json.dumps(values))).startswith(f'{{"format":"{FORMAT}"')
    except InvalidSession as found:
        refusal = str(found)
    assert cells(refusal, 400).isprintable()
