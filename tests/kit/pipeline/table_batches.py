"""Batches into the pipeline's tables without Spark, and what is in these tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas.client import SyncConsumer, TopicPartition
from barnabas_pipeline.accounts import Accounts, read_accounts
from barnabas_pipeline.behaviour.definition import BEHAVIOUR, Behaviour
from barnabas_pipeline.one_pass import OnePass
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.step import Query, Send, Tasks
from barnabas_pipeline.tables import Tables
from tests.kit.pipeline.web_records import mixed

ALL = BEHAVIOUR.all
QUERY = "a-query"
HITS = 12
"""In each batch of `mixed`, of two partitions."""


def tables_in(directory: Path) -> Tables:
    return Tables(directory, BEHAVIOUR)


def snapshot_of(directory: Path) -> Snapshot:
    return Snapshot(directory, BEHAVIOUR)


def accounts_in(directory: Path) -> Accounts:
    return read_accounts(snapshot_of(directory))[0]


def taken(tables: Tables, batch: int, query: str, tasks: Tasks, send: Send) -> None:
    Query(query, Behaviour(), tables, send).take(batch, tasks)


def in_tasks(batch: pa.Table, one_pass: OnePass, tasks: int = 2) -> Iterator[tuple[str, bytes]]:
    """Each has the partitions of one remainder."""
    for task in reversed(range(tasks)):
        partitions = [each for each in range(8) if each % tasks == task]
        own = batch.filter(pa.compute.is_in(batch["partition"], pa.array(partitions, pa.int32())))
        yield from one_pass.results(own)


def send_nothing(letters: pa.Table, batch: int, *, since: Mapping[int, int]) -> dict[int, int]:
    return {}


def write(tables: Tables, batches: Iterable[int], partitions: int = 2) -> None:
    for batch in batches:
        records = mixed(batch, partitions)
        taken(tables, batch, QUERY, lambda each, rows=records: in_tasks(rows, each), send_nothing)  # type: ignore[misc]


def contents(directory: Path) -> dict[str, Counter[str]]:
    """The rows of each table, as readers have them."""
    snapshot = snapshot_of(directory)
    return {name: Counter(map(repr, snapshot.frame(name).iter_rows())) for name in ALL}


def letters_in(
    servers: str, topic: str, partitions: int = 1
) -> list[tuple[bytes | None, dict[str, bytes | None]]]:
    """Values and headers, ordered by value."""
    places = [TopicPartition(topic, partition) for partition in range(partitions)]
    found = []
    with SyncConsumer(
        servers, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(places)
        for place in places:
            consumer.seek(place, 0)
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < ends[place] for place in places):
            found += [(each.value, dict(each.headers)) for each in consumer.poll(1_000)]
    return sorted(found, key=lambda each: each[0] or b"")


class Killed(Exception):
    """Where a test cuts a batch off."""


class Doomed(Tables):
    """Dies when all tables have a batch, are merged, and are of yet another version than the
    control table names."""

    def replace_control(self, batch: int, query: str, row: Mapping[str, Any]) -> bool:
        raise Killed
