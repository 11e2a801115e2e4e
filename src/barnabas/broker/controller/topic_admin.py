"""What clients want of topics, from the wish to its fulfilment: made, enlarged, deleted.

A wish is written to the store and comes back to the controller by its watch, like anybody else's.
Whoever has made it here waits for the round that carries it out; there is no second way, for one
node either. Only a controller is asked for these; the exception is `wish`, by which any broker has
a topic made that somebody has asked about.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from barnabas.broker.controller.event_loop import Office
from barnabas.broker.controller.topic_writes import Wishes
from barnabas.clock import Random
from barnabas.cluster import layout
from barnabas.cluster.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from barnabas.cluster.store import MetadataStore
from barnabas.controller.placement import Assignment
from barnabas.controller.topics import NewTopic
from barnabas.errors import (
    KafkaError,
    LeaderNotAvailable,
    RequestTimedOut,
    UnknownTopicOrPartition,
)

_log = logging.getLogger(__name__)

_NO_TOPIC_ID = bytes(16)
_LOOK_EVERY_S = 0.02
_LOOKS = 1500  # half a minute: by then whoever asked has gone

Outcome = TopicImage | KafkaError


class TopicChanges:
    """The topics' side of a controller; `office` gives its tenure, or raises NotController."""

    __slots__ = ("_foreign_wishes", "_office", "_seen", "_wishes")

    def __init__(
        self,
        store: MetadataStore,
        random: Random,
        office: Callable[[], Office],
        seen: Callable[[], ClusterImage],
    ) -> None:
        """`seen`: the cluster as this broker knows it, whoever is its controller."""
        self._office = office
        self._seen = seen
        self._wishes = Wishes(store, random, lambda: office().image)
        self._foreign_wishes = Wishes(store, random, seen)

    async def create(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[Outcome]:
        """Make them, all in one commit and one round; what fails is returned."""
        office = self._office()
        checked = self._wishes.check(topics)
        failures: dict[str, KafkaError] = {}
        accepted = _accepted(topics, checked)
        if accepted and not validate_only:
            failures = await self._wishes.create(accepted)
            office.agenda.look(layout.TOPICS)
            await office.agenda.whole_round()
        outcomes: list[Outcome] = []
        for topic, assignment in zip(topics, checked, strict=True):
            if isinstance(assignment, KafkaError):
                outcomes.append(assignment)
            elif validate_only:
                outcomes.append(_not_yet(topic, assignment))
            else:
                outcomes.append(failures.get(topic.name) or _created(office, topic.name))
        return outcomes

    async def wish(self, topics: Sequence[NewTopic]) -> list[Outcome]:
        """As `create`, by a broker that may not be the controller.

        Each is returned when this broker has heard of it, with its leaders; LeaderNotAvailable is
        returned for one of which it has not heard for long.
        """
        checked = self._foreign_wishes.check(topics)
        failures = await self._foreign_wishes.create(_accepted(topics, checked))
        outcomes: list[Outcome] = []
        for topic, assignment in zip(topics, checked, strict=True):
            if isinstance(assignment, KafkaError):
                outcomes.append(assignment)
            else:
                outcomes.append(failures.get(topic.name) or await self._heard_of(topic.name))
        return outcomes

    async def _heard_of(self, name: str) -> Outcome:
        for _ in range(_LOOKS):
            topic = self._seen().topics.get(name)
            if topic is not None and all(
                each.leader != NO_LEADER for each in topic.partitions.values()
            ):
                return topic
            await asyncio.sleep(_LOOK_EVERY_S)
        return LeaderNotAvailable(f"topic {name} was asked for, and no controller has led it yet")

    async def grow(
        self,
        topic: str,
        total: int,
        assignment: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool,
    ) -> TopicImage:
        """Let a topic have `total` partitions; raises what `Wishes.grow` does."""
        office = self._office()
        existing, added = await self._wishes.grow(
            topic, total, assignment, validate_only=validate_only
        )
        if validate_only:
            known = office.image.topics.get(topic) or _not_yet(NewTopic(topic), {})
            return known._replace(partitions={**known.partitions, **_never_led(added)})
        _log.warning(
            "topic %s has %d partitions now and had %d: a key may go to another partition than "
            "before, so records of one key are in order only among those that follow",
            topic,
            total,
            len(existing),
        )
        office.agenda.touch(topic)
        await office.agenda.whole_round()
        grown = _created(office, topic)
        if isinstance(grown, KafkaError):
            raise grown
        return grown

    async def delete(self, names: Sequence[str]) -> list[KafkaError | None]:
        """Delete them, all in one commit and one round; None where no trace is left."""
        office = self._office()
        known = [name for name in dict.fromkeys(names) if name in office.image.topics]
        if known:
            await self._wishes.delete(known)
            office.agenda.look(layout.DELETE_TOPICS)
            await office.agenda.whole_round()
        outcomes: list[KafkaError | None] = []
        for name in names:
            if name not in known:
                outcomes.append(UnknownTopicOrPartition(f"topic {name} does not exist"))
            elif office.is_held_up(name):
                outcomes.append(
                    RequestTimedOut(
                        f"topic {name} is being deleted, but a part of it lies on a broker that is "
                        "dead or in a log directory that has failed: it goes when that is back"
                    )
                )
            else:
                await office.gone(name)
                outcomes.append(None)
        return outcomes


def _accepted(
    topics: Sequence[NewTopic], checked: Sequence[Assignment | KafkaError]
) -> list[tuple[NewTopic, Assignment]]:
    return [
        (topic, assignment)
        for topic, assignment in zip(topics, checked, strict=True)
        if not isinstance(assignment, KafkaError)
    ]


def _created(office: Office, name: str) -> Outcome:
    created = office.image.topics.get(name)
    if created is None:
        return UnknownTopicOrPartition(f"topic {name} was deleted as soon as it was created")
    return created


def _not_yet(topic: NewTopic, assignment: Assignment) -> TopicImage:
    """A topic as it would be."""
    return TopicImage(topic.name, _NO_TOPIC_ID, _never_led(assignment), dict(topic.configs))


def _never_led(assignment: Assignment) -> dict[int, PartitionImage]:
    return {number: PartitionImage.never_led(replicas) for number, replicas in assignment.items()}
