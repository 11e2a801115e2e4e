"""The verifiable clients: the events that Kafka's tools print, in their order."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import barnabas as package
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin
from tests.kit.processes.command_line import Shell

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with package.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as running:
        with SyncAdmin(running.bootstrap_servers) as admin:
            admin.create_topics(
                [
                    NewTopic("t", 1),
                    NewTopic("tight", 1, configs={"max.message.bytes": "100"}),
                    NewTopic("slow", 1),
                ]
            )
        yield running


def events(output: bytes) -> list[dict[str, Any]]:
    """Without their times, which only have to be there."""
    found = [json.loads(line) for line in output.splitlines()]
    assert all(each.pop("timestamp") > 1_700_000_000_000 for each in found)
    return found


def test_ux_5_what_is_sent_and_what_is_consumed(shell: Shell) -> None:
    line = "verifiable-producer t --max-messages 3 --repeating-keys 2 --value-prefix 1"
    sent = events(shell.run(*line.split())[0])
    assert [each["name"] for each in sent] == [
        "startup_complete", *["producer_send_success"] * 3, "shutdown_complete", "tool_data",
    ]  # fmt: skip
    assert sent[3] == {
        "name": "producer_send_success", "key": "0", "value": "1.2", "offset": 2, "topic": "t",
        "partition": 0,
    }  # fmt: skip
    assert (sent[5]["sent"], sent[5]["acked"], sent[5]["target_throughput"]) == (3, 3, -1)
    line = "verifiable-consumer t --group-id g --max-messages 2 --verbose"
    place = {"topic": "t", "partition": 0}
    assert events(shell.run(*line.split())[0]) == [
        {"name": "startup_complete"},
        {"name": "partitions_assigned", "partitions": [place]},
        {"name": "record_data", "key": "0", "value": "1.0", **place, "offset": 0},
        {"name": "record_data", "key": "1", "value": "1.1", **place, "offset": 1},
        {
            "name": "records_consumed",
            "count": 2,
            "partitions": [{**place, "count": 2, "minOffset": 0, "maxOffset": 1}],
        },
        {"name": "offsets_committed", "offsets": [{**place, "offset": 2}], "success": True},
        {"name": "partitions_revoked", "partitions": [place]},
        {"name": "shutdown_complete"},
    ]
    again = events(shell.run(*f"{line} --max-messages 1".split())[0])
    assert [each["offset"] for each in again if each["name"] == "record_data"] == [2]


def test_what_is_refused_is_an_event(shell: Shell) -> None:
    line = "verifiable-producer tight --max-messages 2 --value-prefix " + "x" * 200
    sent = events(shell.run(*line.split(), code=1)[0])
    failures = [each for each in sent if each["name"] == "producer_send_error"]
    assert len(failures) == 2
    assert failures[0]["exception"] == "MessageTooLarge" and failures[0]["topic"] == "tight"
    assert (sent[-1]["sent"], sent[-1]["acked"]) == (2, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_all_of_its_events(shell: Shell, number: signal.Signals) -> None:
    process = shell.start("verifiable-producer", "slow", "--throughput", "50")
    try:
        assert process.stdout is not None
        begun = b"".join(process.stdout.readline() for _ in range(4))
        process.send_signal(number)
        rest, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    found = events(begun + rest)
    assert process.returncode == 0, errors
    assert [each["name"] for each in found[-2:]] == ["shutdown_complete", "tool_data"]
    assert found[-1]["target_throughput"] == 50
    assert found[-1]["sent"] == found[-1]["acked"] == len(found) - 3


def test_a_reader_that_has_gone_ends_it(shell: Shell) -> None:
    process = shell.start("verifiable-producer", "slow")
    try:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
