"""All mutations."""

from __future__ import annotations

from tests.mutants import client, coordinator, keeper, replication, sinks, storage

MUTATIONS = (
    *storage.MUTATIONS,
    *replication.MUTATIONS,
    *coordinator.MUTATIONS,
    *client.MUTATIONS,
    *keeper.MUTATIONS,
    *sinks.MUTATIONS,
)
