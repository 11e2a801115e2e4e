"""As `cluster_job`, with Spark's speculation, and one task in each query that is slow.

python -m tests.pipeline.speculation_job MASTER SERVERS SOURCE TARGET DIRECTORY

Each attempt creates a file `attempt-PARTITION-NUMBER` when it has passed `HOLD_AFTER` rows on. The
first one of partition 0 then waits for the second one to be as far and creates `both`, for which
the second one waits. So both of them write.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from tests.pipeline.cluster_job import HOLD_AFTER, Passing, copy, session_on, wait_for

_SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",  # of two tasks one has ended
    "spark.speculation.multiplier": "1.5",
    # Executors find what this module imports.
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[2]),
}


def main(master: str, servers: str, source: str, target: str, directory: str) -> None:
    spark = session_on(master, _SETTINGS)
    copy(spark, servers, (source, target), Path(directory), _slow_in)


def _slow_in(directory: str) -> Passing:
    def passing(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        place, attempt = Path(directory), (context.partitionId(), context.attemptNumber())
        passed, is_late = 0, False
        for batch in batches:
            yield batch
            passed += batch.num_rows
            if passed >= HOLD_AFTER and not is_late:
                is_late = True
                (place / "attempt-{}-{}".format(*attempt)).touch()
                if attempt == (0, 0):
                    wait_for(place / "attempt-0-1")
                    (place / "both").touch()
                elif attempt == (0, 1):  # else it could end first, and the other one with it
                    wait_for(place / "both")

    return passing


if __name__ == "__main__":
    main(*sys.argv[1:])
