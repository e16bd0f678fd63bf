"""What is written as SimAI text is read back as the same workload, and runs as the parameters said.

Planted, one at a time, to see the properties fail: a suffix left out (`_DP_EP` written as `_EP`), the
process time not written, checkpoints not moved with their rows, blocks repeated in the wrong order,
compute scaled by int() instead of rounded, `vpp: 0` not written, a comment-like name on a line of its own.
"""

from __future__ import annotations

from array import array

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.render.export import FORMATS
from simcore.render.export.format import Request
from simcore.simulation import simulate
from simcore.workload import Cells, Header, Workload
from simcore.workload.formats.cell import KINDS
from simcore.workload.formats.simai_text import dialect_of
from simcore.workload.policies import TRANSFORMER
from tests.findings import findings
from tests.strategies import Case, Cell, Row, cases, layer, make_workload
from tests.workload.texts import FIXTURES, read, shared_folder, text_of
from tests.workload.texts import row as text_row

(SIMAI,) = [known for known in FORMATS if known.name == "simai"]


def written(workload: Workload, **parameters: object) -> bytes:
    return b"".join(SIMAI.build_export(Request(workload, Parameters(**parameters))).chunks)  # type: ignore[arg-type]


def said(workload: Workload, **parameters: object) -> list[str]:
    return [one.text() for one in SIMAI.build_export(Request(workload, Parameters(**parameters))).diagnostics]  # type: ignore[arg-type]


def same(workload: Workload) -> Workload:
    """A workload without what is about the text it came from: path, places, what was said of it."""
    return replace(
        workload,
        path="",
        line=array("q"),
        header=replace(workload.header, column={}, line=1),
        declared_rows=len(workload),
        diagnostics=(),
    )


