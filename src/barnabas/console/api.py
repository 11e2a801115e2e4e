"""Handles requests for paths below `/api/`: parses the parameters and returns shapes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from barnabas.client.admin.admin import TopicDescription
from barnabas.client.arguments import INT32_MAX, INT64_MAX
from barnabas.console.brokers import broker_rows
from barnabas.console.details import Details
from barnabas.console.event_book import EventFilter
from barnabas.console.event_stream import EventStream, Sent
from barnabas.console.groups import (
    SORTS as GROUP_SORTS,
)
from barnabas.console.groups import (
    group_list,
    group_row,
    member_rows,
    readers_of,
)
from barnabas.console.groups import (
    partition_rows as group_partition_rows,
)
from barnabas.console.json_response import json_bytes, json_response
from barnabas.console.message_reader import MessageReader, Wanted, unknown_topic
from barnabas.console.overview import AnswerCache, overview
from barnabas.console.problem import WebProblem
from barnabas.console.query import choice, flag, number, paging, text, whole
from barnabas.console.security import SORTS as ACL_SORTS
from barnabas.console.security import access_of
from barnabas.console.shapes import BrokerPage, GroupPage, TopicPage
from barnabas.console.topics import SORTS as TOPIC_SORTS
from barnabas.console.topics import Sources, partition_rows, topic_list, topic_row
from barnabas.console.transactions import transaction_rows
from barnabas.console.watch import GROUP, OPEN_GROUP, PAUSE_S, TOPIC, ClusterWatch
from barnabas.types import TopicPartition

_MOST_MESSAGES: Final = 500
_MOST_EVENTS: Final = 1_000
_PAGE_EVENTS: Final = 50
_MOST_ENDS: Final = 500
"""The maximum number of partitions per topic for which the replicas' log end offsets are
queried.
"""
MOST_STREAMS: Final = 32
_ALIVE_S: Final = 10.0
_STARTS: Final = ("latest", "earliest", "time", "before", "after")
_CONTINUED: Final = ("before", "after")


class Api:
    """Answers requests from the state of a `ClusterWatch`. Only some pages query the brokers."""

    def __init__(self, watch: ClusterWatch, closing: asyncio.Event) -> None:
        """`closing` is set when the console stops, which ends all streams."""
        self._watch = watch
        self._closing = closing
        self._details = Details(watch.admin)
        self._reader = MessageReader(watch)
        self._overview = AnswerCache(PAUSE_S)
        self._streams = 0

    def forget(self) -> None:
        """Drop the cached answers after the cluster has changed."""
        self._details.forget()
        self._overview.forget()

    @property
    def _sources(self) -> Sources:
        known = self._watch.known
        return Sources(known.look, known.disks, self._watch.growth)

    # ---- cluster, events, brokers ----

    async def overview(self, _: Request) -> Response:
        """Answer `/api/overview`."""
        watch = self._watch

        def compute() -> bytes:
            return json_bytes(overview(watch.known, watch.growth, watch.servers, watch.now_ms()))

        body = self._overview.get(watch.known.look, time.monotonic(), compute)
        return Response(body, media_type="application/json")

    async def events(self, request: Request) -> Response:
        """Answer `/api/events`."""
        limit = number(request.query_params, "limit", 200, least=1, most=_MOST_EVENTS)
        return json_response(self._watch.events.shape(_event_filter(request), limit))

    async def event_stream(self, request: Request) -> EventStream:
        """Answer `/api/events/stream`."""
        wanted = _event_filter(request)
        if self._streams >= MOST_STREAMS:
            raise WebProblem(503, f"{MOST_STREAMS} pages follow the events, which is the limit")
        return EventStream(self._new_events(wanted, _resumed(request)), self._closing)

    async def _new_events(
        self, wanted: EventFilter, after: int | None
    ) -> AsyncGenerator[Sent | None, None]:
        book, found = self._watch.events, self._watch.events_found
        last = book.last if after is None or after > book.last else after
        self._streams += 1
        try:
            yield None
            while True:
                newest = book.last  # more may arrive while these are sent
                for at, row in book.newer(last, wanted):
                    yield Sent(row, at)
                last = newest
                self._watch.viewers.ask()
                if not await found.wait(_ALIVE_S):
                    yield None
        finally:
            self._streams -= 1

    async def brokers(self, _: Request) -> Response:
        """Answer `/api/brokers`."""
        known = self._watch.known
        return json_response({"brokers": broker_rows(known.look, known.disks)})

    async def broker(self, request: Request) -> Response:
        """Answer `/api/brokers/{id}`."""
        broker_id = whole(request.path_params["id"], "broker", most=INT32_MAX)
        known = self._watch.known
        rows = [row for row in broker_rows(known.look, known.disks) if row["id"] == broker_id]
        if not rows:
            raise WebProblem(404, f"broker {broker_id} is not in the cluster")
        events = known.events.latest(EventFilter(broker=broker_id), _PAGE_EVENTS)
        configs = await self._details.broker_configs(broker_id)
        silent = [each for each in known.events.silent if each == broker_id]
        return json_response(
            BrokerPage(broker=rows[0], configs=configs, events=events, silent=silent)
        )

    # ---- topics and messages ----

    async def topics(self, request: Request) -> Response:
        """Answer `/api/topics`."""
        wanted = paging(request.query_params, TOPIC_SORTS)
        internal = flag(request.query_params, "internal")
        page = topic_list(self._sources, wanted, with_internal=internal)
        self._watch.viewers.view(TOPIC + row["name"] for row in page["topics"])
        return json_response(page)

    async def topic(self, request: Request) -> Response:
        """Answer `/api/topics/{name}`."""
        topic, known = await self._topic(request), self._watch.known
        asked = {
            TopicPartition(topic.name, each.partition): each.replicas
            for each in topic.partitions[:_MOST_ENDS]
        }
        configs, ends, moves = await asyncio.gather(
            self._details.topic_configs(topic.name),
            self._details.replica_ends(asked),
            self._details.moves(topic.name),
        )
        return json_response(
            TopicPage(
                topic=topic_row(topic, self._sources),
                partitions=partition_rows(topic, self._sources, ends),
                moves=moves,
                configs=configs,
                groups=readers_of(topic.name, known.groups.lags.values()),
                events=known.events.latest(EventFilter(topic=topic.name), _PAGE_EVENTS),
                silent=known.events.silent,
                records_in=self._watch.growth.series(topic.name),
            )
        )

    async def _topic(self, request: Request) -> TopicDescription:
        name: str = request.path_params["name"]
        topic = self._watch.known.look.topics.get(name) or await self._watch.look_for(name)
        if topic is None:
            raise unknown_topic(name)
        self._watch.viewers.view([TOPIC + name])
        return topic

    async def messages(self, request: Request) -> Response:
        """Answer `/api/topics/{name}/messages`."""
        topic, query = await self._topic(request), request.query_params
        given = query.get("from", "")
        if given.isascii() and given.isdigit():
            start, at = "offset", whole(given, "from", most=INT64_MAX)
        else:
            start, at = choice(query, "from", _STARTS), 0
        if start == "time":
            if not query.get("at"):
                raise WebProblem(400, "at: from=time needs the time in ms since 1970")
            at = number(query, "at", 0, most=INT64_MAX)
        wanted = Wanted(
            topic.name,
            _partition(request),
            start,
            at,
            number(query, "limit", 50, least=1, most=_MOST_MESSAGES),
            _search(request),
            _offsets(request) if start in _CONTINUED else (),
        )
        return json_response(await self._reader.read(wanted))

    async def message(self, request: Request) -> Response:
        """Answer `/api/topics/{name}/messages/PARTITION/OFFSET`."""
        topic = await self._topic(request)
        partition = whole(request.path_params["partition"], "partition", most=INT32_MAX)
        offset = whole(request.path_params["offset"], "offset", most=INT64_MAX)
        return json_response(await self._reader.one(TopicPartition(topic.name, partition), offset))

    async def message_stream(self, request: Request) -> EventStream:
        """Answer `/api/topics/{name}/messages/stream`."""
        topic = await self._topic(request)
        partition, search = _partition(request), _search(request)
        self._reader.check(topic.name, partition)
        return EventStream(self._new_messages(topic.name, partition, search), self._closing)

    async def _new_messages(
        self, topic: str, partition: int | None, search: bytes
    ) -> AsyncGenerator[Sent | None, None]:
        async with aclosing(self._reader.follow(topic, partition, search)) as source:
            async for each in source:
                self._watch.viewers.ask()
                yield None if each is None else Sent(each)

    # ---- groups, transactions, security ----

    async def groups(self, request: Request) -> Response:
        """Answer `/api/groups`."""
        page = group_list(self._watch.known.groups, paging(request.query_params, GROUP_SORTS))
        self._watch.viewers.view(GROUP + row["id"] for row in page["groups"])
        return json_response(page)

    async def group(self, request: Request) -> Response:
        """Answer `/api/groups/{id}`."""
        group_id: str = request.path_params["id"]
        known = self._watch.known
        listing, lag = known.groups.listings.get(group_id), known.groups.lags.get(group_id)
        if listing is None:
            raise WebProblem(
                404, f"there is no group {group_id!r}, or this user may not Describe it"
            )
        self._watch.viewers.view([OPEN_GROUP + group_id])
        return json_response(
            GroupPage(
                group=group_row(listing, known.groups),
                members=[] if lag is None else member_rows(lag),
                partitions=[] if lag is None else group_partition_rows(lag),
                lag=self._watch.group_lags.series(group_id),
                events=known.events.latest(EventFilter(group=group_id), _PAGE_EVENTS),
                silent=known.events.silent,
            )
        )

    async def transactions(self, _: Request) -> Response:
        """Answer `/api/transactions`."""
        look = self._watch.known.transactions
        if look.error and not look.at_ms:
            raise WebProblem(502, f"transactions: {look.error}")
        return json_response({"transactions": transaction_rows(look, self._watch.now_ms())})

    async def security(self, request: Request) -> Response:
        """Answer `/api/security`."""
        wanted = paging(request.query_params, ACL_SORTS)
        return json_response(await self._details.security(wanted))

    async def explain(self, request: Request) -> Response:
        """Answer `/api/security/explain`."""
        return json_response(await self._details.explain(access_of(request.query_params)))


def _event_filter(request: Request) -> EventFilter:
    query = request.query_params
    return EventFilter(
        kind=text(query, "kind"),
        topic=text(query, "topic"),
        group=text(query, "group"),
        broker=number(query, "broker", 0, most=INT32_MAX) if query.get("broker") else None,
        since_ms=number(query, "since", 0, most=INT64_MAX),
        with_routine=flag(query, "all"),
    )


def _partition(request: Request) -> int | None:
    if not request.query_params.get("partition"):
        return None
    return number(request.query_params, "partition", 0, most=INT32_MAX)


def _offsets(request: Request) -> tuple[int | None, ...]:
    """Return the offset given for each partition. Raises a `WebProblem` if no offset is given."""
    given = request.query_params.get("offsets", "")
    if not given.strip("."):
        raise WebProblem(400, "offsets: needs an offset of each partition, such as offsets=12.7.3")
    return tuple(
        whole(each, "offsets", most=INT64_MAX) if each else None for each in given.split(".")
    )


def _search(request: Request) -> bytes:
    return text(request.query_params, "search").encode("utf-8", "surrogatepass")


def _resumed(request: Request) -> int | None:
    """Return the number of the last event that a browser received before it reconnected."""
    given = request.headers.get("last-event-id", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 16 else None
