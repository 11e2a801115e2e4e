"""SP-3: a Delta table in an object store, here a stand-in for S3."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import deltalake
import polars
import pytest

from pyspark_barnabas.delta.compaction import compact
from pyspark_barnabas.delta.options import delta_options
from tests.kit.pipeline.delta_tables import ODD, commit, files, rows
from tests.kit.processes.broker_process import free_port
from tests.kit.waiting import wait_until

TABLE = "s3://bucket/tables/t"


@pytest.fixture
def storage() -> Iterator[dict[str, str]]:
    """How to reach a bucket. Its server is a process: in a thread it would wait for the
    interpreter that waits for it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def has_bucket() -> bool:
        try:
            urllib.request.urlopen(urllib.request.Request(f"{url}/bucket", method="PUT"))
        except OSError:
            return False
        return True

    wait_until(has_bucket, 60)
    yield {
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_CONDITIONAL_PUT": "etag",  # a commit must not replace another one
    }
    server.kill()
    server.wait()


def test_sp_3_a_micro_batch_is_there_once(storage: dict[str, str]) -> None:
    # As Spark hands names over.
    given = {f"storage.{name}".lower(): value for name, value in storage.items()}
    options = delta_options({"path": TABLE, "partitionBy": "day", **given})
    first = [{"number": number, "day": day} for number, day in enumerate(ODD)]
    assert commit(options, 0, files(options, first))
    assert not commit(options, 0, files(options, first))
    assert commit(options, 1, files(options, rows(10, 12)))
    assert commit(options, 2, files(options, rows(13, 15)))
    assert compact(options) == (4, 2)
    given_rows = (*first, *rows(10, 12), *rows(13, 15))
    wanted = [{**row, "day": row["day"] or None} for row in given_rows]
    table = deltalake.DeltaTable(TABLE, storage_options=storage).to_pyarrow_table()
    assert sorted(table.to_pylist(), key=lambda row: row["number"]) == wanted
    found = polars.read_delta(TABLE, storage_options=storage).sort("number")
    assert found.select("number", "day").to_dicts() == wanted
