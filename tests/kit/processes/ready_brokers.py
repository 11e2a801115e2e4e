"""Brokers of a real Kafka that have joined their cluster.

Kafka logs that it has started before its controller has sent it the live brokers. Until then it
answers CreateTopics with "larger than available brokers: 0", and clients find no controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.kit.waiting import wait_until

_START_SECONDS = 180.0
_ASK_SECONDS = 5.0


def wait_for_members(servers: Sequence[str]) -> None:
    """Return once each of `servers` knows all of them and the controller (`Metadata`)."""
    for server in servers:
        admin = AdminClient({"bootstrap.servers": server, "log_level": 0})
        wait_until(partial(_knows, admin, len(servers)), _START_SECONDS)


def _knows(admin: AdminClient, brokers: int) -> bool:
    try:
        metadata = admin.list_topics(timeout=_ASK_SECONDS)
    except KafkaException:
        return False
    return len(metadata.brokers) == brokers and metadata.controller_id in metadata.brokers
