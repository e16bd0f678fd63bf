"""The table of parameters: values from text, and back to the flags that give them."""

import argparse
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from simcore.diagnostics import UsageError
from simcore.parameter_values.choices import choices
from simcore.parameters import FLAGS, Flag, Parameters, flag_of, parse_value
from simcore.program.schedules import SCHEDULES
from tui.commands.arguments import Parser, add_parameters, parse_parameters


def parsed(*words: str) -> Parameters:
    parser = Parser(prog="wltui report")
    add_parameters(parser)
    return parse_parameters(parser.parse_args(list(words)))


def test_every_parameter_has_one_flag_with_its_default() -> None:
    fields = [field.name for field in structs.fields(Parameters)]
    assert [flag.field for flag in FLAGS] == fields
    for flag in FLAGS:
        assert flag_of(flag.field) is flag
        assert flag.default == getattr(Parameters(), flag.field)
        assert flag.option == "--" + flag.field.replace("_", "-")
        assert flag.help


def test_no_words_are_the_defaults() -> None:
    assert parsed() == Parameters()
    assert Parameters().as_flags() == []


def test_a_word_has_its_choices() -> None:
    words = {flag.field: choices(flag.field) for flag in FLAGS if flag.kind == "word"}
    assert words == {
        "rank_order": ("tp-ep-dp-pp", "tp-pp-dp"),
        "schedule": tuple(SCHEDULES),
        "stage_layout": ("uniform", "megatron"),
        "dialect": ("simai", "simai-sim", "astra-sim-1", "astra-sim-2"),
        "network": ("analytical", "shared", "busbw:FILE", "simai-auto", "links", "flows"),
        "flow_model": ("ns3", "plain"),
        "ecmp": ("simai", "seeded", "balanced"),
        "nvls": ("off", "on"),
        "pxn": ("off", "on"),
        "congestion": ("none", "dcqcn"),
        "rendezvous_protocol": ("true", "false"),
        "gpu_type": ("H100", "H20", "H800", "A100", "A800"),
        "nic_type": ("cx7", "cx6", "bf3"),
        "collective_optimization": ("localBWAware", "baseline"),
        "cp_comm_type": ("p2p", "all-gather", "a2a", "a2a+p2p"),
        "sequence_parallel": ("on", "off"),
        "flash": ("on", "off"),
        "recompute": ("none", "selective", "full"),
        "zero": ("0", "1", "2", "3"),
        "prefetch": ("0", "1", "2"),
        "reshard_after_forward": ("on", "off"),
        "expert_placement": ("given", "balanced"),
        "dispatch": ("plain", "hierarchical"),
        "dispatch_precision": ("bf16", "fp8"),
        "kv_dtype": ("bf16", "fp8"),
        "grad_dtype": ("fp32", "bf16"),
        "precision": ("bf16", "fp8", "mxfp8", "nvfp4"),
        "engine_preset": ("megatron", "deepspeed", "torchtitan", "fsdp"),
        "compile": ("on", "off"),
        "pp_scatter": ("on", "off"),
        "as_aicb": ("plain", "aiob"),
        "rescale": ("off", "on"),
    }


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("tp", "8", 8),
        ("world", "1099511627776", 2**40),
        ("tp", "0008", 8),
        ("endpoint_delay", "0", 0),
        ("local_mem_bw", "1e3", 1000.0),
        ("comm_scale", "0", 0.0),
        ("comm_scale", ".5", 0.5),
        ("compute_scale", "1e12", 1e12),
        ("schedule", "1f1b", "1f1b"),
        ("dim", "ring:4:1:1 switch:2:1:1", ("ring:4:1:1", "switch:2:1:1")),
    ],
)
def test_values_from_text(field: str, text: str, value: object) -> None:
    assert parse_value(flag_of(field), text) == value


