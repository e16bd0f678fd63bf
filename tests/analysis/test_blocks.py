"""Blocks of a file beside each other: unequal ones are said with their lines, and those that no header asks
for; figures by a run of their own.
"""

from simcore.analysis.blocks import line_words, surplus_blocks, unequal_blocks
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.runs.simulated import Results
from simcore.simulation import Simulation, simulate
from simcore.units import duration
from simcore.words.sentences.model import RunSums
from simcore.workload import open_workload
from simcore.workload.without_lines import without_rows
from tests.analysis.booking import run
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
    return {one.rule: one.lead + one.text for one in Results(simulation).sentences}


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
    sentence = Results(uneven_microbatches()).sentences[0]
    assert sentence.rule == "uneven-microbatches"
    assert sentence.lead + sentence.text == (
        "The micro-batches of the file are unequal. Micro-batch 0 (lines 3-5) computes 2.0 times as long as "
        "1 (lines 6-7): it has 2 layers, the other 1. A mean of "
        "unequal micro-batches says little; compare steps by the same work."
    )
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
    text = said(run(UNEVEN, {"pp": 4}, schedule="1f1b"))["bubble"]
    assert text.endswith(
        " %): the micro-batches are unequal, and with 4 stages and 2 equal ones 1f1b would leave 3 of 5 "
        "slots empty on each; all stages compute alike."
    )
    alike = RunSums(Results(run(UNEVEN[:3] * 2, {"pp": 4}, schedule="1f1b")))
    assert 5 * (alike.step_ns - alike.mean_busy_ns) == 3 * alike.step_ns
    assert "unequal" not in said(alike.simulation)["bubble"]
    assert "3 of 5 slots empty" in said(alike.simulation)["bubble"]
    uneven = RunSums(Results(run(UNEVEN, {"pp": 4}, schedule="1f1b")))
    lost = uneven.step_ns - uneven.mean_busy_ns
    # More than the 13.5 us that 3 of 5 slots are beside 9 us of compute.
    assert (lost, uneven.mean_busy_ns) == (17_000, 9_000)


def test_the_empty_slots_are_those_of_the_passes() -> None:
    """Of seed 002 with one micro-batch gradients and the optimizer are 45 % of what ranks do: the slots were
    not said, and a newcomer did not know what to change. Planted: the slots of all that ranks do, as before.
    """
    for stages, count in ((2, 1), (4, 1), (16, 2), (16, 32)):
        parameters = Parameters(pp=stages, microbatches=count)
        facts = RunSums(Results(simulate(open_workload("fixtures/002_gpt_1024npu.txt"), parameters)))
        lost = facts.mean_ns["bubble"] + facts.mean_ns["idle"]
        done = sum(facts.mean_ns[f"compute {phase}"] for phase in ("fwd", "ig", "wg", "recompute"))
        done += sum(facts.mean_ns[f"exposed {kind}"] for kind in ("tp", "ep", "pp", "cp"))
        assert abs(lost - done * (stages - 1) / count) < 0.01 * lost
        words = f"leaves {stages - 1} of {stages + count - 1} slots empty on each"
        assert words in said(facts.simulation)["bubble"]
    one = simulate(open_workload(MISTAKES), Parameters(without_lines=("83-93",)))
    assert "with 4 stages and 1 micro-batch 1f1b leaves 3 of 4 slots empty" in said(one)["bubble"]
    # A stage that computes longer than its peers costs more than that.
    late = tuple(f"{rank}=3" for rank in range(32))
    several = Parameters(without_lines=("83-93",), microbatches=8, slow_rank=late)
    slow = simulate(open_workload(MISTAKES), several)
    assert "slots empty" not in said(slow).get("bubble", "")


