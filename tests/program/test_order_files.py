"""Schedules of one's own: what is read, what is refused with which words, and that it runs as it stands."""

import gzip
import io
import json
import random
import re
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.model_figures import make_model_figures
from simcore.diagnostics import InputError, UsageError
from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.parameters import Parameters
from simcore.program.order import Action, ChunkPosition, Order, Placement, Shape
from simcore.program.order_files import check_order, open_order
from simcore.program.order_text import format_order
from simcore.program.schedules import SCHEDULES
from simcore.records import replace
from simcore.simulation import Simulation, simulate
from tests.engine.naive_pipeline import Times, naive_pipeline
from tests.findings import facts
from tests.strategies import Cell, Row, make_workload
from tests.workload.texts import SHARED

# A few of them, as PyTorch 2.14 writes them.
KEPT = Path(__file__).parent / "pytorch_schedules"
GOLDEN = SHARED / "golden" / "pytorch_schedules.tar.gz"
MEASURED = SHARED / "corpus" / "megatronapp"
# PyTorch's names for what wltui has under its own.
SAME = {
    "GPipe": "gpipe",
    "Interleaved1F1B": "interleaved",
    "LoopedBFS": "looped-bfs",
    "ZBVZeroBubble": "zb-v",
    "DualPipeV": "dualpipev",
}
LAYERS = 8


def written(folder: Path, text: str, name: str = "own.csv") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


def found(folder: Path, text: str) -> list[str]:
    """`line:column code message` of all that is said of a file."""
    try:
        _, said = check_order(written(folder, text))
    except InputError as error:
        said = list(error.diagnostics)
    return [f"{one.line}:{one.column} {one.code} {one.message}" for one in said]


def words(order: Order) -> list[list[str]]:
    """Of each rank the actions as PyTorch writes them."""
    return [
        [f"{order.placement.position(stage, one.chunk)}{one.kind}{one.microbatch}" for one in actions]
        for stage, actions in enumerate(order.stages)
    ]


def run_of(order_file: str, stages: int, times: Times, **more: object) -> list[int]:
    """When each stage is done with equal layers, ns."""
    rows = [Row(f"mlp_{number}", *(Cell(ns) for ns in times)) for number in range(LAYERS)]
    workload = make_workload(rows, tp=1, ep=1, pp=stages, all_gpus=stages, pp_comm=10)
    parameters = Parameters(schedule=order_file, comm_scale=0.0, **more)  # type: ignore[arg-type]
    return list(simulate(workload, parameters).timeline.times.finish)


# -- PyTorch's own ---------------------------------------------------------------------


def pytorch_files() -> list[tuple[str, bytes]]:
    """Those of ../shared where it is there, else the few that are kept here."""
    if GOLDEN.exists():
        with tarfile.open(GOLDEN) as archive:
            members = sorted(archive.getmembers(), key=lambda one: one.name)
            return [(Path(one.name).stem, archive.extractfile(one).read()) for one in members]  # type: ignore[union-attr]
    return [(path.stem, path.read_bytes()) for path in sorted(KEPT.glob("*.csv"))]


