"""What needs a person: stated as seen, and with a cause only from an event."""

from __future__ import annotations

import pytest

from barnabas.client.admin.group_admin import GroupDescription
from barnabas.client.admin.replica_admin import LogDirDescription
from barnabas.client.admin.transaction_admin import TransactionDescription
from barnabas.client.channel import BrokerAddress
from barnabas.client.lag.group_lag import GroupLag
from barnabas.client.lag.sample import Sample
from barnabas.client.lag.verdict import State, Verdict
from barnabas.console.findings import MOST_OF_A_KIND, Known, findings
from barnabas.console.snapshot import GroupLook, TransactionLook, disk_look
from barnabas.events import Event
from barnabas.types import TopicPartition
from tests.kit.cluster_looks import known, look, topic

NODE = BrokerAddress(1, "127.0.0.1", 9_001)
HEALTHY = look(topic("t", (1, (1, 2), (1, 2))))


def test_a_healthy_cluster_needs_nobody() -> None:
    assert findings(known(HEALTHY), 0) == []


def test_a_partition_without_a_leader_with_the_cause_that_the_controller_stated() -> None:
    seen = look(topic("t", (1, (1, 2), (1, 2)), (-1, (2,), (2,))), topic("u", (3, (3,), (3,))))
    event = Event("election", "no leader", "broker 2 was slow", topic="t", partition=1)
    (found,) = findings(known(seen, event), 0)
    assert (found["severity"], found["what"]) == ("critical", "1 partition has no leader: t-1")
    assert (found["why"], found["link"]) == ("broker 2 was slow", "#/topics/t")


def test_without_an_event_there_is_no_cause() -> None:
    """An event about another partition says nothing about this one."""
    seen = look(topic("t", (-1, (1,), (1,)), (1, (1,), (1,))))
    event = Event("election", "moved", "another reason", topic="t", partition=1)
    (found,) = findings(known(seen, event), 0)
    assert found["why"] == ""


def test_the_cause_of_one_of_several_partitions_names_it() -> None:
    short = (1, (1, 2), (1,))
    seen = look(topic("t", short, short, short, short))
    shrunk = Event("isr-shrink", "shrunk", "broker 2 is behind", topic="t", partition=2)
    event = shrunk._replace(advice="check its disk")
    (found,) = findings(known(seen, event), 0)
    assert found["what"] == (
        "4 partitions have fewer replicas in sync than assigned: t-0, t-1, t-2 and 1 more"
    )
    assert (found["severity"], found["why"]) == ("warning", "t-2: broker 2 is behind")
    assert (found["at"], found["advice"]) == (1, "check its disk")


def test_a_cause_from_before_the_partition_recovered_explains_nothing() -> None:
    seen = look(topic("t", (1, (1, 2), (1,)), (1, (1, 2), (1,))))
    events = [
        Event("isr-shrink", "shrunk", "broker 2 failed", topic="t", partition=0),
        Event("isr-expand", "grown", "broker 2 has caught up", topic="t", partition=0),
    ]
    (found,) = findings(known(seen, *events), 0)
    assert found["why"] == ""
    late = Event("isr-shrink", "shrunk", "broker 2 is behind", topic="t", partition=1)
    (found,) = findings(known(seen, *events, late), 0)
    assert found["why"] == "t-1: broker 2 is behind"


def test_a_broker_that_has_registered_since_its_failure_has_no_cause_yet() -> None:
    seen = look(topic("t", (1, (1, 4), (1, 4))))
    failed = Event("broker-failed", "broker 4 has failed", "its session ended", broker=4)
    registered = Event("broker-registered", "broker 4 registered", "it started", broker=4)
    assert [each["why"] for each in findings(known(seen, failed, registered), 0)] == [""]


def test_a_missing_broker_and_no_controller() -> None:
    seen = look(topic("t", (1, (1, 4), (1, 4))), controller=-1)
    event = Event("broker-failed", "broker 4 has failed", "its session ended", broker=4)
    first, second = findings(known(seen, event), 0)
    assert first["what"] == "No broker is the controller"
    assert second["what"] == "Broker 4 has replicas, but is not in the cluster"
    assert second["why"] == "its session ended"


