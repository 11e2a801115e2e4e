"""Reads the records of the last half hour from a topic, for all viewers of the live view.

One consumer serves all viewers. It runs only while somebody watches, and begins with the records of
the last half hour.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, NamedTuple

from barnabas_pipeline.pages.shapes import Kind, Now


class Cluster(NamedTuple):
    """The cluster and the topic from which the live view reads."""

    servers: str
    options: Mapping[str, Any]
    topic: str


class NowFeed:
    """The live view of one topic."""

    def __init__(self, kind: Kind, cluster: Cluster) -> None:
        self._kind = kind
        self._cluster = cluster

    def watch(self) -> AsyncGenerator[Now | None, None]:
        """Yield the last half hour about once a second, and None while nothing has changed."""
        raise NotImplementedError

    async def close(self) -> None:
        """End all reading."""
