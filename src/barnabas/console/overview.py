"""Describes the whole cluster for `/api/overview`, once per poll for all viewers. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.console.event_book import EventFilter
from barnabas.console.findings import Known, findings
from barnabas.console.groups import behind
from barnabas.console.rates import Growth, total
from barnabas.console.shapes import Overview
from barnabas.console.topics import is_under_replicated
from barnabas.counted import counted

_LAST_EVENTS: Final = 10
_LACKS: Final = (
    "The console's user lacks the permission Describe on the cluster. Sizes on disk and events are "
    "therefore not shown, and of the groups and transactions only those that it may Describe by "
    "name."
)


def overview(known: Known, growth: Growth, title: str, now_ms: int) -> Overview:
    """Return the cluster's figures, and what needs human attention."""
    look = known.look
    partitions = [each for _, each in look.partitions()]
    controller = look.cluster.controller_id
    return Overview(
        cluster_id=look.cluster.cluster_id,
        title=title,
        looked_at=look.at_ms,
        error=look.error or known.groups.error,
        lacks=_lacks(known),
        findings=findings(known, now_ms),
        controller=controller if controller in look.live else None,
        brokers=len(look.cluster.brokers),
        topics=len(look.topics),
        partitions=len(partitions),
        leaderless=sum(each.leader < 0 for each in partitions),
        under_replicated=sum(map(is_under_replicated, partitions)),
        groups=len(known.groups.listings),
        groups_behind=behind(known.groups.lags.values()),
        size=total(size for replicas in known.disks.sizes.values() for size in replicas.values()),
        records_in=growth.series(),
        events=known.events.latest(EventFilter(), _LAST_EVENTS),
        silent=known.events.silent,
    )


def _lacks(known: Known) -> str:
    """Return the permissions that the console's user lacks, or ""."""
    if known.disks.is_denied:
        return _LACKS
    if not known.groups.denied:
        return ""
    return (
        "The console's user lacks the permission Describe on "
        f"{counted(known.groups.denied, 'group')}. Their lag is therefore not shown."
    )


class AnswerCache:
    """Caches the last answer, which is computed at most once per poll or interval."""

    def __init__(self, longest_s: float) -> None:
        """An answer older than `longest_s` is never returned, even if no later poll has finished
        since."""
        self._longest_s = longest_s
        self._basis: object = None
        self._at_s: float | None = None
        self._answer = b""

    def get(self, basis: object, now_s: float, compute: Callable[[], bytes]) -> bytes:
        """Return the answer for this poll.

        `basis` identifies the poll and is compared by identity.
        """
        if self._at_s is None or basis is not self._basis or now_s - self._at_s >= self._longest_s:
            self._answer = compute()
            self._basis, self._at_s = basis, now_s
        return self._answer

    def forget(self) -> None:
        """Recompute the answer at the next request, because the cluster has changed."""
        self._at_s = None
