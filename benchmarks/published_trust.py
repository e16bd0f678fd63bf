"""All published steps that are here by GPU, precision and trainer: the table that a model's report quotes.

../shared/validation has them: steps.json (Megatron), published_2.json (the trainer of each row), fsdp.json
(as `--zero 3` is simulated by default). `python benchmarks/accuracy.py --write` writes them into
simcore/model/published.csv.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks import published_fsdp, published_more, published_steps
from benchmarks.published_steps import spread
from simcore.model.gpu import find_gpu
from simcore.model.resolving import resolve_training
from simcore.model.sizes import Model
from simcore.model.trust import FILE, HEAD, Kind, kind_of
from simcore.parameters import Parameters
from simcore.workload.model import ModelParameters


def errors_by_kind(steps: Iterable[published_steps.Off]) -> dict[Kind, list[float]]:
    """By kind, how much longer each simulated step is than the published one, as a share of it.

    steps: those of steps.json.
    """
    found = [(_kind(published_steps.model_of(one.row), published_steps.parameters_of(one.row)), one.error)
             for one in steps]  # fmt: skip
    found += [(one.kind, one.error) for one in published_more.all_made()]
    found += [
        # An MFU that is too high by a tenth is a step that is too short by an eleventh.
        (
            _kind(published_fsdp.model_of(one.row), published_fsdp.parameters_of(one.row)),
            one.published / one.made - 1,
        )
        for one in published_fsdp.all_made()
    ]
    errors: dict[Kind, list[float]] = {}
    for kind, error in found:
        errors.setdefault(kind, []).append(error)
    return dict(sorted(errors.items()))


def _kind(model: Model, parameters: Parameters) -> Kind:
    training = resolve_training(model, parameters.part(ModelParameters))
    return kind_of(training, find_gpu(training.gpu))


def table(steps: Iterable[published_steps.Off]) -> list[list[str]]:
    """A row for each kind."""
    rows = [["GPU, precision, trainer", "steps", "median", "90 % within", "worst"]]
    for kind, errors in errors_by_kind(steps).items():
        rows.append([kind.words, str(len(errors)), *(f"{100 * size:.1f} %" for size in spread(errors))])
    return rows


def csv(steps: Iterable[published_steps.Off]) -> str:
    """The file: shares to a thousandth."""
    lines = [HEAD]
    for kind, errors in errors_by_kind(steps).items():
        median, most, _ = spread(errors)
        compiled = "on" if kind.compiled else "off"
        cells = (kind.gpu, kind.precision, kind.engine, compiled, len(errors), f"{median:.3f}", f"{most:.3f}")
        lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


def write(steps: Iterable[published_steps.Off]) -> None:
    """Writes the file into the package."""
    FILE.write_text(csv(steps), "utf-8")