def check_pytorch(name: str, data: bytes, folder: Path) -> None:
    """What the issue asks of each of PyTorch's schedules."""
    kind, stages, microbatches, chunks = re.fullmatch(r"(\w+)_p(\d+)_m(\d+)_v(\d+)", name).groups()  # type: ignore[union-attr]
    shape = Shape(int(stages), int(microbatches), int(chunks))
    path = folder / f"{name}.csv"
    path.write_bytes(data)
    if kind == "1F1B":
        last, count = shape.stages - 1, shape.microbatches
        with pytest.raises(InputError) as refused:
            open_order(str(path))
        assert [(one.code, one.message) for one in refused.value.diagnostics] == [
            ("schedule-missing", f"stage {last}: F0 is missing on rank {last}"),
            (
                "schedule-beyond",
                f"stage {last}: F{count} is beyond the {count} micro-batches of the file, 0 to {count - 1}",
            ),
        ]
        return
    read = open_order(str(path))
    placement = read.order.placement
    assert (placement.stages, read.order.microbatches, placement.parts) == shape[:3]
    times = Times(30, 20, 10)
    part = Times(*(LAYERS * ns // placement.parts for ns in times))
    took = run_of(str(path), shape.stages, times)
    assert took == naive_pipeline(read.order, part)
    if kind in SAME:
        # Ours of that name, op by op: so no longer at holdings that are equal.
        assert words(SCHEDULES[SAME[kind]].order(shape)) == words(read.order)


def test_pytorchs_schedules_are_read_and_run_and_ours_of_that_name_are_the_same(tmp_path: Path) -> None:
    for path in sorted(KEPT.glob("*.csv")):
        check_pytorch(path.stem, path.read_bytes(), tmp_path)


@pytest.mark.skipif(not GOLDEN.exists(), reason=f"{GOLDEN} is not there")
def test_all_of_pytorchs_schedules_are_read_and_run(tmp_path: Path) -> None:
    files = pytorch_files()
    assert len(files) > 40
    for name, data in files:
        check_pytorch(name, data, tmp_path)


@pytest.mark.skipif(not MEASURED.exists(), reason=f"{MEASURED} is not there")
@pytest.mark.parametrize(
    ("file", "schedule"),
    [("pp4_v4_m8_20_iterations", "interleaved"), ("dpp4_v4_m8_20_iterations", "breadth-first")],
)
def test_the_measured_orders_of_megatronapp_are_ours(file: str, schedule: str) -> None:
    events = json.loads(gzip.decompress((MEASURED / f"{file}.json.gz").read_bytes()))
    measured: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for event in events:
        if event["ph"] == "E" and event["name"] in ("forward", "backward"):
            place = event["args"]
            what = f"{place['model_chunk']}{event['name'][0].upper()}{place['microbatch']}"
            measured.setdefault((place["iteration"], event["pid"]), []).append((event["ts"], what))
    assert len(measured) == 20 * 4
    order = SCHEDULES[schedule].order(Shape(4, 8, 4))
    for (_, rank), actions in measured.items():
        ours = [f"{one.chunk}{one.kind}{one.microbatch}" for one in order.stages[rank]]
        assert [what for _, what in sorted(actions, key=lambda one: one[0])] == ours


# -- both ways to write one -----------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, one in SCHEDULES.items() if one.pipelined])
def test_a_schedule_that_is_written_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    rules = SCHEDULES[name]
    for stages, microbatches in ((2, 4), (4, 8), (4, 12)):
        order = rules.order(Shape(stages, microbatches, rules.chunks or 2))
        read = open_order(written(tmp_path, format_order(order), f"{name}-{stages}-{microbatches}.csv")).order
        assert words(read) == words(order)
        assert read.placement.routes == order.placement.routes
        assert [[one.paired for one in actions] for actions in read.stages] == [
            [one.paired for one in actions] for actions in order.stages
        ]


def test_a_plain_text_says_what_each_stage_does(tmp_path: Path) -> None:
    text = "# one's own\nstage 1: F0 B0 . F1 B1   # the last\nstage 0: F0 F1 B0 B1\n"
    order = open_order(written(tmp_path, text, "own.txt")).order
    assert words(order) == [["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]]
    assert words(SCHEDULES["1f1b"].order(Shape(2, 2))) == words(order)


def test_a_plain_text_has_several_parts_a_stage_and_pairs(tmp_path: Path) -> None:
    text = "0: 0F0 1F0 1I0 1W0 0F1+0B0 1F1 1B1 0B1\n"
    order = open_order(written(tmp_path, text, "own.txt")).order
    assert order.placement.parts == 2
    assert [one.paired for one in order.stages[0]] == [False] * 4 + [True] + [False] * 4


def test_what_communicates_is_read_and_left_out(tmp_path: Path) -> None:
    text = (
        "0UNSHARD,0F0,0SEND_F0,,,0RECV_B0,0B0,0RESHARD,0REDUCE_GRAD\r\n"
        "1UNSHARD,,1RECV_F0,1F0,1B0,1SEND_B0,1RESHARD,1REDUCE_GRAD\r\n"
    )
    assert [facts(one) for one in found(tmp_path, text)] == ["1, 1, 2, UNSHARD, 2, RESHARD, 2, REDUCE_GRAD"]


REFUSED = {
    "0F0,0X0,0B0": ["1:5 schedule-text found `0X0`, expected `0F0` (stage, one of F B I W, micro-batch)"],
    "0F0,(0F1;0W0)OVERLAP_F_B,0B0": [
        "1:5 schedule-text found `(0F1;0W0)OVERLAP_F_B`, expected a forward and a backward, "
        "`(0F7;7B3)OVERLAP_F_B`"
    ],
    "0F0,0F1,0B0": ["1:5 schedule-missing stage 0: B1 is missing on rank 0"],
    "0F0,0F0,0B0": ["1:5 schedule-twice stage 0: F0 comes a second time, first in line 1, column 1"],
    "0F0,0B0,0W0,0F1,0I1,0W1": [
        "1:9 schedule-twice stage 0: W0 comes a second time, after B0, first in line 1, column 5"
    ],
    "0F0,0I0": ["1:1 schedule-missing stage 0: W0 is missing on rank 0"],
    "0F0,0W0,0I0": [
        "1:5 schedule-order stage 0: W0 comes before 0I0, which it needs (line 1, column 9)"
    ],
    "0B0,0F0": ["1:1 schedule-order stage 0: B0 comes before 0F0, which it needs (line 1, column 5)"],
    "0F0,0B0\n2F0,2B0": ["None:None schedule-missing stage 1 has no action, stage 2 has"],
    "0F0,0B0,1F1,1B1\n1F0,1B0,0F1,0B1": [],
    "0F0,0F1,1B0,0B0,0B1\n1F0,1F1,1B1": [
        "2:1 schedule-place stage 1: micro-batch 0 is on rank 1 too, its B is on rank 0"
    ],
    "0F0,2F0,2B0,0B0\n1F0,1B0": [
        "1:5 schedule-place 3 stages on 2 ranks: each rank must have as many"
    ],
    "0F0,1F0,2F0,2B0,1B0,0B0\n3F0,3B0": [
        "1:1 schedule-place micro-batch 0 is in 3 stages on rank 0: of 4 stages each of 2 ranks must have 2"
    ],
    "0F0,0B0,0F1,0B1\n1F0,1B0,2F1,2B1\n2F0,2B0,1F1,1B1": [
        "3:9 schedule-place stage 1 is on rank 2 for micro-batch 1 and on rank 1 for micro-batch 0, "
        "stage 0 on one rank for both"
    ],
    "0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0": [],
    "0F0,0F1,2F0,2F1,2B0,0B0,2B1,0B1\n1F1,1F0,3F0,3F1,3B0,1B0,3B1,1B1": [],
    "0F0,2F0,0F1,2F1,2B0,0B0,2B1,0B1\n1F1,1F0,3F0,3F1,3B0,1B0,3B1,1B1": [
        "1:5 schedule-deadlock the stages would wait for each other for ever: rank 0 stands at 2F0 and waits "
        "for 1F0 of rank 1, rank 1 stands at 1F1 and waits for 0F1 of rank 0"
    ],
    "0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0": [
        "2:5 schedule-order 1RECV_F0 comes after 1F0, which needs what it receives"
    ],
    "0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0": [
        "1:1 schedule-order 0SEND_F0 comes before 0F0, which makes what it sends"
    ],
    "0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0": ["1:5 schedule-missing 0SEND_F0 has no 1RECV_F0"],
    "0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0": ["2:14 schedule-missing 1SEND_B0 is missing"],
    "0: F0 F1 B0 B1\n2: F0 B0 F1 B1": [
        "None:None schedule-missing 2 stages have a line, and none is of stage "
        "1"
    ],
    "0: F0 B0\n0: F0 B0": ["2:1 schedule-twice stage 0 has a line already, line 1"],
    "0: F0 B0\nF0 B0": [
        "2:1 schedule-text found `F0 B0`, expected a line that begins with its stage, "
        "`0: F0 F1 B0 ...`"
    ],
    "0: F0 \x1b[31m B0": [
        "1:7 schedule-text found `\\x1b[31m`, expected `F0` or `2F0` (stage, one of F B "
        "I W, micro-batch)"
    ],
    "0F0,0B0\n,,": ["None:None schedule-missing rank 1 has no action"],
    "": [
        "1:1 schedule-text found no action, expected `0F0,0F1,0B0 ...`, a line a rank, "
        "or `0: F0 F1 B0 ...`"
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_wrong_is_said_with_its_place(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, text) == REFUSED[text]


def test_of_one_kind_the_first_are_listed(tmp_path: Path) -> None:
    text = ",".join(f"0F{number}" for number in range(50))
    said = found(tmp_path, text)
    assert len(said) == 21
    assert facts(said[-1]) == "1, 86, 30"


def test_pairs_that_would_wait_for_each_other_cannot_be_overlapped(tmp_path: Path) -> None:
    """One after the other they can: the backward needs the forward of its own pair."""
    path = written(tmp_path, "(0F0;0B0)OVERLAP_F_B,(0F1;0B1)OVERLAP_F_B")
    assert run_of(path, 1, Times(1, 1, 1)) == [2 * LAYERS * 3]
    with pytest.raises(UsageError, match="would wait for each other: rank 0 stands at 0F0 and waits for 0F0"):
        run_of(path, 1, Times(1, 1, 1), overlap_fwd_bwd=True)


# -- the shape of a run --------------------------------------------------------------


def test_stages_and_micro_batches_come_from_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, format_order(SCHEDULES["zb-v"].order(Shape(4, 6))))
    rows = [Row("mlp_1", Cell(9)), Row("mlp_2", Cell(9))]
    workload = make_workload(rows, tp=1, pp=2, all_gpus=4, pp_comm=0)
    simulation = simulate(workload, Parameters(schedule=path))
    assert simulation.layout.pp == 4
    assert simulation.program.microbatches == 6
    assert simulation.program.virtual_stages == 2
    messages = [one.message for one in simulation.diagnostics]
    assert any(message.startswith("pp 4 taken") for message in messages)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"pp": 2}, "its 4 stages do not fit pp 2: --pp 4 would fit"),
        ({"microbatches": 8}, "has 6, and without the flag they are taken"),
    ],
)
def test_a_run_of_another_shape_is_refused(more: dict[str, int], words: str, tmp_path: Path) -> None:
    path = written(tmp_path, format_order(SCHEDULES["zb-v"].order(Shape(4, 6))))
    rows = [Row("mlp_1", Cell(9)), Row("mlp_2", Cell(9))]
    workload = make_workload(rows, tp=1, pp=2, all_gpus=4, pp_comm=0)
    with pytest.raises(UsageError, match=re.escape(words)):
        simulate(workload, Parameters(schedule=path, **more))  # type: ignore[arg-type]


def test_chunks_must_divide_the_layers_of_a_stage(tmp_path: Path) -> None:
    path = written(tmp_path, format_order(SCHEDULES["zb-v"].order(Shape(2, 2))))
    rows = [Row(f"mlp_{number}", Cell(9)) for number in range(3)]
    workload = make_workload(rows, tp=1, pp=2, all_gpus=2, pp_comm=0)
    with pytest.raises(UsageError, match="cuts the layers of a stage in 2: 3 layers cannot be"):
        simulate(workload, Parameters(schedule=path))


def test_no_such_file_is_said(tmp_path: Path) -> None:
    workload = make_workload([Row("mlp_1", Cell(9))], tp=1, pp=2, all_gpus=2, pp_comm=0)
    with pytest.raises(InputError, match="no-such-file"):
        simulate(workload, Parameters(schedule=str(tmp_path / "nothing.csv")))


# -- any order -------------------------------------------------------------------------


@st.composite
def orders(draw: st.DrawFn) -> Order:
    """An order that runs: parts of the model anywhere, actions as they come to be possible."""
    stages, parts = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    microbatches = draw(st.integers(1, 4))
    picked = random.Random(draw(st.integers(0, 2**32)))
    ranks = [rank for rank in range(stages) for _ in range(parts)]
    picked.shuffle(ranks)
    met = [0] * stages
    route = []
    for rank in ranks:
        route.append(ChunkPosition(rank, met[rank]))
        met[rank] += 1
    placement = Placement(stages, (tuple(route),), (0,) * microbatches)
    depth = len(route)
    split = picked.random() < 0.5
    actions: list[list[Action]] = [[] for _ in range(stages)]
    open_ones = [("F", microbatch, 0) for microbatch in range(microbatches)]
    while open_ones:
        kind, microbatch, position = open_ones.pop(picked.randrange(len(open_ones)))
        place = route[position]
        actions[place.stage].append(Action(kind, microbatch, place.chunk))  # type: ignore[arg-type]
        if kind == "F":
            last = position + 1 == depth
            following = ("I" if split else "B", microbatch, position)
            open_ones.append(following if last else ("F", microbatch, position + 1))
        elif kind != "W":
            if split:
                open_ones.append(("W", microbatch, position))
            if position:
                open_ones.append((kind, microbatch, position - 1))
    pairs = picked.random() < 0.7
    for own in actions:
        for place in range(len(own) - 1):
            if pairs and own[place].kind == "F" and own[place + 1].kind in "BI" and picked.random() < 0.7:
                own[place] = own[place]._replace(paired=True)
    return Order(placement, tuple(map(tuple, actions)))


@settings(max_examples=60, deadline=None)
@given(orders())
def test_any_order_that_runs_is_read_and_takes_as_long_as_the_naive_simulator_says(
    tmp_path_factory: pytest.TempPathFactory, order: Order
) -> None:
    path = written(tmp_path_factory.mktemp("own"), format_order(order))
    assert words(open_order(path).order) == words(order)
    parts = order.placement.parts
    rows = [Row(f"mlp_{number}", Cell(7), Cell(5), Cell(3)) for number in range(parts)]
    stages = order.placement.stages
    workload = make_workload(rows, tp=1, ep=1, pp=stages, all_gpus=stages, pp_comm=10)
    finish = simulate(workload, Parameters(schedule=path, comm_scale=0.0)).timeline.times.finish
    assert list(finish) == naive_pipeline(order, Times(7, 5, 3))
    overlapped = Parameters(schedule=path, comm_scale=0.0, overlap_fwd_bwd=True)
    if open_order(path).pairs_wait is None:
        finish = simulate(workload, overlapped).timeline.times.finish
        assert list(finish) == naive_pipeline(order, Times(7, 5, 3), overlapped=True)
    else:
        with pytest.raises(UsageError, match="would wait for each other"):
            simulate(workload, overlapped)


@settings(max_examples=60, deadline=None)
@given(orders(), st.integers(0, 2**32))
def test_two_actions_that_change_places_run_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, order: Order, seed: int
) -> None:
    """Never a run that hangs, and a deadlock only where the naive simulator cannot go on either."""
    picked = random.Random(seed)
    stage = picked.randrange(len(order.stages))
    actions = [action._replace(paired=False) for action in order.stages[stage]]
    one, other = picked.randrange(len(actions)), picked.randrange(len(actions))
    actions[one], actions[other] = actions[other], actions[one]
    changed = Order(order.placement, (*order.stages[:stage], tuple(actions), *order.stages[stage + 1 :]))
    read, said = check_order(written(tmp_path_factory.mktemp("own"), format_order(changed)))
    try:
        naive_pipeline(changed, Times(1, 1, 1))
        goes_on = True
    except AssertionError:
        goes_on = False
    assert (read is not None) == goes_on
    assert goes_on or {one.code for one in said} <= {"schedule-order", "schedule-deadlock"}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["0F0", "1F0", "0B0", "1B0", "0I0", "0W0", ",", "\n", "0:", " ", "(0F0;0B0)OVERLAP_F_B", "F0",
             "0SEND_F0", "1RECV_F0", "0REDUCE_GRAD", "\x00", "99999999999F0", "é", "1:", "+"]
        ),
        max_size=24,
    )
)  # fmt: skip
def test_whatever_stands_in_a_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    path = written(tmp_path_factory.mktemp("own"), "".join(pieces))
    read, said = check_order(path)
    assert read is not None or any(one.severity == "error" for one in said)
    assert all(one.message.isprintable() for one in said)


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    data = io.BytesIO()
    with gzip.GzipFile(fileobj=data, mode="wb") as file:
        file.write(format_order(SCHEDULES["1f1b"].order(Shape(2, 2))).encode())
    path = tmp_path / "own.csv.gz"
    path.write_bytes(data.getvalue())
    assert open_order(str(path)).order.microbatches == 2


