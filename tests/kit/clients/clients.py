"""What every foreign client is asked to do, in one vocabulary, so that tests can pair them freely.

Each `*_client.py` here wraps one client: no logic of its own, no retries on top of the client's.
All of them read by assignment: none joins a group or commits an offset.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

TIMEOUT_SECONDS = 90.0

# What ListOffsets is asked for instead of a time.
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3


class Promise(NamedTuple):
    """How sure a producer wants to be of a record."""

    acks: int
    is_idempotent: bool = False

    def __str__(self) -> str:
        return f"acks={self.acks}" + (" idempotent" if self.is_idempotent else "")


PROMISES = (Promise(0), Promise(1), Promise(-1), Promise(-1, is_idempotent=True))


class Sent(NamedTuple):
    """A record as it is handed to a producer."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    """None: the client takes the time of day."""


class Seen(NamedTuple):
    """A record as a consumer got it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class PartitionSeen(NamedTuple):
    """A partition as a client describes it."""

    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class ClusterSeen(NamedTuple):
    """A cluster as a client describes it."""

    controller: int
    brokers: tuple[int, ...]


class Resource(NamedTuple):
    """What has configs; `kind` is "topic" or "broker", the empty broker stands for all of them."""

    kind: str
    name: str


class ConfigSeen(NamedTuple):
    """A config in force; `source` is the protocol's number, below."""

    value: str | None
    source: int


DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, STATIC_BROKER, DEFAULT = 1, 2, 3, 4, 5


class Change(NamedTuple):
    """One step of IncrementalAlterConfigs; `how` is SET, DELETE, APPEND or SUBTRACT."""

    how: str
    key: str
    value: str | None = None


HOW = {"SET": 0, "DELETE": 1, "APPEND": 2, "SUBTRACT": 3}


class Refused(Exception):
    """The broker answered an admin request with this protocol error."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error code {code}")
        self.code = code


class Client(Protocol):
    """A producer and consumer that somebody else wrote."""

    name: str
    promises: tuple[Promise, ...]
    """What it can be asked for."""

    def produce(
        self, servers: str, topic: str, records: list[Sent], *, codec: str, promise: Promise
    ) -> None:
        """Sends the records in order and returns when they are out, acknowledged where they can.

        Those that administer topics raise `Refused` when the broker refuses a record.
        """
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
    """A client that administers topics too; kcat does not. Refusals are raised as `Refused`."""

    def create_topic(
        self,
        servers: str,
        topic: str,
        partitions: int,
        configs: dict[str, str],
        *,
        validate_only: bool = False,
    ) -> None: ...

    def create_partitions(self, servers: str, topic: str, total: int) -> None: ...

    def delete_topic(self, servers: str, topic: str) -> None: ...

    def offset(self, servers: str, topic: str, spec: int) -> int | None:
        """Partition 0's offset at a time, or by `LATEST` or `EARLIEST`.

        None when nothing is of that time or later.
        """
        ...

    def describe_configs(self, servers: str, resource: Resource) -> dict[str, ConfigSeen]: ...

    def describe_cluster(self, servers: str) -> ClusterSeen: ...


class SetsConfigs(AdminClient, Protocol):
    """A client with the old AlterConfigs: what is not named returns to its default."""

    def alter_configs(self, servers: str, resource: Resource, configs: dict[str, str]) -> None: ...


class ChangesConfigs(AdminClient, Protocol):
    """A client with IncrementalAlterConfigs (KIP-339), and ListOffsets by `MAX_TIMESTAMP`."""

    def change_configs(self, servers: str, resource: Resource, changes: list[Change]) -> None: ...


class SeesDirectories(AdminClient, Protocol):
    """A client with DescribeLogDirs."""

    def log_sizes(self, servers: str) -> dict[tuple[str, int], int]:
        """Bytes of every partition, by topic and number; asserts that all directories are well."""
        ...


class KnowsTopicIds(AdminClient, Protocol):
    """A client that deletes a topic by its id (KIP-516)."""

    def topic_id(self, servers: str, topic: str) -> str:
        """As the client writes it, which `delete_topic_by_id` reads."""
        ...

    def delete_topic_by_id(self, servers: str, topic_id: str) -> None: ...
