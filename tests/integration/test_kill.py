"""A broker that is killed under load, again and again, loses nothing that it has acknowledged."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.clients import confluent_client
from tests.kit.processes.broker_process import broker_process
from tests.kit.processes.senders import (
    LEAST_PER_LIFE,
    PARTITIONS,
    ConfluentSender,
    OwnSender,
    Sender,
    sending,
)
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.secured, pytest.mark.slow]

KILLS = 20
LEAST_IN_ALL = 100_000
BURST = 5_000  # enough to outlast the wait before a kill
LONGEST_WAIT_SECONDS = 0.02


@pytest.mark.timeout(600)
def test_acknowledged_records_are_there_once_and_in_order_after_twenty_kills(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """PR-4, PR-6, ST-8, DL-1: what an idempotent producer repeats is recognized.

    Both producers are in the middle of a burst when the broker is killed, so that many kills fall
    between an append and its answer: with librdkafka's idempotence off this test fails.
    """
    with broker_process(tmp_path, "log.segment.bytes=65536") as broker:
        servers = broker.bootstrap_servers
        with sending(ConfluentSender, servers) as theirs, sending(OwnSender, servers) as ours:
            senders = (theirs, ours)
            for _ in range(KILLS):
                for sender in senders:
                    sender.allow(LEAST_PER_LIFE + BURST)
                for sender in senders:
                    wait_until(sender.has_acknowledged_enough)
                for sender in senders:
                    sender.allow(BURST)
                time.sleep(random.uniform(0, LONGEST_WAIT_SECONDS))
                broker.kill()
                broker.start()
            for sender in senders:
                sender.stop()
        for sender in senders:
            check(sender, servers)
        counts = {sender.topic: sender.acknowledged_count() for sender in senders}
        record_property("acknowledged", counts)
        print(f"{KILLS} kills; acknowledged, and there once and in order: {counts}")
        assert sum(counts.values()) >= LEAST_IN_ALL


def check(sender: Sender, servers: str) -> None:
    """In the end all was acknowledged: the log holds what was sent, as it was sent."""
    assert sender.failed == []
    seen = confluent_client.consume(servers, sender.topic, PARTITIONS, sender.sent_count)
    for partition in range(PARTITIONS):
        stored = [int(one.value or b"") for one in seen if one.partition == partition]
        sent = list(range(partition, sender.sent_count, PARTITIONS))
        # Outside of the assertions, lest they print a hundred thousand numbers.
        wrong = first_difference(stored, sent)
        assert wrong is None, f"{sender.topic} holds something else"
        wrong = first_difference(sender.acknowledged[partition], sent)
        assert wrong is None, f"{sender.topic} was acknowledged otherwise"


def first_difference(
    left: list[int], right: list[int]
) -> tuple[int, int | None, int | None] | None:
    """The first index at which two lists differ, with what stands there."""
    for index, (one, other) in enumerate(itertools.zip_longest(left, right)):
        if one != other:
            return index, one, other
    return None
