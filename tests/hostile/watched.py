"""Runs `wltui`; ends with status 77 as soon as it reaches for the network, runs a program or code of a file.

`python -m tests.hostile.watched WORD...`, or several commands with ";" between them: what Python itself
tells an audit hook is looked at, so it does not matter which library would do it. Only below
$WATCHED_FOLDER, if that is set, files may be written.
"""

from __future__ import annotations

import os
import socket
import sys
from types import CodeType

# Of the names in the files that the tests make.
MARK = "touch${IFS}owned"
_FORBIDDEN = (
    "socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
    "socket.gethostby", "socket.getnameinfo", "subprocess.", "os.system", "os.exec", "os.posix_spawn",
    "os.spawn", "os.fork", "os.startfile", "pty.spawn", "webbrowser.", "urllib.", "http.", "ftplib.",
    "smtplib.", "pickle.find_class",
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def watch(event: str, given: tuple[object, ...]) -> None:
    """The audit hook. An exception might be caught, so the process ends."""
    why = ""
    if event.startswith(_FORBIDDEN):
        why = event
    elif event == "socket.__new__" and given[1] != socket.AF_UNIX:
        # An event loop wakes itself by a pair of local ones.
        why = "a socket"
    elif event == "exec" and isinstance(given[0], CodeType) and MARK in repr(given[0].co_consts):
        why = "code of a file"
    elif event == "compile" and given[1] != "<unknown>" and MARK in repr(given[0]):
        # "<unknown>": a literal is only parsed, for its value.
        why = "code of a file"
    elif event == "open" and isinstance(given[2], int) and given[2] & _WRITING and not _may_write(given[0]):
        why = f"writing {given[0]!r}"
    if why:
        os.write(2, f"forbidden: {event}: {why} {given!r:.300}\n".encode())
        os._exit(77)


def _may_write(path: object) -> bool:
    if not isinstance(path, str | bytes):
        return True
    name = os.fsdecode(path)
    folder = os.environ.get("WATCHED_FOLDER")
    return name.startswith(("/dev/", "/proc/self/")) or bool(
        folder and os.path.abspath(name).startswith(folder)
    )


def main() -> int:
    """The program under the hook, all of its imports too; the greatest exit status of the commands."""
    sys.dont_write_bytecode = True
    sys.addaudithook(watch)
    from tui.cli import main as wltui

    commands: list[list[str]] = [[]]
    for word in sys.argv[1:]:
        if word == ";":
            commands.append([])
        else:
            commands[-1].append(word)
    return max(wltui(words) for words in commands)


if __name__ == "__main__":
    sys.exit(main())
