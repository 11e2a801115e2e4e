"""UX-4: `barnabas consume --group` says what keeps it from its group, and does not end with 0."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas import Broker
from barnabas.cli.main import main
from barnabas.cli.records.consume_command import suspicion
from barnabas.client.admin.admin import Admin, NewTopic
from barnabas.client.sync.producer import SyncAdmin
from barnabas.errors import CoordinatorNotAvailable

GROUP = ["--group", "g", "--from-beginning"]


@pytest.fixture
def servers() -> Iterator[str]:
    """Of a broker that has Kafka's default number of replicas, and no others beside it."""
    with Broker(config={"offsets.topic.replication.factor": "3"}) as broker:
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("test")])
        yield broker.bootstrap_servers


def consume(servers: str, *options: str) -> int:
    return main(["consume", "test", *options, "--bootstrap-server", servers])


def test_a_group_that_cannot_be_kept_is_explained(
    servers: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The setting, how many brokers live, what to do; reading by assignment works all the same."""
    assert consume(servers, *GROUP, "--timeout-ms", "300") == 1
    out, err = capfd.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("barnabas consume: never became a member of group 'g': ")
    assert "offsets.topic.replication.factor is 3: " in last
    assert (
        "larger than the number of live brokers, 1; start more brokers, or set offsets.topic"
        in last
    )
    assert consume(servers, "--partition", "0", "--timeout-ms", "300") == 0


def test_a_group_that_takes_its_time_is_not_misjudged(capfd: pytest.CaptureFixture[str]) -> None:
    """As long as `group.initial.rebalance.delay.ms`; once it was a member, silence is no error."""
    with Broker(config={"group.initial.rebalance.delay.ms": "60000"}) as broker:
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("test")])
        assert consume(broker.bootstrap_servers, *GROUP, "--timeout-ms", "300") == 1
        assert "joining the group took longer than that" in capfd.readouterr().err
    with Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("test")])
        assert consume(broker.bootstrap_servers, *GROUP, "--timeout-ms", "3000") == 0


def test_what_a_broker_does_not_say_is_found_out(servers: str) -> None:
    """A broker of Kafka's answers with the bare error; its settings show the cause."""

    async def asked() -> str:
        async with Admin(servers) as admin:
            return await suspicion(admin, CoordinatorNotAvailable("nothing more"))

    reason = asyncio.run(asked())
    assert reason.startswith(
        "nothing more; offsets.topic.replication.factor is 3 on broker 0, but only "
    )
    assert "only 1 live broker: start more" in reason
