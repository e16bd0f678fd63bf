"""A sentence on a run as a record: what a rule has found, as typed facts, and the words, made of these alone.

An entry of the catalogue is a class below `Sentence`, with the name of its rule, its facts as fields and its
`text`, and beside it the rule: a generator that asks a run and keeps silent or gives sentences.
"""

from __future__ import annotations

from typing import ClassVar

from simcore.records import Struct


class Sentence(Struct, frozen=True, kw_only=True):
    """One sentence on a run: its fields are the facts.

    rule: the name of the rule that speaks. lead: what stands before the sentence where it comes first.
    """

    rule: ClassVar[str]

    lead: str = ""

    @property
    def text(self) -> str:
        """The sentence in words, without what leads it."""
        raise NotImplementedError

    @property
    def text_with_lead(self) -> str:
        """The sentence as it is printed."""
        return self.lead + self.text
