"""Provides a broker's topics, groups, clients and waits, wherever the broker runs.

topic = broker.topic("orders", partitions=3)
with broker.producer() as producer, broker.consumer("orders", group_id="g") as consumer:
    ...
broker.wait_for(group="g", state="Stable")
"""

from __future__ import annotations

import logging
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from barnabas.errors import BarnabasError
from barnabas.testing.embedded.settings import TIMEOUT_S
from barnabas.testing.embedded.waiting import is_wait_timeout

if TYPE_CHECKING:
    from barnabas.client.admin.admin_arguments import ConfigText
    from barnabas.client.admin.group_admin import GroupDescription
    from barnabas.client.config import ClientOptions, ConsumerOptions, ProducerOptions
    from barnabas.client.sync.producer import SyncAdmin, SyncConsumer, SyncProducer
    from barnabas.testing.embedded.client_thread import ClientThread
    from barnabas.testing.embedded.group import Group
    from barnabas.testing.embedded.topic import Topic

    C = TypeVar("C", SyncProducer, SyncConsumer, SyncAdmin)

__tracebackhide__ = is_wait_timeout

_log = logging.getLogger(__name__)

_CLOSING_S = 5.0
_HEARTBEAT_MS = 250


class BrokerHandle(ABC):
    """Reads, writes and waits, using its own clients, which are created on first use."""

    def __init__(self) -> None:
        self._client_thread: ClientThread | None = None
        self._clients_lock = threading.Lock()
        self._handed_out: weakref.WeakKeyDictionary[SyncProducer | SyncConsumer | SyncAdmin, str]
        self._handed_out = weakref.WeakKeyDictionary()  # with the lines that created them

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """Return `HOST:PORT,...` for any Kafka client."""

    def _client_options(self) -> dict[str, Any]:
        """The options that every client needs in addition to the addresses."""
        return {}

    # ---- topics and groups ----

    def topic(
        self,
        name: str,
        partitions: int | None = None,
        replication_factor: int | None = None,
        config: Mapping[str, ConfigText] | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> Topic:
        """Return the topic with this name, creating it if it does not exist.

        `partitions` and `replication_factor` default to the broker's own defaults. If the topic
        exists with different numbers, this raises ValueError. `config` contains the configs of a
        new topic, by Kafka's names. For thousands of partitions, the timeout is extended, because a
        slow disk needs time to create their logs. Raises InvalidTopicName,
        InvalidReplicationFactor, InvalidConfig or WaitTimeout.
        """
        from barnabas.testing.embedded.topic_creation import WantedTopic, open_topic

        wanted = WantedTopic(name, partitions, replication_factor, config or {})
        return open_topic(wanted, self._clients(), timeout_s)

    def topics(self, *, timeout_s: float = TIMEOUT_S) -> list[str]:
        """Return the names of all topics except internal ones, sorted."""
        clients = self._clients()

        async def list_topics() -> list[str]:
            return await (await clients.admin()).list_topics(include_internal=False)

        return clients.run(list_topics, "the list of topics", timeout_s)

    def group(self, name: str) -> Group:
        """Return the consumer group with this name, without creating it."""
        from barnabas.testing.embedded.group import Group

        return Group(name, self._clients())

    # ---- clients ----

    def producer(self, **options: Unpack[ProducerOptions]) -> SyncProducer:
        """Create a producer for this broker. The caller may close it; otherwise, the broker's
        `close` does."""
        from barnabas.client.sync.producer import SyncProducer

        return self._note(
            SyncProducer(self.bootstrap_servers, **{**self._client_options(), **options})
        )

    def consumer(self, *topics: str, **options: Unpack[ConsumerOptions]) -> SyncConsumer:
        """Create a consumer of these topics, starting at the first record unless
        `auto_offset_reset` is given.

        With `group_id`, the consumer subscribes to them; otherwise, all their current partitions
        are assigned to it. Unless a session or heartbeat time is given, it notices new members
        within a quarter of a second. Close it after use, or leave that to the broker's `close`.
        """
        from barnabas.client.sync.producer import SyncConsumer
        from barnabas.types import TopicPartition

        given = {name.replace(".", "_") for name in options}
        # Kafka's default, latest, would miss records that the test has already sent.
        if "auto_offset_reset" not in given:
            options["auto_offset_reset"] = "earliest"
        # A member learns of a rebalance from the response to a heartbeat. Kafka's default interval
        # of three seconds would be too long for a test.
        if not {"heartbeat_interval_ms", "session_timeout_ms"} & given:
            options["heartbeat_interval_ms"] = _HEARTBEAT_MS
        consumer = self._note(
            SyncConsumer(self.bootstrap_servers, **{**self._client_options(), **options})
        )
        if not topics:
            return consumer
        try:
            if options.get("group_id") or options.get("group.id"):
                consumer.subscribe(topics)
            else:
                consumer.assign(
                    TopicPartition(topic, number)
                    for topic in topics
                    for number in consumer.partitions_for(topic)
                )
        # The caller never receives the consumer, so it cannot close it.
        except BaseException:
            consumer.close()
            raise
        return consumer

    def admin(self, **options: Unpack[ClientOptions]) -> SyncAdmin:
        """Create an admin client for this broker. The caller may close it; otherwise, the broker's
        `close` does."""
        from barnabas.client.sync.producer import SyncAdmin

        return self._note(
            SyncAdmin(self.bootstrap_servers, **{**self._client_options(), **options})
        )

    # ---- waits ----

    def wait_for(
        self,
        *,
        group: str,
        state: str | None = None,
        members: int | None = None,
        lag: int | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> GroupDescription:
        """Wait until the group with this name has a certain state: see `Group.wait_for`."""
        return self.group(group).wait_for(
            state=state, members=members, lag=lag, timeout_s=timeout_s
        )

    def wait_for_topic(
        self, name: str, partitions: int | None = None, *, timeout_s: float = TIMEOUT_S
    ) -> Topic:
        """Return the topic once each of its partitions has a leader. Raises WaitTimeout.

        `partitions` is the required number of partitions. This method does not create the topic.
        """
        from barnabas.testing.embedded.topic_creation import wait_for_topic

        return wait_for_topic(name, partitions, self._clients(), timeout_s)

    def wait_for_records(self, topic: str, count: int, *, timeout_s: float = TIMEOUT_S) -> None:
        """Return the topic's records once there are at least `count`. Raises WaitTimeout."""
        self._topic(topic).wait_for_records(count, timeout_s=timeout_s)

    def wait_for_isr(
        self, topic: str, partition: int, isr: Iterable[int], *, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Wait until exactly these brokers are in sync: see `Topic.wait_for_isr`."""
        self._topic(topic).wait_for_isr(partition, isr, timeout_s=timeout_s)

    def wait_for_leader(
        self,
        topic: str,
        partition: int = 0,
        leader: int | None = None,
        *,
        other_than: int | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> int:
        """Wait for a leader of the partition, and return its id: see `Topic.wait_for_leader`."""
        return self._topic(topic).wait_for_leader(
            partition, leader, other_than=other_than, timeout_s=timeout_s
        )

    # ---- clients ----

    def _topic(self, name: str) -> Topic:
        from barnabas.testing.embedded.topic import Topic

        return Topic(name, self._clients())

    def _clients(self) -> ClientThread:
        with self._clients_lock:
            if self._client_thread is None:
                from barnabas.testing.embedded.client_thread import ClientThread

                self._client_thread = ClientThread(
                    lambda: self.bootstrap_servers, self._client_options
                )
            return self._client_thread

    def _hang_up(self) -> None:
        """Close the clients used by topics and groups. They are reopened on the next use."""
        with self._clients_lock:
            if self._client_thread is not None:
                self._client_thread.close()

    def _close_handed_out(self) -> None:
        """Close all clients that callers have left open. This takes at most a few seconds.

        Records that no broker accepts keep a producer open until `delivery.timeout.ms`, and a
        rebalance listener that hangs keeps its consumer open.
        """
        closing = []
        handed_out = list(self._handed_out.items())
        self._handed_out.clear()
        for client, place in handed_out:
            name = f"{client!r}, created at {place},"
            close = partial(_close, client, name)
            # Close them in parallel, in daemon threads, so that a hanging client delays neither the
            # other clients nor the end of the process.
            thread = threading.Thread(target=close, name="barnabas-close", daemon=True)
            thread.start()
            closing.append((thread, name))
        for thread, name in closing:
            thread.join(_CLOSING_S)
            if thread.is_alive():
                _log.warning(
                    "a client outlives its broker: %s is still in use or has records to send", name
                )

    def _note(self, client: C) -> C:
        self._handed_out[client] = _place_of_caller()
        return client


def _close(client: SyncProducer | SyncConsumer | SyncAdmin, name: str) -> None:
    try:
        client.close()
    except BarnabasError as error:
        _log.warning("a client outlives its broker: %s: %s", name, error)


def _place_of_caller() -> str:
    """Return the FILE:LINE of the caller outside this package. For a fixture, this is the line in
    the test.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("barnabas."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
