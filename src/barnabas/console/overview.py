"""Describes the whole cluster for `/api/overview`. Pure."""

from __future__ import annotations

from typing import Final

from barnabas.console.event_book import EventFilter
from barnabas.console.findings import Known, findings
from barnabas.console.groups import behind
from barnabas.console.rates import Growth, total
from barnabas.console.shapes import Overview
from barnabas.console.topics import is_under_replicated

_LAST_EVENTS: Final = 10


def overview(known: Known, growth: Growth, title: str, now_ms: int) -> Overview:
    """Return the figures of the cluster, and what needs a person."""
    look = known.look
    partitions = [each for _, each in look.partitions()]
    controller = look.cluster.controller_id
    return Overview(
        cluster_id=look.cluster.cluster_id,
        title=title,
        looked_at=look.at_ms,
        error=look.error or known.groups.error,
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
