"""Finds the `barnabas server start` processes on this machine in the process table.

Linux shows the command line and the open files of a process under `/proc`, and a broker keeps the
`.lock` in each log directory open. Elsewhere, `ps` shows only the command lines.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.cli.server.pid_file import PROC, read_pid_file

_PROGRAMS = ("barnabas", "barnabas.cli.main")
_PORT = re.compile(r"://[^,]*:(\d+)")
_PS = ("ps", "-axww", "-o", "pid=,uid=,command=")
_PS_TIMEOUT_S = 10


class ServerProcess(NamedTuple):
    """Represents a broker in its own process."""

    pid: int
    command: str
    directories: tuple[Path, ...]  # its log directories, where visible
    user_id: int | None = None  # the owner of the process

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports of the configured listeners."""
        for directory in self.directories:
            recorded = read_pid_file(directory)
            if recorded is not None and recorded.pid == self.pid:
                return tuple(map(int, _PORT.findall(recorded.listeners)))
        return ()

    def __str__(self) -> str:
        where = ",".join(map(str, self.directories)) or self.command
        return f"{self.pid} ({where})"


def find_servers(proc: Path = PROC) -> list[ServerProcess]:
    """Return all brokers that this user may see, sorted by process id."""
    found = _from_proc(proc) if (proc / "self").exists() else _from_ps()
    return sorted(server for server in found if server.pid != os.getpid())


def is_server_command(words: Sequence[str]) -> bool:
    """Return whether these words are `[python [-m]] barnabas server start ...`."""
    # A virtual environment's python, its options and -m may precede the program.
    for i in range(min(len(words), 8)):
        if list(words[i + 1 : i + 3]) == ["server", "start"]:
            return words[i].rpartition("/")[2] in _PROGRAMS
    return False


def _from_proc(proc: Path) -> Iterator[ServerProcess]:
    for entry in proc.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
            if is_server_command(words):
                user_id = entry.stat().st_uid
                yield ServerProcess(int(entry.name), " ".join(words), _locked_by(entry), user_id)
        except OSError:
            continue  # the process ended, or belongs to another user


def _locked_by(process: Path) -> tuple[Path, ...]:
    found = set()
    for link in (process / "fd").iterdir():
        try:
            target = link.readlink()
        except OSError:
            continue  # the file has been closed
        # A running broker keeps a lock file open in each of its log directories.
        if target.name == ".lock":
            found.add(target.parent)
    return tuple(sorted(found))


def _from_ps() -> Iterator[ServerProcess]:
    listed = subprocess.run(_PS, capture_output=True, text=True, timeout=_PS_TIMEOUT_S, check=True)
    for line in listed.stdout.splitlines():
        words = line.split()
        if words[:2] and all(map(str.isdecimal, words[:2])) and is_server_command(words[2:]):
            yield ServerProcess(int(words[0]), " ".join(words[2:]), (), int(words[1]))
