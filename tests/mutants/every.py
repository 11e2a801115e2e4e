"""All mutations."""

from __future__ import annotations

from tests.mutants import client, coordination, replication, sinks, storage

MUTATIONS = (
    *storage.MUTATIONS,
    *replication.MUTATIONS,
    *coordination.MUTATIONS,
    *client.MUTATIONS,
    *sinks.MUTATIONS,
)
