"""GC-4: the tables of `groups`, as Kafka 3.9's own tool prints them."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from barnabas.cli.groups.rows import DescribedGroup, group_rows
from barnabas.cli.groups.tables import show_groups
from barnabas.cli.groups.text import (
    describe_values,
    events_text,
    list_text,
    list_values,
    members_text,
    offsets_text,
    remark,
    state_text,
)
from barnabas.client.admin.group_admin import (
    GroupDescription,
    GroupListing,
    MemberDescription,
    RebalanceEvent,
)
from barnabas.client.channel import BrokerAddress
from barnabas.client.consumer.committed import OffsetAndMetadata
from barnabas.client.lag.readings import read_partitions
from barnabas.types import TopicPartition

BILLS = TopicPartition("bills", 0)
ORDERS = [TopicPartition("orders", number) for number in range(3)]
COORDINATOR = BrokerAddress(0, "127.0.0.1", 24608)
ONE = "one-dcde0a39-54e4-4315-8722-be39ea002c56"
TOPICS = {"bills": [0], "orders": [0, 1, 2], "other": [0]}
STARTS = dict.fromkeys([BILLS, *ORDERS], 2)
ENDS = {BILLS: 5, **dict.fromkeys(ORDERS, 10)}
EVENT = RebalanceEvent(1_795_281_471_007, 12, 3, 2, 1, False, "group live: generation 2 -> 3 ...")


def member(
    member_id: str, *partitions: TopicPartition, instance_id: str | None = None
) -> MemberDescription:
    client_id = member_id.split("-")[0]
    topics = tuple(sorted({name.topic for name in partitions}))
    return MemberDescription(member_id, instance_id, client_id, "/127.0.0.1", topics, partitions)


def group(
    group_id: str, state: str = "Stable", *members: MemberDescription, kind: str = "consumer"
) -> GroupDescription:
    assignor = "range" if members else ""
    return GroupDescription(group_id, state, kind, assignor, COORDINATOR, members, (EVENT,))


def described(about: GroupDescription, offsets: dict[TopicPartition, int]) -> DescribedGroup:
    committed = {name: OffsetAndMetadata(offset, "note") for name, offset in offsets.items()}
    partitions = read_partitions(about, committed, TOPICS)
    return DescribedGroup(about, committed, group_rows(about, committed, partitions, STARTS, ENDS))


LIVE = described(
    group("live", "Stable", member(ONE, BILLS, *ORDERS)), {ORDERS[0]: 4, ORDERS[2]: 10, BILLS: 2}
)
STATIC = described(
    group(
        "static",
        "Stable",
        member("inst-2-79a2faa7-298c-45dc-b0b0-1ea4d6a878dd", BILLS, ORDERS[2], instance_id="i-2"),
        member("inst-1-96704ef8-7d10-41c6-82d1-e71100fcb6bc", *ORDERS[:2], instance_id="inst-1"),
    ),
    {},
)
GONE = described(group("gone", "Empty", kind=""), {ORDERS[1]: 7})


def test_gc_4_offsets_are_kafkas_table() -> None:
    """As the real tool printed it for this group, but for the lag of what was never committed."""
    assert offsets_text(LIVE) == (
        "\n"
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG "
        "            CONSUMER-ID                              HOST            CLIENT-ID\n"
        "live            bills           0          2               5               3 "
        "              one-dcde0a39-54e4-4315-8722-be39ea002c56 /127.0.0.1      one\n"
        "live            orders          0          4               10              6 "
        "              one-dcde0a39-54e4-4315-8722-be39ea002c56 /127.0.0.1      one\n"
        "live            orders          1          -               10              8 "
        "              one-dcde0a39-54e4-4315-8722-be39ea002c56 /127.0.0.1      one\n"
        "live            orders          2          10              10              0 "
        "              one-dcde0a39-54e4-4315-8722-be39ea002c56 /127.0.0.1      one\n"
    )
    assert LIVE.lag == 17
    assert remark(LIVE) is None


def test_a_group_without_members() -> None:
    assert offsets_text(GONE) == (
        "\n"
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG "
        "            CONSUMER-ID     HOST            CLIENT-ID\n"
        "gone            orders          1          7               10              3 "
        "              -               -               -\n"
    )
    assert remark(GONE) == "Consumer group 'gone' has no active members."
    assert members_text(GONE, False) == (
        "\nGROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     \n"
    )
    rebalancing = DescribedGroup(group("g", "PreparingRebalance"), {}, [])
    assert remark(rebalancing) == "Warning: Consumer group 'g' is rebalancing."
    assert offsets_text(rebalancing) == ""


def test_a_member_without_partitions_has_a_line() -> None:
    idle = described(group("idle", "Stable", member("a-1", BILLS), member("b-2")), {})
    assert offsets_text(idle).splitlines()[2:] == [
        "idle            bills           0          -               5               3 "
        "              a-1             /127.0.0.1      a",
        "idle            -               -          -               -               - "
        "              b-2             /127.0.0.1      b",
    ]


def test_columns_are_as_wide_as_what_they_hold() -> None:
    name = TopicPartition("a-topic-of-some-length", 3)
    about = described(group("a-group-of-some-length", "Empty", kind=""), {name: 1})
    heading, row = offsets_text(about).splitlines()[1:]
    assert heading.startswith("GROUP                  TOPIC                  PARTITION  ")
    assert row == (
        "a-group-of-some-length a-topic-of-some-length 3          1               -               "
        "-               -               -               -"
    )


def test_members_are_kafkas_table() -> None:
    assert members_text(LIVE, False) == (
        "\n"
        "GROUP           CONSUMER-ID                              HOST            CLIENT-ID       "
        "#PARTITIONS     \n"
        "live            one-dcde0a39-54e4-4315-8722-be39ea002c56 /127.0.0.1      one             "
        "4               \n"
    )
    assert members_text(STATIC, True) == (
        "\n"
        "GROUP           CONSUMER-ID                                 GROUP-INSTANCE-ID "
        "HOST            CLIENT-ID       #PARTITIONS     ASSIGNMENT\n"
        "static          inst-1-96704ef8-7d10-41c6-82d1-e71100fcb6bc inst-1            "
        "/127.0.0.1      inst            2               orders(0,1)\n"
        "static          inst-2-79a2faa7-298c-45dc-b0b0-1ea4d6a878dd i-2               "
        "/127.0.0.1      inst            2               bills(0), orders(2)\n"
    )


def test_the_state_is_kafkas_table() -> None:
    assert state_text(LIVE) == (
        "\n"
        "GROUP                     COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE           "
        "#MEMBERS\n"
        "live                      127.0.0.1:24608  (0)      range                Stable          "
        "1\n"
    )
    assert state_text(GONE).splitlines()[2] == (
        "gone                      127.0.0.1:24608  (0)                           Empty           0"
    )


def test_the_list_is_kafkas() -> None:
    listings = [
        GroupListing("gone", "", "Empty", "classic"),
        GroupListing("live", "consumer", "Stable", ""),
    ]
    assert list_text(listings, with_type=False, with_state=False) == "gone\nlive\n"
    assert list_text(listings, with_type=False, with_state=True) == (
        "GROUP                     STATE               \n"
        "gone                      Empty               \n"
        "live                      Stable              \n"
    )
    assert list_text(listings, with_type=True, with_state=True) == (
        "GROUP                     TYPE                 STATE               \n"
        "gone                      Classic              Empty               \n"
        "live                      Classic              Stable              \n"
    )
    assert list_values(listings)[1] == {
        "group": "live",
        "state": "Stable",
        "type": "Classic",
        "protocol_type": "consumer",
    }


def test_events_are_a_line_each() -> None:
    assert events_text(LIVE) == ("2026-11-21T17:17:51.007Z group live: generation 2 -> 3 ...\n")


@pytest.mark.parametrize(
    ("about", "committed", "expected"),
    [
        # Subscribed: its topics whole, and what it has left behind elsewhere.
        (group("g", "Stable", member("a", ORDERS[0])), [BILLS], [BILLS, *ORDERS]),
        # Gone: the topics in which it has got anywhere.
        (group("g", "Empty"), [ORDERS[1]], ORDERS),
        # By assignment: what it has committed, no more.
        (group("g", "Empty", kind=""), [ORDERS[1]], [ORDERS[1]]),
        # A topic that is deleted leaves its committed partitions.
        (group("g", "Empty"), [TopicPartition("deleted", 3)], [TopicPartition("deleted", 3)]),
        (group("g", "Empty"), [], []),
    ],
)
def test_gc_4_what_a_group_reads(
    about: GroupDescription, committed: list[TopicPartition], expected: list[TopicPartition]
) -> None:
    """A partition that was never committed counts, if it is the group's."""
    offsets = {name: OffsetAndMetadata(1) for name in committed}
    assert read_partitions(about, offsets, TOPICS) == expected