def test_what_a_header_asks_for_is_a_run_without_the_other_blocks_where_lines_can_go() -> None:
    """Three blocks too many, too, and the same step as with fewer micro-batches."""
    two = of_rows(*TOO_MANY, EMBEDDING, LAYER.format(4), LAYER.format(5), FINAL)
    for simulation, lines in ((one_block_too_many(), "8-10"), (two, "8-14")):
        extra = surplus_blocks(simulation)
        assert extra is not None
        asked = extra.as_header_asks(simulation.workload)
        assert asked == {"without_lines": (lines,)}
        without = simulate(simulation.workload, Parameters(schedule="1f1b", **asked))
        fewer = simulate(simulation.workload, Parameters(schedule="1f1b", microbatches=1))
        assert without.step_time_ns == fewer.step_time_ns
        # A header that names rows by their places has them all.
        header = replace(simulation.workload.header, checkpoints=(2,), checkpoint_initiates=(4,))
        named = replace(simulation.workload, header=header)
        assert extra.as_header_asks(named) == {"microbatches": 1}


def test_a_block_that_no_header_asks_for_is_said_with_its_lines_and_the_step_without_it() -> None:
    without = of_rows(*TOO_MANY, microbatches=1)
    found = Results(one_block_too_many()).sentences[0]
    assert (found.rule, found.ns) == ("uneven-microbatches", without.step_time_ns)
    assert found.lead + found.text == (
        "The file contradicts itself. Its rows make 2 micro-batches, of 3 and 1 layers; its header asks for "
        f"one with 3 (--without-lines 8-10: {duration(without.step_time_ns)}). Lines 8-10 are 1 more block, "
        "of 1 layer, which repeats line 4."
    )
    # The same step as that of a file without these lines.
    assert without.step_time_ns == of_rows(*TOO_MANY[:5]).step_time_ns


def test_what_cuts_a_block_in_two_is_named_where_the_run_without_it_is_offered() -> None:
    """A newcomer asked which rows they are. In a sentence of its own, before anybody had asked for it, the
    other reading held up five who read it. Planted: the words of the first fix.
    """
    joined = of_rows(*TOO_MANY[:4], *TOO_MANY[6:])
    assert (joined.program.structure.layers_per_block, len(joined.workload)) == ((4,), 6)
    for pp in (1, 2):
        rows = [one for one in Results(of_rows(*TOO_MANY, declared=6, pp=pp)).what_if() if one.fixes]
        meant = [(one.flags, one.meaning) for one in rows if "7-8" in one.flags]
        assert meant == [
            (
                "--without-lines 7-8",
                "without final_norm and embedding_layer between them the two micro-batches are one",
            )
        ]
    (other,) = [one for one in Results(of_rows(*TOO_MANY, declared=6)).what_if() if "7-8" in one.flags]
    assert other.better10_ns == joined.step_time_ns > of_rows(*TOO_MANY, declared=6).step_time_ns
    # Where the count of rows is another nobody knows.
    assert not [one for one in Results(of_rows(*TOO_MANY, declared=7)).what_if() if "7-8" in one.flags]
    assert not [one for one in said(of_rows(*TOO_MANY, declared=6)).values() if "final_norm" in one]


def test_the_warning_of_the_count_of_rows_says_what_the_header_makes_of_it_and_what_fits_it() -> None:
    """98 rows, 96 stated, and a fix that leaves 87: a newcomer took it for another mistake of the file."""

    def warned(simulation: Simulation) -> list[str]:
        return [one.message for one in Results(simulation).diagnostics if one.code == "row-count"]

    seed = simulate(open_workload("fixtures/001_moe_128npu_with_mistakes.txt"), Parameters())
    plain = "found 98 rows, expected 96; all are read, SimAI stops after 96"
    assert [one.message for one in seed.diagnostics if one.code == "row-count"] == [plain]
    header = "; either line 1 is right (leave out lines 83-93, the second micro-batch)"
    assert warned(seed) == [
        f"{plain}{header} or line 2 (leave out lines 82-83, which part it from the first)"
    ]
    # What the words say of lines holds.
    for lines, code in (("83-93", "vpp-differs"), ("83-93", "ga-differs"), ("82-83", "row-count")):
        fixed = simulate(seed.workload, Parameters(without_lines=(lines,)))
        assert code in {one.code for one in seed.diagnostics} - {one.code for one in fixed.diagnostics}
    # A count that fits nothing, and what somebody has asked for.
    (other,) = warned(of_rows(*TOO_MANY, declared=7))
    assert other.endswith("; line 1 is right without lines 8-10")
    (asked,) = warned(of_rows(*TOO_MANY, declared=6, microbatches=2))
    assert "is right" not in asked


