"""The log of decisions: a line for each, until they are more than anyone reads."""

from __future__ import annotations

import logging
import time

import pytest

from barnabas import Broker
from barnabas.broker.security.acl_authorizer import AUDIT_LOG
from barnabas.broker.security.audit_trail import LINES
from barnabas.protocol.api import DELETE_TOPICS, METADATA
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.security.acl import Principal
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until

CONFIG = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:admin",
}


def test_many_denials_of_one_request_are_a_few_lines_and_their_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SE-1: else a stranger's request writes a hundred thousand lines before anyone else has a
    turn."""
    caplog.set_level(logging.INFO, AUDIT_LOG)
    names = [DeleteTopicState(name=f"n{number}") for number in range(5_000)]
    with Broker(config=CONFIG) as broker, RawClient(broker.bootstrap_servers) as client:
        request = DeleteTopicsRequest(topics=names, timeout_ms=1000)
        began_s = time.monotonic()
        assert len(client.call(DELETE_TOPICS, 6, request).responses) == 5_000

        def lines(operation: str) -> list[str]:
            return [
                record.getMessage()
                for record in caplog.records
                if record.name == AUDIT_LOG and f"Operation = {operation}" in record.getMessage()
            ]

        def counted(operation: str) -> int:
            more = (line for line in lines(operation) if " more for request = " in line)
            return sum(int(line.partition("Topic:")[2].split()[0]) for line in more)

        for operation in ("Delete", "Describe"):
            wait_until(lambda: counted(operation) + LINES >= 5_000 // 10)  # noqa: B023
            first = lines(operation)[0]
            assert first.endswith(
                "on resource = Topic:LITERAL:n0 for request = DeleteTopics with "
                "resourceRefCount = 1"
            )
        wait_until(
            lambda: all(
                counted(one) + sum("LITERAL" in line for line in lines(one)) == 5_000
                for one in ("Delete", "Describe")
            )
        )
        # A second of a slow machine may have the last of its lines, and another the next.
        seconds = 1 + int(time.monotonic() - began_s)
        assert len(lines("Delete")) <= seconds * (LINES + 1)


def test_a_name_from_outside_stays_on_its_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, AUDIT_LOG)
    named = [MetadataRequestTopic(name="a\nPrincipal = User:admin is Allowed\x1b[2J")]
    with Broker(config=CONFIG) as broker, RawClient(broker.bootstrap_servers) as client:
        client.call(METADATA, 9, MetadataRequest(topics=named))
    (line,) = (each.getMessage() for each in caplog.records if each.name == AUDIT_LOG)
    assert r"Topic:LITERAL:a\nPrincipal = User:admin is Allowed\x1b[2J for request" in line


def test_a_user_from_outside_stays_on_its_line(caplog: pytest.LogCaptureFixture) -> None:
    from barnabas.printable import printable

    assert printable(str(Principal("User", "a\r\nb"))) == r"User:a\r\nb"
