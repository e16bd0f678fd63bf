"""Packed sequences of uneven documents: what attention takes, by hand and as properties."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore.analysis.model_figures import find_model_rows, make_model_figures
from simcore.analysis.span_words import explain_duration
from simcore.diagnostics import InputError, UsageError
from simcore.model.costs import Costs, step_flops
from simcore.model.gpu import find_gpu
from simcore.model.opening import MODELS
from simcore.model.operations import attention
from simcore.model.packing import PackedMicrobatch, Packing, pack_documents
from simcore.model.sizes import Model, Moe
from simcore.model.training import Training
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation
from simcore.units import duration
from simcore.words.simulated_sentences import find_sentences
from simcore.workload.model import ModelParameters
from tests.model.test_megatron import SMALL, report, run
from tests.says import figures
from tui.cli import main

# Long enough that no layer waits for the host.
LONG = Model("long", 2, 2048, 16, 4, 128, 8192, True, 32000, 16384, tied_embeddings=False)
EXPERTS = Model(
    "experts", 4, 1024, 8, 8, 128, 4096, True, 32000, 4096, tied_embeddings=False, moe=Moe(8, 2, 512, 1, 1)
)


def packed(
    text: str, replicas: int = 2, microbatches: int = 2, size: int = 1, seq: int = 1000, seed: int = 0
) -> Packing | None:
    return pack_documents(ModelParameters(seq_imbalance=text, seed=seed), replicas, microbatches, size, seq)


def written(folder: Path, text: str) -> str:
    path = folder / "lengths.csv"
    path.write_text(text, "utf-8")
    return str(path)


def training_of(simulation: Simulation) -> Training:
    model_rows = find_model_rows(simulation)
    assert model_rows is not None
    return model_rows.training


def of_lengths(simulation: Simulation, replica: int, microbatch: int) -> PackedMicrobatch:
    packing = training_of(simulation).packing
    assert packing is not None
    return packing.microbatches[packing.of_replica[replica][microbatch]]


# -- lengths ---------------------------------------------------------------------------------


def test_lengths_of_a_file_by_hand(tmp_path: Path) -> None:
    """Several lines of a micro-batch add up, in any order; what is left is padding."""
    text = "dp,microbatch,length\n1,1,300\n0,0,1000 # whole\n\n0,1,400,600\n1, 0, 250\n1,1,100\n"
    found = packed(written(tmp_path, text))
    assert found is not None
    assert [[found.microbatches[index] for index in of_one] for of_one in found.of_replica] == [
        [(1000, 1_000_000, 1000), (1000, 520_000, 600)],
        [(250, 62_500, 250), (400, 100_000, 300)],
    ]
    assert found.squares == 1_682_500
    # That of most attention is the first.
    assert found.of_replica[0][0] == 0


@given(
    st.integers(0, 2**40), st.sampled_from((0.05, 0.5, 1.5, 3.0)), st.integers(1, 4), st.integers(1, 4),
    st.integers(1, 3), st.integers(1, 9000),
)  # fmt: skip
def test_drawn_sequences_are_full_and_the_same_for_a_seed(
    seed: int, sigma: float, replicas: int, microbatches: int, size: int, seq: int
) -> None:
    one, other = (packed(f"lognormal:{sigma}", replicas, microbatches, size, seq, seed) for _ in range(2))
    assert one == other
    # A replica has the same documents beside others, and at the beginning of a longer step.
    more = packed(f"lognormal:{sigma}", replicas + 1, microbatches + 1, size, seq, seed)
    assume(one is not None and more is not None)
    assert one is not None
    assert more is not None
    for replica, of_one in enumerate(one.of_replica):
        assert len(of_one) == microbatches
        for microbatch, index in enumerate(of_one):
            found = one.microbatches[index]
            assert found == more.microbatches[more.of_replica[replica][microbatch]]
            assert found.tokens == size * seq
            assert found.longest <= seq
            assert size * seq <= found.squares <= size * seq * seq


def test_documents_lie_end_to_end_over_sequences() -> None:
    """Of documents of 2, 0.5, 1.5 sequences the first two sequences are one, the third is two halves."""
    drawn = iter([2000, 500, 1500, 7000])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simcore.model.hashed.hashed_lognormal", lambda *_, **__: next(drawn))
        found = packed("lognormal:1", 1, 3, 2, 1000)
    assert found is not None
    assert [found.microbatches[index] for index in found.of_replica[0]] == [
        (2000, 2_000_000, 1000), (2000, 1_500_000, 1000), (2000, 2_000_000, 1000)
    ]  # fmt: skip


def test_many_drawn_documents_have_their_mean_and_deviation() -> None:
    from simcore.model.hashed import OF_REPLICA, hashed_lognormal

    drawn = [hashed_lognormal(0.5, 10**6, 1, OF_REPLICA, 0, n, is_mean=True) for n in range(4096)]
    assert sum(drawn) / len(drawn) == pytest.approx(10**6, rel=0.03)
    logs = [math.log(length) for length in drawn]
    mean = sum(logs) / len(logs)
    assert math.sqrt(sum((one - mean) ** 2 for one in logs) / len(logs)) == pytest.approx(0.5, rel=0.03)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,0,1000\n0,1\n", "line 2: found 0,1, expected a dp rank, a micro-batch and lengths"),
        ("0,0,1000\n0,x,1000\n", "line 2: found 0,x,1000, expected"),
        ("0,0,-5", "line 1: found 0,0,-5, expected"),
        ("0,0,12.5", "line 1: found 0,0,12.5, expected"),
        ("0,0,0", "line 1: found 0,0,0, expected"),
        ("dp,microbatch,length\n2,0,1000", "line 2: found dp rank 2, expected 0 to 1"),
        ("0,2,1000", "line 1: found micro-batch 2, expected 0 to 1"),
        ("0,0,600\n0,0,401", "line 2: found 1001 tokens in micro-batch 0 of dp rank 0, expected at most 10"),
        ("0,0,1000\n0,1,1000\n1,0,9", "no lengths of micro-batch 1 of dp rank 1, expected those of 2 mi"),
        ("", "no lengths of micro-batch 0 of dp rank 0, expected those of 2 micro-batches on 2 dp ranks"),
    ],
)  # fmt: skip
def test_a_file_of_other_lengths_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        packed(written(tmp_path, text))
    (found,) = caught.value.diagnostics
    assert found.code == "sequence-lengths"
    assert words in (f"line {found.line}: {found.message}" if found.line else found.message)


# -- prices ----------------------------------------------------------------------------------


def attention_ns(documents: list[int], backward: bool = False) -> int:
    """ns of attention of LONG on an H100 of a world of two, written out: tiles of 128 queries over the keys
    that they see, half of a document's own, and `extra` more a query; the last tile of the longest.
    """
    gpu = find_gpu("h100")
    constants = attention._constants(gpu, "bf16", 128)
    width, heads, tokens = 256, 16, sum(documents)
    pairs = sum(length * length / 2 for length in documents) + constants.extra * tokens
    tail = constants.tail * 128 * constants.sms * max(documents)
    computing = (heads * pairs + tail) * 2 * width / constants.rate
    computing *= 1 + constants.slow * computing / (computing + constants.slow_s)
    alone = constants.launch + constants.copy * 2 * tokens * 4 * width + computing
    # The slower of two GPUs; the clock in training.
    slow = Costs(gpu, training_of(run(LONG, gpu="h100", world=2)))._slow[""]
    ratio = attention.attention_backward_ratio(gpu, 128) if backward else 1
    return round(alone * slow * ratio * 1e9)


def test_who_has_the_longest_documents_decides_the_step_by_hand(tmp_path: Path) -> None:
    """Two layers, two dp ranks, two micro-batches: rank 0 has 1 and 1/2 of the squares of a sequence, rank 1
    has 1/4 and 1. All else is as before, so that the step is shorter by what rank 0 saves, and rank 1 waits
    for the rest.
    """
    lengths = {(0, 0): [16384], (0, 1): [8192] * 2, (1, 0): [4096] * 4, (1, 1): [16384]}
    text = "".join(
        f"{dp},{microbatch},{','.join(map(str, of))}\n" for (dp, microbatch), of in lengths.items()
    )
    given: dict[str, Any] = {"gpu": "h100", "world": 2, "global_batch": 4}
    even, found = run(LONG, **given), run(LONG, **given, seq_imbalance=written(tmp_path, text))
    whole, halves, quarters = (
        attention_ns([16384 // parts] * parts) + attention_ns([16384 // parts] * parts, backward=True)
        for parts in (1, 2, 4)
    )
    cells = [even.workload.cells(phase) for phase in ("fwd", "ig")]  # type: ignore[arg-type]
    row = even.workload.name.index("attention_core")
    assert sum(of.compute_ns[row] for of in cells) == whole == 2_145_180 + 6_334_716
    assert found.step_time_ns == even.step_time_ns - 2 * (whole - halves)
    # With the mean on each micro-batch.
    spread = sum(
        round((2 * each[0] + each[1] + each[2]) / 4)
        for each in ([attention_ns([16384 // n] * n, back) for n in (1, 2, 4)] for back in (False, True))
    )
    assert SimulatedRun(found).variants.step_ns_with_even_sequences == even.step_time_ns - 4 * (
        whole - spread
    )
    assert SimulatedRun(even).variants.step_ns_with_even_sequences is None
    accounts = SimulatedRun(found).accounts
    assert [one.wait_ns for one in accounts] == [0, 2 * (halves - quarters)]
    assert [one.busy_ns for one in accounts] == [
        SimulatedRun(even).accounts[0].busy_ns - 2 * (whole - one) for one in (halves, quarters)
    ]


def test_the_order_of_micro_batches_decides_a_pipeline_by_hand(tmp_path: Path) -> None:
    """1f1b on two stages with free communication, by its rules: F0 F1 B0 B1 on the first, F0 B0 F1 B1 on the
    second. Each action takes what its own documents take.
    """
    lengths = [[16384], [2048] * 8]
    text = "".join(f"0,{index},{','.join(map(str, of))}\n" for index, of in enumerate(lengths))
    found = run(
        LONG, gpu="h100", world=2, pp=2, global_batch=2, comm_scale=0.0, seq_imbalance=written(tmp_path, text)
    )

    def spans(stage: int) -> dict[tuple[str, int], tuple[int, int]]:
        """(start, end) of each action, without the loss between them."""
        ops, start, end = found.timeline.columns(stage)
        of: dict[tuple[str, int], tuple[int, int]] = {}
        for op in range(len(ops)):
            if ops.stream[op] == 0 and ops.microbatch[op] >= 0:
                key = ("F" if ops.phase[op] == 0 else "B", ops.microbatch[op])
                of[key] = (min(start[op], of.get(key, (start[op],))[0]), end[op])
        return of

    first, second = spans(0), spans(1)
    took = [{key: end - start for key, (start, end) in of.items()} for of in (first, second)]
    # One layer on each stage: its attention is that of the documents.
    for of in took:
        for kind, backward in (("F", False), ("B", True)):
            shorter = attention_ns(lengths[0], backward) - attention_ns(lengths[1], backward)
            assert of[kind, 0] - of[kind, 1] == shorter > 0
    a, b = took
    f0 = a["F", 0]
    f1 = f0 + a["F", 1]
    back0 = f0 + b["F", 0] + b["B", 0]
    ahead1 = max(back0, f1) + b["F", 1]
    assert second["B", 0][1] == back0
    assert second["F", 1][1] == ahead1
    b0 = max(f1, back0) + a["B", 0]
    assert first["B", 0][1] == b0
    assert first["B", 1][1] == max(b0, ahead1 + b["B", 1]) + a["B", 1]


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    pick = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    tp, cp, dp, pp, ep = pick(1, 2), pick(1, 2), pick(1, 2, 3, 4), pick(1, 2), pick(1, 1, 2, 4)
    assume(cp * dp % ep == 0)
    size, count = pick(1, 2), pick(1, 2, 3)
    given: dict[str, Any] = {
        "world": tp * cp * dp * pp, "tp": tp, "cp": cp, "pp": pp, "ep": ep, "gpu": "h100",
        "microbatch_size": size, "global_batch": dp * size * count, "seq": pick(512, 4096),
        "cp_comm_type": pick("p2p", "all-gather", "a2a"), "zero": pick("0", "1"),
        "recompute": pick("none", "selective", "full"),
        "dim": (f"switch:{pick(2, 4)}:300:500", "switch:64:20:5000"),
        "rank_order": pick("tp-ep-dp-pp", "tp-pp-dp"),
        "network": pick("analytical", "analytical", "shared"),
    }  # fmt: skip
    if pp > 1:
        given["schedule"] = pick("1f1b", "gpipe", "zb-h1")
        given["overlap_grad_reduce"] = pick(False, True)
    if tp > 1:
        given["sequence_parallel"] = pick("on", "off")
        given["overlap_tp"] = given["sequence_parallel"] == "on" and pick(False, True)
    if ep > 1 and pick(False, True):
        given["expert_imbalance"] = "lognormal:0.8"
    return given


def whole_lines(given: dict[str, Any], first: str) -> str:
    """Lines of micro-batches whose sequences are documents, but for the first."""
    size, seq = given["microbatch_size"], given["seq"]
    dp = given["world"] // (given["tp"] * given["cp"] * given["pp"])
    count = given["global_batch"] // (dp * size)
    whole = ",".join([str(seq)] * size)
    return "".join(
        f"{replica},{microbatch},{first if replica == microbatch == 0 else whole}\n"
        for replica in range(dp)
        for microbatch in range(count)
    )


@given(layouts())
@settings(max_examples=25, deadline=None)
def test_documents_of_a_sequence_each_are_the_run_without(given: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        whole = ",".join([str(given["seq"])] * given["microbatch_size"])
        patch.setattr("simcore.workload.opening.read_file", lambda _: whole_lines(given, whole).encode())
        even, drawn, read = (
            run(EXPERTS, **given, **more)
            for more in ({}, {"seq_imbalance": "lognormal:0"}, {"seq_imbalance": "even.csv"})
        )
        # One micro-batch of others leaves the cells of all others as they are.
        patch.setattr("simcore.workload.opening.read_file", lambda _: whole_lines(given, "7, 9").encode())
        mixed = run(EXPERTS, **given, seq_imbalance="mixed.csv")
    for found in (drawn, read):
        assert found.timeline.times == even.timeline.times
        assert found.program.packings == ()
    cells = mixed.workload.packed
    assert cells is not None
    for (phase, row), each in cells.compute_ns.items():
        assert (
            each[0]
            == mixed.workload.cells(phase).compute_ns[row]
            == even.workload.cells(phase).compute_ns[row]
        )
    figures_of = [make_model_figures(one) for one in (even, mixed)]
    assert figures_of[0].memory == figures_of[1].memory  # type: ignore[union-attr]


@given(layouts(), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_each_rank_computes_its_own_documents_folded_or_not(given: dict[str, Any], seed: int) -> None:
    given = {**given, "seed": seed, "seq_imbalance": "lognormal:0.8"}
    if seed % 3 == 0:
        given["slow_rank"] = (f"{seed % given['world']}=1.5",)
    folded, whole = (run(EXPERTS, no_fold=no_fold, **given) for no_fold in (False, True))
    assert folded.step_time_ns == whole.step_time_ns
    training, layout, packed_cells = training_of(folded), folded.layout, folded.workload.packed
    if packed_cells is None:
        return
    ours, every = SimulatedRun(folded), SimulatedRun(whole)
    for rank in range(layout.world):
        number = folded.timeline.folding.class_of(rank)
        assert folded.timeline.columns(number)[1:] == whole.timeline.columns(rank)[1:]
        assert sum(ours.accounts[number].total_ns) == folded.step_time_ns
        assert ours.accounts[number].total_ns == every.accounts[rank].total_ns
        # What attention takes is that of the micro-batch of the rank's own replica.
        replica = layout.position(rank)[1] // layout.cp
        slow = folded.timeline.classes[number].slowdown
        ops, start, end = folded.timeline.columns(number)
        assert training.packing is not None
        for op, row in enumerate(ops.row):
            phase = {0: "fwd", 4: "fwd", 1: "ig"}.get(ops.phase[op])
            if ops.stream[op] == 0 and folded.workload.name[row] == "attention_core" and phase:
                index = training.packing.of_replica[replica][ops.microbatch[op]]
                stated = folded.workload.cells(phase).compute_ns[row]  # type: ignore[arg-type]
                each = packed_cells.compute_ns.get((phase, row))  # type: ignore[call-overload]
                ns = each[index] if each else stated
                assert end[op] - start[op] == round(ns * slow)


def test_ranks_are_folded_where_their_documents_are_equal(tmp_path: Path) -> None:
    text = "0,0,4096\n1,0,2048,2048\n2,0,4096\n3,0,2048\n3,0,2048\n"
    given: dict[str, Any] = {"gpu": "h100", "world": 16, "tp": 2, "cp": 2, "seq": 4096}
    found = run(LONG, **given, seq_imbalance=written(tmp_path, text))
    assert [one.ranks.words() for one in found.timeline.classes] == ["0-3,8-11", "4-7,12-15"]
    other = run(LONG, **given, seq_imbalance=written(tmp_path, text.replace("2,0,4096", "2,0,4000")))
    assert [one.ranks.words() for one in other.timeline.classes] == ["0-3", "4-7,12-15", "8-11"]
    # Micro-batches that are equal to each other differ from sequences, but no ranks do.
    equal = "".join(f"{replica},0,2048,2048\n" for replica in range(4))
    assert len(run(LONG, **given, seq_imbalance=written(tmp_path, equal)).timeline.classes) == 1


@pytest.mark.parametrize(
    "given",
    [
        {"schedule": "zb-v"}, {"schedule": "v-half"}, {"schedule": "dualpipe", "global_batch": 16},
        {"schedule": "dualpipev"}, {"virtual_stages": 2}, {"zero": "3", "engine_preset": "torchtitan"},
        {"offload": 55.0}, {"jitter": 0.1}, {"steps": 2}, {"network": "links"},
        {"schedule": "dualpipe", "global_batch": 16, "overlap_fwd_bwd": True},
    ],
)  # fmt: skip
def test_every_schedule_prices_each_micro_batch(given: dict[str, Any]) -> None:
    """Attention of a rank takes what its micro-batches do, on all its layers, whatever runs beside it."""
    model = Model("eight", 8, 2048, 16, 4, 128, 8192, True, 32000, 8192, tied_embeddings=False)
    given = {"gpu": "h100", "world": 4, "pp": 2, "global_batch": 8, "seed": 5} | given
    found = run(model, **given, seq_imbalance="lognormal:0.8")
    training, cells = training_of(found), found.workload.packed
    assert training.packing is not None
    assert cells is not None
    row = found.workload.name.index("attention_core")
    each = [
        fwd + ig for fwd, ig in zip(*(cells.compute_ns[phase, row] for phase in ("fwd", "ig")), strict=True)
    ]  # type: ignore[index]
    for replica, of_one in enumerate(training.packing.of_replica):
        expected = given.get("steps", 1) * model.layers * sum(each[index] for index in of_one)
        took = 0
        for rank in range(found.layout.world):
            if found.layout.position(rank)[1] == replica:
                ops, start, end = found.timeline.columns(found.timeline.folding.class_of(rank))
                took += sum(
                    end[op] - start[op]
                    for op, at in enumerate(ops.row)
                    if ops.stream[op] == 0 and found.workload.name[at] == "attention_core"
                )
        if "jitter" in given:
            assert took == pytest.approx(expected, rel=0.1)
            assert took != expected
        else:
            assert took == expected


def test_a_layer_that_waits_for_the_host_takes_as_long_whatever_its_documents() -> None:
    """What attention saves, the layer waits for the host: the same but for roundings, 1 ns a cell; also where
    products are cut.
    """
    given: dict[str, Any] = {"gpu": "h100", "world": 2, "tp": 2, "sequence_parallel": "on", "global_batch": 4}

    def sums(rows: tuple[str, ...], **more: Any) -> list[int]:
        """ns of these rows by micro-batch."""
        found = run(SMALL, **given, **more, seq_imbalance="lognormal:1", seed=1)
        ops, start, end = found.timeline.columns(0)
        of = [0] * 4
        for op, row in enumerate(ops.row):
            if ops.stream[op] == 0 and found.workload.name[row].startswith(rows):
                of[ops.microbatch[op]] += end[op] - start[op]
        return of

    layers, core = sums(("attention", "mlp")), sums(("attention_core",))
    assert max(layers) - min(layers) <= 2 * 2 * SMALL.layers
    assert max(core) - min(core) > 0.2 * max(core)
    assert sums(("attention", "mlp"), overlap_tp=True) == layers


def test_flops_have_a_square_for_each_document_and_tokens_stay() -> None:
    given: dict[str, Any] = {"gpu": "h100", "world": 4, "global_batch": 8, "recompute": "selective"}
    even, found = run(LONG, **given), run(LONG, **given, seq_imbalance="lognormal:0.8")
    packing = training_of(found).packing
    assert packing is not None
    squares = sum(of_lengths(found, replica, m).squares for replica in range(4) for m in range(2))
    lost = 8 * 16384**2 - squares
    # Scores and values, 2 FLOPs a multiplication, 16 heads of 128, 2 layers; three times the forward, and the
    # forward again.
    (model, hardware), (less_model, less_hardware) = (step_flops(training_of(one)) for one in (even, found))
    assert model - less_model == pytest.approx(3 * 2 * 2 * 2 * 16 * 128 * lost)
    assert hardware - less_hardware == pytest.approx(4 * 2 * 2 * 2 * 16 * 128 * lost)
    throughput = make_model_figures(found).throughput  # type: ignore[union-attr]
    assert throughput.tokens_per_s == pytest.approx(8 * 16384 / found.step_time_ns * 1e9)
    assert throughput.mfu == pytest.approx(less_model / (found.step_time_ns / 1e9) / 4 / 989e12)


# -- what is said, and where it cannot be ----------------------------------------------------


RULES = ("straggler", "uneven-sequences")


def test_a_sentence_says_who_waits_for_the_longest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "0,0,16384\n1,0,2048,2048,2048,2048,2048,2048,2048,2048\n2,0,4096,4096,4096,4096\n3,0,8192,8192\n"
    given: dict[str, Any] = {"gpu": "h100", "world": 4, "global_batch": 4}
    found = SimulatedRun(run(LONG, **given, seq_imbalance=written(tmp_path, text)))
    sentences = find_sentences(found)
    (sentence,) = [one for one in sentences if one.rule == "uneven-sequences"]
    assert sentence.ns == found.accounts[1].wait_ns == max(one.wait_ns for one in found.accounts)
    each = [attention_ns([16384 // parts] * parts) for parts in (1, 8, 4, 2)]
    of_mean = each[0] * 4 / sum(each)
    assert figures(sentence.text)[:3] == ["0", f"{of_mean:.2f}", "1"]
    # And no other says the same.
    assert not any(one.rule == "straggler" for one in sentences)
    slow = SimulatedRun(run(LONG, **given, seq_imbalance=str(tmp_path / "lengths.csv"), slow_rank=("0=2",)))
    assert next(one.rule for one in find_sentences(slow) if one.rule in RULES) == "straggler"
    even = SimulatedRun(run(LONG, **given))
    assert not any(one.rule == "uneven-sequences" for one in find_sentences(even))


def test_the_explanation_of_a_cell_has_the_most_and_the_least_attention(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, "0,0,8192\n0,1,1024,1024\n1,0,8192\n1,1,4096,4096\n")
    words = ["--model", "llama-3-8b", "--gpu", "h100", "--world", "2", "--global-batch", "4"]
    assert main(["report", *words, "--seq-imbalance", path, "--explain", "attention_core:fwd"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "compute_ns" in line)
    found = run(MODELS["llama-3-8b"], gpu="h100", world=2, global_batch=4, seq_imbalance=path)
    cells = found.workload.packed
    assert cells is not None
    each = cells.compute_ns["fwd", found.workload.name.index("attention_core")]
    assert max(each) == each[0] > min(each) == each[-1]
    assert f"{each[0]:,} ns".replace(",", " ") in line
    assert figures(line)[-1] == duration(each[-1])
    # And that of a span its own.
    for rank, microbatch, longest in ((0, 0, "8 192"), (0, 1, "1 024"), (1, 1, "4 096")):
        ops, start, end = found.timeline.columns(rank)
        span = next(
            op
            for op, row in enumerate(ops.row)
            if ops.microbatch[op] == microbatch and found.workload.name[row] == "attention_core"
        )
        words = explain_duration(found, rank, span)
        assert words.startswith(duration(end[span] - start[span]))
        assert words.endswith(f"documents of up to {longest} tokens")


def test_of_one_dp_rank_the_longest_micro_batch_is_named(tmp_path: Path) -> None:
    text = "0,0,2048\n0,1,16384\n0,2,2048,2048\n0,3,4096\n"
    found = run(LONG, gpu="h100", world=2, pp=2, global_batch=4, seq_imbalance=written(tmp_path, text))
    (sentence,) = [one for one in find_sentences(SimulatedRun(found)) if one.rule == "uneven-sequences"]
    assert figures(sentence.text)[:2] == ["1", "0"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seq_imbalance": "lognormal:x"}, "a deviation from 0 to 3 is expected, for example lognormal:0.5"),
        ({"seq_imbalance": "lognormal:4"}, "a deviation from 0 to 3 is expected"),
        ({"flash": "off"}, "--flash on would fit"),
        ({"as_aicb": "plain"}, "without --as-aicb it would fit"),
        ({"global_batch": 1 << 18}, "at most 65536 would fit"),
    ],
)
def test_what_does_not_go_together_says_what_would(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(SMALL, **{"gpu": "h100", "world": 4, "seq_imbalance": "lognormal:0.5"} | given)
    assert words in str(caught.value)


@pytest.mark.parametrize("file", ["002_gpt_1024npu.txt"])
def test_a_workload_file_has_its_rows(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "fixtures" / file
    assert main(["report", str(path), "--seq-imbalance", "lognormal:0.5"]) == 2
    assert "--model NAME|FILE would fit" in capsys.readouterr().err


WORDS = "--model llama-3-8b --gpu h100 --world 4 --tp 2 --global-batch 4"


def test_a_sweep_varies_it_and_takes_what_the_report_takes() -> None:
    import simcore

    given: dict[str, Any] = {"gpu": "h100", "world": 8, "pp": 2, "global_batch": 16, "seed": 3}
    sigmas = ["lognormal:0", "lognormal:0.5", "lognormal:1.5"]
    opened = simcore.load(model="llama-3-8b")
    found = simcore.sweep(opened, **given, seq_imbalance=sigmas).to_dict()
    each = [opened.run(**given, seq_imbalance=sigma).step_time_ns for sigma in sigmas]
    assert found["step_time_ns"] == each
    assert len({*each}) == 3


def test_runs_that_a_file_does_not_fit_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--model", "llama-3-8b", "--gpu", "h100", "--world", "4", "--global-batch", "4"]
    path = written(tmp_path, "0,0,8192\n0,1,4096,4096\n1,0,8192\n1,1,2048\n")
    assert report(capsys, *words, "--tp", "2", "--seq-imbalance", path, "--what-if")["what_if"]
    assert main(["sweep", *words, "--seq-imbalance", path, "--vary", "tp=1,2,4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["simulated"] == 1
    assert len([one for one in found["skipped"] if "sequence-lengths" in one["example"]]) == 2


def test_a_toml_file_states_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--model", "llama-3-8b", "--gpu", "h100", "--world", "8", "--global-batch", "16"]
    path = tmp_path / "run.toml"
    path.write_text('seq_imbalance = "lognormal:1"\nseed = 4\n', "utf-8")
    by_flags = report(capsys, *words, "--seq-imbalance", "lognormal:1", "--seed", "4")
    assert report(capsys, *words, "--params", str(path))["step_time_ns"] == by_flags["step_time_ns"]
