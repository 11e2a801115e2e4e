"""The README's examples run, and print what the README says they print.

`python` and `console` blocks are run, in their order and in one empty directory, against one
broker, a block with tests by pytest; other blocks are for reading. In a console block a line that
starts with `$ ` is a command for the shell, continued by a trailing backslash; what follows it is
its standard output, in which `...` stands for anything within a line and, alone in a line, for any
number of lines. A fence `console no-run` shows what is not to be run here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import barnabas
from barnabas.pipeline.java import provide_java
from tests.kit.foreign import CHECKOUT, require_java

README = CHECKOUT / "README.md"
DEFAULT_ADDRESS = "localhost:9092"
TIMEOUT_SECONDS = 300

FENCE = re.compile(r"^```(\S+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced example and the line it starts in."""

    language: str
    line: int
    text: str

    @property
    def needs_spark(self) -> bool:
        return "SparkSession" in self.text


def blocks() -> Iterator[Block]:
    text = README.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        language, options, body = match.groups()
        if language in ("python", "console") and "no-run" not in options:
            yield Block(language, text.count("\n", 0, match.start()) + 2, body)


def cases() -> list[object]:
    return [
        pytest.param(
            block,
            id=f"line-{block.line}",
            marks=[pytest.mark.slow] if block.needs_spark else [],
        )
        for block in blocks()
    ]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


def test_the_readme_has_examples_of_each_kind() -> None:
    kinds = {(block.language, block.needs_spark) for block in blocks()}
    assert kinds >= {("python", False), ("python", True), ("console", False)}


@pytest.fixture(scope="module")
def done() -> set[int]:
    """The lines of the blocks that ran in this process: pytest-xdist may spread a file's tests."""
    return set()


@pytest.mark.parametrize("block", cases())
def test_example_runs_as_printed(
    block: Block,
    broker: barnabas.Broker,
    directory: Path,
    done: set[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """UX-1, UX-2"""
    if block.needs_spark:
        require_java()
        monkeypatch.setenv("JAVA_HOME", str(provide_java(dict(os.environ))))
    # A block goes on where those above it have ended.
    for each in blocks():
        is_needed = each == block or (each.line < block.line and not each.needs_spark)
        if is_needed and each.line not in done:
            run_block(each, directory, broker.bootstrap_servers)
            done.add(each.line)


def run_block(block: Block, directory: Path, servers: str) -> None:
    # No test may count on port 9092: the address goes into the text, and to commands without one.
    text = block.text.replace(DEFAULT_ADDRESS, servers)
    if block.language == "python" and "def test_" in text:
        path = directory / "test_example.py"
        path.write_text(text, encoding="utf-8")
        run([sys.executable, "-m", "pytest", "-q", str(path)], directory, servers)
        return
    if block.language == "python":
        run([sys.executable, "-c", text], directory, servers)
        return
    for command, expected in commands(text):
        printed = run(["bash", "-euo", "pipefail", "-c", command], directory, servers)
        assert re.fullmatch(pattern(expected), printed), f"$ {command}\n{printed}"


def run(command: list[str], directory: Path, servers: str) -> str:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "BARNABAS_BOOTSTRAP_SERVER": servers,
        "COLUMNS": "100",
        "PYSPARK_PYTHON": sys.executable,
    }
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command with the output that stands below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield command, expected


def pattern(expected: str) -> str:
    """The output as a regular expression."""
    lines = (
        r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in expected.splitlines()
    )
    return "".join(lines)
