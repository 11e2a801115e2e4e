"""SP-3: `df.write` with `exactlyOnce`: a job of Spark is one transaction, all of it or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql.types import StructType

import barnabas
from barnabas.client import SyncAdmin
from barnabas.errors import BarnabasError
from pyspark_barnabas.rows import Columns
from pyspark_barnabas.stager import stage_job
from tests.kit.pipeline.topics import create, numbered
from tests.kit.processes.cluster_load import committed_values
from tests.kit.raw_client import NO_TIDYING
from tests.kit.waiting import wait_until
from tests.pipeline.micro_batches import options_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ID = "a-job"
ROWS = 200
TASKS = 4


@pytest.fixture
def servers() -> Iterator[str]:
    """A broker with the topic `t` of two partitions."""
    with barnabas.Broker(config=NO_TIDYING) as broker:
        create(broker, "t", 2)
        yield broker.bootstrap_servers


def write(rows: DataFrame, servers: str) -> None:
    (
        rows.write.format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "t")
        .option("exactlyOnce", "true")
        .option("kafka.transactional.id", ID)
        .mode("append")
        .save()
    )


def staging_is_gone(servers: str) -> bool:
    with SyncAdmin(servers) as admin:
        return f"{ID}-staging" not in admin.list_topics()


def test_sp_3_a_job_that_fails_leaves_nothing_and_succeeds_when_repeated(
    spark: SparkSession, servers: str
) -> None:
    """Its last task fails when the others have staged their rows."""
    rows = spark.range(0, ROWS, 1, TASKS)
    failing = rows.selectExpr(
        f"case when id = {ROWS - 1} then raise_error('the last row') else cast(id as string) end"
        " as value"
    )
    with pytest.raises(Exception, match="the last row"):
        write(failing, servers)
    assert committed_values(servers, "t", 2) == []
    wait_until(lambda: staging_is_gone(servers))
    write(rows.selectExpr("cast(id as string) as value"), servers)
    assert sorted(committed_values(servers, "t", 2)) == sorted(numbered(0, ROWS))
    assert staging_is_gone(servers)


def test_sp_3_a_job_without_rows_writes_nothing(spark: SparkSession, servers: str) -> None:
    write(spark.createDataFrame([], "value string"), servers)
    assert committed_values(servers, "t", 2) == []
    assert staging_is_gone(servers)


def test_sp_3_a_task_that_outlives_its_job_does_not_create_the_staging_topic(servers: str) -> None:
    """Spark may cancel a task only after the driver has aborted the job."""
    options = options_of(servers, topic="t", **{"kafka.max.block.ms": "500"})
    rows = pa.RecordBatch.from_pydict({"value": ["late"]})
    columns = Columns.of(StructType().add("value", "string"))
    with pytest.raises(BarnabasError, match=f"{ID}-staging"):
        asyncio.run(stage_job(options, columns, f"{ID}-staging", iter([rows])))
    assert staging_is_gone(servers)
