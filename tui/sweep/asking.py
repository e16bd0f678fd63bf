"""Which sweeps of the run on the screen are possible, and the words that are typed for one."""

from __future__ import annotations

import shlex
from typing import cast

from simcore.diagnostics import InputError, UsageError
from simcore.model.maker import ModelMaker
from simcore.model.resolving import resolve_training
from simcore.parameters import Parameters, flag_of
from simcore.program.schedules import SCHEDULES
from simcore.records import replace
from simcore.shell_words import join_words
from simcore.sweeping.layouts import VARIED
from simcore.sweeping.running import SweepOptions
from simcore.sweeping.space import DP, parse_axis
from simcore.workload.model import ModelParameters
from tui.commands import sweep as command
from tui.session import Run

# The line above the one in which a sweep is typed.
FORM = "--layouts or --vary NAME=VALUES ... (tp=1,2,4,8 microbatches=8..64*2), --where, --price, -o FILE"
# Schedules that are suggested for a workload file.
_OFFERED = ("1f1b", "gpipe", "zb-h1")


def refusal_text(run: Run) -> str:
    """Returns why there is no sweep of a run; "" where there can be one."""
    if run.shape.simulated is not None:
        return ""
    return "A sweep simulates a model or a workload file: this is a trace, whose parameters are on 5."


def has_layouts(run: Run) -> bool:
    """Returns whether a run trains a model by its sizes, so that its layout can be anything."""
    simulation = run.shape.simulated
    maker = None if simulation is None else run.setup.source.maker
    if not isinstance(maker, ModelMaker) or maker.model is None or simulation is None:
        return False
    return not simulation.workload.header.inference


def suggest_words(run: Run) -> str:
    """Returns the initial words of a sweep of this run."""
    if has_layouts(run):
        run_parameters, arguments = run.parameters, ["--layouts"]
        maker = cast("ModelMaker", run.setup.source.maker)
        assert maker.model is not None
        try:
            training = resolve_training(maker.model, run_parameters.part(ModelParameters))
        except (UsageError, InputError):
            return "--layouts --world 256 --global-batch 1024"
        if run_parameters.world is None:
            arguments += ["--world", str(training.world)]
        if run_parameters.global_batch is None:
            arguments += ["--global-batch", str(training.global_batch)]
        return " ".join(arguments)
    if run.model.model_figures is not None and run.model.model_figures.inference is not None:
        return "--vary tp=1,2,4,8 --vary kv-dtype=bf16,fp8"
    count = max(run.shape.microbatches, 1)
    arguments = [f"--vary microbatches={count},{2 * count},{4 * count}"]
    parameters = run.parameters
    if (run.shape.pp or 1) > 1:
        now = parameters.schedule or _OFFERED[0]
        names = dict.fromkeys((now, *(name for name in _OFFERED if name in SCHEDULES)))
        arguments.append(f"--vary schedule={','.join(names)}")
    return " ".join(arguments)


def prepare_sweep(run: Run, typed: str) -> SweepOptions:
    """Returns the sweep of the typed words: what they leave open is as in the run.

    Raises `UsageError` for invalid words, and as opening the input does.
    """
    return command.build_sweep(_sweep_words(run, typed))


def _sweep_words(run: Run, typed: str) -> list[str]:
    """Returns the words behind `wltui sweep`."""
    try:
        arguments = shlex.split(typed)
    except ValueError as error:
        raise UsageError(f"{error}: a quote is open") from None
    options = command.build_parser().parse_args(arguments)
    if options.file is not None or options.model is not None:
        raise UsageError("the input is what is open: only what varies is typed here")
    base = run.parameters
    varied = [parse_axis(text).field for text in options.vary]
    varied += [name for name in command.LISTED if "," in (getattr(options, name) or "")]
    varied += ["world"] if DP in varied else []
    varied += VARIED if options.layouts else []
    defaults = {name: flag_of(name).default for name in varied if name != DP}
    return [*opened_words(run), *replace(base, **defaults).as_flags(), *arguments]


def opened_words(run: Run) -> tuple[str, ...]:
    """Returns the words that open the input of a run."""
    maker = run.setup.source.maker
    return () if isinstance(maker, ModelMaker) and maker.model is None else (run.path,)


def command_words(run: Run, typed: str) -> str:
    """Returns the command line of such a sweep, with its screen."""
    try:
        arguments = _sweep_words(run, typed)
    except UsageError:
        arguments = [*opened_words(run), *Parameters().as_flags(), *shlex.split(typed)]
    return join_words(["wltui", "sweep", *arguments, "--screen"])
