"""Fetch (key 1): send record batches to consumers and followers, using `sendfile` and a long poll.

    read the partitions (in a session: the changed) ---+-- enough, or an error --> answer
                    ^                                  |
                    +---- bytes, or timeout -----------+-- else park

The first read is stage one. If a response's bytes are not in the page cache, a thread loads them
first. Otherwise, `sendfile` would read from the disk on the event loop, and every other connection
would have to wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, cast

from barnabas.broker.context import Context
from barnabas.broker.fetching.consumer_readers import ConsumerReader, RackReader
from barnabas.broker.fetching.fetch_pass import TOPIC_IDS, FetchPass
from barnabas.broker.fetching.fetch_reader import (
    CONSUMER,
    END_PROBE,
    FetchReader,
    ReadBudget,
    Row,
)
from barnabas.broker.fetching.replica_readers import EndProbe, FollowerReader
from barnabas.broker.outcome import Outcome
from barnabas.broker.runtime.disk_threads import run_in
from barnabas.broker.runtime.slices import Pace, Slices, clear_in_slices, run_slices
from barnabas.errors import InvalidFetchSessionEpoch, KafkaError
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.replication.fetch_session import FetchSession
from barnabas.shielded import shielded
from barnabas.storage.cold_lookups import warming
from barnabas.storage.files import File
from barnabas.types import FileSlice

Later = Coroutine[Any, Any, FetchResponse]

_REPLICA_STATE = 15  # the first version that has the replica id in a separate structure
_NEW_SESSION_EPOCH, _NO_SESSION_EPOCH = 0, -1
_ANSWER_BYTES, _TOPIC_BYTES, _PARTITION_BYTES = (
    16,
    18,
    40,
)  # overhead, besides the records
_CHEAP = 32  # this many dictionary lookups cost as much as one entry


def handle(context: Context, request: FetchRequest) -> Outcome:
    return run_slices(_begin(context, request))


def _begin(context: Context, request: FetchRequest) -> Slices[FetchResponse | Later]:
    # Only a request with several partitions can contain duplicates.
    if len(request.topics) > 1 or (request.topics and len(request.topics[0].partitions) > 1):
        yield from _collapse(request)
    try:
        fetch = _Fetch(context, request)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)  # session epoch
    return (yield from fetch.begin())


def _collapse(request: FetchRequest) -> Slices[None]:
    """Merge duplicate partitions.

    Each partition keeps its first position, with the values given last.
    """
    pace = Pace()
    by_topic: dict[tuple[str, bytes], FetchTopic] = {}
    wanted: dict[tuple[str, bytes], dict[int, FetchPartition]] = {}
    count = 0
    for topic in request.topics:
        key = topic.topic, topic.topic_id
        partitions = wanted.setdefault(key, {})
        by_topic.setdefault(key, topic)
        if pace.is_over():
            yield
        for each in topic.partitions:
            partitions[each.partition] = each
            count += 1
            if count % _CHEAP == 0 and pace.is_over():
                yield
    if count > sum(map(len, wanted.values())) or len(request.topics) > len(by_topic):
        for topic in request.topics:
            yield from clear_in_slices(topic.partitions)
        for key, topic in by_topic.items():
            topic.partitions = list(wanted[key].values())
        request.topics = list(by_topic.values())


class ParkedFetch:
    """A fetch that is waiting for more bytes. It is notified when any of its partitions changes.

    It waits until `missing_bytes` more bytes are available in its partitions, or until it times
    out.

    This class does not read. When `wait` returns, the caller reads again. By then, more bytes may
    have arrived, or the topic may have been deleted.
    """

    __slots__ = ("_future", "_missing_bytes")

    def __init__(self, missing_bytes: int) -> None:
        self._missing_bytes = missing_bytes
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def notify(self, appended_bytes: int) -> None:
        self._missing_bytes -= appended_bytes
        if self._missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    def requested_at_ms(self, replica_id: int) -> int | None:
        return None

    async def wait(self, until: float) -> None:
        """Return when woken, or when the loop's clock reaches `until` (in seconds)."""
        timer = asyncio.get_running_loop().call_at(until, self.wake)
        try:
            await self._future
        finally:
            timer.cancel()


