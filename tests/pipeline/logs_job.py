"""The job on system logs, on any Spark cluster; ends when it has read what there is.

python -m tests.pipeline.logs_job MASTER SERVERS TOPIC DEAD_LETTER_TOPIC DIRECTORY
"""

from __future__ import annotations

import sys
from pathlib import Path

from barnabas_pipeline.job import Job
from tests.kit.pipeline.log_records import KNOWN
from tests.pipeline.cluster_job import session_on

RECORDS_PER_BATCH = 2_000


def main(master: str, servers: str, topic: str, letters: str, directory: str) -> None:
    place = Path(directory)
    tables, checkpoint = place / "tables", place / "checkpoint"
    job = Job(KNOWN, servers, topic, letters, tables, checkpoint, RECORDS_PER_BATCH)
    job.start(session_on(master)).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
