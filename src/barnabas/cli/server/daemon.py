"""Implements the option `-daemon`, which starts a broker or a cluster that outlives the shell.

The command ends when the process is ready or has failed. If it has failed, the command prints the
process's output and ends with its exit code. A broker then logs to a file beside its first log
directory. The file is never in a log directory, because clients could make it fill the disk for
records, and because Kafka's tools treat all files in a log directory as their own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LOG_FILE = "--log-file"

_BARNABAS = (sys.executable, "-m", "barnabas.cli.main")


def log_file_of(directory: Path) -> Path:
    """Return the default log file of the process to which the directory belongs."""
    return directory.absolute().with_name(f"{directory.absolute().name}.log")


def start_daemon(words: Sequence[str], output: Path, ready: str) -> int:
    """Run the command `barnabas WORDS`, with `output` for its standard error, and return the exit
    code. Everything that the command prints is printed, up to the line that begins with `ready`.
    Raises OSError.
    """
    with suppress(FileExistsError):  # if the parent is a file, opening the log below fails
        output.parent.mkdir(parents=True, exist_ok=True)
    # Append to the file, because the log of an earlier run often shows why the broker is being
    # restarted.
    with output.open("ab") as file:
        began_at = file.tell()
        process = subprocess.Popen(
            [*_BARNABAS, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            start_new_session=True,  # ignores the terminal's Ctrl-C and hang-up
            text=True,
        )
    assert process.stdout is not None
    with process.stdout:
        # The process prints this line when it is ready. If its output ends before, it has ended.
        for line in process.stdout:
            sys.stdout.write(line)
            if line.startswith(ready):
                sys.stdout.write(f"process {process.pid}, its log is {output}\n")
                return 0
    code = process.wait()
    with output.open(encoding="utf-8", errors="replace") as said_then:
        # Show only the lines logged during this start.
        said_then.seek(began_at)
        sys.stderr.write(said_then.read())
    return code or 1