class _Fetch:
    """A fetch request in progress."""

    __slots__ = (
        "_context",
        "_epoch",
        "_has_quota",
        "_max_bytes",
        "_min_bytes",
        "_replica_id",
        "_request",
        "_session",
    )

    def __init__(self, context: Context, request: FetchRequest) -> None:
        """Raises a KafkaError if the fetch session is not valid."""
        self._context = context
        self._request = request
        self._replica_id = _replica_id(context, request)
        self._max_bytes = min(request.max_bytes, context.node.fetch_max_bytes)
        # Followers are exempt from quotas, as in Kafka. Replication has its own throttles (RE-13).
        self._has_quota = context.node.quotas.is_active and self._replica_id < 0
        if self._has_quota:
            self._max_bytes = _most_bytes(context, self._max_bytes)
        # Otherwise, a reader whose minimum is above the maximum response size would always time
        # out.
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._session: FetchSession | None = None
        self._epoch = request.session_epoch
        sessions = context.node.fetch_sessions
        # A full fetch request closes the session whose id it contains. With epoch 0, it also starts
        # a new session. The new session is created with the response, so that a failed request
        # takes no cache slot (KIP-227).
        if self._epoch in (_NEW_SESSION_EPOCH, _NO_SESSION_EPOCH):
            if request.session_id:
                sessions.close(request.session_id)
            return
        session = sessions.resume(
            request, context.version >= TOPIC_IDS, context.node.clock.monotonic_ms()
        )
        if session is not None:
            # If the isolation level or the ACLs have changed, every partition of the session may be
            # affected.
            session.read_at(request.isolation_level, context.node.authorizer.grants)
            self._session = session
            self._epoch = session.epoch

    def begin(self) -> Slices[FetchResponse | Later]:
        """Run stage one, and return either the response or a coroutine that waits for it."""
        found = self._new_pass()
        yield from self._read(found)
        if found.budget.cold:
            # Data is available, but a thread must read it first.
            return self._wait(found, None)
        if (
            self._is_enough(found)
            or self._request.max_wait_ms <= 0
            # If there is no partition to wait for, nothing would wake this fetch.
            or not (self._session or found.places)
        ):
            return (yield from self._answer(found))
        return self._wait(found, self._park(found))

    def _new_pass(self) -> FetchPass:
        context, request, replica_id = self._context, self._request, self._replica_id
        reader: FetchReader
        if replica_id == CONSUMER:
            kind = RackReader if request.rack_id else ConsumerReader
            reader = kind(context, request)
        elif replica_id == END_PROBE:
            reader = EndProbe(context)
        else:
            reader = FollowerReader(context, request, replica_id)
        return FetchPass(context, reader, ReadBudget(self._max_bytes))

    def _read(self, found: FetchPass) -> Slices[None]:
        try:
            if self._session is not None:
                yield from found.read_changed(self._session)
            else:
                yield from found.read_all(self._request.topics)
        except BaseException:  # the connection was closed between two slices
            found.release()
            raise

    def _is_enough(self, found: FetchPass) -> bool:
        return (
            # As in Kafka, respond immediately to an error, a diverging epoch or a preferred read
            # replica, regardless of the minimum bytes.
            found.has_error or found.must_answer_now or found.budget.taken_bytes >= self._min_bytes
        )

    def _park(self, found: FetchPass) -> ParkedFetch:
        parked = ParkedFetch(self._min_bytes - found.budget.taken_bytes)
        found.release()  # the fetch will read it again
        if self._session is not None:
            self._session.waiter = parked
        else:
            for place in found.places:
                place.park(parked)
        if found.has_moved():
            parked.wake()  # a change before this point did not notify the fetch
        return parked

    async def _wait(self, found: FetchPass, parked: ParkedFetch | None) -> FetchResponse:
        """Wait until `parked` has been notified of enough bytes, and then read again.

        There is no wait if the read was cold.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self._request.max_wait_ms / 1000
        while True:
            if parked is None:
                found.release()
            else:
                try:
                    await parked.wait(until)
                finally:
                    self._unpark(found, parked)
            await self._read_again(found)
            # There may be fewer readable bytes than the notifications reported, because some may
            # not be committed yet or may exceed a partition's limit.
            if self._is_enough(found) or loop.time() >= until or self._is_overtaken():
                break
            parked = self._park(found)
        answer = run_slices(self._answer(found))
        return answer if isinstance(answer, FetchResponse) else cast(FetchResponse, await answer)

    async def _read_again(self, found: FetchPass) -> None:
        """Read again. Data that is not in the page cache is first loaded by a thread."""
        found.begin_again()
        for _ in self._read(found):
            await asyncio.sleep(0)
        if found.budget.cold:
            found.release()
            calls = [warming(*each) for each in found.budget.cold]
            pool = self._context.node.replicas.threads.reads
            await run_in(pool, partial(_call_all, calls))
            found.begin_again(is_warmed=True)
            for _ in self._read(found):
                await asyncio.sleep(0)

    def _unpark(self, found: FetchPass, parked: ParkedFetch) -> None:
        if self._session is None:
            for place in found.places:
                place.unpark(parked)
        elif self._session.waiter is parked:
            self._session.waiter = None

    def _is_overtaken(self) -> bool:
        """Return whether the session was closed, or received another request, during the wait."""
        session = self._session
        return session is not None and (session.epoch != self._epoch or session.is_closed)

    def _answer(self, found: FetchPass) -> Slices[FetchResponse | Later]:
        session = self._session
        # The reader has sent its next request and will ignore this response (KIP-227). The session
        # must therefore not record this response's contents as sent.
        if session is not None and session.epoch != self._epoch:
            found.release()
            return FetchResponse(
                error_code=InvalidFetchSessionEpoch.code, session_id=session.session_id
            )
        # If the client is over its quota, no records are sent. The session is not updated, and no
        # session is created.
        if self._has_quota and (wait_ms := _throttle_ms(self._context, found.rows)):
            found.release()
            session_id = 0 if session is None else session.session_id
            return FetchResponse(throttle_time_ms=wait_ms, session_id=session_id)
        if self._epoch == _NEW_SESSION_EPOCH:
            session = self._open_session()
        has_records = found.budget.taken_bytes > 0
        # So far, only indexes and positions have been read. `sendfile` will read the records on the
        # event loop, so they must already be in the page cache.
        cold = [part for _, part in found.slices() if not _is_cached(part)] if has_records else []
        try:
            response = yield from found.response(session)
        except BaseException:
            found.release()
            raise
        return self._warm_answer(found, response, cold) if cold else response

    def _open_session(self) -> FetchSession | None:
        context, request = self._context, self._request
        session = context.node.fetch_sessions.open(
            request.topics,
            context.version >= TOPIC_IDS,
            self._replica_id >= 0,
            context.node.clock.monotonic_ms(),
        )
        if session is not None:
            session.read_at(request.isolation_level, context.node.authorizer.grants)
            session.replica_id = self._replica_id
        return session

    async def _warm_answer(
        self, found: FetchPass, response: FetchResponse, cold: list[FileSlice]
    ) -> FetchResponse:
        """Load the response's bytes into the page cache in a thread."""
        pool = self._context.node.replicas.threads.reads
        reading = asyncio.get_running_loop().run_in_executor(pool, _warm, cold)
        try:
            await shielded(reading)
        except OSError as error:
            found.on_disk_error(error)
        except asyncio.CancelledError:
            # Keep the files open until the thread has read them.
            reading.add_done_callback(lambda done: _forget(done, found))
            raise
        return response


