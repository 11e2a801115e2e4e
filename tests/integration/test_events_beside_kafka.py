"""IN-2: our request for events disturbs neither a broker of Kafka nor Kafka's own clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

import barnabas
from barnabas.cli.main import EXIT_FAILURE, main
from barnabas.client import SyncAdmin
from tests.kit.clients.kafka_process import kafka_broker
from tests.kit.clients.kafka_tools import Tools

pytestmark = [pytest.mark.foreign, pytest.mark.slow, pytest.mark.timeout(600)]

SAYS = "broker 1 reports no events: it is not a Barnabas broker"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as servers:
        yield servers


def test_a_broker_of_kafka_reports_none(kafka: str, capfd: pytest.CaptureFixture[str]) -> None:
    """IN-2: it skips the field; the command says so, and the connection stays usable."""
    with SyncAdmin(kafka) as admin:
        (report,) = admin.events().values()
        assert (report.broker_id, report.events, report.problem) == (1, (), SAYS)
        assert [each.broker_id for each in admin.describe_cluster().brokers] == [1]
    assert main(["events", "--bootstrap-server", kafka]) == EXIT_FAILURE
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", f"{SAYS}\n")


def test_kafkas_clients_are_sent_no_events(tmp_path_factory: pytest.TempPathFactory) -> None:
    """IN-1: librdkafka and Kafka's tools describe a cluster that has events."""
    with barnabas.Broker() as broker:
        servers = broker.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics("t")
            assert any(event.topic == "t" for event in admin.events()[0].events)
        client = AdminClient({"bootstrap.servers": servers})  # a result needs its client
        described = client.describe_cluster().result(60)
        assert [node.id for node in described.nodes] == [0]
        tools = Tools(servers, tmp_path_factory.mktemp("tools"))
        words = ("cluster-id", "--bootstrap-server", servers)
        assert described.cluster_id in tools.try_run("kafka-cluster", *words).stdout
