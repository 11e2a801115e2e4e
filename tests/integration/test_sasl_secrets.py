"""SE-3: whatever a broker and its clients say of log-ins, no secret is in it.

Every secret that is used here is planted, and all that is logged at any level, answered about
configs, raised, shown of objects, and exported as metrics is searched for them.
"""

from __future__ import annotations

import logging
import traceback
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import ConfigResource, SyncAdmin, SyncProducer
from barnabas.client.admin.configs import BROKER
from barnabas.errors import BarnabasError
from tests.kit.broker.secured import (
    MECHANISMS,
    SECRET,
    options,
    secured_broker,
    token,
)
from tests.kit.processes.broker_process import free_port

KEY = "planted-secret-of-tokens"
WRONG = "planted-wrong-password"


def test_se_3_no_secret_is_in_anything_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    secrets = [SECRET, KEY, WRONG]
    port = free_port()
    with secured_broker(
        tmp_path, delegation_token_secret_key=KEY, barnabas_metrics_port=str(port)
    ) as secured:
        for part in ("broker", "net", "cluster"):
            caplog.set_level(logging.DEBUG, f"barnabas.{part}")
        given: dict[str, Any]
        for mechanism in MECHANISMS:
            given = options(mechanism)
            with SyncAdmin(secured.servers, **given) as admin:
                issued = admin.create_delegation_token()
                secrets += [issued.hmac.hex(), repr(issued.hmac), issued.jaas_config.split('"')[3]]
                entries = admin.describe_configs(ConfigResource(BROKER, "0"))
                assert any(each.name.endswith("plain.sasl.jaas.config") for each in entries)
                said += [repr(entries), repr(issued), repr(admin.describe_delegation_tokens())]
                said += [repr(admin), str(admin.describe_user_scram_credentials())]
        provider = token()
        secrets.append(provider.rpartition(".")[2])
        attempts: list[dict[str, Any]] = [
            {**options("PLAIN"), "sasl_plain_password": WRONG},
            {**options("SCRAM-SHA-256"), "sasl_plain_password": WRONG},
            {**options("SCRAM-SHA-512"), "sasl_plain_username": WRONG, "sasl_plain_password": "x"},
            {**options("OAUTHBEARER"), "sasl_oauth_token_provider": lambda: provider + "x"},
            {**options("PLAIN"), "sasl_mechanism": WRONG},
            {**options("PLAIN"), "sasl_jaas_config": WRONG},
            {**options("PLAIN"), "security_protocol": "PLAINTEXT"},
        ]
        for given in attempts:
            with pytest.raises(BarnabasError) as raised:
                SyncProducer(secured.servers, **given).send("t", b"x").result(30)
            said += traceback.format_exception(raised.value)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
            said.append(page.read().decode())
        said.append(repr(secured.broker))
    output, errors = capfd.readouterr()
    everything = "\n".join([*said, caplog.text, output, errors])
    assert "failed authentication" in everything
    # A name that is refused may be shown: it is the user's, and tells whom to look for.
    everything = everything.replace(f"sasl.mechanism: {WRONG!r}", "")
    assert [secret for secret in secrets if secret in everything] == []
