"""The job on what OpenTelemetry's Collector sends, from a broker to the tables (LG-2, SP-4)."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import barnabas
from barnabas.client import SyncConsumer, SyncProducer, TopicPartition
from barnabas_formats.otlp_request import ENCODING, OTLP_JSON, OTLP_PROTO
from barnabas_pipeline.accounts import Accounts, read_accounts
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.snapshot import Snapshot
from tests.kit.pipeline.otlp_requests import AT_NS, as_json, request
from tests.pipeline.run_command import PATIENCE_S, Command, running_command

pytestmark = pytest.mark.slow

RECORDS, LOG_RECORDS = 120, 20
LEVELS = ("DEBUG", "INFO", "WARN", "ERROR")


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    with running_command(tmp_path / "out", tmp_path / "logs") as command:
        yield command


def log_records(number: int) -> list[dict[str, Any]]:
    """The last one of every tenth record has a time that never was."""
    made: list[dict[str, Any]] = [
        {
            "time_unix_nano": AT_NS + n * 1_000_000_000,
            "severity_number": 5 + 4 * (n % 4),
            "body": f"order {number * 100 + n} took {n} ms",
            "attributes": {"order.id": number * 100 + n},
            "trace_id": bytes([number % 255 + 1]) * 16,
        }
        for n in range(LOG_RECORDS)
    ]
    if number % 10 == 0:
        made[-1]["time_unix_nano"] = 2**63
    return made


def sent(number: int) -> tuple[bytes, list[tuple[str, bytes]]]:
    """A record and its headers: OTLP in both encodings, with a header and without, or a line."""
    made = request(
        *log_records(number),
        resource={"service.name": "shop", "k8s.pod.name": f"shop-{number % 3}"},
        scope="shop.Orders",
    )
    proto, text = made.SerializeToString(), as_json(made)
    if number % 6 == 5:
        return b"2026-03-10 10:00:00,000 ERROR [main] a.B: line %d" % number, []
    value = proto if number % 2 else text
    encoding = OTLP_PROTO if number % 2 else OTLP_JSON
    return value, [(ENCODING, encoding.encode())] if number % 3 == 0 else []


def expected() -> Counter[tuple[object, ...]]:
    rows: Counter[tuple[object, ...]] = Counter()
    for number in range(RECORDS):
        if number % 6 == 5:
            rows[("log4j", "gate", "a.B", "ERROR", f"line {number}", None, None)] += 1
            continue
        for n, each in enumerate(log_records(number)):
            if each["time_unix_nano"] < 2**63:
                attributes = f'{{"order.id":{number * 100 + n}}}'
                row = ("otlp", f"shop-{number % 3}", "shop.Orders", LEVELS[n % 4], each["body"])
                rows[(*row, attributes, each["trace_id"].hex())] += 1
    return rows


def test_lg_2_sp_4_both_encodings_and_lines_once_though_the_job_is_killed(
    command: Command,
) -> None:
    """LG-2, SP-4: kill -9 in the middle, and the rows are those that were sent, each once."""
    with barnabas.Broker() as broker:
        servers = broker.bootstrap_servers
        with SyncProducer(servers) as producer:
            for number in range(RECORDS):
                value, headers = sent(number)
                all_headers = [("host", b"gate"), *headers]
                producer.send("system-logs", value, headers=all_headers).result()
            producer.send("system-logs", b"\n\x05ab", headers=[(ENCODING, b"otlp_proto")]).result()
        options = ["--pipeline", "logs", "--encoding", "auto", "--batch", "15"]
        options += ["--no-input", "--bootstrap-servers", servers]
        process = command.start(*options)
        second = command.out / "tables" / "templates" / "_delta_log" / f"{1:020}.json"
        command.until(second.exists)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        output, errors = command.start(*options).communicate(timeout=PATIENCE_S)
        assert command.process is not None and command.process.returncode == 0, errors
        letters = in_topic(servers, "system-logs-dead-letters")
    snapshot = Snapshot(command.out / "tables", LOGS)
    entries = snapshot.frame("entries")
    columns = ("format", "host", "component", "level", "message", "attributes", "trace_id")
    assert Counter(entries.select(columns).iter_rows()) == expected()
    assert entries.select("partition", "offset", "item").is_unique().all()
    rejected = RECORDS // 10
    valid = expected().total()
    found = read_accounts(snapshot)[0]
    assert found == Accounts(valid + rejected + 1, valid, rejected + 1, 0)
    assert f"in all      read {found.read:,} = " in output
    assert letters == Counter(snapshot.frame("dead_letters")["value"].to_list())
    assert letters.total() == rejected + 1
    page = (command.out / "report.html").read_text()
    assert "OpenTelemetry" in page and "shop.Orders" in page


def in_topic(servers: str, topic: str) -> Counter[bytes | None]:
    with SyncConsumer(servers, isolation_level="read_committed") as consumer:
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        consumer.seek(place, 0)
        (end,) = consumer.end_offsets([place]).values()
        values: Counter[bytes | None] = Counter()
        while consumer.position(place) < end:
            values.update(record.value for record in consumer.poll(1_000))
    return values
