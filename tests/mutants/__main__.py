"""`make mutants`: puts one mistake after the other into a copy of the sources, and runs the tests
that should find it. Prints what was killed and what survived; nothing but the copy is written.

`python -m tests.mutants [WORD ...]` takes those alone whose names contain one of the words. Ends
with 1 if a mutation survived that is not known to.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.kit.foreign import CHECKOUT
from tests.mutants.every import MUTATIONS
from tests.mutants.mutation import Mutation

_TIMEOUT_S = 300
_PASSED, _FAILED = 0, 1  # pytest's exit codes
_COPIED = ("src", "simulation", "tests", "pyproject.toml")


class Copy:
    """The tree, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "barnabas"
        self._directory.mkdir()
        shared = Path(CHECKOUT).parent / "shared"
        if shared.is_dir():  # fixtures of Kafka's, for tests that would be skipped without them
            (directory / "shared").symlink_to(shared)
        self._written = int(time.time())
        for name in _COPIED:
            source = Path(CHECKOUT) / name
            if source.is_dir():
                shutil.copytree(
                    source, self._directory / name, ignore=shutil.ignore_patterns("*.pyc")
                )
            else:
                shutil.copy(source, self._directory / name)

    def source(self, mutation: Mutation) -> Path:
        return self._directory / "src" / mutation.file

    def write(self, path: Path, text: str) -> None:
        """In a second of its own: compiled code is known by its source's time in seconds."""
        path.write_text(text, encoding="utf-8")
        self._written += 1
        os.utime(path, (self._written, self._written))

    def result(self, tests: Sequence[str]) -> int:
        """The exit code of these tests; `_FAILED` if they do not end."""
        paths = [f"tests/{each}" for each in tests]
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self._directory / 'src'}{os.pathsep}{self._directory}",
            "BARNABAS_QUICK": "1",
        }
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *paths]
        try:
            ended = subprocess.run(
                command,
                cwd=self._directory,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _FAILED
        return ended.returncode


def main(words: Sequence[str]) -> int:
    """The exit code."""
    chosen = [each for each in MUTATIONS if not words or any(word in each.name for word in words)]
    with tempfile.TemporaryDirectory(prefix="barnabas-mutants-") as directory:
        copy = Copy(Path(directory))
        tests = sorted({test for each in chosen for test in each.tests})
        if copy.result(tests) != _PASSED:
            _say("these tests do not pass without any mutation: " + " ".join(tests))
            return 1
        unexpected = sum(not _is_as_known(copy, each) for each in chosen)
    _say(f"{len(chosen)} mutations, {unexpected} not as expected")
    return 1 if unexpected else 0


def _is_as_known(copy: Copy, mutation: Mutation) -> bool:
    """Whether it is killed, or survives for a known reason."""
    path = copy.source(mutation)
    before = path.read_text(encoding="utf-8")
    copy.write(path, before.replace(mutation.fragment, mutation.replacement))
    began_s = time.monotonic()
    try:
        code = copy.result(mutation.tests)
    finally:
        copy.write(path, before)
    took_s = time.monotonic() - began_s
    # Whatever else pytest ends with is a broken run, which proves nothing.
    said = {_PASSED: "survived", _FAILED: "killed"}.get(code, f"broke pytest ({code})")
    why = f" ({mutation.why_it_survives})" if mutation.why_it_survives else ""
    _say(f"{said:8} {took_s:5.1f} s  {mutation.name}{why}")
    return said == ("survived" if mutation.why_it_survives else "killed")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
