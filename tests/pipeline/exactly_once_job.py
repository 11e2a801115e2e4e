"""A query from a topic to another, each record once; ends when it has read what there is.

python -m tests.pipeline.exactly_once_job SERVERS SOURCE TARGET CHECKPOINT RECORDS_PER_BATCH
"""

from __future__ import annotations

import sys

from barnabas_pipeline.session import SHORT_LIVED, start_session
from tests.kit.pipeline.streams import records_of

TRANSACTIONAL_ID = "killed"


def main(servers: str, source: str, target: str, checkpoint: str, per_batch: str) -> None:
    spark = start_session("exactly-once", master="local[2]", settings=SHORT_LIVED)
    records = records_of(spark, servers, source, per_batch)
    query = (
        records.select("key", "value")
        .writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
        .option("exactlyOnce", "true")
        .option("kafka.transactional.id", TRANSACTIONAL_ID)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
