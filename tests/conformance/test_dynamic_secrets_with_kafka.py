"""SE-6: a real Kafka 3.9.1 and ours take turns on one tree: each reads the secrets of the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import ConfigResource, SyncAdmin
from barnabas.client.admin.configs import BROKER
from barnabas.errors import BarnabasError, InvalidConfig
from tests.kit.clients.kafka_process import KafkaProcess
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.cluster_process import ClusterProcess
from tests.kit.processes.ready_brokers import wait_for_members

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
JAAS = "listener.name.in.plain.sasl.jaas.config"
THIS = ConfigResource(BROKER, "1")
NOT_CONFIGURED = "Password encoder secret not configured"


def users(**passwords: str) -> str:
    return f"{PLAIN} " + " ".join(f'user_{k}="{v}"' for k, v in passwords.items()) + ";"


class Turns:
    """One broker's place, taken by ours or by Kafka's."""

    def __init__(self, directory: Path) -> None:
        self.cluster = ClusterProcess(directory, 1)
        (self.ours,) = self.cluster.brokers.values()
        self.servers = f"127.0.0.1:{free_port()}"
        self._options = (
            *self.ours.options,
            f"listeners=OPEN://{self.ours.bootstrap_servers},IN://{self.servers}",
            "listener.security.protocol.map=OPEN:PLAINTEXT,IN:SASL_PLAINTEXT",
            "inter.broker.listener.name=OPEN",
            "sasl.enabled.mechanisms=PLAIN",
            "connection.failed.authentication.delay.ms=0",
            f"{JAAS}={users(first='planted-first')}",
        )

    def _configure(self, settings: tuple[str, ...]) -> None:
        self.ours.options = (*self._options, *settings)

    @contextmanager
    def of_ours(self, *settings: str) -> Iterator[None]:
        self._configure(settings)
        self.ours.start()
        try:
            yield
        finally:
            self.ours.stop()

    @contextmanager
    def of_kafka(self, *settings: str) -> Iterator[KafkaProcess]:
        self._configure(settings)
        kafka = KafkaProcess(self.ours)
        try:
            kafka.wait_until_ready()
            wait_for_members([self.ours.bootstrap_servers])
            yield kafka
            kafka.stop()
        finally:
            if kafka.process.poll() is None:
                kafka.kill()

    def alter(self, *settings: tuple[str, str]) -> None:
        with SyncAdmin(self.ours.bootstrap_servers) as admin:
            admin.alter_configs(THIS, dict(settings))

    def refusal(self, value: str) -> str:
        with pytest.raises(InvalidConfig) as said:
            self.alter((JAAS, value))
        return str(said.value)

    def lets_in(self, user: str, password: str) -> bool:
        given: dict[str, Any] = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }
        try:
            SyncAdmin(self.servers, default_api_timeout_ms=10_000, **given).close()
        except BarnabasError:
            return False
        return True


def test_se_6_either_reads_what_the_other_has_encrypted(tmp_path: Path) -> None:
    """Here `password.encoder.secret` can change where a broker is alone as well: Kafka's does not
    start then, since it writes by a controller's rights before there is one."""
    one, two = "password.encoder.secret=planted-1", "password.encoder.secret=planted-2"
    old = "password.encoder.old.secret=planted-1"
    turns = Turns(tmp_path)
    try:
        turns.cluster.zookeeper.start()
        with turns.of_ours(one):
            turns.alter((JAAS, users(alice="planted-a")))
            assert turns.lets_in("alice", "planted-a")
        with turns.of_kafka(one):
            assert turns.lets_in("alice", "planted-a")
            assert not turns.lets_in("first", "planted-first")
            turns.alter((JAAS, users(bob="planted-b")))
            assert not turns.lets_in("bob", "planted-b")  # there it waits for a restart
        with turns.of_ours(two, old):
            assert turns.lets_in("bob", "planted-b")
            assert not turns.lets_in("alice", "planted-a")
        with turns.of_kafka(two):
            assert turns.lets_in("bob", "planted-b")
        assert "planted" not in turns.ours.log.read_text()
    finally:
        turns.cluster.kill_all()


def test_se_6_without_a_secret_both_refuse_the_same(tmp_path: Path) -> None:
    """What is there already is left out by both, and the properties' own is in force."""
    turns = Turns(tmp_path)
    try:
        turns.cluster.zookeeper.start()
        with turns.of_ours("password.encoder.secret=planted-1"):
            turns.alter((JAAS, users(alice="planted-a")))
        with turns.of_kafka() as kafka:
            assert NOT_CONFIGURED in turns.refusal(users(bob="planted-b"))
            assert turns.lets_in("first", "planted-first")
            assert f"Dynamic password config {JAAS} could not be decoded" in kafka.said()
        with turns.of_ours():
            assert NOT_CONFIGURED in turns.refusal(users(bob="planted-b"))
            assert turns.lets_in("first", "planted-first")
    finally:
        turns.cluster.kill_all()
