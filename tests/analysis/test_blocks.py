"""Blocks of a file beside each other: unequal ones are said with their lines, and those that no header asks
for; figures by a run of their own.
"""

from simcore.analysis.blocks import UnequalBlocks, find_surplus_blocks, find_unequal_blocks, format_lines
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.words.sentences.model import RunSums
from simcore.words.sentences.pipeline import (
    Slots,
    SurplusMicrobatches,
    UnequalMicrobatches,
    find_bubble,
)
from simcore.words.sentences.pipeline import (
    find_uneven_microbatches as said_of_them,
)
from simcore.workload import open_workload
from simcore.workload.without_lines import without_rows
from tests.analysis.booking import run
from tests.says import figures
from tests.says import said as says
from tests.strategies import layer
from tests.workload.texts import read, text_of

MISTAKES = "fixtures/001_moe_128npu_with_mistakes.txt"
BLOCK = layer("embedding_layer", 1000, 1000, 1000)
UNEVEN = [layer("embedding_layer"), *[layer("mlp", 1000, 1000, 1000)] * 2]
UNEVEN += [layer("embedding_layer"), layer("mlp", 1000, 1000, 1000)]

HEADER = "HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ep: 1 pp: 2 vpp: {vpp} ga: {ga} all_gpus: 2"
EMBEDDING = "embedding_layer -1 500 NONE 0 500 NONE 0 500 NONE 0 100"
LAYER = "mlp_{} -1 4000 NONE 0 4000 NONE 0 4000 NONE 0 100"
FINAL = "final_norm -1 500 NONE 0 500 NONE 0 500 NONE 0 100"
TOO_MANY = [EMBEDDING, *(LAYER.format(one) for one in range(3)), FINAL, EMBEDDING, LAYER.format(3), FINAL]


def said(simulation: Simulation) -> dict[str, str]:
    return {one.rule: one.lead + one.text for one in SimulatedRun(simulation).sentences}


def surplus(simulation: Simulation) -> list[SurplusMicrobatches]:
    """What is said of blocks that no header asks for."""
    found = said_of_them(RunSums(SimulatedRun(simulation)))
    return [one for one in found if isinstance(one, SurplusMicrobatches)]


def uneven_microbatches() -> Simulation:
    """One of two layers, one of one: 6,000 ns against 3,000 ns."""
    return run(UNEVEN, {"pp": 2}, schedule="1f1b")


def of_rows(
    *rows: str, vpp: int = 3, ga: int = 1, declared: int | None = None, **parameters: int
) -> Simulation:
    text = text_of(*rows, header=HEADER.format(vpp=vpp, ga=ga))
    if declared is not None:
        header, _, below = text.split("\n", 2)
        text = f"{header}\n{declared}\n{below}"
    return simulate(read(text), Parameters(schedule="1f1b", **parameters))


def one_block_too_many() -> Simulation:
    """One micro-batch of 3 layers is asked for; behind it stands another one, of 1 layer."""
    return of_rows(*TOO_MANY)


def test_unequal_micro_batches_are_said_with_their_lines_and_what_is_read_in_place_of_a_mean() -> None:
    sentence = SimulatedRun(uneven_microbatches()).sentences[0]
    assert isinstance(sentence, UnequalMicrobatches)
    assert (sentence.blocks, sentence.layers) == (UnequalBlocks(0, 1, 2.0), (2, 1))
    assert sentence.lines == ("lines 3-5", "lines 6-7")
    # Alike; not both of them run; a loop over rows has none; other times than the file's decide.
    assert "uneven-microbatches" not in said(run([BLOCK] * 4, {"pp": 4}, schedule="1f1b"))
    assert "uneven-microbatches" not in said(run(UNEVEN, {"pp": 2}, schedule="1f1b", microbatches=1))
    assert "uneven-microbatches" not in said(run(UNEVEN, {}, schedule="layer-loop"))
    scaled = run(UNEVEN, {"pp": 2}, schedule="1f1b", time_scale=("compute fwd=0.5",))
    assert "uneven-microbatches" not in said(scaled)
    assert "uneven-microbatches" not in said(
        simulate(open_workload("fixtures/002_gpt_1024npu.txt"), Parameters())
    )


