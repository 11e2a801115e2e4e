"""Determines which brokers do not support the request versions that every broker has to support.

The controller sends each type of request in the highest version that the receiver supports. The
lowest versions are those of Kafka 2.8, the first with topic ids (KIP-516), and followers need the
diverging epoch in Fetch responses (KIP-595). A broker that lacks one of these versions (Kafka 2.3.1
lacks all four of them) would never be notified that it is a leader or a follower, and the partition
would make no progress. The controller therefore excludes such a broker: it does not count as live
until it registers again.

A broker counts as suitable until it has reported its versions, so no election has to wait for the
report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.protocol.api import FETCH, LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, Api

LEADER_AND_ISR_VERSION: Final = 7
UPDATE_METADATA_VERSION: Final = 8
STOP_REPLICA_VERSION: Final = 4
"""The highest versions of the controller's requests."""
FOLLOWERS_FETCH_VERSION: Final = 12
"""The lowest version with diverging epochs.

Followers use the highest version that both sides support.
"""

Versions = Mapping[int, tuple[int, int]]
"""Maps each API key to the lowest and the highest version, as in an ApiVersions response."""

_REQUIRED: Final = {
    LEADER_AND_ISR: (5, LEADER_AND_ISR_VERSION),
    UPDATE_METADATA: (7, UPDATE_METADATA_VERSION),
    STOP_REPLICA: (3, STOP_REPLICA_VERSION),
    FETCH: (FOLLOWERS_FETCH_VERSION, FETCH.max_version),
}
"""The lowest and the highest version of each API that this controller uses."""


def lowest_version(api: Api) -> int:
    """Return the lowest version in which the controller sends this request."""
    return _REQUIRED[api][0]


def why_left_out(broker_id: int, versions: Versions) -> str | None:
    """Return why the broker is excluded, as text for logs and operators, or None if it is not."""
    lacking = []
    for api, (least, most) in _REQUIRED.items():
        lowest, highest = versions.get(api.key, (0, -1))
        if highest < least or lowest > most:
            has = f"{lowest} to {highest}" if highest >= lowest else "none"
            wanted = least if highest < least else most
            lacking.append(f"{api.name} {wanted} (it has {has})")
    if not lacking:
        return None
    return (
        f"broker {broker_id} is excluded because it does not support {', '.join(lacking)}: it "
        "gets no partitions and leads none. Replace it with Barnabas or Kafka 2.8 to 3.9"
    )
