"""Which mouse reports are asked of the terminal."""

from __future__ import annotations

from textual.drivers.linux_driver import LinuxDriver

# Buttons and the wheel; motion while a button is held; places past column 223.
_MODES = ("1000", "1002", "1006")


class MouseDriver(LinuxDriver):
    """Textual's driver with motion reported only while a button is held.

    Textual asks for all motion (mode 1003): every cell the pointer crosses would come over the line.
    """

    def _enable_mouse_support(self) -> None:
        self._ask("h")

    def _disable_mouse_support(self) -> None:
        self._ask("l")

    def _enable_mouse_pixels(self) -> None:
        """By cells is enough: by pixels (1016) motion would be reported ten times as often."""

    def _ask(self, ending: str) -> None:
        if self._mouse:
            for mode in _MODES:
                self.write(f"\x1b[?{mode}{ending}")
            self.flush()
