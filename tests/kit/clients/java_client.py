"""The Java client, Kafka's own, in two versions: that of our measure, and the newest.

The same programs serve both (`JavaClient.java`, and `JavaTransactions.java` beside it), compiled
against each by the Eclipse compiler, which is a jar: a Java that runs programs is enough, it need
not be one that compiles them.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.kit import foreign
from tests.kit.clients.process_client import Command, ProcessClient

SOURCE = Path(__file__).with_name("JavaClient.java")
COMPILE_SECONDS = 300
# Short runs: what the second compiler and the parallel collector cost is never earned back.
FRUGAL = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")


def require_measure() -> list[Path]:
    """Java, the compiler and the jars of the client that came with Kafka 3.9."""
    parts = [foreign.require_java(), foreign.require_java_compiler()]
    return [*parts, foreign.require_kafka_jars()]


def require_newest() -> list[Path]:
    """Java, the compiler and the jars of the newest client."""
    parts = [foreign.require_java(), foreign.require_java_compiler()]
    return [*parts, foreign.require_newest_java_client()]


def command(require: Callable[[], list[Path]], program: Path = SOURCE) -> Command:
    """Starts that program, which may use `JavaClient`."""

    def start(_: Path) -> list[str]:
        parts = require()
        classes = compiled(parts, program, sorted({SOURCE, program}))
        return [str(parts[0]), *FRUGAL, "-cp", f"{classes}:{parts[-1]}/*", program.stem]

    return start


def compiled(parts: Sequence[Path], program: Path, sources: Sequence[Path]) -> Path:
    """The directory with what is compiled of these sources, by these Java, compiler and jars.

    It is kept, since many processes run the same and each compilation takes two seconds of CPU
    time.
    """
    content = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    return foreign.cached(
        f"{parts[-1].name}-{program.stem}-{content}",
        lambda directory: _compile(parts, sources, directory),
    )


def _compile(parts: Sequence[Path], sources: Sequence[Path], directory: Path) -> None:
    java, compiler, jars = parts
    class_path = ":".join(map(str, sorted(jars.glob("*.jar"))))
    run = [str(java), *FRUGAL, "-jar", str(compiler), "-nowarn", "--release", "11"]
    compiled = subprocess.run(
        [*run, "-classpath", class_path, "-d", str(directory), *map(str, sources)],
        capture_output=True,
        text=True,
        timeout=COMPILE_SECONDS,
    )
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr


measure = ProcessClient(f"java-{foreign.KAFKA_VERSION}", command(require_measure))
newest = ProcessClient(f"java-{foreign.NEWEST_CLIENT_VERSION}", command(require_newest))
