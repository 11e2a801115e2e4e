"""A broker with a listener for everybody and one where clients log in by every mechanism."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from barnabas import Broker
from barnabas.client import SyncAdmin, UserScramCredentialUpsertion
from tests.kit.signed_tokens import claims, document, signer

USER = "alice"
SECRET = "planted-secret-0"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_PACKAGE = "org.apache.kafka.common.security"
_PLAIN = f"{_PACKAGE}.plain.PlainLoginModule"
_SCRAM = f"{_PACKAGE}.scram.ScramLoginModule"
PLAIN_LINE = f'{_PLAIN} required user_{USER}="{SECRET}";'
"""The users of a listener that takes passwords."""
_OAUTH = f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule"


class Secured(NamedTuple):
    """The broker, and where it is reached."""

    broker: Broker
    open_servers: str
    servers: str
    """Where clients log in."""


@contextmanager
def secured_broker(directory: Path, **settings: str) -> Iterator[Secured]:
    """One with the user `alice`, and keys for tokens; `settings` with underscores for dots."""
    keys = directory / "jwks.json"
    keys.write_bytes(document(signer()))
    config = {
        "listeners": "OPEN://127.0.0.1:0,IN://127.0.0.1:0",
        "listener.security.protocol.map": "OPEN:PLAINTEXT,IN:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.in.plain.sasl.jaas.config": PLAIN_LINE,
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "connection.failed.authentication.delay.ms": "0",
        "group.initial.rebalance.delay.ms": "0",
        **{name.replace("_", "."): text for name, text in settings.items()},
    }
    with Broker(config=config) as broker:
        ports = {each.name: each.port for each in broker.server.listeners}
        with SyncAdmin(f"127.0.0.1:{ports['OPEN']}") as admin:
            admin.alter_user_scram_credentials(
                [
                    UserScramCredentialUpsertion(USER, SECRET, mechanism)
                    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
                ]
            )
        yield Secured(broker, f"127.0.0.1:{ports['OPEN']}", f"127.0.0.1:{ports['IN']}")


def token(user: str = USER) -> str:
    """A provider's, for five minutes from now."""
    return signer().sign(claims(int(time.time()), sub=user))


def options(mechanism: str) -> dict[str, Any]:
    """Those of our clients, and of other Python clients that have the same names."""
    common = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        return {**common, "sasl_oauth_token_provider": token}
    return {**common, "sasl_plain_username": USER, "sasl_plain_password": SECRET}


def java_properties(mechanism: str, token_file: Path | None = None) -> str:
    """A file of a Java client."""
    lines = ["security.protocol=SASL_PLAINTEXT", f"sasl.mechanism={mechanism}"]
    if mechanism == "OAUTHBEARER":
        assert token_file is not None
        handler = f"{_PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler"
        lines += [
            f"sasl.jaas.config={_OAUTH} required;",
            f"sasl.login.callback.handler.class={handler}",
            f"sasl.oauthbearer.token.endpoint.url={token_file.as_uri()}",
        ]
    else:
        module = _PLAIN if mechanism == "PLAIN" else _SCRAM
        lines.append(f'sasl.jaas.config={module} required username="{USER}" password="{SECRET}";')
    return "\n".join(lines) + "\n"
