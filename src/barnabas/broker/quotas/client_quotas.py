"""Implements client quotas, with the limits, measured usage and throttle times of clients (SE-5).

    limits by entity --(user, client id)--> ClientLimits --> a meter per limit and sharing entity

If there are no quotas, nothing is measured, and each request costs only a check of `is_active`. If
there are quotas, only clients to which a quota applies are measured. A meter is kept until it has
not been used for an hour. If there are too many meters, the oldest are dropped, so that a client
cannot exhaust the memory by inventing client ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.quotas.entity import Entity, encode_name
from barnabas.broker.quotas.measures import Average, Rate, TokenBucket, Windows
from barnabas.cluster.config_changes import DEFAULT

if TYPE_CHECKING:
    from barnabas.clock import Clock
    from barnabas.config import BrokerConfig

PRODUCE, FETCH = "producer_byte_rate", "consumer_byte_rate"
REQUEST, MUTATION = "request_percentage", "controller_mutation_rate"
KINDS = (PRODUCE, FETCH, REQUEST, MUTATION)

_INACTIVE_MS = 60 * 60 * 1_000
_MOST_CLIENTS = 20_000  # cached lookups and meters, which take about 2 KB each
_PERCENT_PER_NS = 100 / 1e9


class Limits:
    """The limits of one kind by entity. The most specific limit applies, and users take precedence
    over client ids.
    """

    __slots__ = ("_limits",)

    def __init__(self) -> None:
        self._limits: dict[Entity, float] = {}

    def __bool__(self) -> bool:
        return bool(self._limits)

    def __contains__(self, entity: object) -> bool:
        return entity in self._limits

    def set(self, entity: Entity, limit: float | None) -> None:
        """Set an entity's limit, or remove it if None."""
        if limit is None:
            self._limits.pop(entity, None)
        else:
            self._limits[entity] = limit

    def of(self, user: str, client_id: str) -> tuple[Entity, float] | None:
        """Return the limit that applies to a client, with the entity whose clients share it, or
        None if there is no limit.

        If the limit is set for a user or for all users, all clients of a user share it. If it is
        set for both a user and a client id, all connections of the user with that client id share
        it. If it is set for client ids only, all connections with the same client id share it.
        """
        for place, sharing in _places(user, client_id):
            limit = self._limits.get(place)
            if limit is not None:
                return sharing, limit
        return None


def _places(user: str, client_id: str) -> Iterator[tuple[Entity, Entity]]:
    """Yield the entities whose limits could apply, in order of decreasing specificity, each with
    the entity whose clients share the limit.
    """
    # This is Kafka's order. A user and an id come first, then a user and any id, and then a user
    # alone. The same three follow for any user, and finally ids alone.
    for name in (user, DEFAULT):
        if client_id:
            yield Entity(name, client_id), Entity(user, client_id)
            yield Entity(name, DEFAULT), Entity(user, client_id)
        yield Entity(name), Entity(user)
    if client_id:
        yield Entity("", client_id), Entity("", client_id)
        yield Entity("", DEFAULT), Entity("", client_id)


class RateMeter:
    """Measures the usage of all clients that share a limit."""

    __slots__ = (
        "_most_ms",
        "_on_throttled",
        "_rate",
        "_windows",
        "last_used_ms",
        "limit",
        "throttle_times",
    )

    def __init__(
        self, windows: Windows, on_throttled: OnThrottled, most_ms: int | None = None
    ) -> None:
        """`most_ms` is the longest throttle time, or None if there is no maximum."""
        self._rate = Rate(windows)
        self._on_throttled = on_throttled
        self._windows = windows
        self._most_ms = most_ms
        self.throttle_times = Average(windows)
        self.limit = 0.0
        self.last_used_ms = 0

    @property
    def most_at_once(self) -> int:
        """Return how much a client that has been idle can use without being throttled."""
        return int(min(max(0.0, self.limit) * self._windows.sure_s, 2**31 - 1))

    def record(self, value: float, now_ms: int) -> int:
        """Count a value, and return the throttle time in milliseconds."""
        self.count(value, now_ms)
        throttle_ms = self.throttle_ms(now_ms)
        if throttle_ms:
            self.throttle_times.record(throttle_ms, now_ms)
            self._on_throttled(self, throttle_ms)
        return throttle_ms

    def count(self, value: float, now_ms: int) -> None:
        """Count a value. A negative value undoes an earlier count."""
        self.last_used_ms = now_ms
        self._rate.record(value, now_ms)

    def throttle_ms(self, now_ms: int) -> int:
        """Return how long the clients must remain idle."""
        throttle_ms = self._rate.throttle_ms(self.limit, now_ms)
        return throttle_ms if self._most_ms is None else min(throttle_ms, self._most_ms)

    def per_second(self, now_ms: int) -> float:
        return self._rate.per_second(now_ms)

    def record_ns(self, spent_ns: int, now_ms: int) -> int:
        """Count the time used, which has a percentage as its limit. Return the throttle time in
        milliseconds.
        """
        return self.record(spent_ns * _PERCENT_PER_NS, now_ms)

    def count_ns(self, spent_ns: int, now_ms: int) -> None:
        self.count(spent_ns * _PERCENT_PER_NS, now_ms)


