"""SaslHandshake where no log-in is due: an error and no mechanism, as in Kafka."""

from __future__ import annotations

import pytest

from barnabas.errors import IllegalSaslState
from barnabas.protocol.api import SASL_HANDSHAKE
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.kit.raw_client import RawClient


@pytest.mark.parametrize("version", range(SASL_HANDSHAKE.max_version + 1))
def test_se_3_nobody_logs_in_without_sasl(client: RawClient, version: int) -> None:
    for _ in range(2):  # the connection stays
        answer = client.call(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism="PLAIN"))
        assert (answer.error_code, answer.mechanisms) == (IllegalSaslState.code, [])
