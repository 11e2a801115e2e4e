"""MX-1, MX-2: brokers of older versions of Kafka's and of ours in one cluster.

Each case has a cluster of its own, in which first each kind has every role, and then brokers die
and change places. What Kafka 2.8 lacks: AlterPartition by topic id and with broker epochs,
AllocateProducerIds, and in IBP 2.7 topic ids as well.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.client import SyncAdmin
from tests.kit import foreign
from tests.kit.processes.mixed_checks import (
    check_changes,
    check_every_role,
    check_isrs,
    check_moves,
    check_producer_ids,
    check_return,
)
from tests.kit.processes.mixed_cluster import (
    KINDS,
    OPTIONS,
    Kind,
    MixedCluster,
    mixed_cluster,
    restore_leaders,
)

pytestmark = [pytest.mark.foreign, pytest.mark.timeout(900)]

V_2_8, V_3_4 = foreign.OTHER_BROKERS_VERSIONS


class Case(NamedTuple):
    protocol: str
    """`inter.broker.protocol.version`, of both kinds."""
    kinds: dict[int, Kind]
    versions: dict[int, str]
    changes: tuple[tuple[int, Kind], ...]


ONE: dict[int, Kind] = {1: "kafka", 2: "ours", 3: "ours"}
TWO: dict[int, Kind] = {1: "kafka", 2: "ours", 3: "kafka"}
ALL_2_8, ALL_3_4 = dict.fromkeys((1, 2, 3), V_2_8), dict.fromkeys((1, 2, 3), V_3_4)
KILLS: tuple[tuple[int, Kind], ...] = ((1, "kafka"), (2, "ours"))
PLACES: tuple[tuple[int, Kind], ...] = (*KILLS, (1, "ours"), (2, "kafka"), (1, "kafka"))
CASES = {
    "2.8-in-2.7": Case("2.7", ONE, ALL_2_8, (*KILLS, (1, "ours"), (1, "kafka"))),
    "two-2.8-in-2.7": Case("2.7", TWO, ALL_2_8, PLACES),
    "2.8": Case("2.8", ONE, ALL_2_8, PLACES),
    "two-2.8": Case("2.8", TWO, ALL_2_8, PLACES),
    "3.4": Case("3.4", ONE, ALL_3_4, PLACES),
    "two-3.4": Case("3.4", TWO, ALL_3_4, (*KILLS, (1, "ours"), (1, "kafka"))),
    "three-versions": Case("2.8", TWO, {1: V_2_8}, (*KILLS, (3, "kafka"), (1, "ours"))),
}
SHORT = ("2.8-in-2.7",)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=getattr(pytest.mark, "slow" if name in SHORT else "soak"))
        for name in CASES
    ],
)
def test_mx_1_older_versions_are_members_too(
    tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    """MX-1, MX-2: every role, kill -9 of either kind, and changes of places."""
    case = CASES[name]
    options = (*OPTIONS, f"inter.broker.protocol.version={case.protocol}")
    with (
        mixed_cluster(tmp_path, case.kinds, *options, versions=case.versions) as mixed,
        SyncAdmin(mixed.bootstrap_servers) as admin,
    ):
        check_every_role(mixed, admin)
        if name not in SHORT:
            check_all_requests(mixed, admin)
        record_property("acknowledged", check_changes(mixed, admin, case.changes))


def check_all_requests(mixed: MixedCluster, admin: SyncAdmin) -> None:
    """What brokers ask of the controller, and what it asks of them, for each kind of controller."""
    check_producer_ids(mixed)
    first, second = mixed.of_kind("kafka")[0], mixed.of_kind("ours")[0]
    [third] = {1, 2, 3} - {first, second}
    for controller in KINDS:
        check_isrs(mixed, admin, controller, first, third)
        check_isrs(mixed, admin, controller, second, third)
        check_moves(mixed, admin, controller)
    check_return(mixed, admin, first, third)
    restore_leaders(admin)
