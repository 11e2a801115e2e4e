"""Types the command `barnabas` for a broker: in processes of its own, or inside the test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.cli.main import main
from tests.kit.secured.suite import IS_SECURED, java_file

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

# Those that connect to brokers.
_CONNECTING = re.compile(
    "topics|offsets|log-dirs|partitions|elect-leaders|reassign|produce|consume|collect|dead-letters"
    "|events|groups|transactions|records|configs|acls|users|console|perf|verify|verifiable"
)
COMMAND = str(Path(sys.executable).parent / "barnabas")


def with_settings(words: Sequence[str]) -> list[str]:
    """A command's words, with how it connects in the secured suites, unless it is given that."""
    connects = IS_SECURED and words and _CONNECTING.fullmatch(words[0])
    if not connects or {"--command-config", "--profile", "--help"} & set(words):
        return list(words)
    return [*words, "--command-config", str(java_file())]


class Shell:
    """Types commands for one broker, each in a process of its own."""

    def __init__(self, broker: Broker) -> None:
        self._environment = {
            **os.environ,
            "BARNABAS_BOOTSTRAP_SERVER": broker.bootstrap_servers,
            "PYTHONUNBUFFERED": "",
        }

    def start(self, *words: str, **options: object) -> subprocess.Popen[bytes]:
        """Without buffers: `communicate` drops what a `readline` before it has read ahead."""
        return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
            [COMMAND, *with_settings(words)],
            env=self._environment,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
               "bufsize": 0, **options},
        )  # fmt: skip

    def run(self, *words: str, text: bytes = b"", code: int = 0) -> tuple[bytes, str]:
        """Standard output and error of a command that ends with this code."""
        done = subprocess.run(
            [COMMAND, *with_settings(words)],
            env=self._environment,
            input=text,
            capture_output=True,
            timeout=180,
        )
        errors = done.stderr.decode()
        assert done.returncode == code, errors
        assert "Traceback" not in errors
        return done.stdout, errors


class InProcess:
    """Runs commands inside the test, which is a great deal faster."""

    def __init__(self, broker: Broker, capture: pytest.CaptureFixture[bytes]) -> None:
        self._servers = broker.bootstrap_servers
        self._capture = capture

    def __call__(self, line: str, *more: str, code: int = 0) -> tuple[str, str]:
        self._capture.readouterr()
        actual = main([*with_settings([*line.split(), *more]), "--bootstrap-server", self._servers])
        output, errors = self._capture.readouterr()
        assert actual == code, errors
        return output.decode(), errors.decode()
