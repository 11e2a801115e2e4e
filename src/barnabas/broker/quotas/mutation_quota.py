"""Applies the controller mutation quota to a single request that creates or deletes partitions
(KIP-599).

    strict       (versions that have THROTTLING_QUOTA_EXCEEDED) a change is rejected while the
                 bucket is overdrawn
    permissive   (older versions) a change is carried out, and the client is throttled afterwards

Topics that are created only because a request needs them are counted permissively. The client is
not throttled for them immediately but only when it next changes a topic.

In both modes, a single topic of any size may overdraw the bucket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.errors import ThrottlingQuotaExceeded

if TYPE_CHECKING:
    from barnabas.broker.context import Context
    from barnabas.broker.quotas.client_quotas import MutationMeter


class MutationQuota:
    """Counts a request's partitions. If there is no meter, everything is allowed."""

    __slots__ = ("_is_strict", "_meter", "_now_ms", "_throttles", "throttle_ms")

    def __init__(
        self,
        meter: MutationMeter | None,
        *,
        is_strict: bool,
        now_ms: int,
        throttles: bool = True,
    ) -> None:
        """`throttles` is False if usage is counted but the client does not have to wait."""
        self._meter = meter
        self._is_strict = is_strict
        self._now_ms = now_ms
        self._throttles = throttles
        self.throttle_ms = 0
        """How long (in ms) the client must wait because it was rejected or used too much."""

    @property
    def is_limited(self) -> bool:
        return self._meter is not None

    def take(self, partitions: int) -> None:
        """Count the partitions of one topic. Raises ThrottlingQuotaExceeded."""
        meter = self._meter
        if meter is None:
            return
        if self._is_strict:
            # Check this first, because a topic that is rejected when the bucket is overdrawn must
            # not take anything from it.
            self._throttle(meter)
            if self.throttle_ms:
                raise ThrottlingQuotaExceeded("The throttling quota has been exceeded.")
            meter.take(partitions, self._now_ms)
            return
        meter.take(partitions, self._now_ms)
        # Topics that are created because a request needs them are counted, but not throttled.
        if self._throttles:
            self._throttle(meter)

    def _throttle(self, meter: MutationMeter) -> None:
        self.throttle_ms = meter.throttle_ms(self._now_ms)
        if self.throttle_ms:
            meter.record_throttle(self.throttle_ms, self._now_ms)


def mutation_quota(context: Context, *, strict_from: int | None = None) -> MutationQuota:
    """Return the quota for a request. From version `strict_from` on, the quota is strict.

    If `strict_from` is None, the quota is permissive in all versions.
    """
    quotas, meter, now_ms = context.node.quotas, None, 0
    if quotas.is_active:
        limits = quotas.of(context.client.principal.name, context.client_id)
        meter = None if limits is None else limits.mutation
        now_ms = context.node.clock.monotonic_ms()
    is_strict = strict_from is not None and context.version >= strict_from
    return MutationQuota(
        meter, is_strict=is_strict, now_ms=now_ms, throttles=strict_from is not None
    )
