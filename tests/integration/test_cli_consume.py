"""UX-2: where `barnabas consume` starts and ends, and the group of its own."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import barnabas as package
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from tests.kit.processes.command_line import InProcess, Shell
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

BEGAN_MS = 1_760_000_000_000  # 2025-10-09T08:53:20Z
SECOND = "2025-10-09T08:53:{:02}Z"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """With the topic `timed`: in each of two partitions five records, a second apart."""
    config = {
        "group.initial.rebalance.delay.ms": "500",
        "log.retention.ms": "-1",
        "log.cleaner.backoff.ms": "50",
    }
    with package.Broker(config=config) as running:
        with SyncAdmin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("timed", 2), NewTopic("now", 1)])
        with SyncProducer(running.bootstrap_servers) as producer:
            for number in range(10):
                producer.send(
                    "timed",
                    b"v%d" % number,
                    partition=number % 2,
                    timestamp_ms=BEGAN_MS + number * 1000,
                )
        yield running


def values(output: str) -> list[str]:
    return sorted(output.split())


def test_ux_2_without_a_group_it_is_a_group_of_its_own(shell: Shell, barnabas: InProcess) -> None:
    """It is seen among the groups while it runs, has a member, commits nothing, and leaves."""
    consumer = shell.start("consume", "timed", "--from-beginning")
    try:
        assert consumer.stdout is not None and consumer.stderr is not None
        assert {consumer.stdout.readline() for _ in range(10)} == {b"v%d\n" % n for n in range(10)}
        (group,) = json.loads(barnabas("groups list --state --json")[0])
        assert re.fullmatch(r"console-consumer-\d{1,5}", group["group"])
        assert group["state"] == "Stable"
        described = json.loads(barnabas(f"groups describe {group['group']} --json")[0])
        assert 'committed": 1' not in json.dumps(described)
        assert len(barnabas(f"groups describe {group['group']} --members")[0].split("\n")) == 4
        consumer.send_signal(signal.SIGINT)
        assert consumer.wait(60) == 0
    finally:
        consumer.kill()
        consumer.communicate()
    wait_until(lambda: "Stable" not in barnabas("groups list --state")[0])


def test_ux_2_from_now_on_begins_with_the_command(shell: Shell, broker: Broker) -> None:
    """Not when its group has assigned the partitions, which takes half a second here."""
    with SyncProducer(broker.bootstrap_servers) as producer:
        producer.send("now", b"before").result(60)
        consumer = shell.start("consume", "now", "--max-messages", "1")
        try:
            with SyncAdmin(broker.bootstrap_servers) as admin:
                wait_until(
                    lambda: any(each.state == "PreparingRebalance" for each in admin.list_groups())
                )
            producer.send("now", b"during the join").result(60)
            output, errors = consumer.communicate(timeout=60)
        finally:
            consumer.kill()
            consumer.wait()
    assert (consumer.returncode, output) == (0, b"during the join\n"), errors


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--offset -2", "v6 v7 v8 v9"),
        ("--offset -2 --partition 1", "v7 v9"),
        ("--partition 0 --offset 4", "v8"),
        (f"--from {SECOND.format(27)}", "v7 v8 v9"),
        (f"--from {SECOND.format(27)} --partition 0", "v8"),
        (f"--from {BEGAN_MS + 8_500}", "v9"),
        ("--from -1h", ""),
        (f"--to {SECOND.format(22)}", "v0 v1"),
        (f"--from {SECOND.format(22)} --to {SECOND.format(25)}", "v2 v3 v4"),
        (f"--from {SECOND.format(22)} --to now", "v2 v3 v4 v5 v6 v7 v8 v9"),
        (f"--to {SECOND.format(22)} --max-messages 1 --partition 1", "v1"),
        ("--from-beginning --max-messages 0", ""),
    ],
)
def test_ux_2_from_and_to_times_and_offsets(barnabas: InProcess, words: str, expected: str) -> None:
    """Each ends by itself, at the end of what there is."""
    output, errors = barnabas(f"consume timed {words} --exit-at-end")
    assert values(output) == expected.split(), errors
    assert errors == f"Processed a total of {len(expected.split())} messages\n"


@pytest.fixture(scope="module")
def with_gaps(broker: Broker) -> str:
    """A topic whose offsets are not all records'.

    Partition 0: five committed records, a marker behind each; 1: two records, then an aborted
    transaction of six; 2: one record; 3: nothing but an aborted one.
    """
    topic = broker.topic("gaps", partitions=4)
    with broker.producer(transactional_id="gaps") as producer:
        producer.init_transactions()
        for number in range(5):
            with producer.transaction():
                producer.send("gaps", b"p0-%d" % number, partition=0)
        topic.send_many(["p1-0", "p1-1"], partition=1)
        topic.send("p2-0", partition=2)
        producer.begin_transaction()
        for number in range(6):
            producer.send("gaps", b"aborted1-%d" % number, partition=1)
        producer.send("gaps", b"aborted3", partition=3)
        producer.flush()
        producer.abort_transaction()
    return topic.name


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--offset -1", "aborted1-5 aborted3 p0-4 p2-0"),
        ("--offset -0", ""),
        ("--offset -3 --partition 0", "p0-2 p0-3 p0-4"),
        ("--offset -3 --partition 0 --partition 2", "p0-2 p0-3 p0-4 p2-0"),
        ("--offset -5 --partition 0", "p0-0 p0-1 p0-2 p0-3 p0-4"),
        ("--offset -999999999999999999 --partition 0", "p0-0 p0-1 p0-2 p0-3 p0-4"),
        ("--offset -7 --partition 1", "aborted1-0 aborted1-1 aborted1-2 aborted1-3 aborted1-4 "
         "aborted1-5 p1-1"),
        ("--offset -1 --isolation-level read_committed", "p0-4 p1-1 p2-0"),
        ("--offset -2 --isolation-level read_committed", "p0-3 p0-4 p1-0 p1-1 p2-0"),
        ("--offset -1 --isolation-level read_committed --partition 3", ""),
    ],
)  # fmt: skip
def test_ux_2_the_last_n_are_records_and_not_offsets(
    barnabas: InProcess, with_gaps: str, words: str, expected: str
) -> None:
    output, errors = barnabas(f"consume {with_gaps} {words} --exit-at-end")
    assert values(output) == expected.split(), errors


def test_ux_2_the_last_n_of_a_compacted_log(barnabas: InProcess, broker: Broker) -> None:
    configs = {"cleanup.policy": "compact", "max.compaction.lag.ms": 1, "segment.ms": 1}
    topic = broker.topic("cleaned", partitions=1, config=configs)
    topic.send_many([{"key": "a", "value": "a1"}, {"key": "b", "value": "b1"}])
    for number in range(8):
        topic.send(f"c{number}", key="c")
    topic.send("d1", key="d")
    wait_until(lambda: len(topic.records()) < 6)  # a1, b1, the last c and d, and perhaps one more

    def kept() -> list[str]:
        return [value.decode() for value in topic.values() if value is not None]

    for count in (1, 3, 4):
        before = kept()
        output, errors = barnabas(f"consume cleaned --offset -{count} --exit-at-end")
        # The cleaner may have removed one more meanwhile.
        assert output.split() in (before[-count:], kept()[-count:]), errors


def test_a_group_reads_up_to_the_end_and_commits_that(barnabas: InProcess) -> None:
    line = "consume timed --group drain --exit-at-end"
    assert len(values(barnabas(line)[0])) == 10
    assert values(barnabas(line)[0]) == []
    assert values(barnabas("consume timed --group early --to 2025-10-09T08:53:23Z")[0]) == [
        "v0", "v1", "v2",
    ]  # fmt: skip
    assert values(barnabas("consume timed --group early --exit-at-end")[0]) == [
        f"v{number}" for number in range(3, 10)
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--from yesterday", "--from yesterday: not a time, such as"),
        ("--to -1x", "--to -1x: not a time"),
        ("--to 2999-01-01", "in the future"),
        ("--from -1h --to -2h", "is before --from"),
        ("--from -1h --offset 3 --partition 0", "--offset and --from cannot be combined"),
        ("--from -1h --from-beginning", "--from-beginning and --from cannot be combined"),
        ("--from -1h --group g", "leave out --from"),
        ("--offset 3", "needs --partition"),
    ],
)
def test_ux_4_what_contradicts_itself(barnabas: InProcess, words: str, problem: str) -> None:
    errors = barnabas(f"consume timed {words}", code=2)[1]
    assert problem in errors and errors.count("\n") == 1
