"""The versions of requests that every broker of the cluster must know, and who is left out.

The controller sends its requests in one version each, and followers need the diverging epoch in
the answer to a Fetch (KIP-595). A broker that lacks one of these (Kafka 2.3.1 lacks all four)
would be made leader or follower without ever learning of it, and stall the partition. So the
controller leaves it out: as long as it is registered as it is, it counts as one that is not live.

A broker counts as suitable until it has shown its versions, so no election waits for an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.protocol.api import FETCH, LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA

LEADER_AND_ISR_VERSION: Final = 7
UPDATE_METADATA_VERSION: Final = 8
STOP_REPLICA_VERSION: Final = 4
FOLLOWERS_FETCH_VERSION: Final = 12
"""The lowest with diverging epochs; followers use the highest that both sides know."""

Versions = Mapping[int, tuple[int, int]]
"""The lowest and the highest version of each API, by its key: the answer to ApiVersions."""

_REQUIRED: Final = (
    (LEADER_AND_ISR, LEADER_AND_ISR_VERSION),
    (UPDATE_METADATA, UPDATE_METADATA_VERSION),
    (STOP_REPLICA, STOP_REPLICA_VERSION),
    (FETCH, FOLLOWERS_FETCH_VERSION),
)


def why_left_out(broker_id: int, versions: Versions) -> str | None:
    """The reason for the log and for operators; None: the broker knows all that it must."""
    lacking = []
    for api, version in _REQUIRED:
        lowest, highest = versions.get(api.key, (0, -1))
        if highest < version or (api is not FETCH and lowest > version):
            has = f"{lowest} to {highest}" if highest >= lowest else "none"
            lacking.append(f"{api.name} {version} (it has {has})")
    if not lacking:
        return None
    return (
        f"broker {broker_id} is left out: it does not support {', '.join(lacking)}. No partition "
        "is placed on it or led by it: stop it, and start Barnabas or Kafka 3.9 in its place"
    )
