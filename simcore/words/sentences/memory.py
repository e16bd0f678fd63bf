"""The sentence on a model that needs more memory than a GPU has, and the changes that need less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simcore.words.sentences.model import RunSums, Weighed

if TYPE_CHECKING:
    from simcore.analysis.fitting import MemorySaving

# The most changes that are named.
_MOST_NAMED = 3


class DoesNotFit(Weighed, frozen=True):
    """The fullest stage needs more bytes than a GPU has."""

    rule = "memory"

    stage: int
    """The fullest stage."""
    needed: int
    """The bytes that it needs."""
    limit: int
    """The bytes of a GPU."""
    savings: tuple[MemorySaving, ...]
    """Changes that need less; only those with which it fits where there are any."""

    @property
    def text(self) -> str:
        text = f"Does not fit: stage {self.stage} needs {_gb(self.needed)} GB of {_gb(self.limit)} GB"
        if self.savings:
            saving_texts = [f"{change.words} needs {_gb(change.peak_bytes)} GB" for change in self.savings]
            text += (
                f"; {', '.join(saving_texts)}{'' if self.savings[0].fits else ', which does not fit either'}"
            )
        return f"{text}."


def find_memory_shortfall(run: RunSums) -> Iterator[DoesNotFit]:
    """Yields a sentence on a model whose fullest stage needs more than a GPU has."""
    figures = run.results.model.model_figures
    if figures is None or figures.fits:
        return
    ways = run.results.memory_savings
    fitting = tuple(way for way in ways if way.fits) or tuple(ways)
    # A model that does not fit runs no step: all of the step is lost.
    yield DoesNotFit(
        step_ns=run.step_ns, ns=0, cause="memory", lost_ns=run.step_ns, fault=True,
        stage=figures.fullest.stage, needed=figures.fullest.needed, limit=figures.limit,
        savings=fitting[:_MOST_NAMED],
    )  # fmt: skip


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f}"
