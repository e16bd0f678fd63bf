"""What a GPU has not the memory for, and what would need less."""

from __future__ import annotations

from simcore.words.sentences.model import Facts, Sentence

# As many changes are named.
_NAMED = 3


def does_not_fit(facts: Facts) -> Sentence | None:
    """Said of a model whose fullest stage needs more than a GPU has."""
    figures = facts.results.model.model_figures
    if figures is None or figures.fits:
        return None
    fullest = figures.fullest
    text = f"Does not fit: stage {fullest.stage} needs {_gb(fullest.needed)} GB of {_gb(figures.limit)} GB"
    ways = facts.results.smaller_runs
    fitting = [way for way in ways if way.fits] or list(ways)
    if fitting:
        named = [f"{change.words} needs {_gb(change.most)} GB" for change in fitting[:_NAMED]]
        text += "; " + ", ".join(named) + ("" if fitting[0].fits else ", which does not fit either")
    # What does not fit takes no step at all.
    return Sentence("memory", f"{text}.", 0, "memory", facts.step_ns, fault=True)


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f}"