@pytest.mark.parametrize(
    "text", ["0F0,0B0,0W0", "0: F0 B0 W0", "0F0,0F1,0B0,0BW1,0W0", "0F0,(0F1;0B0)OVERLAP_F_B,0W0,0BW1"]
)
def test_in_pytorchs_older_words_b_beside_w_is_the_input_gradient(text: str, tmp_path: Path) -> None:
    """`I` came later: of a micro-batch with `W` it is what `B` says there, and `BW` is the whole backward."""
    order = open_order(written(tmp_path, text)).order
    kinds = [[action.kind for action in order.stages[0] if action.microbatch == index] for index in (0, 1)]
    assert kinds[0] == ["F", "I", "W"]
    assert kinds[1] == (["F", "B"] if order.microbatches == 2 else [])


def test_the_given_older_file_is_read() -> None:
    (actions,) = open_order("fixtures/inputs/old_pytorch_B_then_W.csv").order.stages
    assert [action.kind for action in actions] == ["F", "I", "W"]


def of_model(schedule: str, **more: Any) -> Simulation:
    model = MODELS["llama-3-8b"]
    given = Parameters(
        **{"world": 2, "pp": 2, "gpu": "h200", "global_batch": 2, "schedule": schedule, **more}
    )
    return simulate(ModelMaker("llama-3-8b", model).empty_workload(), given)


