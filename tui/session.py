"""What all screens share: the file, the run as opened, the run now, and how to come back."""

from __future__ import annotations

from dataclasses import dataclass, field

from simcore.analysis import Results
from simcore.parameters import Parameters
from simcore.workload import Workload


@dataclass(slots=True)
class Session:
    """workload: the open file. opened: the run that the program started with. current: the
    run on the screen. draft: the parameters being edited; error: why they cannot be run.
    """

    workload: Workload
    opened: Results
    current: Results = field(init=False)
    draft: Parameters = field(init=False)
    error: str = ""
    running: bool = False
    _undo: list[Parameters] = field(default_factory=list)
    _redo: list[Parameters] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.current = self.opened
        self.draft = self.opened.simulation.parameters

    def edit(self, parameters: Parameters) -> None:
        """Take changed parameters as the draft; the old ones can be had back."""
        self._undo.append(self.draft)
        self._redo.clear()
        self.draft = parameters

    def undo(self) -> bool:
        """The draft before the last edit; False if there is none."""
        if not self._undo:
            return False
        self._redo.append(self.draft)
        self.draft = self._undo.pop()
        return True

    def redo(self) -> bool:
        """The draft that `undo` took away; False if there is none."""
        if not self._redo:
            return False
        self._undo.append(self.draft)
        self.draft = self._redo.pop()
        return True
