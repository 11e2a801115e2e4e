"""Batches of a query into the pipeline's tables, without Spark; dies at the given point.

python -m tests.pipeline.tables_job SERVERS QUERY DIRECTORY BATCHES [STEP]

What a query's checkpoint is to Spark is the file `progress` in DIRECTORY: the last batch that
ended. Dead letters go to the topic `dead`. STEP: at which step of the last batch the process kills
itself. Small files are merged behind every second batch.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline import tables
from barnabas_pipeline.behaviour.definition import BEHAVIOUR
from barnabas_pipeline.dead_letter_topic import DeadLetterTopic
from barnabas_pipeline.one_pass import OnePass, Outcome
from barnabas_pipeline.tables import Tables
from pyspark_barnabas.delta.compaction import Compacted, compact
from pyspark_barnabas.delta.options import DeltaOptions
from tests.kit.effort import rounds
from tests.kit.pipeline.table_batches import ALL, in_tasks, taken
from tests.kit.pipeline.web_records import mixed

PARTITIONS = 4
MERGED_EVERY = 2  # batches
TOPIC = "dead"
STEPS = (
    "behind a task",
    *(f"behind {name}" for name in [*ALL][:: rounds(3, in_soak=1)]),
    "before the dead letters",
    "behind the dead letters",
    *(f"behind the merge of {next(iter(some))}" for some in (BEHAVIOUR.growing, BEHAVIOUR.merged)),
    "behind all merges",
    "behind the control table",
    "behind its progress",
)

number_of_tasks = 1 + os.getpid() % 3  # another one in each run

Reached = Callable[[str], None]


class WatchedTables(Tables):
    def __init__(self, directory: Path, reached: Reached) -> None:
        super().__init__(directory, BEHAVIOUR)
        self._reached = reached

    def commit_to(self, name: str, batch: int, query: str, found: Outcome) -> bool:
        is_new = super().commit_to(name, batch, query, found)
        self._reached(f"behind {name}")
        return is_new

    def tidy(self) -> None:
        super().tidy()
        self._reached("behind all merges")


def main(servers: str, query: str, directory: str, batches: str, step: str = "") -> None:
    place = Path(directory)
    done = place / "progress"
    letters = DeadLetterTopic(servers, TOPIC, query)
    first = int(done.read_text()) + 1 if done.exists() else 0
    for batch in range(first, int(batches)):
        fate = step if batch == int(batches) - 1 else ""
        run(place, batch, query, letters, lambda at, fate=fate: die_at(at, fate))  # type: ignore[misc]
        done.with_suffix(".new").write_text(str(batch))
        done.with_suffix(".new").rename(done)
        die_at("behind its progress", fate)


def run(place: Path, batch: int, query: str, topic: DeadLetterTopic, reached: Reached) -> None:
    def tasks(one_pass: OnePass) -> Iterator[tuple[str, bytes]]:
        for result in in_tasks(mixed(batch, PARTITIONS), one_pass, number_of_tasks):
            yield result
            reached("behind a task")

    def send(letters: pa.Table, batch: int, *, since: Mapping[int, int]) -> dict[int, int]:
        reached("before the dead letters")
        end = topic.send(letters, batch, since=since)
        reached("behind the dead letters")
        return end

    def merged(options: DeltaOptions, merge: Callable[[pa.Table], pa.Table] | None) -> Compacted:
        found = compact(options, merge)
        reached(f"behind the merge of {Path(options.path).name}")
        return found

    setattr(tables, "_COMPACT_EVERY", MERGED_EVERY)  # noqa: B010
    setattr(tables, "compact", merged)  # noqa: B010
    taken(WatchedTables(place / "tables", reached), batch, query, tasks, send)
    reached("behind the control table")


def die_at(step: str, fate: str) -> None:
    if step == fate:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