def test_of_unequal_micro_batches_the_slots_of_equal_ones_are_said() -> None:
    """1f1b on 4 stages with blocks of 2 layers and 1: 2 of blocks alike leave 3 of 5 slots empty."""
    (found,) = find_bubble(RunSums(SimulatedRun(run(UNEVEN, {"pp": 4}, schedule="1f1b"))))
    assert found.slots == Slots("1f1b", stages=4, microbatches=2, chunks=1, is_uneven=True)
    assert (found.equal_in, found.is_assumed) == ("compute", False)
    alike = RunSums(SimulatedRun(run(UNEVEN[:3] * 2, {"pp": 4}, schedule="1f1b")))
    assert 5 * (alike.step_ns - alike.mean_busy_ns) == 3 * alike.step_ns
    (of_alike,) = find_bubble(alike)
    assert of_alike.slots == found.slots._replace(is_uneven=False)
    uneven = RunSums(SimulatedRun(run(UNEVEN, {"pp": 4}, schedule="1f1b")))
    lost = uneven.step_ns - uneven.mean_busy_ns
    # More than the 13.5 us that 3 of 5 slots are beside 9 us of compute.
    assert (lost, uneven.mean_busy_ns) == (17_000, 9_000)


def test_the_empty_slots_are_those_of_the_passes() -> None:
    """Of seed 002 with one micro-batch gradients and the optimizer are 45 % of what ranks do: the slots were
    not said, and a newcomer did not know what to change. Planted: the slots of all that ranks do, as before.
    """
    for stages, count in ((2, 1), (4, 1), (16, 2), (16, 32)):
        parameters = Parameters(pp=stages, microbatches=count)
        facts = RunSums(SimulatedRun(simulate(open_workload("fixtures/002_gpt_1024npu.txt"), parameters)))
        lost = facts.mean_ns["bubble"] + facts.mean_ns["idle"]
        done = sum(facts.mean_ns[f"compute {phase}"] for phase in ("fwd", "ig", "wg", "recompute"))
        done += sum(facts.mean_ns[f"exposed {kind}"] for kind in ("tp", "ep", "pp", "cp"))
        assert abs(lost - done * (stages - 1) / count) < 0.01 * lost
        (found,) = find_bubble(facts)
        assert found.slots is not None
        assert (found.slots.stages, found.slots.microbatches, found.slots.is_uneven) == (stages, count, False)
    one = SimulatedRun(simulate(open_workload(MISTAKES), Parameters(without_lines=("83-93",))))
    (found,) = find_bubble(RunSums(one))
    assert found.slots == Slots("1f1b", stages=4, microbatches=1, chunks=1, is_uneven=False)
    # A stage that computes longer than its peers costs more than that.
    late = tuple(f"{rank}=3" for rank in range(32))
    several = Parameters(without_lines=("83-93",), microbatches=8, slow_rank=late)
    slow = RunSums(SimulatedRun(simulate(open_workload(MISTAKES), several)))
    assert not any(found.slots for found in find_bubble(slow))


def test_what_a_header_asks_for_is_a_run_without_the_other_blocks_where_lines_can_go() -> None:
    """Three blocks too many, too, and the same step as with fewer micro-batches."""
    two = of_rows(*TOO_MANY, EMBEDDING, LAYER.format(4), LAYER.format(5), FINAL)
    for simulation, lines in ((one_block_too_many(), "8-10"), (two, "8-14")):
        extra = find_surplus_blocks(simulation)
        assert extra is not None
        asked = extra.header_fields(simulation.workload)
        assert asked == {"without_lines": (lines,)}
        without = simulate(simulation.workload, Parameters(schedule="1f1b", **asked))
        fewer = simulate(simulation.workload, Parameters(schedule="1f1b", microbatches=1))
        assert without.step_time_ns == fewer.step_time_ns
        # A header that names rows by their places has them all.
        header = replace(simulation.workload.header, checkpoints=(2,), checkpoint_initiates=(4,))
        named = replace(simulation.workload, header=header)
        assert extra.header_fields(named) == {"microbatches": 1}


