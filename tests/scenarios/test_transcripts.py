"""Transcripts: the dialogue with a machine as text that a reader can follow, one rule in each file.

    machine: group                      which stage the dialogue is played on
                                        (the module `<machine>_stage`, and its class `Stage`)
    Prose says what is to be seen.      kept as it is

    > join a                            a line of the dialogue: a command and its words
      a waits                           what came of it, two spaces in: written by the run
    > wait 3000
      a <- JoinGroup generation=1 ...

A stage owns one machine, its log and a clock that stands still; it is no asyncio and has no other
state. Each of its methods is a command: it gets the words after it, those with a `=` as options,
and yields the lines that came of it.

Run with `REWRITE_TRANSCRIPTS=1` the test writes what came of it into the files, to be reviewed as
a diff; without, the files must say just that.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TRANSCRIPTS = sorted(HERE.glob("*.txt"))
REWRITE = "REWRITE_TRANSCRIPTS"

COMMAND, OUTCOME = "> ", "  "


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    """GC-2, CO-3: each file is a rule of the group's dialogue; others are the transaction's."""
    written = path.read_text(encoding="utf-8")
    played = play(written)
    if os.environ.get(REWRITE):
        path.write_text(played, encoding="utf-8")
    else:
        assert played.splitlines() == written.splitlines(), f"set {REWRITE}=1 to accept it"


def play(text: str) -> str:
    """The transcript with what comes of its commands today."""
    lines = text.splitlines()
    kind, _, name = lines[0].partition(": ")
    assert kind == "machine", "the first line names the machine"
    stage = import_module(f"tests.scenarios.{name}_stage").Stage()
    played = []
    for line in lines:
        if line.startswith(OUTCOME):
            continue
        played.append(line)
        if line.startswith(COMMAND):
            command, *words = line.removeprefix(COMMAND).split()
            names = [word for word in words if "=" not in word]
            options = dict(word.split("=", 1) for word in words if "=" in word)
            outcomes = getattr(stage, command)(names, options)
            played += [f"{OUTCOME}{outcome}" for outcome in outcomes]
    return "\n".join(played) + "\n"


def test_there_are_transcripts() -> None:
    commands = sum(path.read_text().count(f"\n{COMMAND}") for path in TRANSCRIPTS)
    print(f"{len(TRANSCRIPTS)} transcripts with {commands} commands")
    assert TRANSCRIPTS
