"""Kafka's own DumpLogSegments, beside which `barnabas dump` is held."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.kit import foreign
from tests.kit.clients.java_client import FRUGAL

KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
SOURCE = Path(__file__).with_name("DumpEach.java")
TIMEOUT_S = 300


class Tool:
    """Kafka's tool, called for many files in one JVM."""

    def __init__(self, directory: Path) -> None:
        self._jars = foreign.require_kafka_jars()
        self._java = str(foreign.require_java())
        self._directory = directory
        compiler = str(foreign.require_java_compiler())
        class_path = os.pathsep.join(map(str, sorted(self._jars.glob("*.jar"))))
        compile_it = [self._java, *FRUGAL, "-jar", compiler, "-nowarn", "--release", "17"]
        subprocess.run(
            [*compile_it, "-classpath", class_path, "-d", str(directory), str(SOURCE)],
            check=True,
            timeout=TIMEOUT_S,
        )

    def print(self, option: str, files: list[Path]) -> Iterator[bytes]:
        """What it prints for each file."""
        script = self._directory / "calls"
        options = f"{option}\t" if option else ""
        script.write_text("".join(f"{options}--files\t{path}\n" for path in files))
        class_path = f"{self._directory}{os.pathsep}{self._jars}/*"
        start = [self._java, *FRUGAL, "-Dfile.encoding=UTF-8", "-cp", class_path]
        command = [*start, "DumpEach", str(script)]
        done = subprocess.run(command, capture_output=True, check=True, timeout=TIMEOUT_S)
        rest = done.stdout
        for _ in files:
            size, _, rest = rest.partition(b"\n")
            yield rest[: int(size)]
            rest = rest[int(size) :]
        assert not rest


def ordered(text: bytes) -> bytes:
    """Kafka lists a transaction's partitions in the order of a hash table, which we do not."""
    return re.sub(
        rb"partitions=\[([^]]*)\]", lambda found: b",".join(sorted(found[1].split(b","))), text
    )