def test_a_block_that_no_header_asks_for_is_said_with_its_lines_and_the_step_without_it() -> None:
    without = of_rows(*TOO_MANY, microbatches=1)
    found = SimulatedRun(one_block_too_many()).sentences[0]
    assert isinstance(found, SurplusMicrobatches)
    assert (found.rule, found.ns) == ("uneven-microbatches", without.step_time_ns)
    assert (found.microbatches, found.layers, found.more_layers) == (1, 3, (1,))
    assert (found.more, found.copied, found.flags) == ("lines 8-10", "line 4", "--without-lines 8-10")
    # The same step as that of a file without these lines.
    assert without.step_time_ns == of_rows(*TOO_MANY[:5]).step_time_ns


def test_what_cuts_a_block_in_two_is_named_where_the_run_without_it_is_offered() -> None:
    """A newcomer asked which rows they are. In a sentence of its own, before anybody had asked for it, the
    other reading held up five who read it. Planted: the words of the first fix.
    """
    joined = of_rows(*TOO_MANY[:4], *TOO_MANY[6:])
    assert (joined.program.structure.layers_per_block, len(joined.workload)) == ((4,), 6)
    for pp in (1, 2):
        rows = [one for one in SimulatedRun(of_rows(*TOO_MANY, declared=6, pp=pp)).what_if() if one.fixes]
        (meant,) = [one for one in rows if "7-8" in one.flags]
        assert meant.flags == "--without-lines 7-8"
        assert says([meant.meaning], "final_norm", "embedding_layer")
    (other,) = [one for one in SimulatedRun(of_rows(*TOO_MANY, declared=6)).what_if() if "7-8" in one.flags]
    assert other.better10_ns == joined.step_time_ns > of_rows(*TOO_MANY, declared=6).step_time_ns
    # Where the count of rows is another nobody knows.
    assert not [one for one in SimulatedRun(of_rows(*TOO_MANY, declared=7)).what_if() if "7-8" in one.flags]
    assert not [one for one in said(of_rows(*TOO_MANY, declared=6)).values() if "final_norm" in one]


def test_the_warning_of_the_count_of_rows_says_what_the_header_makes_of_it_and_what_fits_it() -> None:
    """98 rows, 96 stated, and a fix that leaves 87: a newcomer took it for another mistake of the file."""

    def warned(simulation: Simulation) -> list[str]:
        return [one.message for one in SimulatedRun(simulation).diagnostics if one.code == "row-count"]

    seed = simulate(open_workload("fixtures/001_moe_128npu_with_mistakes.txt"), Parameters())
    (plain,) = [one.message for one in seed.diagnostics if one.code == "row-count"]
    assert figures(plain) == ["98", "96", "96"]
    (message,) = warned(seed)
    assert message.startswith(plain)
    assert figures(message.removeprefix(plain)) == ["1", "83-93", "2", "82-83"]
    # What the words say of lines holds.
    for lines, code in (("83-93", "vpp-differs"), ("83-93", "ga-differs"), ("82-83", "row-count")):
        fixed = simulate(seed.workload, Parameters(without_lines=(lines,)))
        assert code in {one.code for one in seed.diagnostics} - {one.code for one in fixed.diagnostics}
    # A count that fits nothing, and what somebody has asked for.
    (other,) = warned(of_rows(*TOO_MANY, declared=7))
    assert figures(other)[-2:] == ["1", "8-10"]
    (asked,) = warned(of_rows(*TOO_MANY, declared=6, microbatches=2))
    assert not {"8-10", "7-8"} & set(figures(asked))


