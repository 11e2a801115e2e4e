"""`barnabas server start -daemon`: a broker that outlives the shell which started it.

The command ends when the broker is ready, or has failed: then with the broker's own output and exit
code. Its output from then on is in `barnabas.out` in its first log directory.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

OUTPUT_NAME = "barnabas.out"

_COMMAND = (sys.executable, "-m", "barnabas.cli.main", "server", "start")


def start_daemon(words: Sequence[str], directory: Path) -> int:
    """Start the broker that these arguments describe; the exit code. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    output = directory / OUTPUT_NAME
    with output.open("ab") as file:
        began_at = file.tell()
        process = subprocess.Popen(
            [*_COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            start_new_session=True,  # the terminal's Ctrl-C and hang-up are not for it
            text=True,
        )
    assert process.stdout is not None
    with process.stdout:
        ready = process.stdout.readline()
    if ready:
        sys.stdout.write(f"{ready}process {process.pid}, its log is {output}\n")
        return 0
    code = process.wait()
    with output.open(encoding="utf-8", errors="replace") as said_then:
        said_then.seek(began_at)
        sys.stderr.write(said_then.read())
    return code or 1
