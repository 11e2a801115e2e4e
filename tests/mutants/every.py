"""All mutations."""

from __future__ import annotations

from tests.mutants import client, coordination, replication, storage

MUTATIONS = (
    *storage.MUTATIONS,
    *replication.MUTATIONS,
    *coordination.MUTATIONS,
    *client.MUTATIONS,
)