def test_rows_without_lines_in_a_file_are_not_named_by_them() -> None:
    """Planted: the sentence without asking whether there are lines; made rows ended in a traceback."""
    simulation = of_rows(*TOO_MANY, declared=6)
    made = replace(simulation.workload, rescaled="from tp 2 to tp 1")
    rules = {one.rule for one in Results(simulate(made, Parameters(schedule="1f1b"))).sentences}
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
    assert surplus_blocks(of_rows(*TOO_MANY, ga=2)) is None
    assert surplus_blocks(of_rows(*TOO_MANY, vpp=2)) is None
    assert surplus_blocks(of_rows(*TOO_MANY, *TOO_MANY[:5])) is None
    for simulation in (of_rows(*TOO_MANY, microbatches=4), uneven_microbatches()):
        assert "its header asks" not in said(simulation)["uneven-microbatches"]
        assert "stated" not in said(simulation)["uneven-microbatches"]


def test_another_layer_is_no_copy() -> None:
    other = [*TOO_MANY[:6], LAYER.format(3).replace("4000", "4001"), FINAL]
    found = surplus_blocks(of_rows(*other, declared=6))
    assert found is not None
    assert (found.copied, found.between) == ((), ())
    found_words = said(of_rows(*other, declared=6))
    assert "1 more block, of 1 layer." in found_words["uneven-microbatches"]
    assert "stated" not in found_words["uneven-microbatches"]


def test_two_blocks_too_many_are_said_with_the_layers_of_each() -> None:
    two = of_rows(*TOO_MANY, EMBEDDING, LAYER.format(4), LAYER.format(5), FINAL)
    text = said(two)["uneven-microbatches"]
    assert "make 3 micro-batches, of 3, 1 and 2 layers" in text
    assert text.endswith(" Lines 8-14 are 2 more blocks, of 1 and 2 layers.")
    alike = said(of_rows(*TOO_MANY, EMBEDDING, LAYER.format(4), FINAL))["uneven-microbatches"]
    assert alike.endswith(" Lines 8-13 are 2 more blocks, of 1 and 1 layers, which repeat line 4.")


def test_the_file_with_mistakes_says_which_lines_they_are() -> None:
    results = Results(simulate(open_workload(MISTAKES), Parameters()))
    workload = results.simulation.workload
    found, uneven = surplus_blocks(results.simulation), unequal_blocks(results.simulation)
    assert found is not None
    assert uneven is not None
    assert (uneven.most, uneven.least) == (0, 1)
    parts = (found.more, found.copied, found.between)
    lines = ["lines 83-93", "lines 10-18", "lines 82-83"]
    assert [line_words(workload, rows) for rows in parts] == lines
    assert not results.shape.microbatches_alike


def test_one_chunk_is_no_example_of_interleaving() -> None:
    """What an even 1f1b would leave is said; of `interleaved` in one chunk nothing is promised."""
    texts = {
        schedule: " ".join(
            said(
                simulate(open_workload(MISTAKES), Parameters(schedule=schedule, microbatches=4, **chunks))
            ).values()
        )
        for schedule, chunks in (("1f1b", {}), ("interleaved", {"virtual_stages": 1}))
    }
    assert "1f1b would leave 3 of 7 slots empty" in texts["1f1b"]
    assert "would leave" not in texts["interleaved"]