def test_rows_without_lines_in_a_file_are_not_named_by_them() -> None:
    """Planted: the sentence without asking whether there are lines; made rows ended in a traceback."""
    simulation = of_rows(*TOO_MANY, declared=6)
    made = replace(simulation.workload, rescaled="from tp 2 to tp 1")
    rules = {one.rule for one in SimulatedRun(simulate(made, Parameters(schedule="1f1b"))).sentences}
    assert "uneven-microbatches" in rules


def test_a_file_without_rows_is_the_file_that_never_had_them() -> None:
    simulation = of_rows(*TOO_MANY, declared=6)
    less = without_rows(simulation.workload, (4, 5))
    assert less is not None
    other = of_rows(*TOO_MANY[:4], *TOO_MANY[6:]).workload
    assert (less.name, less.fwd, less.ig, less.wg) == (other.name, other.fwd, other.ig, other.wg)
    assert list(less.line) == [3, 4, 5, 6, 9, 10]
    header = replace(simulation.workload.header, checkpoints=(2,), checkpoint_initiates=(4,))
    assert without_rows(replace(simulation.workload, header=header), (4, 5)) is None


def test_no_block_is_called_one_too_many_where_the_header_is_in_doubt() -> None:
    # As many as it asks for; none as long as it says; one behind them is; asked for by the user.
    assert find_surplus_blocks(of_rows(*TOO_MANY, ga=2)) is None
    assert find_surplus_blocks(of_rows(*TOO_MANY, vpp=2)) is None
    assert find_surplus_blocks(of_rows(*TOO_MANY, *TOO_MANY[:5])) is None
    for simulation in (of_rows(*TOO_MANY, microbatches=4), uneven_microbatches()):
        assert isinstance(SimulatedRun(simulation).sentences[0], UnequalMicrobatches)


def test_another_layer_is_no_copy() -> None:
    other = [*TOO_MANY[:6], LAYER.format(3).replace("4000", "4001"), FINAL]
    found = find_surplus_blocks(of_rows(*other, declared=6))
    assert found is not None
    assert (found.copied_rows, found.rows_between) == ((), ())
    (sentence,) = surplus(of_rows(*other, declared=6))
    assert (sentence.more_layers, sentence.copied) == ((1,), "")


def test_two_blocks_too_many_are_said_with_the_layers_of_each() -> None:
    two = of_rows(*TOO_MANY, EMBEDDING, LAYER.format(4), LAYER.format(5), FINAL)
    (found,) = surplus(two)
    assert (found.microbatches, found.layers, found.more_layers) == (1, 3, (1, 2))
    assert (found.more, found.copied) == ("lines 8-14", "")
    (alike,) = surplus(of_rows(*TOO_MANY, EMBEDDING, LAYER.format(4), FINAL))
    assert (alike.more, alike.more_layers, alike.copied) == ("lines 8-13", (1, 1), "line 4")


def test_the_file_with_mistakes_says_which_lines_they_are() -> None:
    results = SimulatedRun(simulate(open_workload(MISTAKES), Parameters()))
    workload = results.simulation.workload
    found, uneven = find_surplus_blocks(results.simulation), find_unequal_blocks(results.simulation)
    assert found is not None
    assert uneven is not None
    assert (uneven.most, uneven.least) == (0, 1)
    parts = (found.surplus_rows, found.copied_rows, found.rows_between)
    lines = ["lines 83-93", "lines 10-18", "lines 82-83"]
    assert [format_lines(workload, rows) for rows in parts] == lines
    assert not results.shape.has_equal_microbatches


def test_one_chunk_is_no_example_of_interleaving() -> None:
    """What an even 1f1b would leave is said; of `interleaved` in one chunk nothing is promised."""
    slots = {}
    for schedule, chunks in (("1f1b", {}), ("interleaved", {"virtual_stages": 1})):
        parameters = Parameters(schedule=schedule, microbatches=4, **chunks)
        (found,) = find_bubble(RunSums(SimulatedRun(simulate(open_workload(MISTAKES), parameters))))
        slots[schedule] = found.slots
    assert slots == {"1f1b": Slots("1f1b", 4, 4, 1, is_uneven=True), "interleaved": None}
