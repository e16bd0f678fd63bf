"""What a GPU has not the memory for, and what would need less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simcore.words.sentences.model import RunSums, Weighed

if TYPE_CHECKING:
    from simcore.analysis.fitting import Smaller

# As many changes are named.
_NAMED = 3


class DoesNotFit(Weighed, frozen=True):
    """That the fullest stage needs more bytes than a GPU has. ways: changes with which less is needed, those
    with which it fits where there are such.
    """

    rule = "memory"

    stage: int
    needed: int
    limit: int
    ways: tuple[Smaller, ...]

    @property
    def text(self) -> str:
        text = f"Does not fit: stage {self.stage} needs {_gb(self.needed)} GB of {_gb(self.limit)} GB"
        if self.ways:
            named = [f"{change.words} needs {_gb(change.most)} GB" for change in self.ways]
            text += f"; {', '.join(named)}{'' if self.ways[0].fits else ', which does not fit either'}"
        return f"{text}."


def does_not_fit(run: RunSums) -> Iterator[DoesNotFit]:
    """Speaks of a model whose fullest stage needs more than a GPU has."""
    figures = run.results.model.model_figures
    if figures is None or figures.fits:
        return
    ways = run.results.smaller_runs
    fitting = tuple(way for way in ways if way.fits) or tuple(ways)
    # What does not fit takes no step at all.
    yield DoesNotFit(
        step_ns=run.step_ns, ns=0, cause="memory", lost_ns=run.step_ns, fault=True,
        stage=figures.fullest.stage, needed=figures.fullest.needed, limit=figures.limit,
        ways=fitting[:_NAMED],
    )  # fmt: skip


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f}"
