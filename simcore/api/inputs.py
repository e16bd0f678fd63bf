"""Inputs as Python opens them: a workload, a model, rank traces, a profile, execution traces."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from simcore.api.run import Run
from simcore.api.values import (
    WrongType,
    check_values,
    errors_in_keywords,
    keyword_types,
    text,
    whole_number,
    with_keywords,
)
from simcore.diagnostics import UsageError
from simcore.parameters import OpeningOptions, Parameters, RunInput
from simcore.runs import open_run
from simcore.workload import Workload

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from simcore.api.keywords import RunKeywords
    from simcore.model.launch import Launch


class Input:
    """What `load` opened."""

    def __init__(self, opened: Any, words: tuple[str, ...], launch: Launch | None = None) -> None:
        self._opened, self._words, self._launch = opened, words, launch

    @property
    def path(self) -> str:
        """The path of the input, as it was given."""
        return str(self._opened.path)

    @property
    def kind(self) -> str:
        """The kind of input: `a workload`, `a measured run` or `execution traces`."""
        return str(self._opened.noun)

    @property
    def can_be_swept(self) -> bool:
        """Whether `sweep` takes it: a workload or a model; other inputs are run one by one."""
        return isinstance(self._opened, Workload)

    @with_keywords(keyword_types())
    @errors_in_keywords()
    def run(self, **parameters: Unpack[RunKeywords]) -> Run:
        """Returns a run: a workload or model simulated, execution traces executed, a recording as measured.

        parameters: the flags of the command line by their names, `run(tp=4, overlap_grad_reduce=True)`; None
        stands for a parameter that is not given. Raises `UsageError` for one that this input does not have,
        and for a value that it cannot have.
        """
        return self._run(self._values(parameters))

    def _run(self, values: Mapping[str, Any]) -> Run:
        """Returns the run under these parameters, whatever the launch arguments say."""
        return Run(open_run(RunInput(self._opened, Parameters(**values))))

    def _values(self, explicit: Mapping[str, object], free: Collection[str] = ()) -> dict[str, Any]:
        """Returns the values of parameters, over those of launch arguments. free: those of these that are
        not taken.
        """
        values = check_values(explicit)
        return values if self._launch is None else self._launch.under(values, free)

    def __repr__(self) -> str:
        return f"<Input {self.path}: {self.kind}>"


@errors_in_keywords()
def load(
    path: str | os.PathLike[str] | None = None,
    *,
    model: str | os.PathLike[str] | None = None,
    from_args: str | os.PathLike[str] | None = None,
    run: str | None = None,
    step: str | int | None = None,
    ranks: str | Iterable[int] | None = None,
    comm_names: str | None = None,
    step_names: str | None = None,
    trace_map: str | os.PathLike[str] | None = None,
    cache: bool = True,
) -> Input:
    """Returns what is at a path: any file or directory that `wltui PATH` opens; or a model.

    model: in place of a path, a name of `wltui models` or the path of a config.json or TOML. from_args: a
    model with its layout, as Megatron-LM's arguments, torchtitan's TOML or DeepSpeed's JSON state it: a file
    or the arguments; `run` takes the layout, except what it is given itself. Of recordings:
    run: which of a directory's runs, by its stamp; step: its number or "all"; ranks: like "0-7,12" or [0, 3];
    comm_names, step_names: regular expressions of further kernels that communicate and of annotations that
    are steps; trace_map: a file of rules for the spans of a Chrome trace; cache: whether what was read may be
    kept for the next time.

    Raises `InputError` for what cannot be read, with file, line and what would fit; `UsageError`, which is a
    `TypeError`, too, where an argument is of a type that does not fit.
    """
    from simcore.sources.inputs import open_input, open_launch, open_model

    if (path is not None and (model is not None or from_args is not None)) or path is model is from_args:
        raise UsageError("load: give a path, or model=NAME, or from_args=FILE, one of them")
    if from_args is not None:
        from simcore.model.launch import read_launch

        launch = read_launch(text("from_args", from_args, "launch arguments, or the path of a file of them"))
        name = None if model is None else text("model", model)
        words = (launch.path,) if name is None else ("--model", name)
        return Input(open_launch(launch, name), words, launch)
    if path is None:
        model_name = text("model", model, "a name, like 'llama-3-8b', or a path")
        return Input(open_model(model_name), ("--model", model_name))
    name = os.path.expanduser(text("load", path, "a path, as a text or pathlib.Path, or model=NAME"))
    at_step = step if step is None or isinstance(step, str) else str(whole_number("step", step))
    of_text = {"run": run, "comm_names": comm_names, "step_names": step_names, "trace_map": trace_map}
    options: dict[str, Any] = {
        key: None if value is None else text(key, value) for key, value in of_text.items()
    }
    return Input(
        open_input(name, OpeningOptions(step=at_step, ranks=_ranks(ranks), cache=cache, **options)), (name,)
    )


def _ranks(ranks: object) -> str | None:
    """Returns the ranks of a recording to open, as the command line writes them; None for all."""
    if ranks is None or isinstance(ranks, str):
        return ranks
    if not isinstance(ranks, Iterable):
        raise WrongType("ranks", ranks, "ranks, like [0, 3] or '0-7,12'")
    return ",".join(str(whole_number("ranks", rank)) for rank in ranks)
