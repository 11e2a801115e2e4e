"""How a broker takes its leave: others lead what it led before its connections are closed.

The controller moves its leaderships to other members of the ISR and has it follow nobody any more,
so clients are never without a leader, and nothing that was acknowledged waits for this broker. What
cannot be moved (it is the last one in sync) stays, and is asked about again a few times. Where no
other broker that runs has a replica of what is left, nobody is waited for; that is seen even while
it waits to ask again, as when two brokers stop at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from barnabas.cluster.store import SessionState
from barnabas.errors import BarnabasError, NotController, RequestTimedOut, error_for_code
from barnabas.protocol.api import CONTROLLED_SHUTDOWN
from barnabas.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.context import Node
    from barnabas.broker.inter_broker.peer_links import PeerLinks

_log = logging.getLogger(__name__)

_VERSION = 3
_LOOK_MS = 50


async def leave(node: Node, links: PeerLinks | None) -> bool:
    """Have this broker relieved of what it leads; whether nothing is left.

    Asks up to `controlled.shutdown.max.retries` times, `controlled.shutdown.retry.backoff.ms`
    apart; a broker that is told not to ask, or has no heirs, has nobody to leave anything to.
    """
    config = node.config
    if links is None or _is_alone(node):
        return True
    if not config.bool("controlled.shutdown.enable"):
        return False
    attempts = config.int("controlled.shutdown.max.retries")
    for attempt in range(1, attempts + 1):
        try:
            left = await _ask_as_long_as_it_helps(node, links)
        except BarnabasError as error:
            _log.warning("the controller does not let this broker go yet: %s", error)
            left = _led(node)
        else:
            if not left:
                _log.info("this broker leads nothing any more")
                return True
            _log.warning(
                "this broker still leads %d partitions that nobody else can lead, such as %s",
                len(left),
                left[0],
            )
        if attempt < attempts:
            await _back_off(node, left, config.int("controlled.shutdown.retry.backoff.ms"))
        if _is_alone(node):
            _log.info("no other broker is left that could lead anything")
            return True
        if not _has_heirs(node, left):
            _log.info("no other broker that runs has a replica of what this one leads")
            return False
    _log.warning("this broker stops all the same, after %d attempts", attempts)
    return False


def _is_alone(node: Node) -> bool:
    return not node.image.brokers.keys() - {node.broker_id}


def _led(node: Node) -> list[TopicPartition]:
    """What this broker leads and others could have, as far as it knows."""
    return [
        TopicPartition(topic.name, number)
        for topic in node.image.topics.values()
        for number, partition in topic.partitions.items()
        if partition.leader == node.broker_id and len(partition.replicas) > 1
    ]


def _has_heirs(node: Node, names: Sequence[TopicPartition]) -> bool:
    """Whether another broker that runs may come to lead any of these; of nothing: whether it may be
    relieved of following."""
    others = node.image.brokers.keys() - {node.broker_id}
    return not names or any(not others.isdisjoint(_replicas(node, name)) for name in names)


def _replicas(node: Node, name: TopicPartition) -> Sequence[int]:
    topic = node.image.topics.get(name.topic)
    partition = None if topic is None else topic.partitions.get(name.partition)
    return () if partition is None else partition.replicas


async def _back_off(node: Node, left: Sequence[TopicPartition], pause_ms: int) -> None:
    """Until the time is over, or the last of those that could take over has gone."""
    ends_at_ms = node.clock.monotonic_ms() + pause_ms
    while not _is_alone(node) and _has_heirs(node, left):
        left_ms = ends_at_ms - node.clock.monotonic_ms()
        if left_ms <= 0:
            return
        await asyncio.sleep(min(left_ms, _LOOK_MS) / 1000)


async def _ask_as_long_as_it_helps(node: Node, links: PeerLinks) -> Sequence[TopicPartition]:
    """As `_ask`; NotController where nobody can write who leads, RequestTimedOut."""
    timeout_ms = node.config.int("controller.socket.timeout.ms")
    ends_at_ms = node.clock.monotonic_ms() + timeout_ms
    asking = asyncio.get_running_loop().create_task(_ask(node, links))
    try:
        while not asking.done():
            if node.store.session_state is not SessionState.CONNECTED:
                raise NotController("the metadata store does not answer")
            if _is_alone(node):
                raise NotController("the last of the others has gone")
            if node.clock.monotonic_ms() >= ends_at_ms:
                raise RequestTimedOut(f"no answer within {timeout_ms} ms")
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(asking), _LOOK_MS / 1000)
        return asking.result()
    finally:
        asking.cancel()


async def _ask(node: Node, links: PeerLinks) -> Sequence[TopicPartition]:
    """What is left; raises BarnabasError if the controller does not answer, or refuses."""
    if node.controller.is_active:
        return await node.controller.controlled_shutdown(node.broker_id, node.view.broker_epoch)
    controller_id = node.controller.controller_id
    if controller_id in (-1, node.broker_id):
        raise NotController("nobody is controller at the moment")
    request = ControlledShutdownRequest(
        broker_id=node.broker_id, broker_epoch=node.view.broker_epoch
    )
    timeout_ms = node.config.int("controller.socket.timeout.ms")
    answer = cast(
        ControlledShutdownResponse,
        await links.ask(controller_id, CONTROLLED_SHUTDOWN, request, timeout_ms, _VERSION),
    )
    if answer.error_code:
        raise error_for_code(answer.error_code)(f"controller {controller_id}")
    return [
        TopicPartition(each.topic_name, each.partition_index)
        for each in answer.remaining_partitions
    ]
