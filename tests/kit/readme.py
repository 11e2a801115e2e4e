"""The README's examples: its blocks, by the door that they are in, and how one is run.

A door is a chapter with a block fenced as `console install`, which makes the environment for the
others of its chapter; the block of that kind before the first chapter is for all doors. A `console`
block is run as `console_blocks` says, a `python` block with tests by pytest. A fence
`console no-run` shows what is not to be run here; blocks of other kinds are for reading.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.kit.console_blocks import commands, pattern, run
from tests.kit.foreign import CHECKOUT
from tests.kit.processes.broker_process import free_port

README = CHECKOUT / "README.md"
DEFAULT_ADDRESS = "localhost:9092"
_CLUSTER_START = "barnabas cluster start"

_CHAPTER = re.compile(r"^## ", re.MULTILINE)
_FENCE = re.compile(r"^```(\S+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced example and the line it starts in."""

    language: str
    options: str
    line: int
    text: str


class Door(NamedTuple):
    """A chapter that a newcomer can follow from its install line to its end."""

    name: str
    length: int
    installs: list[Block]
    blocks: list[Block]

    @property
    def packages(self) -> list[str]:
        """What the last command of the install lines installs, `.` and its extras first."""
        *_, (command, _) = commands(self.installs[-1].text)
        return [word.strip("'") for word in command.removeprefix("pip install ").split()]

    def packages_with(self, wheel: Path) -> list[str]:
        """The same with a wheel in the place of the clone."""
        clone, *others = self.packages
        return [f"{wheel}{clone.removeprefix('.')}", *others]


def doors() -> list[Door]:
    """The chapters with an install block, in their order."""
    text = README.read_text(encoding="utf-8")
    starts = [match.start() for match in _CHAPTER.finditer(text)]
    ends = [*starts[1:], len(text)]
    before = _installs(_blocks(text, 0, starts[0]))
    found = []
    for start, end in zip(starts, ends, strict=True):
        blocks = _blocks(text, start, end)
        chapter = text[start:end].rstrip().splitlines()
        if own := _installs(blocks):
            runs = [block for block in blocks if not block.options]
            found.append(Door(chapter[0].removeprefix("## "), len(chapter), [*before, *own], runs))
    return found


def _installs(blocks: list[Block]) -> list[Block]:
    return [block for block in blocks if block.options == "install"]


def _blocks(text: str, start: int, end: int) -> list[Block]:
    return [
        Block(match[1], match[2].strip(), text.count("\n", 0, match.start()) + 2, match[3])
        for match in _FENCE.finditer(text, start, end)
        if match[1] in ("python", "console")
    ]


def run_door(door: Door, programs: Path, directory: Path) -> None:
    """Run its blocks one after the other, with the programs of an environment, in a directory.

    What a broker of the door listens on is a free port; one that is left over is stopped.
    """
    port = free_port()
    servers = f"127.0.0.1:{port}"
    environment = {
        **with_programs(programs),
        "BARNABAS_BOOTSTRAP_SERVER": servers,
        "COLUMNS": "100",
        "KAFKA_LISTENERS": f"PLAINTEXT://{servers}",
    }
    try:
        for block in door.blocks:
            text = _on_free_ports(block.text, servers)
            _run_block(block._replace(text=text), directory, environment)
    finally:
        if (directory / "cluster" / "barnabas.pid").exists():
            run(["barnabas", "cluster", "stop", "--dir", "cluster"], directory, environment)
        if _listens(port):
            run(["barnabas", "server", "stop", "--port", str(port)], directory, environment)


def as_script(door: Door, port: int) -> tuple[str, str]:
    """Its install lines and blocks for one shell, and the pattern of all that this prints.

    Run in a clone; what is no install line runs in a new directory beside it. A broker of the door
    listens on the port.
    """
    servers = f"127.0.0.1:{port}"
    lines = ["set -e", *(command for each in door.installs for command, _ in commands(each.text))]
    lines += [
        f"export BARNABAS_BOOTSTRAP_SERVER={servers} KAFKA_LISTENERS=PLAINTEXT://{servers}",
        'cd "$(mktemp -d ../own.XXXXXX)"',
    ]
    printed = pattern("...")
    for block in door.blocks:
        text = _on_free_ports(block.text, servers)
        if block.language == "console":
            lines += [command for command, _ in commands(text)]
            printed += "".join(pattern(expected) for _, expected in commands(text))
        else:
            program = "pytest -q" if "def test_" in text else "python3"
            lines += [f"cat > test_example.py <<'EXAMPLE'\n{text}EXAMPLE"]
            lines += [f"{program} test_example.py"]
            printed += pattern("...")
    return "\n".join(lines), printed


def _on_free_ports(text: str, servers: str) -> str:
    """The text with other ports, because no test may count on port 9092 and those after it."""
    others = f"{_CLUSTER_START} --port {free_port() + 5000}"
    return text.replace(DEFAULT_ADDRESS, servers).replace(_CLUSTER_START, others)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _run_block(block: Block, directory: Path, environment: Mapping[str, str]) -> None:
    if block.language == "console":
        for command, expected in commands(block.text):
            words = ["bash", "-euo", "pipefail", "-c", command]
            printed = run(words, directory, environment, shows_errors=True)
            shown = f"README.md, block in line {block.line}: $ {command}\n{printed}"
            assert re.fullmatch(pattern(expected), printed), shown
    elif "def test_" in block.text:
        (directory / "test_example.py").write_text(block.text, encoding="utf-8")
        run(["pytest", "-q", "test_example.py"], directory, environment)
    else:
        run(["python3", "-c", block.text], directory, environment)


def with_programs(programs: Path) -> dict[str, str]:
    """This process's variables, with another environment of Python in front, as `activate` does."""
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYSPARK_PYTHON", "PYTEST_ADDOPTS")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
