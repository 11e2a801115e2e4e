"""Implements the part of `Admin` that reads the brokers' events (decision 38).

Each broker reports the decisions that it has made itself. Kafka's brokers report none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple, cast

from barnabas.client import arguments
from barnabas.client.admin.admin_calls import AdminCalls
from barnabas.client.channel import BrokerAddress
from barnabas.client.errors import Unreachable, check
from barnabas.errors import UnsupportedVersion
from barnabas.events import Event, Kind
from barnabas.protocol.api import DESCRIBE_CLUSTER
from barnabas.protocol.messages.describe_cluster import (
    NO_EVENTS,
    ClusterEvent,
    DescribeClusterRequest,
    DescribeClusterResponse,
)


class BrokerEvents(NamedTuple):
    """The events of one broker, oldest first."""

    broker_id: int
    events: tuple[Event, ...] = ()
    after: int = 0  # the sequence number of the last event, for the next call
    has_gap: bool = False
    """Whether events may be missing, because the broker restarted or discarded them."""
    problem: str | None = None  # why the broker reports no events


class EventAdmin(AdminCalls):
    """Reads the brokers' decisions whose effects clients can observe, each with its cause."""

    async def events(self, after: Mapping[int, int] | None = None) -> dict[int, BrokerEvents]:
        """Return the events of each live broker, by broker id.

        `after` maps each broker id to the last event that was read from that broker; earlier
        results contain this number as `after`. A broker keeps its last 4,096 events until it stops.
        A broker that does not answer within `request.timeout.ms`, or is not a Barnabas broker, has
        a `problem` instead of events. Raises ClusterAuthorizationFailed if the user may not
        Describe the cluster.

            found = await admin.events()
            for broker in found.values():
                for event in broker.events:
                    print(event.text, "because", event.cause)
            newer = await admin.events({each: broker.after for each, broker in found.items()})
        """
        known = _sequences({} if after is None else after)
        nodes = self._nodes
        answers = await asyncio.gather(
            *(self._events_of(node, known.get(broker_id, 0)) for broker_id, node in nodes.items())
        )
        return {each.broker_id: each for each in sorted(answers)}

    @property
    def _nodes(self) -> Mapping[int, BrokerAddress]:
        return self._cluster.metadata.view.nodes

    async def _events_of(self, node: BrokerAddress, after: int) -> BrokerEvents:
        found: list[Event] = []
        first = 0
        try:
            # A response holds a limited number of events. Stop at the last event that existed when
            # the first response was sent. Otherwise, the loop might never end on a busy broker.
            answer, end = await self._events_after(node, after), NO_EVENTS
            while answer.events_error != NO_EVENTS:
                check(answer.events_error, f"reading the events of broker {node.node_id}")
                if any(each.broker_id not in self._nodes for each in answer.brokers):
                    self._cluster.metadata.request_refresh()  # for the next call
                end = answer.last_event if end == NO_EVENTS else end
                first = first or answer.first_event
                found += map(_event, answer.events)
                if not answer.events or found[-1].sequence >= end:
                    return BrokerEvents(
                        node.node_id,
                        tuple(found),
                        found[-1].sequence if found else answer.last_event,
                        0 < after <= end and first > after + 1,
                    )
                answer = await self._events_after(node, found[-1].sequence)
        except Unreachable as error:
            # The other brokers' events may explain why this one does not answer.
            self._cluster.metadata.request_refresh()
            return BrokerEvents(node.node_id, after=after, problem=str(error))
        except UnsupportedVersion:
            pass  # a broker older than Kafka 2.8
        problem = f"broker {node.node_id} reports no events: it is not a Barnabas broker"
        return BrokerEvents(node.node_id, after=after, problem=problem)

    async def _events_after(self, node: BrokerAddress, sequence: int) -> DescribeClusterResponse:
        request = DescribeClusterRequest(events_after=sequence)
        return await self._cluster.call(node, DESCRIBE_CLUSTER, request, DescribeClusterResponse)


def by_time(reports: Mapping[int, BrokerEvents]) -> list[tuple[int, Event]]:
    """Merge the events of all brokers in chronological order, each with the id of its broker.

    The clocks of the brokers may differ.
    """
    events = [(each.broker_id, event) for each in reports.values() for event in each.events]
    return sorted(events, key=lambda one: (one[1].at_ms, one[0], one[1].sequence))


def _sequences(after: object) -> dict[int, int]:
    if not isinstance(after, Mapping):
        raise TypeError(f"after: must map broker ids to numbers, not {type(after).__name__}")
    return {
        arguments.whole_number(broker_id, "after"): arguments.whole_number(sequence, "after")
        for broker_id, sequence in after.items()
    }


def _event(wire: ClusterEvent) -> Event:
    return Event(
        cast("Kind", wire.kind),  # a newer broker may have further kinds
        wire.text,
        wire.cause,
        wire.topic,
        wire.partition,
        wire.group,
        wire.broker,
        None if wire.harm < 0 else wire.harm == 0,
        wire.advice,
        wire.is_warning,
        wire.at_ms,
        wire.sequence,
    )