class MutationMeter:
    """Measures the partitions that are created or deleted by all clients that share a limit."""

    __slots__ = ("_bucket", "_on_throttled", "_rate", "last_used_ms", "limit", "throttle_times")

    def __init__(self, windows: Windows, on_throttled: OnThrottled) -> None:
        self._bucket = TokenBucket(windows)
        self._on_throttled = on_throttled
        self._rate = Rate(windows)
        self.throttle_times = Average(windows)
        self.limit = 0.0
        self.last_used_ms = 0

    def take(self, count: int, now_ms: int) -> None:
        self.last_used_ms = now_ms
        self._bucket.take(count, self.limit, now_ms)
        self._rate.record(count, now_ms)

    def tokens(self, now_ms: int) -> float:
        """Return how many partitions may be created or deleted now. The number is negative if the
        bucket is overdrawn.
        """
        return self._bucket.tokens(self.limit, now_ms)

    def per_second(self, now_ms: int) -> float:
        return self._rate.per_second(now_ms)

    def throttle_ms(self, now_ms: int) -> int:
        """Return how long to wait until partitions may be created or deleted again."""
        return self._bucket.throttle_ms(self.limit, now_ms)

    def record_throttle(self, throttle_ms: int, now_ms: int) -> None:
        """Record that a client must wait for this long."""
        self.throttle_times.record(throttle_ms, now_ms)
        self._on_throttled(self, throttle_ms)


OnThrottled = Callable[["RateMeter | MutationMeter", int], None]
"""Called for every request that is throttled, with its meter and the throttle time in milliseconds.
"""


class ClientLimits:
    """A client's meters. A meter is None if its kind of quota does not apply to the client."""

    __slots__ = ("fetch", "mutation", "produce", "request")

    def __init__(
        self,
        produce: RateMeter | None,
        fetch: RateMeter | None,
        request: RateMeter | None,
        mutation: MutationMeter | None,
    ) -> None:
        self.produce = produce
        self.fetch = fetch
        self.request = request
        self.mutation = mutation


class Throttles(Protocol):
    """Tracks which clients are being throttled (see `throttle_events`)."""

    def add(
        self, kind: str, entity: Entity, meter: RateMeter | MutationMeter, throttle_ms: int
    ) -> None:
        """Count a request that was throttled."""
        ...

    def on_limits_changed(self, limit_of: Callable[[str, Entity], float | None]) -> None:
        """Compare the limits of the entities that are being throttled with the limits that apply
        now.
        """
        ...

    def close(self) -> None: ...


