"""A transaction that librdkafka aborts while one of its batches waits to be sent again (DL-1)."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, Producer

from barnabas.protocol.api import PRODUCE
from tests.kit.clients import confluent_client
from tests.kit.processes.answer_proxy import AnswerProxy, Fate, behind_a_proxy
from tests.kit.processes.cluster_load import committed_values
from tests.kit.waiting import wait_until

TOPIC = "after-a-lost-answer"
TIMEOUT_S = 30.0

pytestmark = pytest.mark.foreign


def send(producer: Producer, name: str) -> None:
    producer.begin_transaction()
    for number in range(5):
        producer.produce(TOPIC, f"{name}-{number}".encode(), partition=0)


def lose_the_answer(proxy: AnswerProxy, producer: Producer) -> None:
    """To the batch that is sent next: it is stored, and waits to be sent again."""
    proxy.rule = lambda key: Fate.CUT if key == PRODUCE.key else Fate.PASS
    send(producer, "aborted")
    wait_until(lambda: producer.poll(0.01) is not None and proxy.cut_count > 0)
    producer.poll(0.3)  # until it has noticed
    proxy.rule = lambda key: Fate.PASS


def test_dl_1_the_next_transaction_is_not_taken_for_the_aborted_one() -> None:
    """Decision 20: librdkafka gives both the same sequences."""
    with behind_a_proxy() as proxy:
        confluent_client.create_topic(proxy.servers, TOPIC, 1, {})
        producer = Producer(
            {
                "bootstrap.servers": proxy.servers,
                "transactional.id": "loses-an-answer",
                "retry.backoff.ms": 3000,  # time to abort before it is sent again
                "retry.backoff.max.ms": 3000,
                "log_level": 0,
            }
        )
        producer.init_transactions(TIMEOUT_S)
        lose_the_answer(proxy, producer)
        producer.abort_transaction(TIMEOUT_S)
        for _ in range(3):
            send(producer, "committed")
            try:
                producer.commit_transaction(TIMEOUT_S)
                break
            except KafkaException as error:
                assert error.args[0].txn_requires_abort()
                producer.abort_transaction(TIMEOUT_S)
        values = committed_values(proxy.servers, TOPIC, 1)
        assert values == [b"committed-%d" % number for number in range(5)]
