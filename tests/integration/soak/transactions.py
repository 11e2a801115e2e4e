"""A transactional producer that never pauses, and what it knows of each of its transactions."""

from __future__ import annotations

import logging
import random
import threading
import time

from confluent_kafka import KafkaException, Producer

from tests.integration.soak.readings import JOIN_SECONDS
from tests.kit.processes.senders import PARTITIONS

ABORTED, COMMITTED, UNKNOWN = "aborted", "committed", "unknown"

_STEP_S = 5.0
_PATIENCE_S = 120.0
_PAUSE_S = 0.05


def _quiet() -> logging.Logger:
    """To be fenced is fatal, and what is fatal it would print whatever its log level is."""
    logger = logging.getLogger("librdkafka of transactions")
    logger.disabled = True
    return logger


class Transactions:
    """Transaction `n` is the number n in every partition of the topic.

    Some are aborted on purpose; now and then a second producer takes the id over in the middle of
    one, and the first has to find that out when it commits.
    """

    def __init__(self, servers: str, topic: str, seed: str) -> None:
        self.topic = topic
        self.outcomes: list[str] = []
        self.wrong: list[str] = []
        self.fenced_count = 0
        self._servers = servers
        self._random = random.Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(_PATIENCE_S + JOIN_SECONDS)
        assert not self._thread.is_alive(), "a transactional producer does not end"

    def _run(self) -> None:
        try:
            producer = self._initialized()
            while not self._stopping.wait(_PAUSE_S):
                producer = self._transact(producer, len(self.outcomes))
        except Exception as error:  # the verdict reports it, from this list
            self.wrong.append(f"{self.topic}: gave up: {error!r}")

    def _transact(self, producer: Producer, number: int) -> Producer:
        """Runs one transaction; returns the producer for the next one."""
        self.outcomes.append(UNKNOWN)
        wants = self._random.choices(("commit", "abort", "replace"), (75, 15, 10))[0]
        try:
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce(self.topic, b"%d" % number, partition=partition)
            if wants == "replace":
                return self._replace(producer, number)
            self.outcomes[number] = self._end(producer, wants)
        except KafkaException as error:
            if not error.args[0].fatal():
                raise
            # Fenced, for it took too long. Before it asked to commit no one can have committed.
            return self._initialized()
        return producer

    def _replace(self, producer: Producer, number: int) -> Producer:
        producer.flush(_STEP_S)
        successor = self._initialized()
        self.outcomes[number] = ABORTED
        try:
            producer.commit_transaction(_STEP_S)
        except KafkaException:
            self.fenced_count += 1
        else:
            self.wrong.append(f"{self.topic}: {number} was committed by a zombie")
        return successor

    def _end(self, producer: Producer, wants: str) -> str:
        """Its outcome, asked for until it is known. KafkaException: the producer is of no use."""
        give_up_at = time.monotonic() + _PATIENCE_S
        while True:
            try:
                if wants == "commit":
                    producer.commit_transaction(_STEP_S)
                    return COMMITTED
                producer.abort_transaction(_STEP_S)
                return ABORTED
            except KafkaException as error:
                if error.args[0].txn_requires_abort():
                    wants = "abort"
                elif not error.args[0].retriable() or time.monotonic() > give_up_at:
                    raise

    def _initialized(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "transactional.id": self.topic,
                "transaction.timeout.ms": 30_000,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 200,
                "logger": _quiet(),
            }
        )
        give_up_at = time.monotonic() + _PATIENCE_S
        while True:
            try:
                producer.init_transactions(_STEP_S)
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > give_up_at:
                    raise
            else:
                return producer
