"""The blocks of a page whose commands a test runs, on machines that are folders of this one.

A `console` block is run as `console_blocks` says; a `properties` block is the server.properties of
a machine. Behind the language of the fence stands where: a machine's name, or `each` of the first
three; and `no-run` for what is not to be run here. Other words select blocks.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

from tests.kit.console_blocks import commands, pattern, run
from tests.kit.foreign import CHECKOUT
from tests.kit.processes.broker_process import free_port

MACHINES = ("one", "two", "three", "four")
CONFIG = "/etc/barnabas"
DATA = "/var/lib/barnabas"
ENSEMBLE = "zk1:2181,zk2:2181,zk3:2181"

_FENCE = re.compile(r"^( *)```(\w+)([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced example, the words behind its language, and the line it starts in."""

    language: str
    words: tuple[str, ...]
    line: int
    text: str


def blocks(page: str) -> list[Block]:
    """Those of a page of docs/ that are to be run, in their order."""
    text = (CHECKOUT / "docs" / page).read_text(encoding="utf-8")
    found = [
        Block(
            match[2],
            tuple(match[3].split()),
            text.count("\n", 0, match.start()) + 2,
            textwrap.dedent(match[4]),
        )
        for match in _FENCE.finditer(text)
    ]
    kinds = ("console", "properties", "python")
    return [block for block in found if block.language in kinds and "no-run" not in block.words]


class Machines:
    """Four machines with a config folder, a data folder and a port each, and one ZooKeeper."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        self._directory = directory
        self._zookeeper = zookeeper
        self._ports = {name: free_port() for name in MACHINES}
        self._work = directory / "work"
        self._work.mkdir()
        for name in MACHINES:
            (directory / name / "etc").mkdir(parents=True)
            self.data(name).mkdir()

    def data(self, name: str) -> Path:
        return self._directory / name / "data"

    def address(self, name: str) -> str:
        return f"127.0.0.1:{self._ports[name]}"

    def run(self, block: Block) -> None:
        """Run a block where it belongs; without a machine of its own that is the first one."""
        if "each" in block.words:
            names = list(MACHINES[:3])
        else:
            names = [name for name in MACHINES if name in block.words] or [MACHINES[0]]
        for name in names:
            text = self._text(block.text, name, is_for_each="each" in block.words)
            if block.language == "properties":
                (self._directory / name / "etc" / "server.properties").write_text(text)
            elif block.language == "python":
                self._run([sys.executable, "-c", text], name)
            else:
                for command, expected in commands(text):
                    printed = self._run(["bash", "-euo", "pipefail", "-c", command], name)
                    assert re.fullmatch(pattern(expected), printed), f"$ {command}\n{printed}"

    def stop(self) -> None:
        """Stop the brokers that still run."""
        for name in MACHINES:
            where = ("--dir", str(self.data(name)))
            subprocess.run(
                [_programs() / "barnabas", "server", "stop", *where], capture_output=True
            )

    def _text(self, text: str, name: str, *, is_for_each: bool) -> str:
        if is_for_each:  # the page shows the first machine's
            text = text.replace("broker.id=1", f"broker.id={MACHINES.index(name) + 1}")
            text = text.replace("PLAINTEXT://one:", f"PLAINTEXT://{name}:")
        text = text.replace("0.0.0.0:9092", self.address(name))
        text = text.replace("localhost:9092", self.address(name))
        for each in MACHINES:
            text = text.replace(f"{each}:9092", self.address(each))
        text = text.replace(ENSEMBLE, self._zookeeper)
        text = text.replace(CONFIG, str(self._directory / name / "etc"))
        text = text.replace(f"--data-dir {DATA}", f"--data-dir {DATA} --port {self._ports[name]}")
        return text.replace(DATA, str(self.data(name)))

    def _run(self, command: list[str], name: str) -> str:
        environment = os.environ | {
            "PATH": f"{_programs()}{os.pathsep}{os.environ['PATH']}",
            "BARNABAS_BOOTSTRAP_SERVER": self.address(name),
            "COLUMNS": "100",
        }
        return run(command, self._work, environment)


def _programs() -> Path:
    return Path(sys.executable).parent
