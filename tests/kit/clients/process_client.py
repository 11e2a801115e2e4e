"""A foreign client in a process of its own, spoken to by rows: the test's end of the pipes."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.kit.clients.clients import (
    PROMISES,
    Change,
    ClusterSeen,
    ConfigSeen,
    PartitionSeen,
    Promise,
    Refused,
    Resource,
    Seen,
    Sent,
)
from tests.kit.clients.rows import Field, Row, read_rows, write_rows

Command = Callable[[Path], list[str]]
"""Makes the command that runs the client; may put into the directory what the command needs."""

STOP_SECONDS = 120.0


class ProcessClient:
    """Started when it is first asked for something; one process serves until `close`.

    After an answer that is not in order the process is ended, and the next request has a new one.
    """

    def __init__(
        self, name: str, command: Command, promises: tuple[Promise, ...] = PROMISES
    ) -> None:
        self.name = name
        self.promises = promises
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    def produce(
        self, servers: str, topic: str, records: list[Sent], *, codec: str, promise: Promise
    ) -> None:
        rows: list[list[Field]] = []
        for partition, key, value, headers, timestamp_ms in records:
            flat: list[Field] = [field for header in headers for field in header]
            rows.append([partition, key, value, timestamp_ms, *flat])
        how: list[Field] = [codec, promise.acks, int(promise.is_idempotent)]
        self.call("produce", servers, topic, *how, rows=rows)

    def consume(self, servers: str, topic: str, partitions: int, count: int) -> list[Seen]:
        seen = [_seen(row) for row in self.call("consume", servers, topic, partitions, count)]
        return sorted(seen, key=lambda record: record.partition)

    def list_topics(self, servers: str) -> set[str]:
        return {_text(row[0]) for row in self.call("list_topics", servers)}

    def describe_topic(self, servers: str, topic: str) -> list[PartitionSeen]:
        """A row is: partition, leader, replicas and ISR as numbers with commas between."""
        return [
            PartitionSeen(_int(row[0]), _int(row[1]), _ints(row[2]), _ints(row[3]))
            for row in self.call("describe_topic", servers, topic)
        ]

    def create_topic(
        self,
        servers: str,
        topic: str,
        partitions: int,
        configs: dict[str, str],
        *,
        validate_only: bool = False,
    ) -> None:
        rows: list[list[Field]] = [[key, value] for key, value in configs.items()]
        self.call("create_topic", servers, topic, partitions, int(validate_only), rows=rows)

    def create_partitions(self, servers: str, topic: str, total: int) -> None:
        self.call("create_partitions", servers, topic, total)

    def delete_topic(self, servers: str, topic: str) -> None:
        self.call("delete_topic", servers, topic)

    def topic_id(self, servers: str, topic: str) -> str:
        [[topic_id]] = self.call("topic_id", servers, topic)
        return _text(topic_id)

    def delete_topic_by_id(self, servers: str, topic_id: str) -> None:
        self.call("delete_topic_by_id", servers, topic_id)

    def offset(self, servers: str, topic: str, spec: int) -> int | None:
        [[offset]] = self.call("offset", servers, topic, spec)
        return None if offset is None else _int(offset)

    def describe_configs(self, servers: str, resource: Resource) -> dict[str, ConfigSeen]:
        """A row is: key, value, number of the source."""
        return {
            _text(key): ConfigSeen(None if value is None else _text(value), _int(source))
            for key, value, source in self.call("describe_configs", servers, *resource)
        }

    def alter_configs(self, servers: str, resource: Resource, configs: dict[str, str]) -> None:
        rows: list[list[Field]] = [[key, value] for key, value in configs.items()]
        self.call("alter_configs", servers, *resource, rows=rows)

    def change_configs(self, servers: str, resource: Resource, changes: list[Change]) -> None:
        self.call("change_configs", servers, *resource, rows=[list(change) for change in changes])

    def log_sizes(self, servers: str) -> dict[tuple[str, int], int]:
        return {
            (_text(topic), _int(partition)): _int(size)
            for topic, partition, size in self.call("log_sizes", servers)
        }

    def describe_cluster(self, servers: str) -> ClusterSeen:
        [[controller, brokers]] = self.call("describe_cluster", servers)
        return ClusterSeen(_int(controller), _ints(brokers))

    def close(self) -> None:
        """The end of its input ends the process."""
        if self._process is not None:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.close()
            try:
                self._process.wait(STOP_SECONDS)
            finally:
                self._kill()

    def call(self, *request: Field, rows: list[list[Field]] | None = None) -> list[Row]:
        """The rows of an answer that is `ok`."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            write_rows(process.stdin, [list(request), *(rows or [])])
            answer = read_rows(process.stdout)
            assert answer, f"{self.name} ended: {self._errors().read_text()}"
        except BaseException:  # also a test that ran out of time: the answer may still come
            self._kill()
            raise
        [status, *details] = answer[0]
        if status == b"refused":
            raise Refused(_int(details[0]))
        assert status == b"ok", f"{self.name}: {_text(details[0])}\n{self._errors().read_text()}"
        return answer[1:]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._directory = tempfile.TemporaryDirectory(prefix="barnabas-client-")
            command = self._command(Path(self._directory.name))
            with self._errors().open("wb") as errors:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
                )
        return self._process

    def _errors(self) -> Path:
        assert self._directory is not None
        return Path(self._directory.name) / "stderr"

    def _kill(self) -> None:
        assert self._process is not None and self._directory is not None
        self._process.kill()
        self._process.wait(STOP_SECONDS)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process = None
        self._directory.cleanup()


def _seen(row: Row) -> Seen:
    """A row is: partition, offset, timestamp, key, value, then names and values of headers."""
    partition, offset, timestamp_ms, key, value, *flat = row
    headers = tuple(
        (_text(name), content) for name, content in zip(flat[::2], flat[1::2], strict=True)
    )
    return Seen(_int(partition), _int(offset), key, value, headers, _int(timestamp_ms))


def _text(field: bytes | None) -> str:
    assert field is not None
    return field.decode()


def _int(field: bytes | None) -> int:
    return int(_text(field))


def _ints(field: bytes | None) -> tuple[int, ...]:
    return tuple(int(number) for number in _text(field).split(",") if number)