COUNT = "a whole number from {} to 2^40 is expected"
REFUSED = [
    *[
        ("tp", text, COUNT.format(1))
        for text in ("", "0", "-1", "+1", "1.0", "1e3", "8 ", "\u0663", "\u00b2", "x", "1_000")
    ],
    ("world", "1099511627777", COUNT.format(1)),
    ("world", "9" * 5000, COUNT.format(1)),
    ("endpoint_delay", "-1", COUNT.format(0)),
    *[
        (name, text, "a whole number from 1 to 1024 is expected")
        for name in ("splits", "active_chunks")
        for text in ("0", "1025")
    ],
    *[
        ("comm_scale", text, "a number of 0 or more (up to 1e12) is expected")
        for text in ("", "x", "nan", "inf", "-1", "1e13")
    ],
    *[
        ("local_mem_bw", text, "a number above 0 (up to 1e12) is expected")
        for text in ("0", "-1", "nan", "1e400", "0.0")
    ],
]


def test_a_value_that_cannot_be_is_refused_with_what_fits() -> None:
    for field, text, expected in REFUSED:
        flag = flag_of(field)
        shown = text if len(text) <= 60 else text[:57] + "..."
        with pytest.raises(UsageError) as refused:
            parse_value(flag, text)
        assert str(refused.value) == f"{flag.option} {shown}: {expected}"


@pytest.mark.parametrize("text", ["1_0", "\u0663", " 1", "1\n", "infinity", "0x10"])
def test_a_number_is_written_in_plain_digits_as_a_dimensions_is(text: str) -> None:
    with pytest.raises(UsageError):
        parse_value(flag_of("comm_scale"), text)


def test_what_is_refused_is_shown_without_its_control_characters() -> None:
    for field in ("tp", "comm_scale"):
        with pytest.raises(UsageError) as refused:
            parse_value(flag_of(field), "\x1b[2J\n")
        assert str(refused.value).startswith(f"{flag_of(field).option} \\x1b[2J\\x0a: ")


WORD = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1).filter(
    lambda word: word[0] != "-"
)


def values(flag: Flag) -> st.SearchStrategy[object]:
    """Any value that a flag can have."""
    numbers = {
        "count": st.integers(1, 1024 if flag.field in ("splits", "active_chunks") else 2**40),
        "positive": st.floats(1e-300, 1e12),
        "scale": st.floats(0, 1e12),
        # One of its words, where the flag itself says which there are.
        "word": st.sampled_from(flag.choices) if flag.choices else WORD,
        "text": WORD,
        "words": st.lists(WORD, max_size=3).map(tuple),
        "switch": st.booleans(),
    }
    return st.just(flag.default) | numbers[flag.kind]


@settings(max_examples=60)
@given(st.fixed_dictionaries({flag.field: values(flag) for flag in FLAGS}))
def test_parameters_come_back_from_the_flags_they_give(fields: dict[str, object]) -> None:
    parameters = Parameters(**fields)  # type: ignore[arg-type]
    again = parsed(*parameters.as_flags())
    assert again == parameters
    assert again.as_dict() == parameters.as_dict()


def test_a_repeated_flag_adds_a_dimension_and_otherwise_the_last_one_counts() -> None:
    parameters = parsed("--dim", "a", "--dim", "b c", "--tp", "2", "--tp", "4")
    assert (parameters.dim, parameters.tp) == (("a", "b", "c"), 4)


def test_replaced_changes_one_parameter_and_leaves_the_rest() -> None:
    before = Parameters(tp=2, dim=("a",))
    after = before.with_value("tp", 4)
    assert (after, before.tp) == (Parameters(tp=4, dim=("a",)), 2)


def test_parameters_as_plain_values_hold_lists_for_tuples() -> None:
    values_of = Parameters(dim=("a", "b"), comm_scale=math.pi).as_dict()
    assert (values_of["dim"], values_of["algorithm"], values_of["comm_scale"]) == (["a", "b"], [], math.pi)


def test_a_complaint_of_the_parser_is_a_usage_error_with_the_way_to_help() -> None:
    parser = Parser(prog="wltui report")
    assert isinstance(parser, argparse.ArgumentParser)
    with pytest.raises(UsageError) as refused:
        parser.parse_args(["--x"])
    assert str(refused.value) == "unrecognized arguments: --x (see wltui report --help)"
