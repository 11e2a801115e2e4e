"""What every foreign client is asked to do, in one vocabulary, so that tests can pair them freely.

Each `*_client.py` here wraps one client: no logic of its own, no retries on top of the client's.
All of them read by assignment: nobody joins a group or commits an offset.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = (0, 1, -1)

TIMEOUT_SECONDS = 30.0


class Sent(NamedTuple):
    """A record as it is handed to a producer."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class Seen(NamedTuple):
    """A record as a consumer got it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


class PartitionSeen(NamedTuple):
    """A partition as a client describes it."""

    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Refused(Exception):
    """The broker answered an admin request with this protocol error."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error code {code}")
        self.code = code


class Client(Protocol):
    """A producer and consumer that somebody else wrote."""

    name: str

    def produce(
        self, servers: str, topic: str, records: list[Sent], *, codec: str, acks: int
    ) -> None:
        """Sends the records in order and returns when they are out, acknowledged where they can."""
        ...

    def consume(self, servers: str, topic: str, partitions: int, count: int) -> list[Seen]:
        """Reads all partitions from their beginning until `count` records have come.

        Returns earlier, with fewer, when `TIMEOUT_SECONDS` have passed; ordered by partition and
        arrival.
        """
        ...

    def list_topics(self, servers: str) -> set[str]:
        """The names of all topics."""
        ...

    def describe_topic(self, servers: str, topic: str) -> list[PartitionSeen]:
        """The topic's partitions in their order."""
        ...


class AdminClient(Client, Protocol):
    """A client that also administers topics; kcat does not. Refusals are raised as `Refused`."""

    def create_topic(
        self, servers: str, topic: str, partitions: int, configs: dict[str, str]
    ) -> None: ...

    def topic_config(self, servers: str, topic: str, key: str) -> str:
        """The value in force."""
        ...

    def delete_topic(self, servers: str, topic: str) -> None: ...

    def offset_at(self, servers: str, topic: str, timestamp_ms: int) -> int | None:
        """Partition 0's first offset of that time or later, None when there is none."""
        ...

    def bounds(self, servers: str, topic: str) -> tuple[int, int]:
        """Partition 0's first offset and its end."""
        ...
