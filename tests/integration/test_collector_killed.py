"""The collector is killed, again and again, while its log is written to and rotated.

It promises at least once: after a kill the last portion may be sent again, under the same file and
positions. By these the pipeline counts each line once, and so does this test, by the same rule.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import barnabas
from barnabas_collector.headers import FILE_ID, POSITION
from barnabas_collector.registry import Registry
from barnabas_pipeline.collector import Collector, Follower
from tests.integration.rotations import KINDS, Rotations
from tests.kit.pipeline.topics import create, records_of
from tests.kit.web_server import WebServer

PARTITIONS = 3
HEADER = b"#Fields: client ident user line\n"


@contextmanager
def collecting(
    broker: barnabas.Broker, topic: str, log: Path, registry: Path, killed_after_s: float
) -> Iterator[None]:
    """Killed so long after it has begun to follow, whatever goes on then."""
    arguments = [broker.bootstrap_servers, topic, str(log), str(registry)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.integration.collecting", *arguments], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"following\n"
        killing = threading.Timer(killed_after_s, process.kill)
        killing.start()
        try:
            yield
        finally:
            killing.join()


def counted(broker: barnabas.Broker, topic: str) -> tuple[Counter[bytes], int]:
    """Each line's count, and how many were sent twice: by the rule in `behaviour.py`.

    Asserts that what counts as sent twice has been there, at the same place.
    """
    lines: Counter[bytes] = Counter()
    sent_twice = 0
    for partition in range(PARTITIONS):
        highest: dict[bytes | None, int] = {}
        texts: dict[tuple[bytes | None, int], bytes | None] = {}
        for record in records_of(broker, topic, partition):
            headers = dict(record.headers)
            file_id, position = headers[FILE_ID], int(headers[POSITION] or b"")
            if position <= highest.get(file_id, -1):
                assert texts.get((file_id, position)) == record.value
                sent_twice += 1
                continue
            highest[file_id] = position
            texts[file_id, position] = record.value
            lines[record.value or b""] += 1
    return lines, sent_twice


@pytest.mark.parametrize(
    "kills",
    [
        3,
        pytest.param(20, marks=pytest.mark.slow),
        pytest.param(50, marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
def test_no_line_is_lost_and_each_counts_once(
    broker: barnabas.Broker, tmp_path: Path, kills: int
) -> None:
    """SP-4: kill -9 at random moments, with every kind of rotation while it runs and while not."""
    chance = random.Random(kills)
    topic = create(broker, f"killed-{kills}", PARTITIONS)
    server = WebServer(tmp_path, HEADER)
    registry = tmp_path / "registry.json"
    rotations = Rotations(server, chance)
    for kill in range(kills):
        with collecting(broker, topic, server.log, registry, chance.random() * 0.2):
            rotations.write()
            rotations.rotate(KINDS[kill % len(KINDS)])
            rotations.write()
        rotations.write()
        if chance.random() < 0.6:
            rotations.rotate(chance.choice(KINDS))
            rotations.write()
    server.reload()
    with (
        Collector(broker.bootstrap_servers, topic, Registry(registry)) as collector,
        Follower(collector, server.log) as follower,
    ):
        while follower.poll().lines:
            pass
    server.close()
    lines, sent_twice = counted(broker, topic)
    lines.pop(HEADER.rstrip(b"\n"))
    missing = set(server.written) - set(lines)
    assert not missing, f"{len(missing)} of {len(server.written)} lines are lost"
    doubled = {line: seen for line, seen in lines.items() if seen > 1}
    assert not doubled, f"{len(doubled)} lines count more than once: {sorted(doubled)[:10]}"
    assert lines == Counter(server.written)
    print(f"{kills} kills, {len(server.written)} lines, {sent_twice} sent twice: all counted once")