def test_an_offline_directory_with_its_own_event_only() -> None:
    lost = LogDirDescription("/disk2", "a disk error", {}, -1, -1)
    disks = disk_look({2: (lost,)})
    other = Event("directory-lost", "log directory /disk1 is offline", "EIO of disk1", broker=2)
    own = Event("directory-lost", "log directory /disk2 is offline", "EIO", broker=2)
    before = known(HEALTHY, other)._replace(disks=disks)
    (found,) = findings(before, 0)
    assert (found["why"], found["link"]) == ("", "#/brokers/2")
    (found,) = findings(known(HEALTHY, other, own)._replace(disks=disks), 0)
    assert found["what"] == "Log directory /disk2 of broker 2 is offline: a disk error"
    assert found["why"] == "EIO"


def groups(state: State, *names: str) -> Known:
    sample = Sample(0, 0, 5, 0, 9)
    verdict = Verdict(state, "the reason", 4, True, None, None, None, sample)
    lags = {
        name: GroupLag(
            GroupDescription(name, "Stable", "consumer", "range", NODE, (), ()),
            {TopicPartition("t", 0): verdict},
        )
        for name in names
    }
    return known(HEALTHY)._replace(groups=GroupLook({}, lags, dict.fromkeys(lags, 1)))


@pytest.mark.parametrize(
    ("state", "severity"),
    [
        (State.STUCK, "critical"),
        (State.STOPPED, "warning"),
        (State.FALLING_BEHIND, "warning"),
        (State.STEADY, None),
        (State.UNKNOWN, None),
    ],
)
def test_groups_that_need_a_person(state: State, severity: str | None) -> None:
    found = findings(groups(state, "a/b"), 0)
    assert [each["severity"] for each in found] == ([severity] if severity else [])
    for each in found:
        assert each["what"].endswith("t-0: the reason")
        assert (each["why"], each["link"]) == ("", "#/groups/a%2Fb")


EMPTY = "group a/b: generation 3 -> 4 in 0 ms, empty: member m session timed out; unchanged"


def test_a_stopped_group_with_the_cause_of_its_last_generation() -> None:
    left = Event("group-generation", EMPTY, "member m session timed out", group="a/b")
    other = Event("group-generation", "joined", "another joined", group="c")
    events = known(HEALTHY, left, other).events
    (found,) = findings(groups(State.STOPPED, "a/b")._replace(events=events), 10**9)
    assert found["why"] == "member m session timed out"
    (found,) = findings(groups(State.STUCK, "a/b")._replace(events=events), 10**9)
    assert found["why"] == "", "a generation does not say why a member reads nothing"


def test_in_1_no_cause_for_a_stop_until_its_event_has_arrived() -> None:
    """IN-1: a generation with members does not say why the group now has none."""
    text = "group a/b: generation 2 -> 3 in 5 ms, 1 member: m joined (in 0 ms, empty: ); moved"
    events = known(HEALTHY, Event("group-generation", text, "m joined", group="a/b")).events
    (found,) = findings(groups(State.STOPPED, "a/b")._replace(events=events), 10**9)
    assert found["why"] == ""


def test_a_group_that_rebalances_often_with_its_last_cause() -> None:
    joins = [Event("group-generation", f"{n}", f"m{n} joined", group="g") for n in range(6)]
    assert findings(known(HEALTHY, *joins[1:]), 0) == []
    assert findings(known(HEALTHY, *joins), 60_003) == [], "the first were more than a minute ago"
    (found,) = findings(known(HEALTHY, *joins), 0)
    assert found["what"] == "Group g has had 6 rebalances in the last minute"
    assert (found["why"], found["link"]) == ("m5 joined", "#/groups/g")


def test_many_groups_of_a_kind_are_counted() -> None:
    names = [f"g{number}" for number in range(MOST_OF_A_KIND + 3)]
    found = findings(groups(State.STUCK, *names), 0)
    assert len(found) == MOST_OF_A_KIND + 1
    assert found[-1]["what"] == "3 more groups: stuck"


def test_a_transaction_that_hangs() -> None:
    details = TransactionDescription("id", "Ongoing", 7, 0, 2_000, 10_000, (), NODE)
    seen = known(HEALTHY)._replace(transactions=TransactionLook((), {"id": details}, 0))
    assert findings(seen, 12_000) == []
    (found,) = findings(seen, 13_500)
    assert "open for 3 s, longer than its timeout of 2 s" in found["what"]
