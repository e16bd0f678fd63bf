"""Which layers each virtual stage of a pipeline has: given, or assumed as Megatron-LM places them.

A virtual stage is named by its position on the route of a micro-batch: position 0 has the embedding, the last
one the output layer and the loss.

Import from here: `PipelineLayers`, `count_layout_chunks`, `is_count`, `resolve_layers`, `stage_words`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.model.sizes import Model
from simcore.names import V_SCHEDULES
from simcore.records import NamedTuple
from simcore.units import is_whole
from simcore.workload.model import ModelParameters

_MOST_LAYERS = 65536
# Letters of a layout: 10,000 layers on as many virtual stages need a third of it.
_MOST_LETTERS = 1 << 16
_LAYOUT_EXAMPLE = "Et*3|(tt|)*29,m|L"
# As Megatron-LM repeats: brackets first, which are not nested, then single letters.
_REPEATED = (re.compile(r"\(([^()]*)\)\*(\d{1,5})"), re.compile(r"([^*()])\*(\d{1,5})"))


class PipelineLayers(NamedTuple):
    """The layers of each position of the route of a micro-batch."""

    layers: tuple[int, ...]
    """How many layers of the model."""
    predictions: tuple[int, ...] = ()
    """How many layers that predict further tokens (MTP); () where no position has one."""


def resolve_layers(
    model: Model,
    parameters: ModelParameters,
    pp: int,
    chunks: int,
    route: Sequence[int],
    diagnostics: list[Diagnostic],
) -> PipelineLayers:
    """Returns the layers of each position; what is assumed is appended to `diagnostics`.

    route: the stage of each position. Raises `UsageError` for layers that do not fit, with what would.
    """
    counts_ends = parameters.account_for_embedding or parameters.account_for_loss
    if parameters.pipeline_layout is not None:
        return _layers_of_layout(parameters.pipeline_layout, parameters, model)
    if counts_ends and parameters.stage_layers is not None:
        raise UsageError(
            "--stage-layers says how many layers each stage has: without --account-for-embedding and "
            "--account-for-loss it would fit"
        )
    if counts_ends:
        return PipelineLayers(_count_ends(parameters, model, pp, chunks))
    if pp * chunks > model.layers:
        raise UsageError(
            f"pp {pp}{f' x virtual stages {chunks}' if chunks > 1 else ''} is above the {model.layers} "
            f"layers of {printable(model.name, 40)}: at most {model.layers} would fit"
        )
    if parameters.stage_layers is not None:
        by_stage = _parse_stage_layers(parameters.stage_layers, model.layers, pp, chunks)
    elif model.layers % (pp * chunks) == 0:
        return PipelineLayers((model.layers // (pp * chunks),) * (pp * chunks))
    elif chunks > 1:
        raise _indivisible(model, parameters, pp, chunks)
    else:
        by_stage = [(size,) for size in _assume_stages(model, pp, diagnostics)]
    remaining = [iter(sizes) for sizes in by_stage]
    return PipelineLayers(tuple(next(remaining[stage]) for stage in route))


def stage_words(by_stage: list[tuple[int, ...]]) -> str:
    """Returns the layers of each stage as `--stage-layers` has them: `7,8*14,6`, or `8+7,8+8` where the
    chunks of a stage are not as even as they could be.
    """
    runs: list[tuple[str, int]] = []
    for chunks in by_stage:
        even = _even_chunks(sum(chunks), len(chunks))
        word = str(sum(chunks)) if chunks == even else "+".join(map(str, chunks))
        if runs and runs[-1][0] == word:
            runs[-1] = word, runs[-1][1] + 1
        else:
            runs.append((word, 1))
    return ",".join(f"{word}*{times}" if times > 1 else word for word, times in runs)


def _even_chunks(layers: int, chunks: int) -> tuple[int, ...]:
    """Returns the layers of a stage's chunks, the first ones with one more where they do not divide."""
    each, more = divmod(layers, chunks)
    return tuple(each + (chunk < more) for chunk in range(chunks))


