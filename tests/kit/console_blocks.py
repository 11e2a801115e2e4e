"""The commands of a page's `console` blocks: what they are, how one is run, and what it prints.

A line that starts with `$ ` is a command for the shell, continued by a trailing backslash; what
follows it is its standard output, in which `...` stands for anything within a line and, alone in a
line, for any number of lines.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

_TIMEOUT_S = 600


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with the output that stands below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield command, expected


def run(
    command: list[str],
    directory: Path,
    environment: Mapping[str, str],
    *,
    shows_errors: bool = False,
) -> str:
    """Run a command that has to succeed; its standard output.

    `shows_errors`: with its standard error among it, as on a terminal.
    """
    # A daemon keeps the outputs that it was given: a pipe would end only with the broker.
    with (
        (directory / "printed.txt").open("w+b") as printed,
        (directory / "errors.txt").open("w+b") as errors,
    ):
        done = subprocess.run(
            command,
            cwd=directory,
            env={**environment, "PWD": str(directory)},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed if shows_errors else errors,
            timeout=_TIMEOUT_S,
        )
        texts = []
        for file in (printed, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    assert done.returncode == 0, f"{' '.join(command)}\n{''.join(texts)}"
    return texts[0]


def pattern(expected: str) -> str:
    """The output as a regular expression."""
    lines = (
        r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in expected.splitlines()
    )
    return "".join(lines)
