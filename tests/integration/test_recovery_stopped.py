"""A broker that gets a signal to stop while it recovers its logs (ST-8)."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.client import NewTopic, SyncAdmin, SyncProducer
from tests.kit.processes.broker_process import COMMAND, STOP_SECONDS, broker_process
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured

RECORDS = 1_500_000
"""One each in a batch of its own, as they take longest to be read."""


def fill(data_dir: Path) -> None:
    """A log as a crash leaves it, with as many batches. The checksum does not cover the offset."""
    with (
        Broker(data_dir=data_dir) as broker,
        SyncAdmin(broker.bootstrap_servers) as admin,
        SyncProducer(broker.bootstrap_servers) as producer,
    ):
        admin.create_topics([NewTopic("t", 1)])
        producer.send("t", b"x", timestamp_ms=1_700_000_000_000).result()
    path = data_dir / "t-0" / f"{0:020}.log"
    rest = path.read_bytes()[8:]
    offset = struct.Struct(">q")
    path.write_bytes(b"".join(offset.pack(number) + rest for number in range(RECORDS)))
    (data_dir / ".kafka_cleanshutdown").unlink()
    (data_dir / "recovery-point-offset-checkpoint").unlink()


@pytest.mark.slow
def test_st_8_a_signal_ends_a_long_recovery_and_the_next_start_begins_again(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    fill(data_dir)
    log = tmp_path / "broker.log"
    command = [str(COMMAND), "server", "start", "--data-dir", str(data_dir), "--port", "0"]
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output, env=os.environ) as process,
    ):
        wait_until(lambda: "recovering " in log.read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b"", "it was never ready"
    assert "stopped while loading logs: 0/1 logs" in log.read_text()
    assert not (data_dir / ".kafka_cleanshutdown").exists()
    with broker_process(tmp_path) as broker:
        assert broker.stop() == 0
    assert (data_dir / ".kafka_cleanshutdown").exists()
