"""A `journalctl` for tests: a script on the PATH that prints a file of entries as the real one
does.

It knows --after-cursor, --follow and --lines=1, fails if there is a file `fails`, and writes down
its process and its arguments.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

_SCRIPT = r"""#!{python} -S
import json, os, pathlib, sys, time
here = pathlib.Path({directory!r})
with (here / "arguments").open("a") as file:
    file.write(" ".join(sys.argv[1:]) + "\n")
(here / "process").write_text(str(os.getpid()))
if (here / "fails").exists():
    sys.exit(sys.stderr.write((here / "fails").read_text()) and 1)
after = [each.partition("=")[2] for each in sys.argv if each.startswith("--after-cursor=")]
journal = (here / "entries").open("rb")
def whole():
    at = journal.tell()
    lines = journal.read().split(b"\n")
    journal.seek(at + sum(len(line) + 1 for line in lines[:-1]))
    return lines[:-1]
lines = whole()
if after:
    cursors = [json.loads(line).get("__CURSOR") for line in lines]
    if after[0] not in cursors:
        sys.exit(sys.stderr.write("Failed to seek to cursor: Invalid argument\n") and 1)
    lines = lines[cursors.index(after[0]) + 1 :]
if "--lines=1" in sys.argv:
    lines = lines[-1:]
elif not lines and "--follow" not in sys.argv:
    lines = [b"-- No entries --"]
out = sys.stdout.buffer
while True:
    out.writelines(line + b"\n" for line in lines)
    out.flush()
    if "--follow" not in sys.argv or os.getppid() == 1:
        break
    time.sleep(0.01)
    lines = whole()
"""


class FakeJournal:
    """Entries, and the directory with the script; put that first on the PATH."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._count = 0
        directory.mkdir()
        script = directory / "journalctl"
        script.write_text(_SCRIPT.format(python=sys.executable, directory=str(directory)))
        script.chmod(0o755)
        (directory / "entries").touch()

    @property
    def path(self) -> str:
        return f"{self.directory}{os.pathsep}{os.environ['PATH']}"

    def add(self, *messages: object) -> None:
        with (self.directory / "entries").open("ab") as file:
            for message in messages:
                self._count += 1
                entry = {
                    "__CURSOR": f"s=1;i={self._count:x}",
                    "__REALTIME_TIMESTAMP": f"{1_795_000_000_000_000 + self._count}",
                    "_HOSTNAME": "node",
                    "_SYSTEMD_UNIT": "app.service",
                    "_PID": "7",
                    "PRIORITY": "6",
                    "MESSAGE": message,
                }
                file.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")

    def fail(self, error: str) -> None:
        (self.directory / "fails").write_text(error)

    def process(self) -> int:
        """The id of the last process."""
        return int((self.directory / "process").read_text())

    def arguments(self) -> list[str]:
        """The arguments of each process so far."""
        return (self.directory / "arguments").read_text().splitlines()
