"""Throttled clients of a broker, and the causes reported (IN-1)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from barnabas.client import SyncAdmin, SyncConsumer, SyncProducer
from barnabas.events import Event
from barnabas.types import TopicPartition
from tests.kit.processes.broker_process import COMMAND, broker_process
from tests.kit.processes.reported_events import the_event

pytestmark = [pytest.mark.secured, pytest.mark.slow]

LIMIT = 10_000


def test_in_1_a_throttled_client_begins_and_ends(tmp_path: Path) -> None:
    """IN-1: which quota, its limit and the measured rate; in the log and in the stream."""
    short = ("quota.window.num=2", "quota.window.size.seconds=1")
    with broker_process(tmp_path, *short) as broker, SyncAdmin(broker.bootstrap_servers) as admin:
        quotas = {"producer_byte_rate": LIMIT, "consumer_byte_rate": LIMIT}
        admin.alter_client_quotas({"client-id": "loud"}, quotas)
        admin.create_topics("noise")

        def about(kind: str, ends: bool) -> Event:
            words = "is no longer throttled by" if ends else "is throttled for"
            return the_event(
                admin,
                lambda event: (
                    event.kind == "throttle" and kind in event.text and words in event.text
                ),
            )

        with SyncProducer(broker.bootstrap_servers, client_id="loud") as producer:
            for _ in range(3):
                producer.send("noise", bytes(LIMIT * 6 // 10)).result(60)
            began = about("producer_byte_rate", ends=False)
        said = re.fullmatch(
            rf"producer_byte_rate is {LIMIT} bytes/s, and the measured rate is ([\d.]+) bytes/s",
            began.cause,
        )
        assert said is not None and float(said[1]) > LIMIT
        assert re.fullmatch(
            rf"client-id loud is throttled for \d+ ms: {re.escape(began.cause)}", began.text
        )
        with SyncConsumer(broker.bootstrap_servers, client_id="loud") as consumer:
            consumer.assign([TopicPartition("noise", 0)])
            consumer.seek(TopicPartition("noise", 0), 0)
            records = 0
            while records < 3:
                records += len(consumer.poll(1_000))
        assert about("consumer_byte_rate", ends=False).cause.startswith("consumer_byte_rate is ")
        ended = about("producer_byte_rate", ends=True)
        assert ended.cause == "no request was throttled for 2000 ms, the quota's window"
        log = broker.log.read_text()
        assert began.text in log and ended.text in log
        words = [COMMAND, "events", "--kind", "throttle", "--bootstrap-server"]
        printed = subprocess.run(
            [*words, broker.bootstrap_servers], capture_output=True, text=True, check=True
        ).stdout
        assert f"    cause: {began.cause}\n" in printed
        assert f"    cause: {ended.cause}\n" in printed
