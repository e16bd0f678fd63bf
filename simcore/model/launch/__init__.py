"""Launch arguments of Megatron-LM, torchtitan and DeepSpeed: read as a model with a layout, and written.

Import from here: `Launch`, `LaunchParameters`, `PROJECTS`, `module_of`, `read_launch`, `read_launch_file`,
`write_launch`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.model.known_models import MODELS
from simcore.model.launch.arguments import (
    Arguments,
    Fields,
    FoundArgument,
    is_on,
    list_rest,
    read_table,
    warn_unpriced,
    write_table,
)
from simcore.model.launch.fields import (
    LaunchParameters as LaunchParameters,
)
from simcore.model.launch.fields import (
    build_model,
    differences,
    fields_of,
    known_name,
    parameter_values,
)
from simcore.model.launch.shell import argument_name, find_words, is_unset, unset_name
from simcore.model.resolving import resolve_training
from simcore.model.sizes import Model, check_model
from simcore.model.toml_text import TomlProblem, format_toml_value, location_at, parse_toml
from simcore.records import Struct, replace
from simcore.shell_words import quote_word

# Word of --emit -> the project's name.
PROJECTS = {"megatron": "Megatron-LM", "torchtitan": "torchtitan", "deepspeed": "DeepSpeed"}
# Parameter -> what launch arguments state for their value of it alone.
_PIPELINE = ("pipeline_layout", "stage_layers", "account_for_embedding", "account_for_loss")
_DEPENDENT = {
    "pp": ("virtual_stages", *_PIPELINE), "virtual_stages": _PIPELINE, "schedule": _PIPELINE,
    "stage_layers": _PIPELINE, "recompute": ("recompute_layers", "recompute_rows"), "world": ("shard_size",),
    "zero": ("overlap_grad_reduce", "overlap_param_gather", "bucket_size", "shard_size",
             "reshard_after_forward"),
}  # fmt: skip
# Scripts have some 10 kB; a larger file is another kind of file.
_MOST_BYTES = 1 << 20
# Names by which its script is known where a text has no file.
_SCRIPT = "pretrain_gpt.py"
_FORMS = {"megatron": "--{}", "torchtitan": "{}", "deepspeed": "{}"}


class Launch(Struct, frozen=True):
    """What launch arguments state."""

    project: str
    """A word of `PROJECTS`."""
    path: str
    """The file, or words that state the model alone, by which it opens again as a model."""
    model: Model | None
    """The model; None where they have none, as DeepSpeed's."""
    values: dict[str, Any]
    """{parameter: value} of the layout."""
    replicas: int | None
    """The replicas, where they state these and not the ranks."""
    rest: dict[str, Any]
    """The arguments that mean nothing here, with their values."""
    diagnostics: tuple[Diagnostic, ...]
    """What was assumed, what changes the step and is not priced, and what means nothing here."""

    def under(self, explicit: Mapping[str, Any], free: Collection[str] = ()) -> dict[str, Any]:
        """Returns the parameters with these explicit ones in place of theirs. free: those that are not
        taken.
        """
        replaced = {name for name, value in explicit.items() if value != self.values.get(name)}
        # A sweep over ZeRO has its overlaps where they fit.
        changed = replaced | ({*free} - {"zero"})
        dropped_names = {*free, *(name for one in changed for name in _DEPENDENT.get(one, ()))}
        values = {name: value for name, value in self.values.items() if name not in dropped_names}
        if "tp" in replaced and values.get("etp") == self.values.get("tp", 1):
            # Ranks of tp that divide each expert go on to do so.
            values["etp"] = explicit["tp"] or 1
        of_batch = {"world", "global_batch", "microbatch_size"}
        if of_batch & {*explicit} and "global_batch" in {*values, *explicit}:
            # The batch stays, and how many micro-batches it is follows.
            values.pop("microbatches", None)
        values |= explicit
        degrees = [values.get(name) or 1 for name in ("tp", "cp", "pp")]
        ranks = degrees[0] * degrees[1] * degrees[2]
        if self.replicas is not None and "world" not in values:
            values["world"] = self.replicas * ranks
        batch, count = self.values.get("global_batch"), self.values.get("microbatches")
        if batch and count and "microbatch_size" not in values:
            # DeepSpeed's batch and what is accumulated leave the rest to the number of GPUs.
            values["microbatch_size"] = max(batch * ranks // (count * values["world"]), 1)
        return values


def is_launch_text(text: str) -> bool:
    """Returns whether a text that is no file has Megatron-LM's arguments."""
    return re.search(r"(^|\s)--[a-z]", text) is not None


def read_launch(text: str) -> Launch:
    """Returns what `--from-args` names: a file, or a command line, which may begin with the name of a script.

    Raises `UsageError` where it is neither, InputError with the position of an argument that is broken.
    """
    if os.path.isfile(text):
        return read_launch_file(text)
    if not is_launch_text(text) and " " not in text.strip():
        raise UsageError(
            f"--from-args {printable(text, 60)}: there is no such file; a file or arguments, like "
            '"--num-layers 32 ...", are expected'
        )
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--from-args {printable(text, 60)}: {error}") from None
    variables: dict[str, str] = {}
    while words and (match_ := re.match(r"([A-Za-z_]\w*)=", words[0])):
        variables[match_[1]] = words.pop(0)[match_.end() :]
    if words[:1] in (["bash"], ["sh"]):
        words = words[1:]
    if not words or not os.path.isfile(words[0]):
        return _read_command("arguments", text, (), variables, "")
    behind = next((index for index, word in enumerate(words) if index and argument_name(word)), len(words))
    data = _read_file(words[0])
    return _read_command(
        words[0], data.decode("utf-8", "replace"), words[1:behind], variables, "", words[behind:]
    )


def read_launch_file(path: str, data: bytes | None = None) -> Launch:
    """Returns what a file of launch arguments states: a script, TOML or JSON. Raises InputError."""
    data = _read_file(path) if data is None else data
    if len(data) > _MOST_BYTES:
        message = "found more than 1 MiB, expected launch arguments"
        raise InputError(Diagnostic("error", "launch-argument", message, path))
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    start = text.lstrip()
    if start.startswith("{"):
        return _read_json(path, text)
    if is_toml(text):
        return _read_toml(path, text)
    return _read_command(path, text, (), {}, path)


def is_toml(text: str) -> bool:
    """Returns whether a text is torchtitan's TOML, not a script."""
    return re.search(r"^[ \t]*\[[\w.]+\][ \t]*(#.*)?$", text, re.MULTILINE) is not None


def _read_file(path: str) -> bytes:
    from simcore.workload.opening import read_file

    return read_file(path)


# -- reading -----------------------------------------------------------------------------


def _read_command(
    path: str, text: str, words: list[str] | tuple[str, ...], variables: dict[str, str], file: str,
    more: list[str] | tuple[str, ...] = (),
) -> Launch:  # fmt: skip
    """Returns what the command of a script states. file: its path where the script alone is what was named.
    more: further arguments behind it.
    """
    from simcore.model.launch import megatron

    names = frozenset(
        name for row in megatron.TABLE for name in (*row.names, *getattr(row, "aliases", ()))
    ) - {*megatron.LAUNCHERS}
    try:
        found_words = find_words(text, names, words, variables)
    except UsageError as error:
        raise InputError(Diagnostic("error", "launch-argument", str(error), path)) from None
    found_arguments: dict[str, FoundArgument] = {}
    script = _SCRIPT
    name = ""
    for word in [*((one.text, one.offset) for one in found_words), *((one, -1) for one in more)]:
        if argument_name(word[0]):
            name = argument_name(word[0])
            _, equals, value = word[0].partition("=")
            location = location_at(text, word[1]) if word[1] >= 0 else (None, None)
            found_arguments[name] = FoundArgument((value,) if equals else (), location)
        elif word[0].endswith(".py"):
            script, name = os.path.basename(word[0]), ""
        elif name and not (found_arguments[name].value and is_unset(word[0])):
            # A variable that is not set, behind a value, is nothing.
            found_arguments[name] = found_arguments[name]._replace(
                value=(*found_arguments[name].value, word[0])
            )
    if not names & {*found_arguments}:
        message = "found none of Megatron-LM's arguments, expected some, like --num-layers 32"
        raise InputError(Diagnostic("error", "launch-argument", message, path))
    arguments = Arguments(path, found_arguments, _FORMS["megatron"])
    return _build_launch("megatron", arguments, file, script)


def _read_toml(path: str, text: str) -> Launch:
    try:
        table = parse_toml(text, "keys of torchtitan")
    except TomlProblem as problem:
        line, column = problem.location or (None, None)
        raise InputError(
            Diagnostic("error", "launch-argument", problem.message, path, line, column)
        ) from None
    found_arguments = {
        key: FoundArgument(value, _locate_key(text, key)) for key, value in _flatten(table).items()
    }
    return _build_launch("torchtitan", Arguments(path, found_arguments, _FORMS["torchtitan"]), path, "")


def _read_json(path: str, text: str) -> Launch:
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        location = getattr(error, "lineno", 1), getattr(error, "colno", 1)
        message = f"this is not JSON: {printable(str(error), 80)}"
        raise InputError(Diagnostic("error", "launch-argument", message, path, *location)) from None
    if not isinstance(table, dict):
        raise InputError(
            Diagnostic("error", "launch-argument", "found no JSON object, expected DeepSpeed's", path)
        )
    # What a trainer around DeepSpeed fills in is not stated.
    found_arguments = {
        key: FoundArgument(value, _locate_json_key(text, key))
        for key, value in _flatten(table).items()
        if value != "auto"
    }
    arguments = Arguments(path, found_arguments, _FORMS["deepspeed"])
    table = module_of("deepspeed").TABLE
    if not any(name in arguments for row in table for name in row.names):
        message = "found none of DeepSpeed's keys, expected some, like train_batch_size or zero_optimization"
        raise InputError(Diagnostic("error", "launch-argument", message, path))
    return _build_launch("deepspeed", arguments, path, "")


def _flatten(table: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and value and depth < 8:
            values |= _flatten(value, f"{prefix}{key}.", depth + 1)
        else:
            values[f"{prefix}{key}"] = value
    return values


def _locate_key(text: str, key: str) -> tuple[int | None, int | None]:
    section, _, name = key.rpartition(".")
    head = re.search(rf"^\s*\[\s*{re.escape(section)}\s*\]", text, re.MULTILINE)
    match_ = re.compile(rf"^[ \t]*({re.escape(name)})\s*=", re.MULTILINE).search(
        text, head.end() if head else 0
    )
    return location_at(text, match_.start(1)) if match_ else (None, None)


def _locate_json_key(text: str, key: str) -> tuple[int | None, int | None]:
    position = 0
    for name in key.split("."):
        position = text.find(json.dumps(name), position)
        if position < 0:
            return None, None
    return location_at(text, position)


def _build_launch(project: str, arguments: Arguments, file: str, script: str) -> Launch:
    module = module_of(project)
    fields = read_table(module.TABLE, arguments)
    warn_unpriced(arguments, module.UNPRICED)
    model = None
    if project == "megatron" and "num-layers" in arguments:
        missing = next(
            (one for one in ("hidden-size", "num-attention-heads", "seq-length") if one not in arguments),
            None,
        )
        if missing:
            raise arguments.refusal(
                "num-layers", f"found no --{missing} beside it, expected the sizes of a model"
            )
        try:
            model = check_model(build_model(_name_of(file), fields))
        except UsageError as error:
            raise arguments.refusal("num-layers", str(error)) from None
    elif "known" in fields:
        model = MODELS[fields.pop("known")]
    fields.pop("known", None)
    if model is not None and model.moe is None:
        # Megatron's defaults of experts mean nothing without any.
        fields.pop("etp", None)
    replicas = fields.pop("dp", None)
    values = parameter_values(fields)
    _check_world(arguments, values)
    silent = {*module.PRICED_NAMES, *module.UNPRICED}
    unused = [name for name in arguments.rest if name not in silent or not is_on(arguments.rest[name])]
    diagnostics = (*arguments.notes, *list_rest(arguments, unused))
    launch = Launch(project, file, model, values, replicas, arguments.rest, diagnostics)
    return launch if file or model is None else replace(launch, path=_model_words(model, script))


def _name_of(file: str) -> str:
    return os.path.splitext(os.path.basename(file))[0] or "model"


def _check_world(arguments: Arguments, values: Mapping[str, Any]) -> None:
    """Raises InputError for ranks that the launcher's arguments do not give."""
    ranks = [values.get(name) or 1 for name in ("tp", "cp", "pp")]
    total = ranks[0] * ranks[1] * ranks[2]
    world = values.get("world")
    if world is not None and world % total and "nproc-per-node" in arguments:
        name = "nnodes" if "nnodes" in arguments else "nproc-per-node"
        arguments.warn(
            name, f"{world} ranks are no multiple of tp x cp x pp = {total}: --world says how many there are"
        )


def module_of(project: str) -> Any:
    """Returns the module with the table of a project."""
    return import_module(f"simcore.model.launch.{project}")


# -- writing -----------------------------------------------------------------------------


def write_launch(
    project: str, model: Model, parameters: LaunchParameters, rest: Mapping[str, Any] | None = None
) -> tuple[str, list[str]]:
    """Returns the launch arguments of a run, and the names of what they cannot state.

    rest: further arguments of the same project, which are written behind. Raises `UsageError` where the
    parameters do not fit the model.
    """
    training = resolve_training(model, parameters)
    if training.inference is not None:
        raise UsageError(
            f"--emit {project} with --{training.inference.name}: launch arguments are of training; without "
            "--emit it would fit"
        )
    fields = fields_of(training, parameters)
    fields["known"] = known_name(model)
    arguments = write_table(module_of(project).TABLE, fields)
    text = _FORMATTERS[project](arguments, rest or {})
    return text, _unstated(project, arguments, fields, model, parameters)


def _unstated(
    project: str, arguments: Mapping[str, Any], fields: Fields, model: Model, parameters: LaunchParameters
) -> list[str]:
    """Returns what differs between a run and the one that its written arguments state."""
    found_arguments = {name: FoundArgument(_found_value(project, one)) for name, one in arguments.items()}
    again_arguments = Arguments("", found_arguments, _FORMS[project])
    launch = _build_launch(project, again_arguments, "written", "")
    again = LaunchParameters(**launch.under({}))
    here = {"memory_limit": parameters.memory_limit, "gpu": parameters.gpu, "offload": None}
    training = resolve_training(model, parameters)
    if launch.model is None and project == "torchtitan":
        # No flavor has these sizes.
        return ["model"]
    try:
        training_again = resolve_training(launch.model or model, replace(again, **here))
    except UsageError as error:
        return [str(error)]
    # The trainer is the one whose arguments these are, and its buckets are its own.
    own = {"engine", "compiled"} | ({"bucket_size"} if parameters.bucket_size is None else set())
    different = [name for name in differences(training, training_again) if name not in own]
    for name in ("schedule", "overlap_fwd_bwd", "rank_order"):
        values = getattr(parameters, name), getattr(again, name)
        plain = [
            None if value in ("1f1b", "interleaved") and name == "schedule" else value for value in values
        ]
        different += [name] if plain[0] != plain[1] else []
    return different


def _found_value(project: str, value: Any) -> Any:
    if project != "megatron":
        return value
    return () if value is True else tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)


def _format_command(arguments: Mapping[str, Any], rest: Mapping[str, Any]) -> str:
    launcher = module_of("megatron").LAUNCHERS
    others = {name: value for name, value in rest.items() if name not in arguments}
    before = {name: value for name, value in {**arguments, **others}.items() if name in launcher}
    behind = {name: value for name, value in arguments.items() if name not in launcher}
    others = {name: value for name, value in others.items() if name not in launcher}
    if "fp16" in others:
        # Gradients are in fp16, too, unless a further argument says otherwise.
        for name in ("bf16", "grad-reduce-in-bf16"):
            behind.pop(name, None)
    lines = [f"torchrun {' '.join(_words(before))} {_SCRIPT}", *_words(behind), *_words(others)]
    return " \\\n    ".join(lines) + "\n"


def _words(arguments: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, value in arguments.items():
        parts = () if value is True else value if isinstance(value, tuple) else (value,)
        lines.append(" ".join([f"--{name}", *(_quote(str(part)) for part in parts)]))
    return lines


def _quote(text: str) -> str:
    """Returns a word as a shell takes it; variables of the script that was read stay variables."""
    name = unset_name(text)
    if name:
        from simcore.model.launch.shell import plain_text

        return f'"{plain_text(text)}"'
    return quote_word(text)


def _format_toml(arguments: Mapping[str, Any], rest: Mapping[str, Any]) -> str:
    sections: dict[str, list[str]] = {}
    for key, value in {
        **arguments,
        **{key: value for key, value in rest.items() if key not in arguments},
    }.items():
        section, _, name = key.rpartition(".")
        sections.setdefault(section, []).append(f"{name} = {format_toml_value(value)}")
    return "\n".join(
        f"[{section}]\n" + "\n".join(lines) + "\n" if section else "\n".join(lines) + "\n"
        for section, lines in sorted(sections.items(), key=lambda entry: bool(entry[0]))
    )


def _format_json(arguments: Mapping[str, Any], rest: Mapping[str, Any]) -> str:
    table: dict[str, Any] = {}
    if rest.get("fp16.enabled") is True:
        arguments = {key: value for key, value in arguments.items() if key != "bf16.enabled"}
    for key, value in {**rest, **arguments}.items():
        *parts, name = key.split(".")
        inner = table
        for part in parts:
            inner = inner.setdefault(part, {})
        inner[name] = value
    return json.dumps(table, indent=2) + "\n"


_FORMATTERS = {"megatron": _format_command, "torchtitan": _format_toml, "deepspeed": _format_json}


def _model_words(model: Model, script: str) -> str:
    """Returns words that state a model alone, by which it opens again."""
    if MODELS.get(model.name) == model:
        return model.name
    parameters = LaunchParameters()
    fields = fields_of(resolve_training(model, parameters), parameters)
    module = module_of("megatron")
    arguments = write_table(module.TABLE, fields)
    layout = {
        *module.LAUNCHERS,
        "micro-batch-size",
        "global-batch-size",
        "bf16",
        "expert-tensor-parallel-size",
    }
    return " ".join(
        [script, *_words({name: value for name, value in arguments.items() if name not in layout})]
    )
