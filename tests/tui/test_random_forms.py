"""The form under random keys: fields scrubbed, typed, reset, undone, on every kind of run.

A walk of 300 changes of a kind takes what 20 minutes of keys in a terminal take (`benchmarks/soak.py`).
"""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from benchmarks.soak import RUNS, WORDS
from simcore.diagnostics import InputError, UsageError
from simcore.parameters import RunInput
from simcore.runs import open_run
from tests.tui.pseudo_terminal import ROOT
from tui.commands.arguments import parse_parameters
from tui.commands.opened import open_from_arguments
from tui.commands.view import build_parser
from tui.parameters.fields import Values
from tui.parameters.form import DraftForm
from tui.session import Session


def opened(kind: str) -> Session:
    """What the command line of a kind of run opens."""
    words = [str(ROOT / word) if (ROOT / word).exists() else word for word in RUNS[kind].split()]
    arguments = build_parser().parse_args(words)
    parameters = parse_parameters(arguments)
    return Session(open_run(RunInput(open_from_arguments(arguments), parameters)))


def change(form: DraftForm, session: Session, choose: random.Random) -> Values:
    """What one of the keys of screen 5 makes of the field with the cursor."""
    field, context, act = form.current_field, form.follow(), choose.random()
    direction, large = choose.choice((-1, 1)), choose.random() < 0.5
    text = choose.choice((*WORDS, "none", "", "auto", "on", field.text(context)))
    if act < 0.5:
        return form.changed_values(field, lambda: field.scrubbed(context, direction, large))
    if act < 0.9:
        return form.changed_values(field, lambda: field.parse_text(context, text))
    opened_context = form.source.make_context(session.opened)
    return form.changed_values(field, lambda: field.reset(context, opened_context))


def walk(session: Session, choose: random.Random, steps: int) -> int:
    """Changes the draft by what the keys of screen 5 do; how many changes were taken. What is refused leaves
    the draft as it is.
    """
    form = DraftForm(session)
    taken = 0
    for _ in range(steps if form.fields else 0):
        form.cursor = choose.randrange(len(form.fields))
        with suppress(UsageError, InputError):
            session.edit(form.draft_with(change(form, session, choose)))
            taken += 1
        form.rows(60)
        if choose.random() < 0.1:
            session.undo()
    return taken


@pytest.mark.parametrize("kind", RUNS)
def test_no_change_of_a_field_ends_the_program(kind: str) -> None:
    session = opened(kind)
    taken = walk(session, random.Random(kind), 300)
    assert taken > 30 or not DraftForm(session).fields