def test_a_model_takes_its_virtual_stages_from_the_file(tmp_path: Path) -> None:
    """The order of a run that is written runs as long as the run, and the stages need not be given."""
    simulation = of_model("interleaved", virtual_stages=2)
    path = written(tmp_path, format_order(simulation.program.order))
    for more in ({}, {"pp": None}, {"virtual_stages": 2}):
        other = of_model(path, **more)
        assert other.program.virtual_stages == 2
        assert other.step_time_ns == simulation.step_time_ns
    assert of_model("fixtures/inputs/two_chunks.csv").program.virtual_stages == 2
    one_rank = "fixtures/inputs/two_chunks_one_rank.csv"
    assert of_model(one_rank, pp=1, world=1, global_batch=1).program.virtual_stages == 2
    with pytest.raises(UsageError, match="--pp 1 would fit"):
        of_model(one_rank, global_batch=1)
    with pytest.raises(UsageError, match="2 virtual stages"):
        of_model("fixtures/inputs/two_chunks.csv", virtual_stages=4)


@pytest.mark.parametrize("schedule", ["zb-v", "v-half", "dualpipev", "dualpipe"])
def test_a_model_takes_a_files_chunks_where_they_lie(schedule: str, tmp_path: Path) -> None:
    """As the schedule of that name: stages, rows, memory and step are equal."""
    simulation = of_model(schedule, global_batch=4)
    path = written(tmp_path, format_order(simulation.program.order))
    for more in ({}, {"pp": None}):
        other = of_model(path, global_batch=4, **more)
        assert other.step_time_ns == simulation.step_time_ns
        assert other.workload.stages == simulation.workload.stages
        figures = [make_model_figures(run) for run in (simulation, other)]
        assert figures[0].memory == figures[1].memory  # type: ignore[union-attr]
    scattered = {"world": 4, "tp": 2, "pp_scatter": "on", "global_batch": 4}
    assert of_model(path, **scattered).step_time_ns == of_model(schedule, **scattered).step_time_ns


