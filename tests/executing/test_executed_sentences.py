"""The words of each sentence on execution traces, made of facts alone: no run is needed to say them."""

from __future__ import annotations

import pytest

from simcore.records import replace
from simcore.words.rules import Sentence
from simcore.words.sentences.links import BusiestLink
from simcore.words.sentences.mean_rank import MeanRank, Part, PrintedExposed
from simcore.words.sentences.members import MembersWait
from simcore.words.sentences.no_time import NoPrice, NoTime
from simcore.words.sentences.path import PathCommunication, PathIs

STEP = 10_000
MEAN = MeanRank(
    step_ns=STEP,
    is_in_cycles=False,
    parts=(Part("compute", 9000, (8000, 10_000)), Part("idle", 1000, None)),
)
PATH = PathIs(step_ns=STEP, ns_of={"layer.#.mlp": 7000, "head": 2000}, others=0, others_ns=0)
GROUPS = PathCommunication(step_ns=STEP, grouping="group", ns_of={"group 1": 3000, "all ranks": 500})
LINK = BusiestLink(
    step_ns=STEP,
    links=3,
    equally_busy=0,
    source=-1,
    target=2,
    dimension=None,
    busy_ns=6000,
    bytes=60_000,
    queued_ns=3000,
)
WAIT = "All ranks together wait 150.0 us for the last members of their collectives"

WORDS: list[tuple[Sentence, str]] = [
    (NoTime(), "No node takes time: the step is 0 ns long."),
    (NoPrice(note="rank 0 has 2 loads"), "Rank 0 has 2 loads."),
    (
        MEAN,
        "Of the step (10.000 us) the mean rank spends compute 90.0 % (ranks 80.0 to 100.0 %), idle 10.0 %.",
    ),
    (
        replace(MEAN, is_in_cycles=True, parts=MEAN.parts[1:]),
        "Of the step (10.000 us, 10000 cycles) the mean rank spends idle 10.0 %.",
    ),
    (
        PrintedExposed(rank=1, exposed_ns=200, ns_of={"communication": 150, "idle": 50}),
        "The 200 cycles of exposed communication that ASTRA-sim prints for rank 1, the last to end, are all "
        "but GPU compute: communication 75.0 %, idle 25.0 %.",
    ),
    (replace(PATH, ns_of={"reduce.1": STEP}), "The whole critical path is reduce.1."),
    (PATH, "Of the critical path layer.#.mlp takes 70.0 %, head 20.0 %."),
    (
        replace(PATH, others=1, others_ns=1000),
        "Of the critical path layer.#.mlp takes 70.0 %, head 20.0 %, 1 other name less.",
    ),
    (
        replace(PATH, others=4, others_ns=2000),
        "Of the critical path layer.#.mlp takes 70.0 %, head 20.0 %, each of 4 other names as much or less.",
    ),
    (
        GROUPS,
        "Of the communication on the critical path most is that of group 1: 3.000 us, 30.0 % of the step.",
    ),
    (
        replace(GROUPS, ns_of={"all ranks": 3000, "group 1": 500}),
        "Of the communication on the critical path most is that of all ranks together: 3.000 us, 30.0 % of "
        "the step.",
    ),
    (
        replace(GROUPS, ns_of={"all ranks": 3000, "group 1": 500}, has_group_of_all=True),
        "Of the communication on the critical path most is that of collectives that name no group: 3.000 us, "
        "30.0 % of the step.",
    ),
    (
        replace(GROUPS, ns_of={"group 1": 1030, "group 2": 1020}),
        "All communication on the critical path is that of group 1 (1.030 us, 10.3 % of the step) and that "
        "of group 2 (1.020 us, 10.2 % of the step).",
    ),
    (
        replace(GROUPS, ns_of={"messages": 3000}),
        "All communication on the critical path is messages: 3.000 us, 30.0 % of the step.",
    ),
    (
        replace(GROUPS, ns_of={"group 1": 3000}, is_alone=True),
        "Communication on the critical path takes 3.000 us, 30.0 % of the step.",
    ),
    (
        replace(GROUPS, grouping="kind", ns_of={"tp": 3000, "pp": 500}),
        "Of the communication on the critical path most is tp collectives: 3.000 us, 30.0 % of the step.",
    ),
    (
        replace(GROUPS, grouping="kind", ns_of={"tp": 1, "pp": 3000}),
        "Almost all communication on the critical path is transfers between stages: 3.000 us, 30.0 % of the "
        "step.",
    ),
    (
        replace(GROUPS, grouping="messages", ns_of={"collectives": 3000, "messages": 2000}),
        "Of the communication on the critical path most is collectives: 3.000 us, 30.0 % of the step.",
    ),
    (MembersWait(ns=150_000, ns_of={}), f"{WAIT}."),
    (MembersWait(ns=150_000, ns_of={3: 150_000}), f"{WAIT}, all for rank 3."),
    (MembersWait(ns=150_000, ns_of={1: 150_000, 2: 150_000}), f"{WAIT}, all for rank 1 and rank 2."),
    (MembersWait(ns=150_000, ns_of={1: 100_000, 2: 50_000}), f"{WAIT}, longest for rank 1: 100.0 us."),
    (
        MembersWait(ns=150_000, ns_of={1: 70_000, 2: 70_000}),
        f"{WAIT}, longest for rank 1 and rank 2 (70.000 us each).",
    ),
    (
        LINK,
        "The busiest of 3 links is that from the switch to rank 2: 60.0 % of the step, 60.0 kB; messages "
        "queue 3.000 us in all.",
    ),
    (
        replace(LINK, source=0, equally_busy=2, dimension=1, queued_ns=0),
        "The busiest of 3 links, with 2 others as busy, is that from rank 0 to rank 2 on dimension 1: 60.0 % "
        "of the step, 60.0 kB; no message queues.",
    ),
]


@pytest.mark.parametrize(("sentence", "words"), WORDS, ids=[one.rule for one, _ in WORDS])
def test_a_sentence_is_its_facts_in_words(sentence: Sentence, words: str) -> None:
    assert sentence.text == words