def _replica_id(context: Context, request: FetchRequest) -> int:
    """Return CONSUMER, END_PROBE or the broker id of a follower."""
    if context.version >= _REPLICA_STATE:
        return request.replica_state.replica_id
    return request.replica_id


# --- the quota of a consumer (SE-5) --------------------------------------------------------------
#
# As in Kafka, a response that would exceed the quota is neither sent nor counted. The client gets
# an empty response with the time after which the same bytes would be within the quota, and retries.
# A response is limited to the bytes that an idle client may receive, because a larger response
# would never be sent. Only a single batch may be larger (KIP-74).


def _most_bytes(context: Context, max_bytes: int) -> int:
    """Return how many of the requested bytes the response may contain."""
    limits = context.node.quotas.of(context.client.principal.name, context.client_id)
    if limits is None or limits.fetch is None:
        return max_bytes
    return min(max_bytes, limits.fetch.most_at_once)


def _throttle_ms(context: Context, rows: list[Row]) -> int:
    """Charge a response with these rows to the quota and return 0, or return how long the client
    must be throttled.

    If the response would exceed the quota, it is not charged and must not be sent.
    """
    limits = context.node.quotas.of(context.client.principal.name, context.client_id)
    if limits is None:
        return 0
    now_ms = context.node.clock.monotonic_ms()
    wait_ms = 0 if limits.request is None else limits.request.throttle_ms(now_ms)
    if limits.fetch is not None:
        size_bytes = _size_bytes(rows)
        wait_ms = max(wait_ms, limits.fetch.record(size_bytes, now_ms))
        if wait_ms:
            limits.fetch.count(-size_bytes, now_ms)
    return wait_ms


def _size_bytes(rows: list[Row]) -> int:
    topics = len({row.topic_id or row.topic for row in rows})
    records = sum([row.size_bytes for row in rows])
    return _ANSWER_BYTES + topics * _TOPIC_BYTES + len(rows) * _PARTITION_BYTES + records


# --- bytes that are not in the page cache --------------------------------------------------------


def _call_all(calls: list[Callable[[], None]]) -> None:
    for call in calls:
        call()


def _is_cached(part: FileSlice) -> bool:
    try:
        return cast(File, part.file).is_cached(part.position, part.size)
    except OSError:
        return False  # the thread will fail too, and its error is handled


def _warm(cold: list[FileSlice]) -> None:
    for part in cold:
        cast(File, part.file).warm(part.position, part.size)


def _forget(done: asyncio.Future[None], found: FetchPass) -> None:
    done.exception()  # retrieved so that asyncio does not log it; the client has disconnected
    found.release()
