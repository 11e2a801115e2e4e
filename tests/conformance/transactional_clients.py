"""Foreign clients in transactions, in one vocabulary: librdkafka, and the Java client in two ages.

What a client holds from one call to the next (a producer, and the group member that reads for it)
has a name that the test gives. A refusal is `Refused` with the broker's error code; the Java
client's CommitFailedException, which has none, counts as UNKNOWN_MEMBER_ID.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.kit import foreign
from tests.kit.clients import java_client
from tests.kit.clients.clients import TIMEOUT_SECONDS, Refused
from tests.kit.clients.process_client import ProcessClient
from tests.kit.waiting import wait_until

LONG_MS = 180_000
SESSION_MS = 6_000
PRODUCER_FENCED = 90
Values = list[bytes]


class TransactionalClient(Protocol):
    """One client; `servers` is where the broker listens."""

    name: str

    def init(self, servers: str, name: str, transactional_id: str, timeout_ms: int = ...) -> None:
        """Makes a producer of that name and fences those before it."""

    def begin(self, name: str) -> None: ...

    def send(self, name: str, topic: str, values: dict[int, Values]) -> None:
        """By partition; when it returns, all of them are in the log."""

    def read(self, name: str, group: str, topic: str, count: int, max_poll_ms: int = ...) -> Values:
        """Joins the group, once, and reads until there are so many records."""

    def send_offsets(self, name: str) -> None:
        """Where the last `read` ended, with the group's metadata of that moment."""

    def commit(self, name: str) -> None: ...

    def abort(self, name: str) -> None: ...

    def end(self, name: str) -> None:
        """The producer vanishes in whatever state it is; the member leaves its group."""

    def committed(self, servers: str, topic: str) -> dict[int, Values]:
        """What read_committed sees up to the last stable offset, by partition."""


class JavaTransactional:
    """`JavaTransactions.java`, compiled for one version of the client."""

    def __init__(self, process: ProcessClient) -> None:
        self.name = process.name
        self.process = process
        self._servers = ""

    def init(
        self, servers: str, name: str, transactional_id: str, timeout_ms: int = LONG_MS
    ) -> None:
        self._servers = servers
        self._call("init", name, transactional_id, timeout_ms)

    def begin(self, name: str) -> None:
        self._call("begin", name)

    def send(self, name: str, topic: str, values: dict[int, Values]) -> None:
        rows: list[list[Any]] = [[number, one] for number in values for one in values[number]]
        self.process.call("send", self._servers, name, topic, rows=rows)

    def read(
        self, name: str, group: str, topic: str, count: int, max_poll_ms: int = LONG_MS
    ) -> Values:
        return [row[0] or b"" for row in self._call("read", name, group, topic, count, max_poll_ms)]

    def send_offsets(self, name: str) -> None:
        self._call("send_offsets", name)

    def commit(self, name: str) -> None:
        self._call("commit", name)

    def abort(self, name: str) -> None:
        self._call("abort", name)

    def end(self, name: str) -> None:
        self._call("end", name)

    def committed(self, servers: str, topic: str) -> dict[int, Values]:
        seen: dict[int, Values] = {}
        for number, value in self.process.call("committed", servers, topic):
            seen.setdefault(int(number or b""), []).append(value or b"")
        return seen

    def _call(self, verb: str, name: str, *words: str | int) -> list[list[bytes | None]]:
        return self.process.call(verb, self._servers, name, *words)


class ConfluentTransactional:
    """librdkafka by confluent-kafka."""

    name = "confluent-kafka"

    def __init__(self) -> None:
        self._servers = ""
        self._producers: dict[str, Producer] = {}
        self._members: dict[str, Consumer] = {}
        self._read: dict[str, tuple[list[TopicPartition], object]] = {}

    def init(
        self, servers: str, name: str, transactional_id: str, timeout_ms: int = LONG_MS
    ) -> None:
        self._servers = servers
        config: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0}
        config |= {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms}
        self._producers[name] = Producer(config)
        self._producers[name].init_transactions(TIMEOUT_SECONDS)

    def begin(self, name: str) -> None:
        self._producers[name].begin_transaction()

    def send(self, name: str, topic: str, values: dict[int, Values]) -> None:
        """What is fatal is raised here; any other failure, by the commit."""
        producer = self._producers[name]
        for number in values:
            for one in values[number]:
                producer.produce(topic, one, partition=number)
        try:
            assert producer.flush(TIMEOUT_SECONDS) == 0
        except KafkaException as error:
            raise _refused(error.args[0]) from error

    def read(
        self, name: str, group: str, topic: str, count: int, max_poll_ms: int = LONG_MS
    ) -> Values:
        if name not in self._members:
            config = {**_reader(self._servers), "group.id": group}
            config |= {"session.timeout.ms": SESSION_MS, "max.poll.interval.ms": max_poll_ms}
            self._members[name] = Consumer(config)
            self._members[name].subscribe([topic])
        member = self._members[name]
        values: Values = []

        def reads() -> bool:
            message = member.poll(0.1)
            if message is not None and message.error() is None:
                values.append(message.value())
            return len(values) >= count

        wait_until(reads, TIMEOUT_SECONDS)
        positions = [one for one in member.position(member.assignment()) if one.offset >= 0]
        self._read[name] = positions, member.consumer_group_metadata()
        return values

    def send_offsets(self, name: str) -> None:
        self._do(name, "send_offsets_to_transaction", *self._read[name])

    def commit(self, name: str) -> None:
        self._do(name, "commit_transaction")

    def abort(self, name: str) -> None:
        self._do(name, "abort_transaction")

    def _do(self, name: str, method: str, *arguments: object) -> None:
        try:
            getattr(self._producers[name], method)(*arguments, TIMEOUT_SECONDS)
        except KafkaException as error:
            raise _refused(error.args[0]) from error

    def end(self, name: str) -> None:
        if member := self._members.pop(name, None):
            member.close()
        self._read.pop(name, None)
        self._producers.pop(name, None)

    def committed(self, servers: str, topic: str) -> dict[int, Values]:
        consumer = Consumer({**_reader(servers), "group.id": "looks", "enable.partition.eof": True})
        seen: dict[int, Values] = {}
        try:
            numbers = consumer.list_topics(topic, TIMEOUT_SECONDS).topics[topic].partitions
            consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
            ended: set[int] = set()

            def reads() -> bool:
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    seen.setdefault(message.partition(), []).append(message.value())
                elif message is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    ended.add(message.partition())
                return ended == set(numbers)

            wait_until(reads, TIMEOUT_SECONDS)
        finally:
            consumer.close()
        return seen


def _refused(error: KafkaError) -> Refused:
    """Its own codes are negative, among them one for any sort of fencing."""
    return Refused(PRODUCER_FENCED if error.code() == KafkaError._FENCED else error.code())


def _reader(servers: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }


_PROGRAM = Path(__file__).with_name("JavaTransactions.java")

java_measure = JavaTransactional(
    ProcessClient(
        f"java-{foreign.KAFKA_VERSION}", java_client.command(java_client.require_measure, _PROGRAM)
    )
)
java_newest = JavaTransactional(
    ProcessClient(
        f"java-{foreign.NEWEST_CLIENT_VERSION}",
        java_client.command(java_client.require_newest, _PROGRAM),
    )
)
confluent = ConfluentTransactional()
CLIENTS: tuple[TransactionalClient, ...] = (java_measure, java_newest, confluent)
