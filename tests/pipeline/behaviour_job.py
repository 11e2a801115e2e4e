"""The user-behaviour job on any Spark cluster; ends when it has read what there is.

python -m tests.pipeline.behaviour_job MASTER SERVERS TOPICS DEAD_LETTER_TOPIC DIRECTORY

TOPICS: with commas between them. Each has a query of its own, tables and checkpoint in
DIRECTORY/TOPIC; they run at once and share the topic of the dead letters.
"""

from __future__ import annotations

import sys
from pathlib import Path

from barnabas_pipeline.behaviour.definition import Behaviour
from barnabas_pipeline.job import Job
from tests.pipeline.cluster_job import session_on

RECORDS_PER_BATCH = 2_000


def main(master: str, servers: str, topics: str, letters: str, directory: str) -> None:
    spark = session_on(master)
    queries = []
    for topic in topics.split(","):
        place = Path(directory) / topic
        tables, checkpoint = place / "tables", place / "checkpoint"
        job = Job(Behaviour(), servers, topic, letters, tables, checkpoint, RECORDS_PER_BATCH)
        queries.append(job.start(spark))
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
