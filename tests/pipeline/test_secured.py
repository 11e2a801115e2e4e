"""Spark and a broker where clients log in over TLS: no secret in what Spark says (SE-6)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import barnabas
from barnabas.testing.embedded.broker import Broker


@pytest.fixture(scope="module")
def secure() -> Iterator[Broker]:
    with barnabas.Broker(secure=True) as broker:
        yield broker


def options(broker: Broker) -> dict[str, str]:
    """How the administrator connects, in the names of Spark's connector."""
    return {f"kafka.{name}": value for name, value in broker.client_settings("java").items()}


def plan_of(spark: SparkSession, broker: Broker) -> str:
    """What explain() prints, with every detail."""
    frame = spark.read.format("barnabas").options(**options(broker), subscribe="orders").load()
    printed = StringIO()
    with redirect_stdout(printed):
        frame.explain(extended=True)
        frame.explain(mode="formatted")
    return printed.getvalue()


def test_sp_1_se_2_executors_read_and_write_over_tls(
    spark: SparkSession, secure: Broker, tmp_path: Path
) -> None:
    """SP-3 as well: exactly once, whose transactions are begun by tasks."""
    secure.topic("orders", partitions=2).send_many([f"{number}" for number in range(100)])
    for name in ("copies", "once"):
        secure.topic(name)
    source = spark.read.format("barnabas").options(**options(secure), subscribe="orders")
    frame = source.load().select("value")
    assert frame.count() == 100
    for topic, exactly_once in (("copies", "false"), ("once", "true")):
        writer = frame.write.format("barnabas").mode("append").options(**options(secure))
        writer.option("topic", topic).option("exactlyOnce", exactly_once).save()
        values = secure.topic(topic).values()
        assert sorted(values) == sorted(b"%d" % number for number in range(100))

    stream = spark.readStream.format("barnabas").options(**options(secure), subscribe="orders")
    query = (
        stream.option("startingOffsets", "earliest")
        .load()
        .writeStream.format("memory")
        .queryName("secured")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert spark.sql("select count(*) from secured").first() == (100,)
    password = secure.client_settings("confluent-kafka")["sasl.password"]
    written = b"".join(
        path.read_bytes() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()
    )
    assert written and password.encode() not in written


def test_se_6_no_plan_and_no_failed_task_shows_a_password(
    spark: SparkSession, secure: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    secure.topic("orders")
    password = secure.client_settings("confluent-kafka")["sasl.password"]
    plan = plan_of(spark, secure)
    assert "barnabas" in plan and password not in plan

    given = options(secure)
    planted = "planted-in-a-wrong-password"
    given["kafka.sasl.jaas.config"] = given["kafka.sasl.jaas.config"].replace(password, planted)
    frame = spark.range(2).selectExpr("cast(id as string) as value")
    with pytest.raises(PySparkException) as refused:
        writer = frame.write.format("barnabas").mode("append").options(**given)
        writer.option("topic", "orders").save()
    out, err = capfd.readouterr()
    said = str(refused.value) + out + err
    assert "uthentication failed" in said
    assert planted not in said and password not in said
