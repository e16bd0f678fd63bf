"""The sentences on a run as records: the facts that a rule has found, and the words, made of these alone.

An entry of the catalogue is a class below `Sentence`, with the name of its rule, its facts as fields and its
`text`. Beside it stands the rule: a generator that looks at a run and yields its sentences, or none.
"""

from __future__ import annotations

from typing import ClassVar

from simcore.records import Struct


class Sentence(Struct, frozen=True, kw_only=True):
    """One sentence on a run; its fields are the facts."""

    rule: ClassVar[str]
    """The name of the rule that yields it."""

    lead: str = ""
    """The words before the sentence where it comes first."""

    @property
    def text(self) -> str:
        """The sentence in words, without its lead."""
        raise NotImplementedError

    @property
    def text_with_lead(self) -> str:
        """The sentence as it is printed."""
        return self.lead + self.text
