"""The image and the three brokers of compose.yaml, as far as that shows without a daemon.

The image's command runs in the test's own environment, with the variables that the Dockerfile and a
user of Kafka's image set.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from barnabas.broker.network.listeners import parse_listeners
from barnabas.config import BrokerConfig, environment_warning, from_environment
from tests.kit.clients import confluent_client
from tests.kit.foreign import CHECKOUT
from tests.kit.processes.broker_process import START_SECONDS, free_port

DOCKERFILE = re.sub(r"\\\n\s*", "", (CHECKOUT / "Dockerfile").read_text())
COMPOSE = yaml.safe_load((CHECKOUT / "compose.yaml").read_text())
BROKERS = {name: each for name, each in COMPOSE["services"].items() if name != "zookeeper"}

# What the page of Kafka's image shows: a single KRaft node, with the ports of a test.
KAFKAS_EXAMPLE = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENERS": "PLAINTEXT://localhost:{port},CONTROLLER://localhost:9093",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:{port}",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_NUM_PARTITIONS": "3",
}


def instructions(name: str) -> list[str]:
    """The arguments of each instruction of that name in the image itself."""
    image = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
    return re.findall(rf"^{name} (.*)$", image, re.MULTILINE)


def image_settings() -> dict[str, str]:
    [variables] = instructions("ENV")
    return dict(word.split("=", 1) for word in variables.split() if word.startswith("KAFKA_"))


@pytest.mark.parametrize("given", [{}, KAFKAS_EXAMPLE], ids=["defaults", "as-kafkas-image"])
def test_the_images_command_serves_what_the_variables_say(
    given: dict[str, str], tmp_path: Path
) -> None:
    """UX-8"""
    port = free_port()
    settings = image_settings() | given | {"KAFKA_LOG_DIRS": str(tmp_path / "log")}
    settings = {name: value.replace("{port}", str(port)) for name, value in settings.items()}
    if not given:
        assert settings["KAFKA_LISTENERS"] == "PLAINTEXT://:9092"
        settings["KAFKA_LISTENERS"] = f"PLAINTEXT://:{port}"
    settings["KAFKA_BARNABAS_METRICS_PORT"] = str(free_port())
    command, words = json.loads(*instructions("ENTRYPOINT")), json.loads(*instructions("CMD"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (tmp_path / "broker.log").open("wb") as log:
        broker = subprocess.Popen(
            [*command, *words],
            env={"PATH": path, **settings},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert broker.stdout is not None
    try:
        readable, _, _ = select.select([broker.stdout], [], [], START_SECONDS)
        line = broker.stdout.readline() if readable else ""
        assert line.startswith("barnabas ready on "), (tmp_path / "broker.log").read_text()
        assert (f":{port} (broker {1 if given else 0}, {tmp_path}/log," in line) is True, line
        servers = f"localhost:{port}"
        check = json.loads(instructions("HEALTHCHECK")[0].partition("CMD ")[2])
        subprocess.run([sys.executable, *check[1:]], env=settings, check=True, timeout=60)
        partitions = 3 if given else 1
        confluent_client.create_topic(servers, "tried", partitions, {})
        broker.terminate()
        assert broker.wait(120) == 0
        ended = subprocess.run(
            [sys.executable, *check[1:]], env=settings, capture_output=True, timeout=60, check=False
        )
        assert ended.returncode == 1
    finally:
        broker.kill()
        broker.wait()
        broker.stdout.close()


def test_the_image_runs_as_a_user_of_its_own_and_keeps_data_in_a_volume() -> None:
    [user] = instructions("USER")
    assert f"--uid {user} " in DOCKERFILE  # a number: Kubernetes sees that it is not root
    [volume] = instructions("VOLUME")
    assert Path(image_settings()["KAFKA_LOG_DIRS"]).parent == Path(volume)
    assert environment_warning(image_settings()) is None


def test_the_build_gets_what_it_copies_and_nothing_else() -> None:
    copied = {
        word
        for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
        for word in line.split()[:-1]
    }
    lines = (CHECKOUT / ".dockerignore").read_text().splitlines()
    assert {line.removeprefix("!") for line in lines if line.startswith("!")} == copied
    assert all((CHECKOUT / name).exists() for name in copied)


def test_each_broker_of_the_cluster_has_settings_that_fit_together() -> None:
    assert len(BROKERS) == 3
    ids, ports = set(), set()
    for name, service in BROKERS.items():
        variables = image_settings() | service["environment"]
        assert environment_warning(variables) is None
        config = BrokerConfig(from_environment(variables))
        assert config.warnings == []
        assert config.str("zookeeper.connect") == "zookeeper:2181"
        inside, outside = parse_listeners(
            "advertised.listeners", variables["KAFKA_ADVERTISED_LISTENERS"]
        )
        listeners = parse_listeners("listeners", variables["KAFKA_LISTENERS"])
        assert [each.name for each in listeners] == [inside.name, outside.name]
        assert config.str("inter.broker.listener.name") == inside.name
        # The other brokers find it by the service's name, this machine by the published port.
        assert (inside.host, inside.port) == (name, listeners[0].port)
        assert service["ports"] == [f"127.0.0.1:{outside.port}:{listeners[1].port}"]
        ids.add(config.int("broker.id"))
        ports.add(outside.port)
        [volume] = service["volumes"]
        assert volume == f"{name}:{instructions('VOLUME')[0]}"
        assert name in COMPOSE["volumes"]
        assert service["depends_on"] == {"zookeeper": {"condition": "service_healthy"}}
    assert (ids, ports) == ({1, 2, 3}, {9092, 9093, 9094})
