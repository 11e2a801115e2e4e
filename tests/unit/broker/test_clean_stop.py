"""What a stop leaves behind, when not all of it can be left well."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from barnabas import Broker
from tests.kit.broker.produces import fill
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient, batch


def test_st_10_a_directory_that_is_gone_at_the_stop_leaves_the_others_clean(tmp_path: Path) -> None:
    """Their logs are not to be scanned at the next start because of it."""
    sound, gone = tmp_path / "sound", tmp_path / "gone"
    config = {
        "log.dirs": f"{sound},{gone}",
        "replica.high.watermark.checkpoint.interval.ms": "600000",
        "log.flush.offset.checkpoint.interval.ms": "600000",
        "log.cleaner.enable": "false",
    }
    broker = Broker(config=config)
    with RawClient(broker.start().bootstrap_servers) as client:
        for topic in ("one", "two"):
            create(client, topic)
            fill(client, topic, batch(b"a"))
    (kept,) = [topic for topic in ("one", "two") if (sound / f"{topic}-0").is_dir()]
    shutil.rmtree(gone)
    with pytest.raises(OSError):
        broker.stop()
    assert (sound / ".kafka_cleanshutdown").exists()
    assert f"{kept} 0 1" in (sound / "replication-offset-checkpoint").read_text()
