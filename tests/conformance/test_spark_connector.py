"""Spark's own connector, the JVM's `format("kafka")`, reads and writes our topics."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import barnabas
from tests.kit import foreign
from tests.kit.clients import confluent_client
from tests.kit.secured.suite import spark_settings

JOB = Path(__file__).with_name("spark_connector_job.py")
TOPIC = "spark-connector"
ROWS = 10_000

pytestmark = [pytest.mark.foreign, pytest.mark.slow]


@pytest.mark.timeout(900)
def test_the_connector_writes_and_reads_batches_and_streams(
    broker: barnabas.Broker, tmp_path: Path
) -> None:
    """SP-1"""
    foreign.require_java()
    jars, python = foreign.require_spark_connector(), foreign.require_connector_python()
    confluent_client.create_topic(broker.bootstrap_servers, TOPIC, 2, {})
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, **spark_settings()}
    done = subprocess.run(
        [python, JOB, json.dumps(options), TOPIC, str(ROWS), jars, tmp_path],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    everything_once = [ROWS, ROWS, ROWS]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "batch": everything_once,
        "stream": everything_once,
    }
