"""Creates, enlarges and deletes topics for clients.

Every change is written to the metadata store. The controller is notified by its watch regardless of
which broker wrote the change, and the client waits for the round in which the change is applied.
Topics are changed in no other way, even on a standalone broker. Only the controller handles these
requests, but any broker can create topics automatically.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.controller.event_loop import ControllerTerm
from barnabas.broker.controller.topic_causes import TopicCauses, deletion_key, growth_key
from barnabas.broker.controller.topic_writer import TopicWriter
from barnabas.cluster import layout
from barnabas.cluster.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from barnabas.controller.placement import Assignment
from barnabas.controller.topics import NewTopic
from barnabas.counted import counted
from barnabas.errors import (
    KafkaError,
    LeaderNotAvailable,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from barnabas.events import Event

if TYPE_CHECKING:
    from barnabas.broker.controller.controller_settings import ControllerContext

_log = logging.getLogger(__name__)

_NO_TOPIC_ID = bytes(16)
_PATIENCE_S = 30.0  # after that, the client has given up

Outcome = TopicImage | KafkaError


class TopicAdmin:
    """Creates, enlarges and deletes topics on behalf of one broker."""

    __slots__ = ("_any_writer", "_causes", "_events", "_term", "_view", "_writer")

    def __init__(self, context: ControllerContext, term: Callable[[], ControllerTerm]) -> None:
        """`term` returns the current term in which this broker is the controller, or raises
        NotController.
        """
        self._view = context.view
        self._events = context.events
        self._causes = context.causes
        self._term = term
        store, random, causes = context.store, context.random, context.causes
        self._writer = TopicWriter(store, random, causes, self._controllers_image)
        self._any_writer = TopicWriter(store, random, TopicCauses(), self._brokers_image)

    def _controllers_image(self) -> ClusterImage:
        return self._term().image

    def _brokers_image(self) -> ClusterImage:
        return self._view.image

    async def create(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[Outcome]:
        """Create topics in a single commit and round. Failures are returned, not raised."""
        term = self._term()
        checked = self._writer.check(topics)
        failures: dict[str, KafkaError] = {}
        accepted = _acceptable(topics, checked)
        if accepted and not validate_only:
            failures = await self._writer.create(accepted)
            # The watch also fires, but perhaps not until this round has begun.
            term.events.path_changed(layout.TOPICS)
            await term.events.whole_round()
        outcomes: list[Outcome] = []
        for topic, assignment in zip(topics, checked, strict=True):
            if isinstance(assignment, KafkaError):
                outcomes.append(assignment)
            elif validate_only:
                outcomes.append(_not_yet(topic, assignment))
            else:
                outcomes.append(failures.get(topic.name) or _created_topic(term, topic.name))
        return outcomes

    async def auto_create(self, topics: Sequence[NewTopic]) -> list[Outcome]:
        """Create topics as `create` does, but on any broker.

        Each topic is returned once this broker knows its leaders. If this takes more than half a
        minute, LeaderNotAvailable is returned instead.
        """
        checked = self._any_writer.check(topics)
        failures = await self._any_writer.create(_acceptable(topics, checked))
        self._report_written(topics, checked, failures)
        outcomes: list[Outcome] = []
        for topic, assignment in zip(topics, checked, strict=True):
            if isinstance(assignment, KafkaError):
                outcomes.append(assignment)
            else:
                outcomes.append(failures.get(topic.name) or await self._once_led(topic.name))
        return outcomes

    def _report_written(
        self,
        topics: Sequence[NewTopic],
        checked: Sequence[Assignment | KafkaError],
        failures: Container[str],
    ) -> None:
        """Report the topics created by this broker, because the controller does not know why they
        were created.
        """
        for topic, assignment in zip(topics, checked, strict=True):
            if not isinstance(assignment, KafkaError) and topic.name not in failures:
                partitions = counted(len(assignment), "partition")
                text = f"[Broker id={self._view.broker_id}] Created topic {topic.name} with "
                text += f"{partitions}: {topic.cause}"
                event = Event("topic-created", text, topic.cause, topic.name, is_harmless=True)
                self._events.add(event, _log)

    async def _once_led(self, name: str) -> Outcome:
        def is_led(image: ClusterImage) -> bool:
            topic = image.topics.get(name)
            return topic is not None and all(
                each.leader != NO_LEADER for each in topic.partitions.values()
            )

        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._view.until(is_led)
        except TimeoutError:
            return LeaderNotAvailable(f"topic {name} is being created but has no leader yet")
        return self._view.image.topics[name]

    async def create_partitions(
        self,
        topic: str,
        total: int,
        assignment: Sequence[Sequence[int]] | None,
        cause: str,
        *,
        validate_only: bool,
    ) -> TopicImage:
        """Increase the number of partitions of a topic to `total`. Raises the same errors as
        `TopicWriter.grow`.
        """
        term = self._term()
        with self._causes.noting([growth_key(topic, total)], cause):
            existing, added = await self._writer.grow(
                topic, total, assignment, validate_only=validate_only
            )
        if validate_only:
            known = term.image.topics.get(topic) or _not_yet(NewTopic(topic), {})
            return known._replace(partitions={**known.partitions, **_never_led(added)})
        _log.warning(
            "topic %s now has %s (previously %d): a key may map to a different partition than "
            "before, so the order of its records is guaranteed only from now on",
            topic,
            counted(total, "partition"),
            len(existing),
        )
        term.events.topic_changed(topic)
        await term.events.whole_round()
        grown = _created_topic(term, topic)
        if isinstance(grown, KafkaError):
            raise grown
        return grown

    async def delete(self, names: Sequence[str], cause: str) -> list[KafkaError | None]:
        """Delete topics in a single commit and round. The result is None for each topic that was
        deleted.
        """
        term = self._term()
        known = [name for name in dict.fromkeys(names) if name in term.image.topics]
        if known:
            with self._causes.noting(map(deletion_key, known), cause):
                await self._writer.delete(known)
            term.events.path_changed(layout.DELETE_TOPICS)
            await term.events.whole_round()
        outcomes: list[KafkaError | None] = []
        for name in names:
            if name not in known:
                outcomes.append(UnknownTopicOrPartition(f"topic {name} does not exist"))
            # The topic name remains in use until the broker is back, so do not make the client
            # wait.
            elif term.is_deletion_blocked(name):
                outcomes.append(
                    RequestTimedOut(
                        f"topic {name} is being deleted, but one of its replicas is on a failed "
                        "broker or log directory: the deletion completes when that is available "
                        "again"
                    )
                )
            else:
                await term.until_deleted(name)
                outcomes.append(None)
        return outcomes


def _acceptable(
    topics: Sequence[NewTopic], checked: Sequence[Assignment | KafkaError]
) -> list[tuple[NewTopic, Assignment]]:
    return [
        (topic, assignment)
        for topic, assignment in zip(topics, checked, strict=True)
        if not isinstance(assignment, KafkaError)
    ]


def _created_topic(term: ControllerTerm, name: str) -> Outcome:
    created = term.image.topics.get(name)
    if created is None:
        return UnknownTopicOrPartition(f"topic {name} was deleted right after its creation")
    return created


def _not_yet(topic: NewTopic, assignment: Assignment) -> TopicImage:
    """Return the topic as it will be once it has been created."""
    return TopicImage(topic.name, _NO_TOPIC_ID, _never_led(assignment), dict(topic.configs))


def _never_led(assignment: Assignment) -> dict[int, PartitionImage]:
    return {number: PartitionImage.never_led(replicas) for number, replicas in assignment.items()}
