"""Implements `barnabas server start -daemon`, which starts a broker that outlives the shell.

The command ends when the broker is ready or has failed; after a failure, it ends with the broker's
own output and exit code. From then on, the broker logs to a file next to its first log directory,
but never in it: clients could make the log fill the records' disk, and Kafka's tools treat every
file there as their own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LOG_FILE = "--log-file"

_COMMAND = (sys.executable, "-m", "barnabas.cli.main", "server", "start")


def log_file_of(directory: Path) -> Path:
    """Return the default log file of a broker with this first log directory."""
    return directory.absolute().with_name(f"{directory.absolute().name}.log")


def start_daemon(words: Sequence[str], output: Path) -> int:
    """Start the broker that these arguments describe, with its log in the file `output`; return the
    exit code. Raises OSError.
    """
    with suppress(FileExistsError):  # perhaps a file: opening a file under it gives that error
        output.parent.mkdir(parents=True, exist_ok=True)
    # Append, because the logs of earlier runs often show why the broker is being restarted.
    with output.open("ab") as file:
        began_at = file.tell()
        process = subprocess.Popen(
            [*_COMMAND, *words, LOG_FILE, str(output)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            start_new_session=True,  # it ignores the terminal's Ctrl-C and hang-up
            text=True,
        )
    assert process.stdout is not None
    with process.stdout:
        # The broker prints a line when it is ready; without a line, it has ended.
        ready = process.stdout.readline()
    if ready:
        sys.stdout.write(f"{ready}process {process.pid}, its log is {output}\n")
        return 0
    code = process.wait()
    with output.open(encoding="utf-8", errors="replace") as said_then:
        # Show only the lines that were logged during this start.
        said_then.seek(began_at)
        sys.stderr.write(said_then.read())
    return code or 1
