"""`barnabas groups` and `barnabas consume --group` against an embedded broker and real members."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

import barnabas as package
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.processes.command_line import InProcess, Shell
from tests.kit.raw_client import NO_TIDYING

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

POLLS = 1200
HEADING = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
COLUMNS = tuple(HEADING.split(" "))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """As Kafka's sample file has it: a first member waits for no others."""
    with package.Broker(config={**NO_TIDYING, "group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


def fill(broker: Broker, topic: str, *counts: int) -> None:
    """A topic with so many records in each partition: `<partition>.<number>`."""
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, len(counts))])
    with SyncProducer(broker.bootstrap_servers) as producer:
        for partition, count in enumerate(counts):
            for number in range(count):
                value = b"%d.%d" % (partition, number)
                producer.send(topic, value, partition=partition, timestamp_ms=1_000 * number)
        producer.flush()


def commit(broker: Broker, group: str, offsets: dict[TopicPartition, int]) -> None:
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.alter_group_offsets(group, offsets)


@contextmanager
def member(broker: Broker, group: str, topic: str, partitions: int) -> Iterator[Consumer]:
    """A foreign client in the group that has got its partitions, and commits nothing by itself."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "client.id": f"client-of-{group}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    try:
        for _ in range(POLLS):
            consumer.poll(0.1)
            if len(consumer.assignment()) == partitions:
                break
        else:
            pytest.fail(f"no partitions of {topic} after {POLLS} polls")
        yield consumer
    finally:
        consumer.close()


def table(text: str) -> list[dict[str, str]]:
    """The rows of the offsets table by the names of its columns."""
    empty, heading, *lines = text.split("\n")
    assert empty == "" and heading.split() == list(COLUMNS) and lines.pop() == ""
    return [dict(zip(COLUMNS, line.split(), strict=True)) for line in lines]


def lags(barnabas: InProcess, group: str) -> dict[str, tuple[str, str]]:
    """Partition -> committed offset and lag."""
    rows = table(barnabas(f"groups describe {group}")[0])
    return {row["PARTITION"]: (row["CURRENT-OFFSET"], row["LAG"]) for row in rows}


# ---- looking ----


def test_gc_4_a_live_group_is_described(broker: Broker, barnabas: InProcess) -> None:
    """Offsets, ends and lags; a partition never committed counts in full; who reads it, whence."""
    fill(broker, "live", 10, 4, 0)
    commit(broker, "readers", {TopicPartition("live", 0): 7})
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition("live", 1): 1})
    with member(broker, "readers", "live", 3):
        output, stderr = barnabas("groups describe readers")
        assert stderr == ""
        rows = table(output)
        name = rows[0]["CONSUMER-ID"]
        assert name.startswith("client-of-readers-")
        assert [list(row.values()) for row in rows] == [
            ["readers", "live", "0", "7", "10", "3", name, "/127.0.0.1", "client-of-readers"],
            ["readers", "live", "1", "-", "4", "3", name, "/127.0.0.1", "client-of-readers"],
            ["readers", "live", "2", "-", "0", "0", name, "/127.0.0.1", "client-of-readers"],
        ]
        members = barnabas("groups describe --group readers --members --verbose")[0]
        assert members.split("\n")[2].split() == [
            "readers", name, "/127.0.0.1", "client-of-readers", "3", "live(0,1,2)",
        ]  # fmt: skip
        state = barnabas("groups describe readers --state")[0].split("\n")[2].split()
        assert state == ["readers", broker.bootstrap_servers, "(0)", "range", "Stable", "1"]
        (values,) = json.loads(barnabas("groups describe readers --json")[0])
        assert (values["state"], values["lag"]) == ("Stable", 6)
        assert values["partitions"][1]["offset"] is None
        assert values["members"][0]["topics"] == ["live"]
    output, stderr = barnabas("groups describe readers")
    assert [row["CONSUMER-ID"] for row in table(output)] == ["-"] * 3
    assert stderr == "Consumer group 'readers' has no active members.\n"


def test_a_rebalance_can_be_read(broker: Broker, barnabas: InProcess) -> None:
    """Who caused it, by what, what moved, and when."""
    fill(broker, "told", 1, 1)
    with member(broker, "storied", "told", 2):
        pass
    output, _ = barnabas("groups describe storied --events")
    joined, left = output.splitlines()
    begin = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z group storied: generation "
    assert re.match(begin + r"0 -> 1 in \d+ ms, 1 member: client-of-storied.* joined;", joined)
    assert re.match(begin + r"1 -> 2 in \d+ ms, empty: client-of-storied.* left", left)
    (values,) = json.loads(barnabas("groups describe storied --events --json")[0])
    assert [event["generation"] for event in values["events"]] == [1, 2]
    assert values["events"][0]["harmless"] is True
    assert barnabas("groups describe storied --events")[1] == ""


def test_groups_are_listed_with_states(broker: Broker, barnabas: InProcess) -> None:
    fill(broker, "listed", 1)
    commit(broker, "listed-alone", {TopicPartition("listed", 0): 1})
    with member(broker, "listed-live", "listed", 1):
        assert {"listed-alone", "listed-live"} <= set(barnabas("groups list")[0].split())
        lines = barnabas("groups list --state --type")[0].splitlines()
        assert [line.split() for line in lines if line.startswith(("GROUP", "listed-"))] == [
            ["GROUP", "TYPE", "STATE"],
            ["listed-alone", "Classic", "Empty"],
            ["listed-live", "Classic", "Stable"],
        ]
        stable = json.loads(barnabas("groups list --state stable --type classic --json")[0])
        assert {group["group"] for group in stable} == {"listed-live"}
    stderr = barnabas("groups list --state Sleepy", code=2)[1]
    assert stderr.count("\n") == 1 and "Sleepy" in stderr and "Stable" in stderr


def test_all_groups_and_groups_that_are_not(broker: Broker, barnabas: InProcess) -> None:
    fill(broker, "all", 1)
    for group in ("all-1", "all-2"):
        commit(broker, group, {TopicPartition("all", 0): 1})
    for line in ("groups describe", "groups describe --all-groups"):
        output, stderr = barnabas(line)
        assert output.count("GROUP  ") >= 2 and "all-1" in output and "all-2" in output
        assert "Consumer group 'all-2' has no active members.\n" in stderr
    output, stderr = barnabas("groups describe all-1 gone --json", code=1)
    assert [group["group"] for group in json.loads(output)] == ["all-1"]
    assert stderr.count("\n") == 1 and "'gone' does not exist" in stderr
    assert "cannot be combined" in barnabas("groups describe x --all-groups", code=2)[1]


# ---- resetting ----


def test_a_reset_is_a_dry_run_first(broker: Broker, barnabas: InProcess) -> None:
    fill(broker, "dry", 5, 5)
    commit(broker, "dry", {TopicPartition("dry", 0): 2})
    output, stderr = barnabas("groups reset-offsets dry --topic dry --to-latest")
    assert [line.split() for line in output.splitlines()] == [
        [],
        ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"],
        ["dry", "dry", "0", "5"],
        ["dry", "dry", "1", "5"],
    ]
    assert "dry run" in stderr and "--execute" in stderr
    assert lags(barnabas, "dry") == {"0": ("2", "3")}
    again, stderr = barnabas("groups reset-offsets dry --topic dry --to-latest --execute")
    assert (again, stderr) == (output, "")
    assert lags(barnabas, "dry") == {"0": ("5", "0"), "1": ("5", "0")}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--to-earliest", {"0": 1, "1": 0}),
        ("--to-latest", {"0": 9, "1": 4}),
        ("--to-current", {"0": 6, "1": 3}),
        ("--shift-by -2", {"0": 4, "1": 1}),
        ("--shift-by 100", {"0": 9, "1": 4}),
        ("--to-offset 3", {"0": 3, "1": 3}),
        ("--to-datetime 1970-01-01T00:00:02.500", {"0": 3, "1": 3}),
        ("--to-datetime 1970-01-01T01:00:03.001+01:00", {"0": 4, "1": 4}),
        ("--by-duration P1D", {"0": 9, "1": 4}),
        ("--by-duration P50000D", {"0": 1, "1": 0}),
    ],
)
def test_where_groups_can_be_sent(
    broker: Broker, barnabas: InProcess, words: str, expected: dict[str, int]
) -> None:
    """Records have timestamps of 0, 1, 2 ... s; partition 0 begins at 1."""
    if "sent\n" not in barnabas("topics list")[0]:
        fill(broker, "sent", 9, 4)
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.delete_records({TopicPartition("sent", 0): 1})
    commit(broker, "sent", {TopicPartition("sent", 0): 6, TopicPartition("sent", 1): 3})
    barnabas(f"groups reset-offsets sent --all-topics {words} --execute")
    found = {partition: int(offset) for partition, (offset, _) in lags(barnabas, "sent").items()}
    assert found == expected


def test_a_plan_goes_through_a_file(broker: Broker, barnabas: InProcess, tmp_path: Path) -> None:
    """Kept with --export, brought back with --from-file; a group that is new comes to be."""
    fill(broker, "kept", 5, 5)
    at = {TopicPartition("kept", 0): 2, TopicPartition("kept", 1): 4}
    commit(broker, "kept", at)
    plan, _ = barnabas("groups reset-offsets kept --all-topics --to-current --export")
    assert plan == "kept,0,2\nkept,1,4\n"
    (tmp_path / "plan.csv").write_text(plan)
    barnabas(f"groups reset-offsets kept-copy --from-file {tmp_path}/plan.csv --execute")
    assert lags(barnabas, "kept-copy") == {"0": ("2", "3"), "1": ("4", "1")}
    values = json.loads(
        barnabas(f"groups reset-offsets kept --from-file {tmp_path}/plan.csv --json")[0]
    )
    assert values["executed"] is False
    assert values["offsets"][0] == {
        "group": "kept", "topic": "kept", "partition": 0, "offset": 2, "new_offset": 2,
    }  # fmt: skip
    (tmp_path / "plan.csv").write_text("kept,0\n")
    stderr = barnabas(f"groups reset-offsets kept --from-file {tmp_path}/plan.csv", code=1)[1]
    assert stderr.count("\n") == 1 and "line 1" in stderr


def test_a_group_with_members_keeps_its_offsets(broker: Broker, barnabas: InProcess) -> None:
    """Neither reset nor deleted, and one of its groups stops all of them."""
    fill(broker, "held", 5)
    commit(broker, "held-not", {TopicPartition("held", 0): 3})
    commit(broker, "held", {TopicPartition("held", 0): 3})
    with member(broker, "held", "held", 1):
        for line, problem in (
            ("groups reset-offsets held-not held --topic held --to-earliest --execute", "1 member"),
            ("groups delete held", "NON_EMPTY_GROUP"),
            ("groups delete-offsets held --topic held", "GROUP_SUBSCRIBED_TO_TOPIC"),
        ):
            stderr = barnabas(line, code=1)[1]
            assert stderr.count("\n") == 1 and problem in stderr and "stop" in stderr
        assert lags(barnabas, "held")["0"] == ("3", "2")
        assert lags(barnabas, "held-not")["0"] == ("3", "2")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("groups reset-offsets", "name a group"),
        ("groups reset-offsets g --topic t", "--to-earliest"),
        ("groups reset-offsets g --topic t --to-earliest --to-latest", "choose one"),
        ("groups reset-offsets g --to-earliest", "--all-topics"),
        ("groups reset-offsets g --topic t --all-topics --to-earliest", "--all-topics"),
        ("groups reset-offsets g --topic t:x --to-earliest", "t:x"),
        ("groups reset-offsets g --topic t --to-datetime soon", "--to-datetime soon"),
        ("groups reset-offsets g --topic t --by-duration 1h", "--by-duration 1h"),
        ("groups reset-offsets g --topic t --to-offset -1", "-1"),
        ("groups reset-offsets g --topic t --to-latest --dry-run --execute", "cannot be combined"),
        ("groups reset-offsets g --topic t --to-latest --export --json", "cannot be combined"),
        ("groups reset-offsets g --from-file f --topic t", "leave out"),
        ("groups delete", "name a group"),
        ("groups delete-offsets g", "--topic"),
        ("consume t --group g --partition 0", "--partition"),
        ("consume t --include t", "cannot be combined"),
        ("consume --include (", "regular expression"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(
    barnabas: InProcess, line: str, problem: str
) -> None:
    """UX-4."""
    stderr = barnabas(line, code=2)[1]
    assert stderr.count("\n") == 1 and problem in stderr and "--help" in stderr


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("groups reset-offsets g --topic gone --to-earliest", "topic gone does not exist"),
        ("groups reset-offsets g --topic there:7 --to-earliest", "partitions 0 to 0, not 7"),
        ("groups reset-offsets g --topic there --shift-by 1", "no offset is committed"),
        ("groups reset-offsets g --from-file /there/is/no/such/file", "no such file"),
        ("groups delete gone", "GROUP_ID_NOT_FOUND"),
        ("groups delete-offsets gone --topic there", "GROUP_ID_NOT_FOUND"),
        ("consume gone --group g", "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_1(
    broker: Broker, barnabas: InProcess, line: str, problem: str
) -> None:
    """UX-4."""
    barnabas("topics create there --if-not-exists")
    stderr = barnabas(line, code=1)[1]
    assert stderr.count("\n") == 1 and problem in stderr


def test_groups_and_their_offsets_are_deleted(broker: Broker, barnabas: InProcess) -> None:
    fill(broker, "kill", 5, 5)
    commit(broker, "kill", {TopicPartition("kill", 0): 1, TopicPartition("kill", 1): 2})
    assert barnabas("groups delete-offsets kill --topic kill:1")[0] == (
        "Deleted 1 offset of group kill.\n"
    )
    assert lags(barnabas, "kill") == {"0": ("1", "4")}
    output, stderr = barnabas("groups delete kill gone", code=1)
    assert output == "Deleted group kill.\n"
    assert stderr.count("\n") == 1 and "gone" in stderr
    assert "kill" not in barnabas("groups list")[0].split()


# ---- consuming in a group ----


def test_co_4_a_group_goes_on_where_it_was(broker: Broker, barnabas: InProcess) -> None:
    """What was shown is committed at the end, what was fetched beyond is not."""
    fill(broker, "goes-on", 6, 0)
    line = "consume goes-on --group goes-on --from-beginning --timeout-ms 6000"
    assert barnabas(f"{line} --max-messages 2")[0] == "0.0\n0.1\n"
    assert lags(barnabas, "goes-on")["0"] == ("2", "4")
    assert barnabas(line)[0] == "0.2\n0.3\n0.4\n0.5\n"
    assert lags(barnabas, "goes-on")["0"] == ("6", "0")


def test_co_5_without_from_beginning_a_new_group_hears_what_comes(barnabas: InProcess) -> None:
    barnabas("topics create comes --partitions 1")
    barnabas("groups reset-offsets comes --topic comes --to-latest --execute")
    assert barnabas("consume comes --group comes --timeout-ms 500")[0] == ""
    assert lags(barnabas, "comes") == {"0": ("0", "0")}


def test_what_was_not_printed_is_not_committed(
    broker: Broker, shell: Shell, barnabas: InProcess
) -> None:
    """CO-4: no process reads the output, so no one has seen the records."""
    fill(broker, "unseen", 3)
    ours, theirs = os.pipe()
    os.close(ours)
    words = ("consume", "unseen", "--group", "unseen", "--from-beginning", "--max-messages", "3")
    consumer = shell.start(*words, stdout=theirs)
    os.close(theirs)
    assert consumer.wait(120) == 0
    assert consumer.stderr is not None
    consumer.stderr.close()
    line = "consume unseen --group unseen --from-beginning --max-messages 3 --timeout-ms 60000"
    assert barnabas(line)[0] == "0.0\n0.1\n0.2\n"


def test_ux_2_members_share_a_topic(broker: Broker, shell: Shell, barnabas: InProcess) -> None:
    """Two consumers in one group show each record once; Ctrl-C has them commit and leave."""
    fill(broker, "shared", 1, 1, 1, 1)
    words = ("consume", "shared", "--group", "shared", "--from-beginning", "--max-messages", "2")
    with member(broker, "shared", "shared", 4) as foreign:
        first = shell.start(*words)
        try:
            for _ in range(POLLS):
                foreign.poll(0.1)
                if len(foreign.assignment()) == 2:
                    break
            output, _ = first.communicate(timeout=120)
        finally:
            first.kill()
        assert first.returncode == 0
        partitions = {line.split(b".")[0] for line in output.splitlines()}
        assert len(partitions) == 2
    committed = {partition for partition, (at, _) in lags(barnabas, "shared").items() if at == "1"}
    assert committed == {partition.decode() for partition in partitions}


def test_topics_by_their_names_pattern(broker: Broker, barnabas: InProcess) -> None:
    """UX-2: in a group of its own, which commits nothing."""
    fill(broker, "pattern.a", 1)
    fill(broker, "pattern.b", 2)
    line = "consume --include pattern[.].* --from-beginning --max-messages 3 --format topic,value"
    assert sorted(barnabas(line)[0].splitlines()) == [
        "pattern.a\t0.0", "pattern.b\t0.0", "pattern.b\t0.1",
    ]  # fmt: skip
    own = [name for name in barnabas("groups list")[0].split() if "console-consumer" in name]
    assert all(re.fullmatch(r"console-consumer-\d{1,5}", name) for name in own)
    for name in own:
        assert barnabas(f"groups describe {name}")[0] == ""