numbers = st.sampled_from([0, 1, 100, 2**31, 2**63 - 1]) | st.integers(0, 2**63 - 1)
# No blanks; characters that other readers would trip over, and bytes that are not UTF-8.
characters = st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]) | st.sampled_from(
    ["#", "/", ":", "-", "\x00", "\x1b", "\udcff", "\u202e", "1", "e"]
)
any_name = st.text(characters, min_size=1, max_size=8).filter(lambda name: name.split() == [name])
names = (
    st.sampled_from(
        ["attention_row", "embedding_layer", "Q", "NONE", "12", "pp:", "#x", "//", "\udcff\udcfe"]
    )
    | any_name
)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Any workload that a SimAI text can be read as; in a bare one nothing shows that it is of AICB."""
    count = draw(st.integers(1, 6))
    bare = draw(st.booleans())
    columns = []
    for table in KINDS:
        cells = Cells()
        kinds = [kind for kind in table.values() if not bare or kind[1] not in ("ep", "dp_ep")]
        for _ in range(count):
            collective, group = draw(st.sampled_from(kinds))
            cells.compute_ns.append(draw(numbers))
            cells.collective.append(collective)
            cells.group.append(group)
            cells.bytes.append(draw(numbers) if collective else 0)
        columns.append(cells)
    degree = st.none() if bare else st.none() | st.integers(1, 64)
    checkpoints = st.lists(st.integers(0, count - 1), max_size=3).map(tuple)
    header = Header(
        tp=draw(degree),
        ep=draw(degree),
        pp=draw(degree),
        vpp=draw(degree),
        ga=draw(st.just(None) if bare else st.none() | st.integers(0, 8)),
        all_gpus=draw(degree),
        pp_comm=draw(st.just(None) if bare else st.none() | numbers),
        checkpoints=draw(checkpoints),
        checkpoint_initiates=draw(checkpoints),
    )
    process = st.just(7) if bare else st.sampled_from([100, 0, 7]) | numbers
    row_names = st.sampled_from(["Q", "#Q", "K:"]) if bare else names
    workload = Workload(
        path="w.txt",
        format="simai",
        policy=draw(st.sampled_from(TRANSFORMER)),
        dialect="simai",
        header=header,
        name=draw(st.lists(row_names, min_size=count, max_size=count)),
        line=array("q", range(3, 3 + count)),
        fwd=columns[0],
        ig=columns[1],
        wg=columns[2],
        process_ns=array("q", [draw(process) for _ in range(count)]),
        declared_rows=count,
    )
    assume(not workload.name[0].startswith(("#", "//")))
    keys = ("ep", "pp", "vpp", "ga", "all_gpus", "pp_comm")
    shown = dialect_of([key for key in keys if getattr(header, key) is not None], workload)
    dialect = draw(st.sampled_from(["simai", shown]))
    return replace(workload, dialect=dialect, format=dialect)


@settings(max_examples=200)
@given(workloads())
def test_reader_and_writer_are_inverse(workload: Workload) -> None:
    data = written(workload)
    again = read(data, "again.txt")
    assert same(again) == same(workload)
    assert written(again) == data
    assert again.declared_rows == len(workload)
    codes = {one.code for one in again.diagnostics}
    assert codes <= {"process-time", "row-breaks", "zero-degree", "not-utf-8", "compute-placeholder"}


@pytest.mark.parametrize(
    "name", ["000_gpt13b_tp4_old_header", "001_moe_128npu_with_mistakes", "002_gpt_1024npu"]
)
def test_a_seed_is_written_and_read_back(name: str) -> None:
    workload = read((FIXTURES / f"{name}.txt").read_bytes())
    again = read(written(workload))
    assert same(again) == same(workload)
    assert again.diagnostics == ()
    assert simulate(again, Parameters()).step_time_ns == simulate(workload, Parameters()).step_time_ns


def test_every_simai_file_of_the_corpus_is_written_and_read_back() -> None:
    done = 0
    for path in sorted(shared_folder("corpus/simai").iterdir()):
        data = path.read_bytes()
        if data.split()[0].decode() not in TRANSFORMER:
            continue
        workload = read(data)
        assert same(read(written(workload))) == same(workload), path.name
        done += 1
    assert done >= 19


def test_what_recomputes_nothing_recomputes_nothing_in_its_copies() -> None:
    """Without a checkpoint before it a row does not initiate; the copy of a block has one before it."""
    rows = [layer("embedding_layer", 1), layer("attention_column")]
    workload = make_workload(rows, checkpoints=(1,), checkpoint_initiates=(1,))
    export = SIMAI.build_export(Request(workload, Parameters(microbatches=2)))
    again = read(b"".join(export.chunks), "again.txt")
    assert (again.header.checkpoints, again.header.checkpoint_initiates) == ((1, 3), ())
    assert simulate(again, Parameters()).step_time_ns == 2


def test_what_stages_send_is_stated_where_the_row_that_tells_it_is_left_out() -> None:
    """Without pp_comm it is the forward size of a row; here that is one of the second micro-batch."""
    rows = [layer("embedding_layer", 1), layer("mlp", 5), layer("embedding_layer", 1)]
    rows.append(Row("attention_row", Cell(5, "ALLREDUCE", "tp", 4096)))
    workload = make_workload(rows, tp=1, pp=2, all_gpus=2)
    parameters = Parameters(microbatches=1)
    again = read(b"".join(SIMAI.build_export(Request(workload, parameters)).chunks), "again.txt")
    assert (again.header.pp_comm, again.name) == (4096, ["embedding_layer", "mlp"])
    assert simulate(again, Parameters()).step_time_ns == simulate(workload, parameters).step_time_ns
    kept = read(
        b"".join(SIMAI.build_export(Request(workload, Parameters(microbatches=2))).chunks), "again.txt"
    )
    assert kept.header.pp_comm is None


@settings(max_examples=80)
@given(cases(12), st.data())
def test_the_file_runs_as_the_parameters_in_it_did(case: Case, data: st.DataObject) -> None:
    """What an export says of its parameters is given again; the rest is in the file."""
    workload, parameters = case
    groups = [kind for cells in (workload.fwd, workload.ig, workload.wg) for kind in cells.group]
    assume("all" not in groups)
    assume(all(kind != "tp" for kind in workload.wg.group))
    assume(all(kind != "dp" for cells in (workload.fwd, workload.ig) for kind in cells.group))
    names = sorted(set(workload.name))
    scale = data.draw(st.sampled_from([(), (f"{data.draw(st.sampled_from(names))}:fwd=0.37",)]))
    parameters = replace(parameters, schedule="1f1b", layer_scale=scale)
    given = data.draw(st.sampled_from([{}, {"tp": 1, "pp": 2, "ep": 1, "world": 4}]))
    if given:
        parameters = replace(parameters, **given, dim=("switch:4:2:50",))
    workload = replace(workload, policy=TRANSFORMER[0])
    export = SIMAI.build_export(Request(workload, parameters))
    again = read(b"".join(export.chunks), "again.txt")
    left = replace(
        parameters, tp=None, pp=None, ep=None, world=None, microbatches=None, compute_scale=1.0,
        layer_scale=(),
    )  # fmt: skip
    assert simulate(again, left).step_time_ns == simulate(workload, parameters).step_time_ns


BLOCKS = text_of(
    text_row("grad_gather"), text_row("embedding_layer"), text_row("attention_row"),
    text_row("embedding_layer"),
    text_row("mlp_row"), text_row("optimizer1"),
    header="HYBRID_TRANSFORMER_FWD_IN_BCKWD ep: 1 pp: 2 ga: 2 all_gpus: 2 checkpoints: 2 1 4 "
    "checkpoint_initiates: 1 2",
)  # fmt: skip


@pytest.mark.parametrize(
    ("count", "blocks", "checkpoints", "initiates"),
    [
        (1, ["attention_row"], (1,), (2,)),
        (2, ["attention_row", "mlp_row"], (1, 4), (2,)),
        (3, ["attention_row", "mlp_row", "attention_row"], (1, 4, 5), (2, 6)),
    ],
)
def test_micro_batches_become_blocks(
    count: int, blocks: list[str], checkpoints: tuple[int, ...], initiates: tuple[int, ...]
) -> None:
    again = read(written(read(BLOCKS), microbatches=count))
    rows = [name for block in blocks for name in ("embedding_layer", block)]
    assert again.name == ["grad_gather", *rows, "optimizer1"]
    header = again.header
    assert (header.ga, header.checkpoints, header.checkpoint_initiates) == (count, checkpoints, initiates)


def test_degrees_and_scales_become_part_of_the_file() -> None:
    workload = read(text_of(text_row("a_1", "ALLREDUCE 8"), text_row("b")))
    again = read(written(workload, world=32, tp=4, ep=2, pp=2, compute_scale=2.5, layer_scale=("a:ig=2",)))
    header = again.header
    assert (header.all_gpus, header.tp, header.ep, header.pp) == (32, 4, 2, 2)
    cells = (again.fwd, again.ig, again.wg)
    assert [list(phase.compute_ns) for phase in cells] == [[25, 25], [100, 50], [75, 75]]


def test_what_is_no_part_of_the_file_is_said() -> None:
    workload = read(text_of(text_row("a")))
    assert findings(said(workload, comm_scale=2.0, dim=("ring:8:1:1",), tp=2, jitter=0.1, no_fold=True)) == [
        "w.txt: warning not-in-file --dim ring, 8, 1, 1, --comm-scale 2.0, --jitter 0.1, --no-fold"
    ]
    assert findings(said(workload, microbatches=2)) == [
        "w.txt: warning not-in-file --microbatches, embedding_layer"
    ]
    assert findings(said(workload, tp=4)) == ["w.txt:1:33: warning not-rescaled tp, 2, 4"]
    other = read(text_of("Q -1 1 NONE 0 1 NONE 0 1 NONE 0 5", header="HYBRID_TRANSFORMER"))
    assert said(other) == []
    assert findings(said(other, pp=2)) == ["w.txt: warning not-in-file astra-sim-1, --dialect, astra-sim-1"]
    assert read(written(other, dialect="simai")).dialect == "simai"
    assert findings(said(read(text_of(text_row("a"), count=3)))) == ["w.txt:2:1: note row-count-written 1, 3"]


REFUSED = [
    ({"tp": 3}, "world 8 is not a multiple of tp 3 x pp 1 = 3: 6 or 9 would fit"),
    ({"dialect": "x"}, "--dialect x: simai, simai-sim or astra-sim-1 is expected"),
    ({"layer_scale": ("x:fwd=2",)}, "--layer-scale x: no row of the file has this name"),
    ({"compute_scale": 1e12}, "--compute-scale or --layer-scale makes a time of 2^63 ns or more"),
    ({"microbatches": 2**40},
     "--microbatches 1099511627776: a file of more than 10000000 rows is not written"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("parameters", "message"), REFUSED)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, object], message: str) -> None:
    long = "embedding_layer -1 10000000000 NONE 0 1 NONE 0 1 NONE 0 100"
    with pytest.raises(UsageError) as refused:
        written(read(text_of(long)), **parameters)
    assert str(refused.value) == message


def test_a_workload_without_words_in_simai_text_is_refused() -> None:
    table = read((FIXTURES / "003_gpt2_large_op_table.txt").read_bytes())
    workload = read(text_of(text_row("a")))
    strange = replace(workload, fwd=replace(workload.fwd, collective=["ALLREDUCE"], group=["all"]))
    policies = "HYBRID_TRANSFORMER and HYBRID_TRANSFORMER_FWD_IN_BCKWD are"
    for other, message in [
        (table, f"--format simai: op-table (dp) is not written as SimAI text; {policies}"),
        (strange, "--format simai: ALLREDUCE over a all group (line 3) has no word in SimAI text"),
        (replace(workload, name=["a b"]), "--format simai: the row name 'a b' cannot be written as one word"),
        (replace(workload, name=["#b"]), "--format simai: the row name '#b' cannot be written as one word"),
    ]:
        with pytest.raises(UsageError) as refused:
            written(other)
        assert str(refused.value) == message