def _assume_stages(model: Model, pp: int, diagnostics: list[Diagnostic]) -> list[int]:
    """Returns the layers of each stage where they do not divide."""
    least, more = divmod(model.layers, pp)
    # The stages with the loss and the embedding get fewer layers, as they have these in addition.
    fewer = [pp - 1, 0, *range(pp - 2, 0, -1)][: pp - more]
    sizes = [least if stage in fewer else least + 1 for stage in range(pp)]
    message = (
        f"stage_layers: {model.layers} layers on {pp} stages: {stage_words([(size,) for size in sizes])} "
        "assumed, the last and the first stage have fewer (--stage-layers)"
    )
    diagnostics.append(Diagnostic("note", "model-assumed", message, model.name))
    return sizes


def _indivisible(model: Model, parameters: ModelParameters, pp: int, chunks: int) -> UsageError:
    """Returns the error for layers that do not divide over virtual stages."""
    if parameters.schedule in V_SCHEDULES:
        most = model.layers // chunks
        stages = [stages for stages in range(1, most + 1) if model.layers % (chunks * stages) == 0]
        # An odd number of layers divides over no stages of two chunks.
        near = [str(fit) for fit in sorted(sorted(stages, key=lambda fit: abs(fit - pp))[:4])]
        pp_words = ", ".join(near[:-1]) + f" or {near[-1]}" if len(near) > 1 else "".join(near)
        fit = f"pp {pp_words} would fit, or --stage-layers" if near else "--stage-layers would fit"
        return UsageError(
            f"--schedule {parameters.schedule} cuts each stage in {chunks}: pp {pp} x {chunks} does not "
            f"divide the {model.layers} layers; {fit}"
        )
    fitting = [count for count in range(1, model.layers // pp + 1) if model.layers % (pp * count) == 0]
    ends = [
        words
        for more, words in (
            (1, "--account-for-embedding"),
            (2, "--account-for-embedding --account-for-loss"),
        )
        if (model.layers + more) % (pp * chunks) == 0
    ]
    near_words = [*([f"--virtual-stages {', '.join(map(str, fitting))}"] if fitting else []), *ends]
    fit = "".join(f"{words}, " for words in near_words)
    return UsageError(
        f"--virtual-stages {chunks}: pp {pp} x {chunks} does not divide the {model.layers} layers; "
        f"{fit}{'or ' * bool(fit)}--stage-layers would fit"
    )


def _count_ends(parameters: ModelParameters, model: Model, pp: int, chunks: int) -> tuple[int, ...]:
    """Returns the layers of each position where the embedding or the output layer takes the place of one."""
    first, last = int(parameters.account_for_embedding), int(parameters.account_for_loss)
    flags = " ".join(["--account-for-embedding"] * first + ["--account-for-loss"] * last)
    count, positions = model.layers + first + last, pp * chunks
    if count % positions:
        words = f"{model.layers} layers and {first + last} more on pp {pp} x virtual stages {chunks}"
        fitting = [f"--virtual-stages {fit}" for fit in range(1, count // pp + 1) if count % (pp * fit) == 0]
        raise UsageError(
            f"{flags}: {words} do not divide; {', '.join([*fitting[:4], '--stage-layers'])} would fit"
        )
    layers = [count // positions] * positions
    layers[0] -= first
    layers[-1] -= last
    return tuple(layers)


def _parse_stage_layers(text: str, layers: int, pp: int, chunks: int) -> list[tuple[int, ...]]:
    """Returns the layers of each chunk of each stage as `--stage-layers` has them."""
    by_stage: list[tuple[int, ...]] = []
    for word in text.split(","):
        size, star, times = word.strip().partition("*")
        parts = size.split("+")
        if not all(map(is_count, parts)) or (star and not is_count(times)) or len(by_stage) > _MOST_LAYERS:
            raise UsageError(
                f"--stage-layers {printable(text, 60)}: found {printable(word, 40) or 'nothing'}, expected "
                "layers of a stage like 7,8*14,6, or of its chunks like 8+7"
            )
        by_chunk = tuple(map(int, parts))
        if len(parts) == 1:
            by_chunk = _even_chunks(by_chunk[0], chunks)
        by_stage += [by_chunk] * min(int(times or 1), _MOST_LAYERS)
    total = sum(map(sum, by_stage))
    if len(by_stage) != pp or total != layers:
        raise UsageError(
            f"--stage-layers {printable(text, 60)}: {total} layers on {len(by_stage)} stages, expected "
            f"{layers} layers on pp {pp}"
        )
    for by_chunk in by_stage:
        words = "+".join(map(str, by_chunk))
        if len(by_chunk) != chunks:
            raise UsageError(
                f"--stage-layers {printable(text, 60)}: {words} are {len(by_chunk)} chunks, expected "
                f"{chunks} (--virtual-stages)"
            )
        if not min(by_chunk):
            raise UsageError(
                f"--stage-layers: {sum(by_chunk)} layers are fewer than {chunks} virtual stages; at most "
                f"{min(map(sum, by_stage))} would fit"
            )
    return by_stage


def is_count(text: str) -> bool:
    """Returns whether a text is a number from 1 to 99,999."""
    return is_whole(text, 5) and int(text) > 0


def count_layout_chunks(parameters: ModelParameters, pp: int) -> int:
    """Returns the virtual stages of a stage in `--pipeline-layout`. Raises `UsageError` where they do not fit
    `pp`, or other parameters.
    """
    text = parameters.pipeline_layout or ""
    others = [
        option
        for option, value in (
            ("--stage-layers", parameters.stage_layers),
            ("--account-for-embedding", parameters.account_for_embedding),
            ("--account-for-loss", parameters.account_for_loss),
        )
        if value
    ]
    if others:
        raise UsageError(f"--pipeline-layout says where all layers are: without {others[0]} it would fit")
    count = _expand(text).count("|") + 1
    if count % pp:
        below = count - count % pp
        fit = f"{below} or {below + pp}" if below else str(pp)
        raise UsageError(
            f"--pipeline-layout {printable(text, 60)}: {count} virtual stages on pp {pp}, expected a "
            f"multiple of it: {fit} would fit"
        )
    if parameters.virtual_stages not in (None, count // pp):
        raise UsageError(
            f"--virtual-stages {parameters.virtual_stages}: --pipeline-layout has {count} on pp {pp}; "
            f"{count // pp} would fit"
        )
    return count // pp


def _expand(text: str) -> str:
    """Returns a layout without commas and blanks, all that is repeated written out."""
    letters = 0

    def repeat(match: re.Match[str]) -> str:
        nonlocal letters
        letters += len(match[1]) * int(match[2])
        if letters > _MOST_LETTERS:
            raise UsageError(
                f"--pipeline-layout {printable(text, 60)}: at most {_MOST_LETTERS} letters are read"
            )
        return match[1] * int(match[2])

    expanded = re.sub(r"[,\s]", "", text)
    for pattern in _REPEATED:
        letters = len(expanded)
        expanded = pattern.sub(repeat, expanded)
    return expanded


def _layers_of_layout(text: str, parameters: ModelParameters, model: Model) -> PipelineLayers:
    """Returns the layers of each position as `--pipeline-layout` has them."""
    expanded = _expand(text)

    def unfit(found_words: str, expected: str) -> UsageError:
        return UsageError(f"--pipeline-layout {printable(text, 60)}: {found_words}, expected {expected}")

    other = re.search(r"[^EtmL|]", expanded)
    if other:
        raise unfit(
            f"found {printable(other[0], 10)}",
            f"E (embedding), t (layer), m (MTP), L (loss), | and *N, like {_LAYOUT_EXAMPLE}",
        )
    for letter, position_word, is_there in (
        ("E", "first", expanded.startswith("E")),
        ("L", "last", expanded.endswith("L")),
    ):
        count = expanded.count(letter)
        if count != 1 or not is_there:
            raise unfit(f"{count} {letter}", f"one {letter}, {position_word} of all")
    layers = expanded.count("t")
    if layers != model.layers:
        raise unfit(f"{layers} t", f"{model.layers}, the layers of {printable(model.name, 40)}")
    if "t" in expanded[expanded.find("m") :] and "m" in expanded:
        raise unfit("t behind m", "all m behind the last t")
    positions = expanded.split("|")
    predictions = tuple(position.count("m") for position in positions)
    return PipelineLayers(
        tuple(position.count("t") for position in positions), predictions if any(predictions) else ()
    )
