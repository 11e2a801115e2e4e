"""SP-2, DL-1: `barnabas collect` is killed at any moment, under every kind of rotation; readers of
committed records have each line once, those of a file in their order."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import barnabas
from barnabas.client import SyncConsumer, TopicPartition
from barnabas_collector.headers import FILE_ID, POSITION
from tests.integration.rotations import KINDS, Rotations
from tests.kit.pipeline.topics import create
from tests.kit.web_server import WebServer

PARTITIONS = 3
HEADER = b"#Fields: client ident user line\n"


def collector(servers: str, directory: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "barnabas.cli.main", "collect", str(directory)]
    command += ["--topic", "lines", "--bootstrap-server", servers, "--name", "killed", *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def committed(servers: str, topic: str) -> list[list[tuple[bytes, int, bytes]]]:
    """Of each partition file, position and value of all records."""
    found = []
    with SyncConsumer(servers, isolation_level="read_committed") as consumer:
        for partition in range(PARTITIONS):
            place = TopicPartition(topic, partition)
            consumer.assign([place])
            consumer.seek(place, 0)
            records = []
            while consumer.position(place) < consumer.end_offsets([place])[place]:
                for record in consumer.poll(1_000):
                    headers = dict(record.headers)
                    at = int(headers[POSITION] or b"")
                    records.append((headers[FILE_ID] or b"", at, record.value or b""))
            found.append(records)
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_no_line_is_lost_or_doubled(tmp_path: Path, kills: int) -> None:
    chance = random.Random(kills)
    logs = tmp_path / "logs"
    servers = []
    for name in ("one", "another"):
        (logs / name).mkdir(parents=True)
        servers.append(WebServer(logs / name, HEADER))
    rotations = [Rotations(server, chance) for server in servers]
    with barnabas.Broker(tmp_path / "broker") as broker:
        create(broker, "lines", PARTITIONS)
        first = collector(broker.bootstrap_servers, logs / "*" / "*.log", "--once")
        assert first.wait(60) == 0, first.communicate()
        for kill in range(kills):
            running = collector(broker.bootstrap_servers, logs / "*" / "*.log")
            killed_at_s = time.monotonic() + 0.1 + chance.random() * 0.5
            while time.monotonic() < killed_at_s:
                for each in rotations:
                    each.write()
            for each in rotations:
                each.rotate(KINDS[kill % len(KINDS)])
            running.kill()
            running.communicate()
            each = chance.choice(rotations)
            each.write()
            if chance.random() < 0.6:
                each.rotate(chance.choice(KINDS))
        for server in servers:
            server.reload()
        last = collector(broker.bootstrap_servers, logs / "*" / "*.log", "--once")
        assert last.wait(60) == 0, last.communicate()
        found = committed(broker.bootstrap_servers, "lines")
        raw = records_sent(broker.bootstrap_servers)
    for server in servers:
        server.close()
    places = [record[:2] for records in found for record in records]
    assert len(places) == len(set(places)), "a place is there twice"
    for records in found:
        by_file: dict[bytes, list[int]] = {}
        for file_id, position, _ in records:
            by_file.setdefault(file_id, []).append(position)
        assert all(positions == sorted(positions) for positions in by_file.values())
    lines = Counter(value for records in found for _, _, value in records)
    lines.pop(HEADER.rstrip(b"\n"))
    assert lines == Counter(line for server in servers for line in server.written)
    aborted = raw - len(places)
    print(f"{kills} kills: {len(places)} lines once, {aborted} sent and not committed")


def records_sent(servers: str) -> int:
    """With those of transactions that were cut off."""
    places = [TopicPartition("lines", partition) for partition in range(PARTITIONS)]
    with SyncConsumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found = 0
        while any(consumer.position(place) < ends[place] for place in places):
            found += len(consumer.poll(1_000))
    return found
