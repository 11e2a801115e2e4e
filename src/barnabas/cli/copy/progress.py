"""Keeps the progress of a copy in a topic of the target, in the transactions that copy the records.

Each transaction writes the runs of offsets that it has copied, so after a crash the progress always
fits the records. The first transaction of a run of the command writes the id of this run, so that
one whose writer was fenced sees whether another one has started. The topic is compacted, and no two
entries about records have the same key.

    key    <source cluster>/<kind>/<name>
    value  JSON, as below
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from barnabas.cli.copy.offset_map import OffsetMap, Run
from barnabas.cli.copy.restamp import Draft
from barnabas.errors import BarnabasError
from barnabas.records.batch import HEADER_BYTES, read_header
from barnabas.records.record import BatchBuilder
from barnabas.types import TopicPartition

PROGRESS_TOPIC = "_barnabas_copy"
PROGRESS = TopicPartition(PROGRESS_TOPIC, 0)

_TOPIC, _RUNS, _OWNER = "topic", "runs", "owner"
_MOST_RUNS = 20_000  # in one entry
_ENTRIES_BYTES = 512 * 1024  # in one batch

Entry = tuple[bytes, bytes]


class Progress:
    """Records what was copied from one source cluster. `maps` has each partition's offsets."""

    def __init__(self, source_id: str) -> None:
        self.source_id = source_id
        self.owner: str | None = None  # the id of the last run that has started
        self.topics: dict[str, str] = {}  # the id of each copy
        self.maps: dict[TopicPartition, OffsetMap] = {}

    def apply(self, key: bytes, value: bytes) -> None:
        """Add an entry, in the order in which they were written."""
        source_id, kind, name = key.decode().split("/", 2)
        if source_id != self.source_id:
            return
        fields = json.loads(value)
        if kind == _TOPIC:
            if self.topics.get(name) != fields["id"]:  # what was known belongs to a deleted topic
                self.maps = {each: own for each, own in self.maps.items() if each.topic != name}
            self.topics[name] = fields["id"]
        elif kind == _RUNS:
            copied = self.maps.setdefault(_name(fields["partition"]), OffsetMap())
            for run in _unpacked(fields["runs"]):
                copied.append(run)
            copied.position = max(copied.position, fields["position"])
        elif kind == _OWNER:
            self.owner = fields["run"]
        else:
            raise BarnabasError(
                f"{PROGRESS_TOPIC} has an entry of kind {kind!r}, of a later version of Barnabas"
            )

    def owner_entry(self, run_id: str) -> Entry:
        """Return the entry that says which run copies from now on."""
        return self._entry(_OWNER, "", {"run": run_id})

    def topic_entry(self, topic: str, topic_id: str) -> Entry:
        """Return the entry that says which topic is the copy. It resets what is known about it."""
        return self._entry(_TOPIC, topic, {"id": topic_id})

    def runs_entries(
        self, name: TopicPartition, runs: Sequence[Run], start: int, position: int
    ) -> Iterator[Entry]:
        """Yield the entries for what was copied between two offsets of the source."""
        for first in range(0, max(len(runs), 1), _MOST_RUNS):
            part = runs[first : first + _MOST_RUNS]
            is_last = first + _MOST_RUNS >= len(runs)
            end = position if is_last else part[-1].source + part[-1].size
            yield self._entry(
                _RUNS,
                f"{name}@{start if first == 0 else part[0].source}",
                {"partition": str(name), "position": end, "runs": _packed(part)},
            )

    def _entry(self, kind: str, name: str, value: object) -> Entry:
        key = f"{self.source_id}/{kind}/{name}"
        return key.encode(), json.dumps(value, separators=(",", ":")).encode()


def entry_drafts(entries: Sequence[Entry], now_ms: int) -> Iterator[Draft]:
    """Yield batches of entries."""
    builder = BatchBuilder(is_transactional=True)
    for key, value in entries:
        if builder.append(now_ms, key, value) >= _ENTRIES_BYTES:
            yield _draft(builder)
            builder = BatchBuilder(is_transactional=True)
    if builder.record_count:
        yield _draft(builder)


def _draft(builder: BatchBuilder) -> Draft:
    built = builder.build()
    return Draft(read_header(built), memoryview(built)[HEADER_BYTES:], range(builder.record_count))


def _packed(runs: Sequence[Run]) -> list[int]:
    """Return the runs as differences, which are short: gap, gap of the copy, count."""
    flat: list[int] = []
    source = target = 0
    for run in runs:
        flat += (run.source - source, run.target - target, run.size)
        source, target = run.source + run.size, run.target + run.size
    return flat


def _unpacked(flat: Sequence[int]) -> Iterator[Run]:
    source = target = 0
    for at in range(0, len(flat), 3):
        run = Run(source + flat[at], target + flat[at + 1], flat[at + 2])
        yield run
        source, target = run.source + run.size, run.target + run.size


def _name(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))
