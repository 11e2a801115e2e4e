"""Holds a follower back, so that a reassignment to it stays in progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from barnabas.broker.partitions.replica import Replica
from barnabas.broker.replication.fetchers import Fetchers


@contextmanager
def held_follower(broker_id: int) -> Iterator[None]:
    """Meanwhile, that broker fetches no partition which it begins to follow."""
    follow = Fetchers.on_following

    def following(fetchers: Fetchers, replica: Replica, leader_id: int) -> None:
        if replica.partition.broker_id != broker_id:
            follow(fetchers, replica, leader_id)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Fetchers, "on_following", following)
        yield
