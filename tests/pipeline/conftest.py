"""One Spark session for all tests here: a start takes some five seconds.

Its zone is UTC, or the one in the environment's `BARNABAS_SPARK_ZONE`, in which no result differs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kit import foreign

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two cores, one zone, no UI, two shuffle partitions; made as the pipeline makes its own."""
    foreign.require_java()
    from barnabas_pipeline.session import SHORT_LIVED, start_session

    directory: Path = tmp_path_factory.mktemp("spark")
    session = start_session(
        "tests",
        master="local[2]",
        settings={
            **SHORT_LIVED,
            "spark.sql.session.timeZone": os.environ.get("BARNABAS_SPARK_ZONE", "UTC"),
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
            "spark.local.dir": str(directory / "local"),
        },
        log=directory / "spark.log",
    )
    yield session
    session.stop()
