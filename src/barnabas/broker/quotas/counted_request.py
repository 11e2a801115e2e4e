"""Counts a request from a client that has a quota, from the request's arrival until its response.

    arrival --> bytes of Produce are counted, and its connection is muted if there are too many
            --> stage one and each later step: their time is counted
            --> the response gets the longest throttle time, and the connection is muted for as long

A response is never delayed. A client that respects the throttle time waits before it sends its next
request. The next request of any other client is not read until that time has passed (KIP-219). Only
time on the event loop is counted. This includes stage one, the steps of coroutines, and the
encoding of an immediate response. Work done in threads (decoding and encoding long messages,
reading from the disk) is not counted.

As in Kafka, requests between brokers are exempt. They include all requests that need
CLUSTER_ACTION, as well as followers' fetches.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.outcome import Hold, Later, LaterOutcome, Outcome, Staged
from barnabas.broker.security.authorization import REQUIRED
from barnabas.clock import spent_ns
from barnabas.protocol.api import FETCH, PRODUCE
from barnabas.protocol.codec import Message
from barnabas.security.acl import Operation

if TYPE_CHECKING:
    from barnabas.broker.context import Context
    from barnabas.broker.quotas.client_quotas import ClientLimits

_LOGIN = ("sasl_handshake", "sasl_authenticate")
_REPLICA_STATE = 15  # the first Fetch version that has the replica id in a separate structure

Settled = Message | Staged | Later | None


def is_exempt(context: Context, request: Any) -> bool:
    """Return whether the request is exempt from all quotas."""
    api = context.api
    if api is FETCH:
        if context.version >= _REPLICA_STATE:
            return bool(request.replica_state.replica_id >= 0)
        return bool(request.replica_id >= 0)
    if api.stem in _LOGIN:
        return True
    # Requests between brokers are exempt, because replication would be delayed if they were
    # throttled.
    needs = REQUIRED[api.stem]
    return needs is not None and needs.operation is Operation.CLUSTER_ACTION


class CountedRequest:
    """Counts a request's usage, and computes how long its client must wait."""

    __slots__ = (
        "_answered_ns",
        "_clock_ms",
        "_limits",
        "_mute",
        "_size_bytes",
        "_spent_ns",
        "_throttle_ms",
    )

    def __init__(
        self,
        limits: ClientLimits,
        size_bytes: int,
        clock_ms: Callable[[], int],
        mute: Callable[[int], None],
    ) -> None:
        """`mute` stops reading from the connection for the given number of milliseconds."""
        self._limits = limits
        self._size_bytes = size_bytes
        self._clock_ms = clock_ms
        self._mute = mute
        self._spent_ns = 0
        self._answered_ns = 0  # the time when the response was complete
        self._throttle_ms = 0

    def begin(self, context: Context, request: Any, stage_one: Callable[[], Outcome]) -> Outcome:
        """Run the first stage of a request. Both that stage and all later steps are counted."""
        if is_exempt(context, request):
            return stage_one()
        if context.api is PRODUCE and self._limits.produce is not None:
            # Mute the connection when the request arrives, so that the client's later requests are
            # not read too early.
            self._throttle(self._limits.produce.record(self._size_bytes, self._clock_ms()))
        began_ns = spent_ns()
        outcome = stage_one()
        self.spend_since(began_ns)
        # A Hold delays the next request on the connection, but its steps are counted like all other
        # steps.
        if isinstance(outcome, Hold):
            return Hold(CountedLater(self, outcome.until))
        return cast(Outcome, self.settle(outcome))

    def spend_since(self, began_ns: int) -> None:
        self._spent_ns += spent_ns() - began_ns

    def settle(self, outcome: Settled) -> Settled:
        """Complete the response if the step has returned one. Otherwise, continue counting."""
        if isinstance(outcome, Message):
            self._complete(outcome)
            return outcome
        if isinstance(outcome, Staged):
            return CountedStaged(self, outcome)
        if outcome is None:
            self._count_time()  # count the time even if there is no response
            return None
        return CountedLater(self, cast(LaterOutcome, outcome))

    def _complete(self, answer: Any) -> None:
        # The longest of the throttle times applies, because they run concurrently (KIP-219).
        own_ms = getattr(answer, "throttle_time_ms", 0)  # which a handler may have set
        throttle_ms = max(own_ms, self._throttle_ms, self._count_time())
        if throttle_ms:
            # Old versions do not have this field, but their clients are muted anyway.
            if own_ms < throttle_ms and hasattr(answer, "throttle_time_ms"):
                answer.throttle_time_ms = throttle_ms
            self._throttle(throttle_ms)
        self._answered_ns = spent_ns()

    def _count_time(self) -> int:
        time_ns, self._spent_ns = self._spent_ns, 0
        if self._limits.request is None:
            return 0
        return self._limits.request.record_ns(time_ns, self._clock_ms())

    def end(self) -> None:
        """Count the time for encoding an immediate response."""
        if self._answered_ns and self._limits.request is not None:
            self._limits.request.count_ns(spent_ns() - self._answered_ns, self._clock_ms())

    def _throttle(self, throttle_ms: int) -> None:
        if throttle_ms:
            self._throttle_ms = throttle_ms
            self._mute(throttle_ms)


class CountedStaged(Staged):
    """A staged request whose response will be counted."""

    __slots__ = ("_request", "_staged")

    def __init__(self, request: CountedRequest, staged: Staged) -> None:
        self._request = request
        self._staged = staged

    def answer(self) -> Message | Later | None:
        began_ns = spent_ns()
        answer = self._staged.answer()
        self._request.spend_since(began_ns)
        return cast("Message | Later | None", self._request.settle(answer))


class CountedLater(Coroutine[Any, Any, Any]):
    """A coroutine whose steps are counted, as is its result."""

    __slots__ = ("_later", "_request")

    def __init__(self, request: CountedRequest, later: LaterOutcome) -> None:
        self._request = request
        self._later = later

    def send(self, value: Any) -> Any:
        return self._step(self._later.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._later.throw, *error)

    def close(self) -> None:
        self._later.close()

    def __await__(self) -> CountedLater:
        return self

    def __iter__(self) -> CountedLater:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def _step(self, step: Callable[..., Any], *value: Any) -> Any:
        began_ns = spent_ns()
        try:
            waits_for = step(*value)
        except StopIteration as end:
            self._request.spend_since(began_ns)
            raise StopIteration(self._request.settle(end.value)) from None
        self._request.spend_since(began_ns)
        return waits_for
