"""Determines which brokers lack request versions that every broker must support.

The controller sends each kind of request in a single version, and followers need the diverging
epoch in Fetch responses (KIP-595). A broker that lacks one of these versions (Kafka 2.3.1 lacks all
four) would never learn that it was made a leader or follower, and would stall the partition. The
controller therefore excludes such a broker, which does not count as live during that registration.

Until it has reported its versions, a broker is considered suitable, so no election waits for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.protocol.api import FETCH, LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA

LEADER_AND_ISR_VERSION: Final = 7
UPDATE_METADATA_VERSION: Final = 8
STOP_REPLICA_VERSION: Final = 4
FOLLOWERS_FETCH_VERSION: Final = 12
"""The lowest version with diverging epochs; followers use the highest common version."""

Versions = Mapping[int, tuple[int, int]]
"""The lowest and highest version of each API, by API key, as in an ApiVersions response."""

_REQUIRED: Final = (
    (LEADER_AND_ISR, LEADER_AND_ISR_VERSION),
    (UPDATE_METADATA, UPDATE_METADATA_VERSION),
    (STOP_REPLICA, STOP_REPLICA_VERSION),
    (FETCH, FOLLOWERS_FETCH_VERSION),
)


def why_left_out(broker_id: int, versions: Versions) -> str | None:
    """Return why the broker is excluded, for logs and operators; None if it supports everything."""
    lacking = []
    for api, version in _REQUIRED:
        lowest, highest = versions.get(api.key, (0, -1))
        if highest < version or (api is not FETCH and lowest > version):
            has = f"{lowest} to {highest}" if highest >= lowest else "none"
            lacking.append(f"{api.name} {version} (it has {has})")
    if not lacking:
        return None
    return (
        f"broker {broker_id} is excluded because it does not support {', '.join(lacking)}: it "
        "gets no partitions and leads none. Replace it with Barnabas or Kafka 3.9"
    )
