"""The three brokers of compose.yaml, as processes of this machine beside a real ZooKeeper."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Sent
from tests.kit.foreign import CHECKOUT
from tests.kit.processes.broker_process import COMMAND, START_SECONDS, free_port
from tests.kit.processes.zookeeper_process import zookeeper_process

pytestmark = pytest.mark.foreign

SERVICES = yaml.safe_load((CHECKOUT / "compose.yaml").read_text())["services"]
NAMES = sorted(name for name in SERVICES if name.startswith("broker-"))


def settings(name: str, directory: Path, zookeeper: str) -> dict[str, str]:
    """The service's variables, with names and ports of this machine for those of the network."""
    variables = dict(SERVICES[name]["environment"])
    inside, outside = free_port(), free_port()
    replaced = {
        "KAFKA_ZOOKEEPER_CONNECT": zookeeper,
        "KAFKA_LISTENERS": f"INTERNAL://127.0.0.1:{inside},HOST://127.0.0.1:{outside}",
        "KAFKA_ADVERTISED_LISTENERS": f"INTERNAL://127.0.0.1:{inside},HOST://127.0.0.1:{outside}",
    }
    assert replaced.keys() <= variables.keys()
    return variables | replaced | {"KAFKA_LOG_DIRS": str(directory / name)}


def test_a_topic_has_three_replicas_and_survives_a_broker(tmp_path: Path) -> None:
    """UX-8"""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    brokers: list[subprocess.Popen[str]] = []
    servers: list[str] = []
    with zookeeper_process(tmp_path) as zookeeper:
        try:
            for name in NAMES:
                variables = settings(name, tmp_path, zookeeper.connect)
                with (tmp_path / f"{name}.log").open("wb") as log:
                    brokers.append(
                        subprocess.Popen(
                            [COMMAND, "server", "start"],
                            env={"PATH": path, **variables},
                            stdout=subprocess.PIPE,
                            stderr=log,
                            text=True,
                        )
                    )
                servers.append(variables["KAFKA_LISTENERS"].rpartition("//")[2])
            for name, broker in zip(NAMES, brokers, strict=True):
                assert broker.stdout is not None
                ready = broker.stdout.readline()
                assert ready.startswith("barnabas ready"), (tmp_path / f"{name}.log").read_text()
            create = ("topics", "create", "kept", "--bootstrap-server", ",".join(servers))
            subprocess.run([COMMAND, *create], check=True, timeout=START_SECONDS)
            describe = ("topics", "describe", "kept", "--bootstrap-server", servers[0])
            shown = subprocess.run(
                [COMMAND, *describe], capture_output=True, text=True, timeout=60, check=True
            )
            assert "ReplicationFactor: 3" in shown.stdout
            assert "min.insync.replicas=2" in shown.stdout
            brokers[0].terminate()
            assert brokers[0].wait(120) == 0
            left = ",".join(servers[1:])
            confluent_client.produce(left, "kept", [Sent(0, b"k", b"v")], codec="none")
            assert len(confluent_client.consume(left, "kept", 1, 1)) == 1
        finally:
            for broker in brokers:
                broker.kill()
                broker.wait()
                assert broker.stdout is not None
                broker.stdout.close()
