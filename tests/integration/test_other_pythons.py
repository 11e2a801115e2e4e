"""The Pythons that are newer than this one: what depends on the interpreter runs on each."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.foreign import CHECKOUT
from tests.kit.packaging import source_tree, succeed

NEEDS = (
    "aiokafka", "anyio", "confluent-kafka", "hypothesis", "kafka-python", "numpy", "pandas",
    "psutil", "pyarrow", "pytest-asyncio", "pytest-timeout", "pytest-xdist", "scramp",
)  # fmt: skip
# The life of tasks and buffers, and all that waits.
TESTS = (
    "tests/unit/net",
    "tests/unit/client",
    "tests/unit/testing/embedded",
    "tests/unit/broker/network",
    "tests/unit/broker/replication",
    "tests/integration/test_client_commits.py",
    "tests/integration/test_client_groups.py",
    "tests/integration/test_kill.py",
)


def interpreter(version: str) -> str:
    """One that runs; skips the test where there is none."""
    if version == "{}.{}".format(*sys.version_info):
        pytest.skip(f"the tests themselves run on Python {version}")
    beside = Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python{version}")
    for found in (shutil.which(f"python{version}"), *map(str, beside)):
        if (
            found
            and subprocess.run([found, "-c", "import venv"], capture_output=True).returncode == 0
        ):
            return found
    pytest.skip(f"no Python {version} is installed")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "version",
    [
        pytest.param("3.12", marks=pytest.mark.soak),
        pytest.param("3.13", marks=pytest.mark.slow),
        pytest.param("3.14", marks=pytest.mark.slow),
    ],
)
def test_it_runs_on_python(version: str, tmp_path: Path) -> None:
    python = interpreter(version)
    succeed(tmp_path, python, "-m", "venv", tmp_path / "venv")
    programs = tmp_path / "venv" / "bin"
    ours = f"{source_tree(tmp_path)}[test,security]"
    succeed(tmp_path, programs / "pip", "install", "--quiet", ours, *NEEDS)
    options = ("-q", "-m", "not slow", "-p", "no:cacheprovider", "--basetemp", tmp_path / "tests")
    print(succeed(CHECKOUT, programs / "python", "-m", "pytest", *options, *TESTS))
