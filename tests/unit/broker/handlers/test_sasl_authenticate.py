"""SaslAuthenticate where no log-in is due, in Kafka's words."""

from __future__ import annotations

import pytest

from barnabas.errors import IllegalSaslState
from barnabas.protocol.api import SASL_AUTHENTICATE
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tests.kit.raw_client import RawClient


@pytest.mark.parametrize("version", range(SASL_AUTHENTICATE.max_version + 1))
def test_se_3_nobody_logs_in_without_sasl(client: RawClient, version: int) -> None:
    request = SaslAuthenticateRequest(auth_bytes=b"\0alice\0a")
    answer = client.call(SASL_AUTHENTICATE, version, request)
    assert answer.error_code == IllegalSaslState.code
    assert answer.error_message == (
        "SaslAuthenticate request received after successful authentication"
    )
