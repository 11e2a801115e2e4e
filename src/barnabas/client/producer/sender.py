"""Runs the task that takes batches from the accumulator and sends them (PR-3 to PR-6).

    accumulator.ready -> by leader -> one Produce per broker -> answer -> acknowledge/retry/reject

A request contains at most one batch per partition. Nothing is awaited between taking batches and
writing the request that contains them, so requests are written to each connection in the order of
their sequences. While a broker is unknown or unreachable, its batches wait in the accumulator until
`delivery.timeout.ms`.

If a program ends its event loop without calling `close`, this task is cancelled like all other
tasks, for example by `asyncio.run`. It then sends the accepted records within a time limit, and a
line on stderr reports how many remain.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.client.channel import BrokerAddress, Channel
from barnabas.client.cluster import Cluster
from barnabas.client.config import ProducerConfig
from barnabas.client.errors import (
    AUTHENTICATION_ERRORS,
    ClientClosed,
    Unreachable,
    broker_error,
    check,
    reason,
)
from barnabas.client.pool import backoff_ms
from barnabas.client.producer.accumulator import SEQUENCE_ERRORS, Accumulator
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.partition_queue import PartitionQueue
from barnabas.client.retry_log import MOMENT_MS, RetryLog
from barnabas.client.view import unknown_partition
from barnabas.counted import counted
from barnabas.errors import (
    BarnabasError,
    DuplicateSequenceNumber,
    KafkaError,
    MessageTooLarge,
    NetworkException,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from barnabas.protocol.api import INIT_PRODUCER_ID, PRODUCE
from barnabas.protocol.codec import Message
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.producer.transactions import Transactions

_log = logging.getLogger(__name__)

_LOWEST_PRODUCE = 3  # lower versions use older record formats
_HIGHEST_PRODUCE = 11  # 12 and above belong to version 2 of transactions (KIP-890)
_REQUEST_OVERHEAD_BYTES = 512
_GONE_MS = 5_000  # how long a partition must be missing before its records fail
_LAST_S = 5.0  # time to send the remaining records when the loop ends
_STALE_METADATA = (NotLeaderOrFollower, UnknownTopicOrPartition)

Flight = list[ProducerBatch]


class Sender:
    """Runs the only task that sends batches, which keeps the batches of each partition in order."""

    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        config: ProducerConfig,
        transactions: Transactions | None,
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self._config = config
        self._transactions = transactions
        self._clock = cluster.seams.clock
        self._wake = asyncio.Event()
        self._requests: dict[int, int] = {}  # broker id -> Produce requests in flight
        self._connecting: dict[int, asyncio.Task[None]] = {}
        self._retries = RetryLog()  # for failures of partitions
        self._no_id = RetryLog(MOMENT_MS)
        # since when partitions with waiting records are missing from their topics
        self._gone: dict[TopicPartition, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False
        self.on_cancelled: Callable[[int], None] = lambda lost: None  # called when the loop ends

    def start(self) -> None:
        self._cluster.metadata.add_listener(self.wake)
        self._cluster.tasks.add_failure_listener(self._accumulator.fail_all)
        self._task = self._cluster.tasks.start("the sender", self._run())

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def close(self) -> None:
        """Stop taking batches, but do not wait for the batches that are in flight."""
        self._is_closing = True
        tasks = [task for task in (self._task, *self._connecting.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self) -> None:
        """Wake the task, because a batch, a response or metadata has arrived."""
        self._wake.set()

    async def _run(self) -> None:
        try:
            await self._send_all()
        except asyncio.CancelledError:
            if not self._is_closing:
                await self._send_last()
            raise

    async def _send_last(self) -> None:
        """Send the remaining batches while the loop ends. Fail and count those left over."""
        accumulator = self._accumulator
        acknowledged = accumulator.statistics.acknowledged_records
        owed = acknowledged + sum(batch.record_count for batch in accumulator.unfinished_batches)
        accumulator.flushing += 1
        try:
            async with asyncio.timeout(_LAST_S):
                await self._send_all(is_last=True)
        except TimeoutError:
            _log.warning("not all records could be sent when the event loop ended")
        finally:
            if not self._is_closing:
                accumulator.fail_all(ClientClosed("the event loop ended before that"))
                self.on_cancelled(max(0, owed - accumulator.statistics.acknowledged_records))

    async def _send_all(self, *, is_last: bool = False) -> None:
        """Send batches as they become ready or, if `is_last`, until all of them are done."""
        loop = asyncio.get_running_loop()
        while not is_last or self._accumulator.unfinished_batches:
            self._wake.clear()
            now_ms = self._clock.monotonic_ms()
            expired = self._accumulator.expire(now_ms)
            if expired:
                # Log a single line, no matter how many records expire together, because each
                # record's error describes its batch.
                _log.warning("%s", expired[0].error)
            if self._accumulator.needs_producer_id and not await self._identify():
                continue
            next_ms = self._send_ready(now_ms)
            timer = None
            if next_ms is not None:
                # This is twice as fast as asyncio.timeout, and it runs for each batch.
                timer = loop.call_later(max(next_ms - now_ms, 1) / 1000, self.wake)
            await self._wake.wait()
            if timer is not None:
                timer.cancel()

    # ---- identity ----

    async def _identify(self) -> bool:
        """Get a producer id if needed, once nothing is in flight. Returns whether there is one."""
        accumulator = self._accumulator
        if self._transactions is not None:
            # Only the coordinator may raise the epoch of a transactional id, so the transaction
            # fails, and its abort fetches the next identity (KIP-360).
            self._transactions.on_sequences_lost()
            await self._wake.wait()
            return False
        if accumulator.in_flight_count or not accumulator.unfinished_batches:
            # Responses in transit belong to the old identity. If there are no records, no new
            # identity is needed.
            await self._wake.wait()
            return False
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        try:
            answer = await self._cluster.call_any(INIT_PRODUCER_ID, request, InitProducerIdResponse)
            check(answer.error_code, "asking for a producer id")
        except (Unreachable, KafkaError) as error:
            if isinstance(error, KafkaError) and not error.retriable:
                # With CLUSTER_AUTHORIZATION_FAILED, for example, no record can be sent with
                # idempotence.
                accumulator.fail_waiting(error)
                return False
            if self._no_id.is_news("producer id", type(error), self._clock.monotonic_ms()):
                why = reason(error) if isinstance(error, KafkaError) else error
                _log.warning("there is no producer id yet, retrying: %s", why)
            self._cluster.metadata.request_refresh()
            await asyncio.sleep(self._cluster.config.retry_backoff_ms / 1000)
            return False
        self._no_id.over("producer id")
        if accumulator.producer_id >= 0:
            _log.warning(
                "the sequences of producer id %d are lost; continuing as %d: records whose outcome "
                "is unknown may be stored twice",
                accumulator.producer_id,
                answer.producer_id,
            )
        accumulator.identify(answer.producer_id, answer.producer_epoch)
        return True

    # ---- sending requests ----

    def _send_ready(self, now_ms: int) -> int | None:
        """Send all batches that are ready, and return the latest time to check again."""
        # A request contains one batch per partition, but a broker accepts several requests at a
        # time, so repeat until no broker accepts another.
        while True:
            ready = self._accumulator.ready(now_ms)
            by_node = self._by_leader(ready.queues)
            sent = False
            for node, queues in by_node.items():
                sent = self._send_to(node, queues) or sent
            if not sent:
                return ready.next_ms

    def _by_leader(
        self, queues: Sequence[PartitionQueue]
    ) -> dict[BrokerAddress, list[PartitionQueue]]:
        metadata = self._cluster.metadata
        by_node: dict[BrokerAddress, list[PartitionQueue]] = {}
        # A partition that is gone may fail the records of the others, too, so find it first.
        there = [queue for queue in queues if self._check_exists(queue)]
        for queue in there:
            if not queue.waiting:
                continue
            if self._transactions is not None and not self._transactions.admits(
                queue.topic_partition
            ):
                continue  # the sender is woken when the partition has been added to the transaction
            node = metadata.view.leader(queue.topic_partition)
            if node is None:
                # The topic was known when its records were accepted. If it has been deleted since,
                # they wait until it is recreated, as in Kafka's client (TP-6).
                metadata.track([queue.topic_partition.topic], create=True)
                metadata.request_refresh()
            else:
                by_node.setdefault(node, []).append(queue)
        return by_node

    def _check_exists(self, queue: PartitionQueue) -> bool:
        """Return whether the partition exists. If it has been missing for a while, fail its
        records.

        The number of partitions decreases only if the topic is deleted and created again. A broker
        that lags behind may not know a new partition for a moment, so a single response proves
        nothing.
        """
        name = queue.topic_partition
        topic = self._cluster.metadata.view.topics.get(name.topic)
        if topic is None or name.partition in topic.partitions:
            self._gone.pop(name, None)
            return True
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._gone.setdefault(name, now_ms) < _GONE_MS:
            self._cluster.metadata.request_refresh()
            return False
        del self._gone[name]
        error = unknown_partition(topic, name.partition)
        count = self._accumulator.fail_queue(queue, error)
        _log.warning("%s not sent: %s", counted(count, "record"), error)
        if self._transactions is not None:
            self._transactions.on_partition_gone(error)
        return False

    def _send_to(self, node: BrokerAddress, queues: Sequence[PartitionQueue]) -> bool:
        """Send one request to a broker if it is connected and another request may be in flight."""
        most = self._config.max_in_flight_requests_per_connection
        if self._requests.get(node.node_id, 0) >= most:
            return False
        channel = self._cluster.pool.ready_channel(node)
        if channel is None:
            self._connect(node)
            return False
        flight: Flight = []
        size_bytes = _REQUEST_OVERHEAD_BYTES
        for queue in queues:
            size_bytes += queue.next_batch().size_bytes
            # Send the first batch regardless of its size, or it would never be sent.
            if flight and size_bytes > self._config.max_request_size:
                break
            flight.append(self._accumulator.take(queue))
        self._write(channel, flight)
        return True

    def _write(self, channel: Channel, flight: Flight) -> None:
        request = self._request(flight)
        node_id = channel.node.node_id
        try:
            version = channel.version(PRODUCE, _HIGHEST_PRODUCE)
            if version < _LOWEST_PRODUCE:
                raise UnsupportedVersion(
                    f"{channel.node} does not support record batches; it must be Kafka 0.11 or "
                    "later"
                )
            if self._config.acks == 0:
                # No response will arrive (PR-4), so records count as sent once written, without an
                # offset.
                channel.send_unanswered(PRODUCE, request, version)
                for batch in flight:
                    self._accumulator.acknowledge(batch, -1, -1)
                return
        except BarnabasError as error:
            self._on_failure(flight, error)
            return
        self._requests[node_id] = self._requests.get(node_id, 0) + 1
        answer = channel.send(PRODUCE, request, version)
        answered = self._cluster.tasks.guard("the answer to a Produce", self._on_answer)
        sent_ms = self._clock.monotonic_ms()

        def done(answer: asyncio.Future[Message]) -> None:
            self._accumulator.statistics.on_answer(self._clock.monotonic_ms() - sent_ms)
            answered(node_id, flight, answer)

        answer.add_done_callback(done)

    def _request(self, flight: Flight) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for batch in flight:
            topic, partition = batch.topic_partition
            records = batch.encode(is_transactional=self._transactions is not None)
            data = PartitionProduceData(index=partition, records=records)
            topics.setdefault(topic, []).append(data)
        return ProduceRequest(
            transactional_id=self._config.transactional_id or None,
            acks=self._config.acks,
            timeout_ms=self._cluster.config.request_timeout_ms,
            topic_data=[
                TopicProduceData(name=topic, partition_data=data) for topic, data in topics.items()
            ],
        )

    def _connect(self, node: BrokerAddress) -> None:
        """Open the broker's channel in a separate task, which wakes this task when it is done."""
        if node.node_id in self._connecting:
            return

        async def connect() -> None:
            try:
                await self._cluster.pool.channel(node)
            except AUTHENTICATION_ERRORS as error:
                # All brokers receive the same credentials, so no waiting record can be sent.
                self._accumulator.fail_waiting(error)
            except BarnabasError as error:
                _log.info("%s", error)
                self._cluster.metadata.request_refresh()
            finally:
                del self._connecting[node.node_id]
                self.wake()

        self._connecting[node.node_id] = self._cluster.tasks.start(f"connecting {node}", connect())

    # ---- handling responses ----

    def _on_answer(self, node_id: int, flight: Flight, answer: asyncio.Future[Message]) -> None:
        self._requests[node_id] -= 1
        self.wake()
        flight = [batch for batch in flight if not batch.done]  # all are done if the client failed
        if answer.cancelled():
            self._on_failure(flight, ClientClosed("the producer was closed"))
            return
        error = answer.exception()
        if error is not None:
            assert isinstance(error, BarnabasError), error
            self._on_failure(flight, error)
            return
        response = answer.result()
        assert isinstance(response, ProduceResponse)
        outcomes = {
            TopicPartition(topic.name, partition.index): partition
            for topic in response.responses
            for partition in topic.partition_responses
        }
        for batch in flight:
            outcome = outcomes.get(batch.topic_partition)
            # A broker that omits a partition violates the protocol. Retry the batch, or it would
            # stay in flight until the program ends.
            if outcome is None:
                self._on_failure(
                    [batch], NetworkException(f"no answer for {batch.topic_partition}")
                )
            else:
                self._settle(batch, outcome)

    def _settle(self, batch: ProducerBatch, outcome: PartitionProduceResponse) -> None:
        code = outcome.error_code
        # A duplicate was stored by an attempt whose response was lost (PR-6). If the broker does
        # not return its offset, report it as unknown.
        if code in (0, DuplicateSequenceNumber.code):
            offset = outcome.base_offset if code == 0 else -1
            self._accumulator.acknowledge(batch, offset, outcome.log_append_time_ms)
            return
        subject = f"{counted(batch.record_count, 'record')} for {batch.topic_partition}"
        self._on_failure([batch], broker_error(code, subject, outcome.error_message))

    def _on_failure(self, flight: Flight, error: BarnabasError) -> None:
        """Hand back the batches of a failed attempt, to be retried after a backoff or failed."""
        # After any failure, the leader may have changed (PR-9).
        self._cluster.metadata.request_refresh()
        now_ms = self._clock.monotonic_ms()
        for batch in flight:
            pause_ms = backoff_ms(
                batch.attempts,
                self._cluster.config.retry_backoff_ms,
                self._cluster.config.retry_backoff_max_ms,
                self._cluster.seams.random,
            )
            self._accumulator.fail_attempt(batch, error, now_ms + pause_ms)
        again = [batch for batch in flight if not batch.done]
        if not isinstance(error, SEQUENCE_ERRORS):  # these follow from another error
            self._warn(again, error, now_ms)

    def _warn(self, again: Flight, error: BarnabasError, now_ms: int) -> None:
        """Log the reason why these batches are retried."""
        if isinstance(error, _STALE_METADATA):
            # A broker briefly lags behind when a topic is created or a leader changes; only a
            # second failure means trouble.
            again = [batch for batch in again if batch.attempts > 1]
        names = [batch.topic_partition for batch in again]
        fresh = [name for name in names if self._retries.is_news(name, type(error), now_ms)]
        if fresh:
            if isinstance(error, MessageTooLarge):
                _log.warning(
                    "splitting batches for %s, which are refused with %s: lower batch.size, or "
                    "raise the topic's max.message.bytes",
                    ", ".join(map(str, fresh)),
                    reason(error),
                )
                return
            why = f"refused with {reason(error)}" if isinstance(error, KafkaError) else error
            what = ", ".join(map(str, fresh))
            _log.warning("retrying records for %s: %s", what, why)