def test_without_a_leader_the_lag_is_unknown() -> None:
    rows = group_rows(GONE.group, {}, [BILLS], {}, {})
    assert (rows[0].end_offset, rows[0].lag) == (None, None)


def test_json_has_all_of_it() -> None:
    values = describe_values(LIVE, True)
    assert {name: values[name] for name in ("group", "state", "assignor", "lag")} == {
        "group": "live",
        "state": "Stable",
        "assignor": "range",
        "lag": 17,
    }
    assert values["coordinator"] == {"id": 0, "host": "127.0.0.1", "port": 24608}
    assert values["partitions"][0] == {
        "topic": "bills",
        "partition": 0,
        "offset": 2,
        "end_offset": 5,
        "lag": 3,
        "metadata": "note",
        "member": ONE,
    }
    assert (values["partitions"][2]["offset"], values["partitions"][2]["lag"]) == (None, 8)
    assert values["members"][0]["partitions"][0] == {"topic": "bills", "partition": 0}
    assert values["events"] == [
        {
            "ended_at": "2026-11-21T17:17:51.007Z",
            "duration_ms": 12,
            "generation": 3,
            "members": 2,
            "moved_partitions": 1,
            "harmless": False,
            "story": "group live: generation 2 -> 3 ...",
        }
    ]
    assert "events" not in describe_values(LIVE, False)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("offsets", "17 offsets behind"),
        ("members", "orders(0,1,2)"),
        ("state", "range, coordinator 0 (127.0.0.1:24608)"),
        ("events", "2026-11-21T17:17:51.007Z group live"),
    ],
)
def test_a_terminal_gets_a_table(what: str, expected: str) -> None:
    output = StringIO()
    console = Console(file=output, width=140, color_system=None, highlight=False)
    show_groups([LIVE, GONE], what, True, console)
    assert output.getvalue().startswith("live  Stable, 1 member, range")
    assert expected in output.getvalue()
    show_groups([], what, True, console)
    assert output.getvalue().endswith("No groups.\n")


@pytest.mark.parametrize("what", ["offsets", "members"])
def test_a_narrow_terminal_gets_a_block_for_each_row(what: str) -> None:
    """No title, and no number, is folded to strips of three letters."""
    output = StringIO()
    console = Console(file=output, width=40, color_system=None, highlight=False)
    show_groups([LIVE], what, True, console)
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    titles = {line.split()[0] for line in lines if line.startswith(" ") and line[1] != " "}
    assert titles >= {"offsets": {"topic", "committed", "lag"}, "members": {"member"}}[what]
    assert all(len(line) <= 40 for line in lines)
    if what == "offsets":
        assert " committed  2" in lines
