"""DeleteAcls: what filters match is gone, in force and in the tree."""

from __future__ import annotations

from pathlib import Path

from barnabas import Broker
from barnabas.client import AclFilter, Operation, PatternType, ResourceType, SyncAdmin
from tests.kit.broker.acl_brokers import ADMIN, rule


def test_se_4_what_a_filter_matches_is_deleted(tmp_path: Path) -> None:
    """After a restart, too."""
    rules = [rule("orders"), rule("orders", Operation.WRITE), rule("others")]
    with Broker(tmp_path / "data", config=ADMIN) as broker:
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_acls(rules)
            filters = [
                AclFilter(ResourceType.TOPIC, "orders", PatternType.LITERAL),
                AclFilter(ResourceType.TOPIC, "none", PatternType.LITERAL),
            ]
            assert sorted(admin.delete_acls(filters)) == sorted(rules[:2])
            assert admin.delete_acls(filters) == []
        broker.stop()
        broker.start()
        with SyncAdmin(broker.bootstrap_servers) as admin:
            assert admin.describe_acls() == [rules[2]]
