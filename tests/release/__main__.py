"""`make dist`: builds wheel and sdist into dist/, checks them, and takes the README's first way.

Everything that is installed goes into environments of its own, in a temporary directory; the last
lines are how long a newcomer waits. Ends with 1 at the first thing that is wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.kit.foreign import CHECKOUT
from tests.kit.packaging import succeed
from tests.kit.processes.broker_process import free_port
from tests.kit.readme import doors

_LARGEST_SDIST: Final = 2_000_000
_LONGEST_CLI_S, _LONGEST_TEST_S = 10.0, 8.0
_TOOLS: Final = ("build", "twine", "readme-renderer[md]")


def build(directory: Path, target: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it; both have passed twine's check. Their paths."""
    tools = environment(directory / "tools")
    succeed(directory, tools / "pip", "install", "--quiet", *_TOOLS)
    shutil.rmtree(target, ignore_errors=True)
    succeed(directory, tools / "python", "-m", "build", "--outdir", target, CHECKOUT)
    [sdist], [wheel] = target.glob("*.tar.gz"), target.glob("*.whl")
    checked = succeed(directory, tools / "twine", "check", "--strict", sdist, wheel)
    assert checked.count("PASSED") == 2, checked
    size = sdist.stat().st_size
    assert size <= _LARGEST_SDIST, f"{sdist.name}: {size} bytes, more than {_LARGEST_SDIST}"
    return wheel, sdist


def environment(directory: Path) -> Path:
    """Make an empty virtual environment; its `bin`."""
    succeed(directory.parent, sys.executable, "-m", "venv", directory)
    return directory / "bin"


def first_test(directory: Path, wheel: Path) -> float:
    """Install what the README says and run its first test; the seconds that took."""
    door, *_ = doors()
    programs = environment(directory / "venv")
    (directory / "test_orders.py").write_text(door.blocks[0].text, encoding="utf-8")
    began_at_s = time.monotonic()
    succeed(directory, programs / "pip", "install", "--quiet", *door.packages_with(wheel))
    done = succeed(directory, programs / "pytest", "-q", "test_orders.py")
    took_s = time.monotonic() - began_at_s
    assert "1 passed" in done, done
    return took_s


def first_record(directory: Path, wheel: Path) -> float:
    """Install the wheel, start a broker, produce a record: three commands, and their seconds."""
    programs = environment(directory / "venv")
    port = str(free_port())
    servers = f"127.0.0.1:{port}"
    data = directory / "data"
    command = programs / "barnabas"
    began_at_s = time.monotonic()
    succeed(directory, programs / "pip", "install", "--quiet", wheel)
    succeed(directory, command, "server", "start", "-daemon", "--port", port, "--data-dir", data)
    try:
        at = ("--bootstrap-server", servers)
        succeed(directory, command, "produce", "greetings", *at, stdin="hello\n")
        took_s = time.monotonic() - began_at_s
        words = ("consume", "greetings", *at, "--from-beginning", "--max-messages", "1")
        assert succeed(directory, command, *words) == "hello\n"
    finally:
        succeed(directory, command, "server", "stop", "--dir", data)
    return took_s


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="barnabas-dist-") as name:
        directory = Path(name)
        wheel, sdist = build(directory, CHECKOUT / "dist")
        for each in (wheel, sdist):
            print(f"dist/{each.name}  {each.stat().st_size / 1000:,.0f} kB")
        for folder in ("warm", "test", "cli"):
            (directory / folder).mkdir()
        first_test(directory / "warm", wheel)  # pip's cache has it all from here on
        test_s = first_test(directory / "test", wheel)
        cli_s = first_record(directory / "cli", wheel)
    print(f"from pip install to the first test: {test_s:.1f} s (goal: {_LONGEST_TEST_S:.0f} s)")
    print(f"from pip install to the first record: {cli_s:.1f} s (goal: {_LONGEST_CLI_S:.0f} s)")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AssertionError as error:
        sys.exit(f"make dist: {error}")
