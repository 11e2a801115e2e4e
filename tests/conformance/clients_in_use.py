"""The foreign clients that tests choose from, grouped by what they can do."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from tests.conformance import (
    aiokafka_client,
    kafka_python_2_client,
    kafka_python_client,
    kcat_client,
)
from tests.kit import foreign
from tests.kit.clients import confluent_client, java_client
from tests.kit.clients.clients import (
    AdminClient,
    ChangesConfigs,
    Client,
    KnowsTopicIds,
    Promise,
    SeesDirectories,
    SetsConfigs,
)
from tests.kit.clients.process_client import ProcessClient

# It has no producer ids; and a request that expects no answer stays in its buffer until another
# request pushes it out, so records with acks=0 never leave it.
old_kafka_python = ProcessClient(
    "kafka-python-2.0", kafka_python_2_client.command, (Promise(1), Promise(-1))
)
PROCESSES = (old_kafka_python, java_client.measure, java_client.newest)

LIBRARIES: tuple[AdminClient, ...] = (
    confluent_client,
    kafka_python_client,
    old_kafka_python,
    aiokafka_client,
    java_client.measure,
    java_client.newest,
)
CLIENTS: tuple[Client, ...] = (*LIBRARIES, kcat_client)

SET_CONFIGS: tuple[SetsConfigs, ...] = (
    confluent_client,
    kafka_python_client,
    old_kafka_python,
    aiokafka_client,
)
CHANGE_CONFIGS: tuple[ChangesConfigs, ...] = (
    confluent_client,
    kafka_python_client,
    java_client.measure,
    java_client.newest,
)
SEE_DIRECTORIES: tuple[SeesDirectories, ...] = (
    kafka_python_client,
    old_kafka_python,
    java_client.measure,
    java_client.newest,
)
KNOW_TOPIC_IDS: tuple[KnowsTopicIds, ...] = (
    kafka_python_client,
    java_client.measure,
    java_client.newest,
)


_REQUIRED: dict[Client, Callable[[], object]] = {
    kcat_client: foreign.require_kcat,
    old_kafka_python: foreign.require_old_kafka_python,
    java_client.measure: java_client.require_measure,
    java_client.newest: java_client.require_newest,
}


@functools.cache
def installed() -> tuple[Client, ...]:
    """All that can read here; the others' own cases say what to install."""
    return tuple(client for client in CLIENTS if _is_here(client))


def _is_here(client: Client) -> bool:
    try:
        _REQUIRED.get(client, bool)()
    except pytest.skip.Exception:
        return False
    return True
