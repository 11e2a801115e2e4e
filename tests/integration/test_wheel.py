"""What a user gets from pip: the wheel alone, in an empty environment, outside of the checkout."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.kit.foreign import require_java
from tests.kit.packaging import source_tree, succeed
from tests.kit.processes.broker_process import broker_process
from tests.kit.readme import doors, run_door

pytestmark = pytest.mark.slow

[SPARK_DOOR] = [door for door in doors() if "spark" in door.packages[0]]

SPARK_COUNT = """
import os
import sys
from pyspark.sql import SparkSession
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
records = (
    spark.read.format("barnabas")
    .option("kafka.bootstrap.servers", sys.argv[1])
    .option("subscribe", "wheel")
    .load()
)
print(sorted(bytes(row.value).decode() for row in records.select("value").collect()))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one with nothing but what the README's Spark door installs, as a wheel; its `bin`."""
    directory = tmp_path_factory.mktemp("wheel")
    tree = source_tree(directory)
    succeed(directory, sys.executable, "-m", "build", "--wheel", "--outdir", directory, tree)
    [wheel] = directory.glob("*.whl")
    succeed(directory, sys.executable, "-m", "venv", directory / "venv")
    programs = directory / "venv" / "bin"
    succeed(directory, programs / "pip", "install", "--quiet", *SPARK_DOOR.packages_with(wheel))
    return programs


@pytest.mark.timeout(900)
def test_the_wheel_brings_broker_command_line_and_spark_source(
    environment: Path, tmp_path: Path
) -> None:
    """UX-1, UX-2, SP-1"""
    require_java()
    command = environment / "barnabas"
    with broker_process(tmp_path, command=command) as broker:
        at = ("--bootstrap-server", broker.bootstrap_servers)
        succeed(tmp_path, command, "topics", "create", *at, "--topic", "wheel")
        succeed(tmp_path, command, "produce", *at, "--topic", "wheel", stdin="anna\nbea\n")
        read = succeed(
            tmp_path,
            *(command, "consume", *at, "--topic", "wheel"),
            *("--from-beginning", "--max-messages", "2"),
        )
        assert read == "anna\nbea\n"
        python = environment / "python"
        counted = succeed(tmp_path, python, "-c", SPARK_COUNT, broker.bootstrap_servers)
        assert counted.splitlines()[-1] == "['anna', 'bea']"
        assert broker.stop() == 0


# As it was written: as a message it would be refused, whose lines could be headers.
METADATA = """
from importlib.metadata import distribution
print(distribution("barnabas").read_text("METADATA"))
"""
RELATIVE_LINK = re.compile(r"\]\((?!https?://|#)[^)]*\)")


def test_what_an_index_shows_has_no_link_that_leads_nowhere(
    environment: Path, tmp_path: Path
) -> None:
    """UX-8: its page of a release is no folder in which docs/ would be."""
    shown = succeed(tmp_path, environment / "python", "-c", METADATA)
    assert "Project-URL: Source, https://" in shown
    assert "License-Expression: Apache-2.0" in shown and "License-File: LICENSE" in shown
    assert "/docs/testing.md)" in shown
    assert RELATIVE_LINK.findall(shown) == []


@pytest.mark.timeout(900)
def test_the_readmes_spark_door_needs_no_more_than_its_install_line(
    environment: Path, tmp_path: Path
) -> None:
    """UX-8"""
    require_java()
    run_door(SPARK_DOOR, environment, tmp_path)