class ClientQuotas:
    """The limits of users and client ids, and the meters of all clients that have a limit."""

    __slots__ = (
        "_clock",
        "_known",
        "_limits",
        "_listeners",
        "_make_throttles",
        "_meters",
        "_mutation_windows",
        "_sweep_at_ms",
        "_throttles",
        "_windows",
        "is_active",
    )

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        make_throttles: Callable[[Windows], Throttles],
    ) -> None:
        """`make_throttles` is called when a client with a quota first appears."""
        self._clock = clock
        self._make_throttles = make_throttles
        self._throttles: Throttles | None = None
        self._windows = Windows(
            config.int("quota.window.num"), 1_000 * config.int("quota.window.size.seconds")
        )
        self._mutation_windows = Windows(
            config.int("controller.quota.window.num"),
            1_000 * config.int("controller.quota.window.size.seconds"),
        )
        self._limits = {kind: Limits() for kind in KINDS}
        self._known: dict[tuple[str, str | None], ClientLimits | None] = {}
        self._meters: dict[tuple[str, Entity], RateMeter | MutationMeter] = {}
        self._sweep_at_ms = 0
        self._listeners: list[Callable[[], None]] = []
        self.is_active = False
        """Whether there is a quota for any client."""

    def add_listener(self, callback: Callable[[], None]) -> None:
        """Register a callback to be called when limits change."""
        self._listeners.append(callback)

    def set(self, entity: Entity, limits: Mapping[str, float]) -> None:
        """Replace all of an entity's limits. The new limits are given by kind."""
        for kind, table in self._limits.items():
            table.set(entity, limits.get(kind))
        self.is_active = any(self._limits.values())
        # Any client may now have a different limit, or share its limit with other clients.
        self._known.clear()
        if not self.is_active:
            self._meters.clear()
        if self._throttles is not None:
            self._throttles.on_limits_changed(self._limit_of)
        for callback in self._listeners:
            callback()

    def _limit_of(self, kind: str, sharing: Entity) -> float | None:
        found = self._limits[kind].of(*sharing)
        return None if found is None or found[0] != sharing else found[1]

    def has(self, entity: Entity) -> bool:
        """Return whether a limit is set for this entity itself."""
        return any(entity in table for table in self._limits.values())

    def close(self) -> None:
        """Stop tracking which clients are being throttled."""
        if self._throttles is not None:
            self._throttles.close()

    def meters(self) -> Iterator[tuple[str, Entity, RateMeter | MutationMeter]]:
        """Yield all meters, each with the kind of its limit and the entity whose clients
        share it.
        """
        return ((kind, sharing, meter) for (kind, sharing), meter in self._meters.items())

    def of(self, user: str, client_id: str | None) -> ClientLimits | None:
        """Return a client's meters, or None if no quota applies to it.

        Use the meters immediately, because the next request may replace them.
        """
        key = user, client_id
        now_ms = self._clock.monotonic_ms()
        # Clean up occasionally while handling a request, because a separate task would be wasteful
        # if there are no quotas.
        if now_ms >= self._sweep_at_ms:
            self._forget_inactive(now_ms)
        try:
            return self._known[key]
        except KeyError:
            # Clients can invent any number of client ids, and each id uses memory.
            if len(self._known) >= _MOST_CLIENTS:
                del self._known[next(iter(self._known))]
            found = self._known[key] = self._look_up(
                encode_name(user), encode_name(client_id or "")
            )
            return found

    def _look_up(self, user: str, client_id: str) -> ClientLimits | None:
        found = [self._meter(kind, user, client_id) for kind in KINDS]
        # Also cache the fact that a client has no quota, so that it is not looked up for every
        # request.
        if not any(found):
            return None
        produce, fetch, request, mutation = found
        assert not isinstance(produce, MutationMeter)
        assert not isinstance(fetch, MutationMeter)
        assert not isinstance(request, MutationMeter)
        assert not isinstance(mutation, RateMeter)
        return ClientLimits(produce, fetch, request, mutation)

    def _meter(self, kind: str, user: str, client_id: str) -> RateMeter | MutationMeter | None:
        found = self._limits[kind].of(user, client_id)
        if found is None:
            return None
        sharing, limit = found
        key = kind, sharing
        meter = self._meters.get(key)
        # Clients that share a limit also share its meter. They are all clients of a user, or all
        # clients with the same id.
        if meter is None:
            if len(self._meters) >= _MOST_CLIENTS:
                del self._meters[next(iter(self._meters))]
            meter = self._meters[key] = self._new_meter(kind, sharing)
            meter.last_used_ms = self._clock.monotonic_ms()
        # The limit may have changed, but the measured values are kept.
        meter.limit = limit
        return meter

    def _new_meter(self, kind: str, sharing: Entity) -> RateMeter | MutationMeter:
        if self._throttles is None:
            self._throttles = self._make_throttles(self._windows)
        on_throttled = partial(self._throttles.add, kind, sharing)
        if kind == MUTATION:
            return MutationMeter(self._mutation_windows, on_throttled)
        # If the limit applies to time, Kafka throttles for no longer than one window (KIP-124).
        most_ms = self._windows.length_ms if kind == REQUEST else None
        return RateMeter(self._windows, on_throttled, most_ms)

    def _forget_inactive(self, now_ms: int) -> None:
        self._sweep_at_ms = now_ms + _INACTIVE_MS // 4
        before_ms = now_ms - _INACTIVE_MS
        for key, meter in list(self._meters.items()):
            if meter.last_used_ms <= before_ms:
                del self._meters[key]
        self._known.clear()  # the meters of active clients are found again
