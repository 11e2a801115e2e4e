"""Batches of a query into the pipeline's tables, without Spark; dies where it is told to.

python -m tests.pipeline.tables_job SERVERS QUERY DIRECTORY BATCHES [STEP]

What a query's checkpoint is to Spark is the file `progress` in DIRECTORY: the last batch that
ended. Dead letters go to the topic `dead`. STEP: at which step of the first batch the process kills
itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas.pipeline.behaviour.definition import BEHAVIOUR
from barnabas.pipeline.dead_letter_topic import DeadLetterTopic
from barnabas.pipeline.one_pass import OnePass, Outcome
from barnabas.pipeline.tables import Tables
from tests.pipeline.table_batches import ALL, in_tasks, taken
from tests.pipeline.web_records import mixed

PARTITIONS = 4
TOPIC = "dead"
STEPS = (
    "behind a task",
    *(f"behind {name}" for name in ALL),
    "before the dead letters",
    "behind the dead letters",
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


def main(servers: str, query: str, directory: str, batches: str, step: str = "") -> None:
    place = Path(directory)
    done = place / "progress"
    letters = DeadLetterTopic(servers, TOPIC, query)
    first = int(done.read_text()) + 1 if done.exists() else 0
    for batch in range(first, int(batches)):
        fate = step if batch == first else ""
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

    taken(WatchedTables(place / "tables", reached), batch, query, tasks, send)
    reached("behind the control table")


def die_at(step: str, fate: str) -> None:
    if step == fate:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
