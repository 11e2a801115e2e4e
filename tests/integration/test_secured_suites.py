"""The switch of the secured suites does what it says."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import barnabas
from barnabas.client.errors import NoBrokersAvailable
from barnabas.protocol.api import API_VERSIONS
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from tests.kit.processes.broker_process import broker_process
from tests.kit.raw_client import PATIENCE_S, RawClient
from tests.kit.secured import secrets
from tests.kit.secured.suite import IS_SECURED, suite

pytestmark = [
    pytest.mark.secured,
    pytest.mark.skipif(not IS_SECURED, reason="BARNABAS_SECURED=1 runs it"),
]


def test_se_2_a_broker_of_the_suites_answers_nothing_in_plain_text(tmp_path: Path) -> None:
    request = encode_request(API_VERSIONS, 0, 1, "plain", ApiVersionsRequest())
    with broker_process(tmp_path) as started, barnabas.Broker() as embedded:
        for servers in (started.bootstrap_servers, embedded.bootstrap_servers):
            RawClient(servers).close()
            host, port = servers.split(":")
            with socket.create_connection((host, int(port)), PATIENCE_S) as plain:
                plain.sendall(b"".join(bytes(part) for part in request))
                assert plain.recv(1) == b""
            with pytest.raises(NoBrokersAvailable, match=r"set security\.protocol"):
                barnabas.client.SyncAdmin(
                    servers, security_protocol="PLAINTEXT", default_api_timeout_ms=2000
                )


def test_se_6_what_is_planted_is_found(tmp_path: Path) -> None:
    before = len(secrets.places)
    planted = suite().planted
    assert len(planted) == len(set(planted)) == 4
    for number, secret in enumerate(planted):
        (tmp_path / f"{number}").write_text(f"before {secret} after")
    secrets.look_into(tmp_path)
    found = sorted(place.split(" (")[0] for place in secrets.places[before:])
    del secrets.places[before:]
    assert found == [f"secret {number} is in {tmp_path / str(number)}" for number in range(4)]
    for path in tmp_path.iterdir():
        path.unlink()
