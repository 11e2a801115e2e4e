"""Retention, compaction and DeleteRecords on a broker, and the causes reported (IN-1)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from barnabas.client import ConfigResource, NewTopic, SyncAdmin, SyncProducer
from barnabas.client.admin.configs import TOPIC
from barnabas.events import Event
from barnabas.types import TopicPartition
from tests.kit.processes.broker_process import COMMAND, BrokerProcess, broker_process
from tests.kit.processes.reported_events import the_event

pytestmark = pytest.mark.secured

OPTIONS = (
    "log.retention.check.interval.ms=200",
    "log.cleaner.backoff.ms=200",
    "log.initial.task.delay.ms=0",
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_process(tmp_path_factory.mktemp("logs"), *OPTIONS) as broker:
        yield broker


@pytest.fixture
def admin(broker: BrokerProcess) -> Iterator[SyncAdmin]:
    with SyncAdmin(broker.bootstrap_servers) as admin:
        yield admin


def _fill(broker: BrokerProcess, topic: str, records: int = 10) -> None:
    with SyncProducer(broker.bootstrap_servers) as producer:
        for number in range(records):
            producer.send(topic, bytes(900), key=b"k%d" % (number % 2)).result(60)


def _event(admin: SyncAdmin, kind: str, topic: str, words: str = "") -> Event:
    return the_event(
        admin, lambda event: (event.kind, event.topic) == (kind, topic) and words in event.text
    )


@pytest.mark.parametrize(
    ("topic", "limit", "cause"),
    [
        ("long", ("retention.bytes", "3000"), r"(\d+) segments? by retention\.bytes=3000"),
        ("old", ("retention.ms", "1"), r"(\d+) segments? by retention\.ms=1"),
    ],
)
def test_in_1_retention_says_how_many_segments_and_by_which_limit(
    topic: str, limit: tuple[str, str], cause: str, broker: BrokerProcess, admin: SyncAdmin
) -> None:
    admin.create_topics(NewTopic(topic, configs={"segment.bytes": "1000"}))
    _fill(broker, topic)
    admin.alter_configs(ConfigResource(TOPIC, topic), dict([limit]))
    event = _event(admin, "retention", topic)
    said = re.fullmatch(cause, event.cause)
    assert said is not None and int(said[1]) >= 1
    begin = event.text.partition("incremented log start offset to ")[2].split()[0]
    assert re.fullmatch(
        rf"\[Log partition={topic}-0, dir=.*\] Deleting {said[1]} segments? of [\d,]+ bytes, "
        rf"incremented log start offset to {int(begin)} due to segment deletion: "
        + re.escape(event.cause),
        event.text,
    )
    assert (event.partition, event.is_harmless) == (0, True)
    assert event.text in broker.log.read_text()


def test_in_1_delete_records_says_who_asked(broker: BrokerProcess, admin: SyncAdmin) -> None:
    """IN-1: at once when clients see it, and when the segments go."""
    admin.create_topics(NewTopic("cut", configs={"segment.bytes": "1000"}))
    _fill(broker, "cut")
    with SyncAdmin(broker.bootstrap_servers, client_id="janitor") as janitor:
        janitor.delete_records({TopicPartition("cut", 0): 5})
    event = _event(admin, "retention", "cut", "client delete records request")
    assert event.cause == (
        "DeleteRecords by principal User:ANONYMOUS, client id 'janitor', host 127.0.0.1"
    )
    assert "Incremented log start offset to 5 due to client delete records request" in event.text
    gone = _event(admin, "retention", "cut", "due to segment deletion")
    assert gone.cause == (
        "5 segments below the log start offset, which DeleteRecords or a leader raised"
    )
    assert event.text in broker.log.read_text() and gone.text in broker.log.read_text()


def test_in_1_compaction_says_what_it_kept(broker: BrokerProcess, admin: SyncAdmin) -> None:
    """IN-1: a pass, its offsets and bytes; the command shows it only when asked."""
    admin.create_topics(
        NewTopic("latest", configs={"segment.bytes": "1000", "cleanup.policy": "compact"})
    )
    _fill(broker, "latest")
    event = _event(admin, "compaction", "latest")
    assert event.cause == (
        "100% of its bytes were not compacted yet (min.cleanable.dirty.ratio is 0.5)"
    )
    assert re.fullmatch(
        r"latest-0: compacted from offset 0 up to offset \d+ in \d+ ms, keeping \d+ of "
        r"\d+ records and [\d,]+ of [\d,]+ bytes: " + re.escape(event.cause),
        event.text,
    )
    assert event.text in broker.log.read_text()
    words = [COMMAND, "events", "--topic", "latest", "--bootstrap-server", broker.bootstrap_servers]

    def shown(*more: str) -> str:
        return subprocess.run([*words, *more], capture_output=True, text=True, check=True).stdout

    assert event.text not in shown()
    assert f"{event.text}\n    cause: {event.cause}\n" in shown("--all")
    assert event.text in shown("--kind", "compaction")
