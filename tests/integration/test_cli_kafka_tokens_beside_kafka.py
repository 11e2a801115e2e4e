"""UX-6: `kafka-delegation-tokens.sh` behind `barnabas` prints and does what Kafka 3.9.1's does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.cli.main import main
from tests.kit.broker.secured import java_properties, secured_broker
from tests.kit.clients.kafka_tools import Tools

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

_TOKEN_ID = re.compile(r"[\w-]{22}")
_HMAC = re.compile(r"[A-Za-z0-9+/]{86}==")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")

Run = Callable[..., tuple[int, str]]


def drawn(output: str) -> str:
    """Without what is another one each time."""
    without = _DATE.sub("DATE", _HMAC.sub("HMAC", output))
    return _TOKEN_ID.sub("ID", without)


def outputs(run: Run) -> list[tuple[int, str]]:
    """Of a token's whole life; each tool has tokens of its own."""
    found = []

    def step(*words: str) -> str:
        code, output = run(*words)
        found.append((code, drawn(output)))
        return output

    step("--describe")
    renewers = ("--renewer-principal", "User:bob", "--renewer-principal", "User:carol")
    created = step("--create", "--max-life-time-period", "-1", *renewers)
    hmac = _HMAC.findall(created)[0]
    step("--describe", "--owner-principal", "User:alice")
    step("--renew", "--hmac", hmac, "--renew-time-period", "3600000")
    step("--expire", "--hmac", hmac, "--expiry-time-period", "-1")
    step("--renew", "--hmac", hmac, "--renew-time-period", "-1")
    return found


def test_ux_6_kafkas_tool_for_tokens_prints_and_does_the_same(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "client.properties"
    config.write_text(java_properties("SCRAM-SHA-256"))
    with secured_broker(tmp_path, delegation_token_secret_key="planted") as secured:
        tools = Tools(secured.servers, tmp_path)
        common = ("--bootstrap-server", secured.servers, "--command-config", str(config))

        def ours(*words: str) -> tuple[int, str]:
            capfd.readouterr()
            code = main(["kafka-delegation-tokens.sh", *common, *words])
            return code, capfd.readouterr().out

        def theirs(*words: str) -> tuple[int, str]:
            done = tools.try_run("kafka-delegation-tokens", *common, *words)
            return done.returncode, done.stdout

        assert outputs(ours) == outputs(theirs)