@given(st.permutations([0, 0, 1, 1, 2, 2]), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_any_placement_of_a_models_chunks_runs_its_layers_once(route: list[int], microbatches: int) -> None:
    """Each position of the route has its sixth of the layers, the first the embedding, the last the loss; by
    hand all forwards, then all backwards.
    """
    lines = [
        ",".join(
            f"{position}{kind}{microbatch}"
            for kind, positions in (("F", range(6)), ("B", range(5, -1, -1)))
            for microbatch in range(microbatches)
            for position in positions
            if route[position] == stage
        )
        for stage in range(3)
    ]
    with TemporaryDirectory() as folder:
        path = written(Path(folder), "\n".join(lines))
        model = replace(MODELS["llama-3-8b"], layers=12)
        parameters = Parameters(world=3, gpu="h200", global_batch=microbatches, schedule=path)
        simulation = simulate(ModelMaker("m", model).empty_workload(), parameters)
    names = simulation.workload.name
    for stage, rows in enumerate(simulation.workload.stages):
        positions = [position for position in range(6) if route[position] == stage]
        for position, chunk in zip(positions, rows.chunks, strict=True):
            of_chunk = [names[row] for row in chunk]
            assert of_chunk.count("attention_core") == 2
            assert ("embedding_layer" in of_chunk) == (position == 0)
            assert ("final_column" in of_chunk) == (position == 5)
    transfers = sum(sum(message >= 0 for message in stage.ops.message) for stage in simulation.program.stages)
    assert transfers == 2 * microbatches * sum(route[at] != route[at + 1] for at in range(5))


def test_a_file_whose_chunks_a_model_cannot_have_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, format_order(SCHEDULES["zb-v"].order(Shape(2, 2))))
    with pytest.raises(UsageError, match="--pp 2 would fit"):
        of_model(path, pp=4, world=4)
    with pytest.raises(UsageError, match="2 virtual stages"):
        of_model(path, virtual_stages=4)
    both = written(tmp_path, format_order(SCHEDULES["dualpipe"].order(Shape(2, 4))))
    with pytest.raises(UsageError, match="--overlap-grad-reduce"):
        of_model(both, global_batch=4, overlap_grad_reduce=True)
