"""The events of a broker that restarted."""

from __future__ import annotations

import barnabas
from barnabas.client import NewTopic, SyncAdmin


def test_in_1_a_restart_is_reported_as_a_gap() -> None:
    """IN-1: events are kept in memory only, and a reader must not take a gap for silence."""
    with barnabas.Cluster(brokers=2) as cluster, SyncAdmin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 1, 2)])
        before = admin.events()
        assert not any(each.has_gap for each in before.values())
        known = {broker_id: each.after for broker_id, each in before.items()}
        assert not any(each.has_gap for each in admin.events(known).values())
        cluster.stop_broker(2)
        cluster.start_broker(2)
        after = admin.events(known)
        assert [after[1].has_gap, after[2].has_gap] == [False, True]
        later = admin.events({broker_id: each.after for broker_id, each in after.items()})
        assert not any(each.has_gap for each in later.values())
