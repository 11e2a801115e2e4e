"""A broker's own loop and its logs, from a test's thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from barnabas import Broker
from barnabas.broker.partitions.replicas import Replicas
from barnabas.storage.log import Log
from barnabas.types import TopicPartition
from tests.kit.raw_client import PATIENCE_S

T = TypeVar("T")


def log_of(node: Broker, topic: str = "t") -> Log:
    return node.server.node.replicas.leader_of(TopicPartition(topic, 0)).log


def inside(broker: Broker, action: Callable[[], T]) -> T:
    """What an action on the broker's own loop returns or raises."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(action())
        except BaseException as error:
            done.set_exception(error)

    broker.thread.loop.call_soon_threadsafe(run)
    return done.result(PATIENCE_S)


def replicas_of(broker: Broker) -> Replicas:
    return broker.server.node.replicas
