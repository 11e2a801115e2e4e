"""SE-2: certificates that are revoked while brokers run, and what of it others notice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas import Broker
from barnabas.client import SyncAdmin
from barnabas.client.admin.configs import BROKER, ConfigResource
from barnabas.errors import BarnabasError, ConfigError, InvalidRequest
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.kit.broker.loops import inside
from tests.kit.broker.tls_broker import (
    TlsRawClient,
    options,
    python_context,
    secured,
    tls_address,
)
from tests.kit.certificates import Authority, PemFiles
from tests.kit.waiting import wait_until

LOCATION = "barnabas.ssl.crl.location"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path)


def with_lists(files: PemFiles, lists: Path, **others: str) -> dict[str, Any]:
    return {**secured(files, ssl_client_auth="required", **others), LOCATION: str(lists)}


def reason(broker: Broker, files: PemFiles, **others: str) -> str:
    """Why a client does not come in; empty if it does."""
    try:
        SyncAdmin(tls_address(broker), **options(files), **others).close()
    except BarnabasError as error:
        return str(error)
    return ""


def test_se_2_a_client_revoked_while_the_broker_runs(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """It is refused from its next connection on; what is open, and others, go on."""
    alice, bob = authority.client("alice"), authority.client("bob")
    lists = authority.revoke()
    with Broker(config=with_lists(authority.server(), lists)) as broker:
        assert reason(broker, alice) == ""
        with TlsRawClient(tls_address(broker), python_context(alice)) as open_one:
            authority.revoke(alice)
            wait_until(
                lambda: "certificate of this client has been revoked" in reason(broker, alice)
            )
            assert open_one.call(METADATA, 9, MetadataRequest(topics=[])).brokers
        assert "its certificate has been revoked by its authority" in caplog.text
        assert reason(broker, bob) == ""
        authority.revoke(alice, bob, expired=True)  # of no use: the one before stays in force
        (tls,) = broker.server.parts.network.tls
        inside(broker, tls.reload)
        assert f"previous certificate: listener SSL: {LOCATION}={lists}: this" in caplog.text
        assert reason(broker, alice)
        assert reason(broker, bob) == ""


def test_se_2_lists_by_dynamic_config(authority: Authority, tmp_path: Path) -> None:
    """Of one listener; what cannot be read is refused, and what was in force stays."""
    alice = authority.client("alice")
    key = f"listener.name.ssl.{LOCATION}"
    this = ConfigResource(BROKER, "0")
    with (
        Broker(config=secured(authority.server(), ssl_client_auth="required")) as broker,
        broker.admin() as admin,
    ):
        assert reason(broker, alice) == ""
        with pytest.raises(InvalidRequest, match="cannot be read"):
            admin.alter_configs(this, {key: str(tmp_path / "nothing")})
        assert reason(broker, alice) == ""
        admin.alter_configs(this, {key: str(authority.revoke(alice))})
        assert "revoked" in reason(broker, alice)


def test_se_2_a_broker_does_not_start_with_lists_that_refuse_all(authority: Authority) -> None:
    """Expired ones, and between brokers one that names the certificate of them all."""
    files = authority.server()
    with (
        pytest.raises(ConfigError, match="expired at"),
        Broker(config=with_lists(files, authority.revoke(expired=True))),
    ):
        pass
    between = with_lists(files, authority.revoke(files), security_inter_broker_protocol="SSL")
    with (
        pytest.raises(ConfigError, match=r"would not trust each other.*revoked"),
        Broker(config=between),
    ):
        pass


def test_se_2_a_client_looks_at_lists_as_well(authority: Authority) -> None:
    """A broker whose certificate is revoked while the client's process lives."""
    files, alice = authority.server(), authority.client("alice")
    location = {"ssl.crl.location": str(authority.revoke())}
    with Broker(config=secured(files)) as broker:
        assert reason(broker, alice, **location) == ""
        authority.revoke(files)
        assert "the broker's certificate has been revoked" in reason(broker, alice, **location)
        assert reason(broker, alice) == ""
