"""Keeps the client's view of the cluster up to date (PR-9).

A single task refreshes the view for all callers. It does so every `metadata.max.age.ms`, and as
soon as `request_refresh` is called because a leader has moved, a connection was lost or a topic is
new. A response from one broker is enough; the servers in `bootstrap.servers` are tried last. If a
refresh fails, the calls that are waiting for it fail too. The refresh is retried with backoff, and
the old view remains in use.

A Metadata request may create topics. This is allowed only for a topic that a send or a subscription
is waiting for (`create`), and only until the topic has been described for the first time; such
topics are sent in a separate request. Topics that are being read are kept (`hold`), and all other
topics are dropped after `metadata.max.idle.ms` (KIP-526). A topic that is read before it exists is
requested again after each retry backoff.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from barnabas.client.channel import BrokerAddress, Channel, Seams
from barnabas.client.config import ClientConfig
from barnabas.client.errors import (
    AUTHENTICATION_ERRORS,
    ClientClosed,
    NoBrokersAvailable,
    Unreachable,
    broker_error,
)
from barnabas.client.pool import Pool, backoff_ms
from barnabas.client.tasks import Tasks
from barnabas.client.view import ClusterView, TopicView
from barnabas.errors import (
    BarnabasError,
    LeaderNotAvailable,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.shielded import again

# Brokers without this version may return an old leader epoch with a new leader.
_EPOCHS_VERSION = 9
_CREATION_VERSION = 4  # earlier versions of Metadata always create unknown topics
# After this time, a topic is reported as unknown, because a new topic reaches all brokers much
# sooner, and waiting max.block.ms for a mistyped name is useless.
_UNKNOWN_TOPIC_MS = 1_000
_UNMADE_TOPIC_MS = 5_000  # the same limit if the request creates the topic
_LEAST_PAUSE_MS = 20  # pause between two lookups of a topic, even if the backoff is shorter


class Metadata:
    """Holds the view of the cluster, the topics to request, and the task that refreshes
    the view.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        pool: Pool,
        config: ClientConfig,
        seams: Seams,
        tasks: Tasks,
    ) -> None:
        # Bootstrap servers have separate connections, because their broker ids are unknown.
        self._servers = [
            BrokerAddress(-1 - i, host, port) for i, (host, port) in enumerate(servers)
        ]
        self._pool = pool
        self._config = config
        self._clock = seams.clock
        self._random = seams.random
        self._tasks = tasks
        tasks.add_failure_listener(self._fail_waiters)
        self.view = ClusterView()
        self.creates_topics = False
        # The topics to request, in order of first use, with the time of the last use.
        self._tracked: dict[str, int] = {}
        self._held: dict[str, None] = {}  # topics being read, which are never idle
        self._wanted: dict[str, None] = {}  # topics that a request may create
        self._waiters: list[asyncio.Future[ClusterView]] = []
        # callers waiting for the current refresh
        self._asking: list[asyncio.Future[ClusterView]] = []
        self._listeners: list[Callable[[], None]] = []
        self._wake = asyncio.Event()
        self._urgent = asyncio.Event()  # a caller is waiting, so the backoff is skipped
        self._refreshed_at_ms = 0
        self._looked_at_ms = 0  # when missing topics were last requested
        self._looks = 0  # how many times in a row they were requested
        self._failures = 0
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # ---- lifecycle ----

    async def start(self) -> None:
        """Discover the brokers. Raises NoBrokersAvailable once every server has failed."""
        self._accept(await self._ask_all())
        self._task = self._tasks.start("the metadata refresh", self._keep())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._fail_waiters(ClientClosed("the client is closed"))

    def take_loop(self) -> None:
        """Bind to the running event loop. Raises ClientClosed if no loop is running."""
        self._loop = _running_loop()

    def check_loop(self) -> None:
        """Raise ClientClosed unless called on the client's event loop."""
        if self._loop is not None and self._loop is not _running_loop():
            raise ClientClosed(
                "this client was started on another event loop, to which its connections belong: "
                "use it there, within one asyncio.run, or create one client for each loop"
            )

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each refresh."""
        self._listeners.append(listener)

    # ---- queries ----

    def track(self, topics: Iterable[str], *, create: bool = False) -> None:
        """Request these topics in every refresh. A topic that is new is requested without backoff.

        With `create`, topics that have not been described yet may be created, if the client's
        options allow it.
        """
        now_ms = self._clock.monotonic_ms()
        for topic in topics:
            # A caller is waiting for the new topic, so skip the backoff; known topics can wait.
            if topic not in self._tracked:
                self._urgent.set()
            self._tracked[topic] = now_ms
            if create and self.creates_topics and topic not in self.view.topics:
                self._wanted[topic] = None

    def hold(self, topics: Iterable[str], *, create: bool = False) -> None:
        """Hold these topics, so that they do not become idle and are requested until they exist.

        Topics that were held before are no longer held.
        """
        held = dict.fromkeys(topics)
        new = [topic for topic in held if topic not in self._held]
        old = [topic for topic in self._held if topic not in held]
        self._held = held
        self._drop(old)
        self.track(new, create=create)
        if new:
            self._looks = 0
            self._wake.set()

    def is_awaited(self, topic: str) -> bool:
        """Return whether the topic is requested again and again until it exists."""
        return topic in self._held

    def on_use(self, topic: str) -> None:
        """Record that a topic is in use."""
        if topic in self._tracked:
            self._tracked[topic] = self._clock.monotonic_ms()

    def request_refresh(self) -> None:
        """Request a refresh because the view turned out to be wrong. Does not wait for it."""
        self._wake.set()

    async def refresh(self) -> ClusterView:
        """Start a new refresh, and return the refreshed view.

        Raises NoBrokersAvailable.
        """
        self._tasks.check()
        self.check_loop()
        if self._task is None or self._task.done():
            raise ClientClosed("the client is not running: call start() first, and not after close")
        waiter: asyncio.Future[ClusterView] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._wake.set()
        return await waiter

    async def topic(self, name: str, timeout_ms: int, *, create: bool = True) -> TopicView:
        """Return the partitions of a topic, refreshing the view until they are known.

        With `create`, the topic may be created, if the client's options allow it.

        Raises the topic's KafkaError (UnknownTopicOrPartition after a few seconds at most), or
        Unreachable after `timeout_ms`.
        """
        known = self.view.topics.get(name)
        if known is not None:
            return known
        failure: BarnabasError = Unreachable(f"topic {name!r}: no broker has described it")
        create = create and self.creates_topics
        patience_ms = _UNMADE_TOPIC_MS if create else _UNKNOWN_TOPIC_MS
        unknown_until_ms = self._clock.monotonic_ms() + min(timeout_ms, patience_ms)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    try:
                        return await self._wait_until_described(
                            name, unknown_until_ms, create=create
                        )
                    except Unreachable as error:
                        failure = error
        except TimeoutError:
            # The topic's last error tells more than a timeout would.
            last_said = self.view.topic_error(name)
            self.forget(name)
            raise last_said or failure from None

    async def _wait_until_described(
        self, name: str, unknown_until_ms: int, *, create: bool
    ) -> TopicView:
        """Return the topic once it is known. Raises the topic's error after `unknown_until_ms`."""
        pause_ms = 0
        while True:
            # Repeat this in each iteration, because another caller that gives up makes the client
            # forget the topic.
            self.track([name], create=create)
            self._urgent.set()
            view = await self.refresh()
            if name in view.topics:
                return view.topics[name]
            error = view.topic_error(name) or broker_error(
                UnknownTopicOrPartition.code, f"topic {name!r}"
            )
            # The error is retriable, but counts as permanent after a while, because no broker knows
            # the topic.
            is_unknown = isinstance(error, UnknownTopicOrPartition)
            is_late = is_unknown and self._clock.monotonic_ms() >= unknown_until_ms
            if is_late or not error.retriable:
                self.forget(name)
                raise error
            # A new topic will have a leader soon; one that has lost its leader may have to wait a
            # long time for another.
            await asyncio.sleep(pause_ms / 1000)
            pause_ms = min(2 * pause_ms + 1, self._config.retry_backoff_ms)

    def forget(self, topic: str) -> None:
        """Drop the state of a topic, and stop tracking the topic unless it is being read."""
        self._drop([topic])

    def _drop(self, dropped: Sequence[str]) -> None:
        for topic in dropped:
            if topic not in self._held:
                self._tracked.pop(topic, None)
                self._wanted.pop(topic, None)
        if dropped:
            self.view = self.view.without(frozenset(dropped))

    async def any_channel(self) -> Channel:
        """Return an open channel to any broker or, if there is none, the first one that opens."""
        nodes = self._candidates()
        for node in nodes:
            opened = self._pool.ready_channel(node)
            if opened is not None:
                return opened
        failures: dict[str, str] = {}
        for node in nodes:
            try:
                return await self._pool.channel(node)
            except (Unreachable, UnsupportedVersion) as error:
                failures.setdefault(str(node), str(error))
        raise _no_brokers(failures)

    # ---- the task ----

    async def _keep(self) -> None:
        while True:
            due_ms = self._refreshed_at_ms + self._config.metadata_max_age_ms
            looks_at_ms = self._looks_at_ms(due_ms)
            await self._sleep(min(due_ms, looks_at_ms))
            # Only missing topics are due; requesting just those is cheap.
            if not self._wake.is_set() and looks_at_ms < due_ms:
                await self._look()
                continue
            pause_ms = backoff_ms(
                self._failures or 1,
                self._config.retry_backoff_ms,
                self._config.retry_backoff_max_ms,
                self._random,
            )
            # Refreshes on demand also back off. Otherwise, a leaderless topic would cause a storm
            # of requests.
            wait_ms = self._refreshed_at_ms + pause_ms - self._clock.monotonic_ms()
            if wait_ms > 0:
                await self._back_off(wait_ms)
            self._urgent.clear()
            self._wake.clear()
            # Callers that arrive during the request wait for the next refresh, because this
            # response may be older than the reason for their calls.
            self._asking, self._waiters = self._waiters, []
            try:
                responses = await self._ask_all()
            except BarnabasError as error:
                self._on_failure(error)
                _fail(self._asking, error)
                continue
            self._accept(responses)
            for waiter in self._asking:
                if not waiter.done():
                    waiter.set_result(self.view)

    async def _back_off(self, wait_ms: int) -> None:
        """Wait for this long, or until a refresh is urgent."""
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await self._urgent.wait()
        except TimeoutError:
            return

    def _on_failure(self, error: BarnabasError) -> None:
        self._failures += 1
        self._refreshed_at_ms = self._clock.monotonic_ms()
        # Retry after the backoff or, if the credentials were rejected, only on demand.
        if not isinstance(error, AUTHENTICATION_ERRORS):
            self._wake.set()

    # ---- topics that do not exist yet ----

    def _missing(self) -> list[str]:
        """Return the topics that are being read but do not exist according to the view."""
        topics, errors = self.view.topics, self.view.errors
        unknown = UnknownTopicOrPartition.code
        return [
            topic
            for topic in self._held
            if topic not in topics and errors.get(topic, unknown) == unknown
        ]

    def _looks_at_ms(self, latest_ms: int) -> int:
        """Return when to request the missing topics again, or `latest_ms` if there are none."""
        if not self._missing():
            self._looks = 0
            return latest_ms
        pause_ms = backoff_ms(
            self._looks + 1,
            self._config.retry_backoff_ms,
            self._config.retry_backoff_max_ms,
            self._random,
        )
        return self._looked_at_ms + max(pause_ms, _LEAST_PAUSE_MS)

    async def _look(self) -> None:
        """Request only the missing topics. If one of them has changed, refresh the whole view."""
        self._looks += 1
        missing = self._missing()
        try:
            responses = await self._ask_about(missing)
        except BarnabasError as error:
            self._on_failure(error)
            return
        errors = self.view.errors
        # Do not apply the response, because the refresh requests all topics as of the same time.
        if any(
            topic.error_code != errors.get(topic.name or "")
            for response in responses
            for topic in response.topics
        ):
            self._urgent.set()
            self._wake.set()
        self._looked_at_ms = self._clock.monotonic_ms()

    # ---- sending requests ----

    async def _sleep(self, until_ms: int) -> None:
        """Sleep until a refresh is requested or until this time."""
        try:
            async with asyncio.timeout(max(until_ms - self._clock.monotonic_ms(), 0) / 1000):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _ask_all(self) -> list[MetadataResponse]:
        """Request all topics, after forgetting the idle ones."""
        idle_since_ms = self._clock.monotonic_ms() - self._config.metadata_max_idle_ms
        self._drop(
            [
                topic
                for topic, used_at_ms in self._tracked.items()
                if used_at_ms < idle_since_ms and topic not in self._held
            ]
        )
        return await self._ask_about(list(self._tracked))

    async def _ask_about(self, topics: Sequence[str]) -> list[MetadataResponse]:
        """Request these topics. Those that may be created go into a separate request."""
        wanted = [topic for topic in topics if topic in self._wanted]
        others = [topic for topic in topics if topic not in self._wanted]
        responses = []
        # An empty list requests just the brokers (since version 1).
        if others or not wanted:
            responses.append(await self._ask(others, create=False))
        if wanted:
            responses.append(await self._ask(wanted, create=True))
        return responses

    async def _ask(self, topics: Sequence[str], *, create: bool) -> MetadataResponse:
        """Send one Metadata request to the first broker that answers."""
        failures: dict[str, str] = {}
        for node in self._candidates():
            try:
                channel = await self._pool.channel(node)
                version = channel.version(METADATA)
                request = MetadataRequest(
                    topics=[MetadataRequestTopic(name=name) for name in topics],
                    allow_auto_topic_creation=create or version < _CREATION_VERSION,
                )
                response = await channel.send(METADATA, request, version)
            except (Unreachable, UnsupportedVersion) as error:
                failures.setdefault(str(node), str(error))
                continue
            assert isinstance(response, MetadataResponse)
            if version < _EPOCHS_VERSION:
                _forget_epochs(response)
            return response
        raise _no_brokers(failures)

    def _candidates(self) -> list[BrokerAddress]:
        """Return the brokers to ask: open channels first, the bootstrap servers last."""
        known = list(self.view.nodes.values())
        # Start at a random broker; otherwise, the first broker would answer all clients.
        if known:
            start = self._random.below(len(known))
            known = known[start:] + known[:start]
        nodes = known + self._servers
        return sorted(nodes, key=lambda node: self._pool.ready_channel(node) is None)

    def _accept(self, responses: Sequence[MetadataResponse]) -> None:
        for response in responses:
            # Omit topics forgotten in the meantime, which would not be refreshed again.
            response.topics = [each for each in response.topics if each.name in self._tracked]
            self.view = self.view.after(response)
            for topic in response.topics:
                if not topic.error_code:
                    self._wanted.pop(topic.name or "", None)
        self._refreshed_at_ms = self._looked_at_ms = self._clock.monotonic_ms()
        self._failures = 0
        # A topic has just been created, and its leader is still being elected.
        incomplete = any(
            self.view.errors.get(topic) == LeaderNotAvailable.code for topic in self._tracked
        )
        if incomplete:
            self._wake.set()
        for listener in self._listeners:
            listener()

    def _fail_waiters(self, error: BarnabasError) -> None:
        """Fail the callers that wait for a refresh, because the client was closed or has failed."""
        waiters, self._waiters = [*self._asking, *self._waiters], []
        _fail(waiters, error)


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise ClientClosed(
            "no asyncio event loop is running here, and this client needs one: without one, as "
            "under trio, use the blocking clients (SyncProducer, SyncConsumer, SyncAdmin) in a "
            "thread"
        ) from None


def _forget_epochs(response: MetadataResponse) -> None:
    for topic in response.topics:
        for partition in topic.partitions:
            partition.leader_epoch = -1


def _fail(waiters: Sequence[asyncio.Future[ClusterView]], error: BarnabasError) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_exception(again(error))


def _no_brokers(failures: Mapping[str, str]) -> NoBrokersAvailable:
    """Return the error for these failures, which are keyed by address.

    A known broker may be a bootstrap server as well.
    """
    return NoBrokersAvailable(f"no broker could be reached: {'; '.join(failures.values())}")
