"""A query from a topic into a Delta table; ends when it has read what there is.

python -m tests.pipeline.delta_stream_job SERVERS SOURCE TABLE CHECKPOINT RECORDS_PER_BATCH
"""

from __future__ import annotations

import sys

from barnabas_pipeline.session import SHORT_LIVED, start_session
from tests.kit.pipeline.streams import records_of


def main(servers: str, source: str, table: str, checkpoint: str, per_batch: str) -> None:
    spark = start_session("delta-stream", master="local[2]", settings=SHORT_LIVED)
    records = records_of(spark, servers, source, per_batch)
    query = (
        records.select("value")
        .writeStream.format("barnabas.delta")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(table)
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
