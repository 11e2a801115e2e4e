"""All mutations."""

from __future__ import annotations

from tests.mutants import client, coordinator, replication, sinks, storage

MUTATIONS = (
    *storage.MUTATIONS,
    *replication.MUTATIONS,
    *coordinator.MUTATIONS,
    *client.MUTATIONS,
    *sinks.MUTATIONS,
)
