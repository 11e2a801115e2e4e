"""FindCoordinator in the audit log."""

from __future__ import annotations

import logging

import pytest

from barnabas import Broker
from barnabas.broker.security.acl_authorizer import AUDIT_LOG
from barnabas.errors import GroupAuthorizationFailed
from barnabas.protocol.api import FIND_COORDINATOR
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.kit.broker.acl_brokers import AUTHORIZER
from tests.kit.raw_client import RawClient


def test_se_4_a_denial_is_logged_once_though_the_topic_would_have_to_be_created(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, AUDIT_LOG)
    with Broker(config=AUTHORIZER) as broker, RawClient(broker.bootstrap_servers) as client:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        (found,) = client.call(FIND_COORDINATOR, 4, request).coordinators
    assert found.error_code == GroupAuthorizationFailed.code
    (line,) = (each.getMessage() for each in caplog.records if each.name == AUDIT_LOG)
    assert "Denied Operation = Describe" in line and "Group:LITERAL:g" in line
