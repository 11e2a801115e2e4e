"""Lists settings that promise protection which Barnabas does not provide.

If one of them is set, the broker does not start (SE-6), because ignoring it would expose data that
should be protected. The error describes an alternative. Other security settings (for example, a
path, or a pause when no listener uses SASL) do not promise anything by themselves. They only cause
a warning, with the reason given in the tables of `security_keys.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_OPEN = "leave it out and give only trusted clients access to the listeners"
_NO_POLICY = "leave it out and restrict access to the listeners by network rules"
_NO_JAVA = "leave it out: Barnabas cannot run Java classes"
_ZOOKEEPER_TLS = "leave it out, or put a TLS tunnel that does this in front of ZooKeeper"


class Claim(NamedTuple):
    """A security feature that a setting promises, an alternative, and any harmless values."""

    promise: str
    way_out: str
    harmless: tuple[str, ...] = ()


_SASL = "clients authenticate"
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_OAUTH_LOGIN = (
    f"{_OAUTH}.OAuthBearerLoginCallbackHandler",
    f"{_OAUTH}.secured.OAuthBearerLoginCallbackHandler",
)
_OAUTH_VALIDATION = (
    f"{_OAUTH}.OAuthBearerValidatorCallbackHandler",
    f"{_OAUTH}.secured.OAuthBearerValidatorCallbackHandler",
)
"""In Barnabas, the `sasl.oauthbearer` settings do what these classes do in Kafka."""

CLAIMS: Mapping[str, Claim] = MappingProxyType(
    {
        "principal.builder.class": Claim(
            "users are distinguished",
            _OPEN,
            ("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",),
        ),
        "sasl.client.callback.handler.class": Claim(_SASL, _NO_JAVA, _OAUTH_LOGIN),
        "sasl.login.callback.handler.class": Claim(_SASL, _NO_JAVA, _OAUTH_LOGIN),
        "sasl.login.class": Claim(_SASL, _NO_JAVA),
        "sasl.mechanism.controller.protocol": Claim("controllers authenticate", _OPEN),
        "sasl.server.callback.handler.class": Claim(_SASL, _NO_JAVA, _OAUTH_VALIDATION),
        "ssl.engine.factory.class": Claim("this class makes TLS engines", _NO_JAVA),
        "security.providers": Claim("these classes provide Java security", _NO_JAVA),
        "client.quota.callback.class": Claim("clients have quotas", _NO_POLICY),
        "alter.config.policy.class.name": Claim("a policy checks config changes", _NO_POLICY),
        "create.topic.policy.class.name": Claim("a policy checks new topics", _NO_POLICY),
        "zookeeper.ssl.crl.enable": Claim(
            "revoked certificates of ZooKeeper are rejected", _ZOOKEEPER_TLS, ("false",)
        ),
        "zookeeper.ssl.ocsp.enable": Claim(
            "revoked certificates of ZooKeeper are rejected", _ZOOKEEPER_TLS, ("false",)
        ),
    }
)
"""Maps the names of Kafka's settings, with or without `listener.name.<listener>.`, to claims."""


def broken_promise(name: str, text: str) -> str | None:
    """Return why a broker rejects this setting, and an alternative, or None if it is accepted."""
    claim = CLAIMS.get(name) or CLAIMS.get(_base(name))
    items = ",".join(filter(None, (item.strip() for item in text.split(","))))
    if claim is None or not items or items.lower() in map(str.lower, claim.harmless):
        return None
    return f"{name} promises that {claim.promise}, but Barnabas cannot do that: {claim.way_out}"


def _base(name: str) -> str:
    """Return `sasl.jaas.config` for `listener.name.x.sasl.jaas.config`, with any mechanism
    or none.
    """
    if not name.startswith("listener.name."):
        return ""
    base = name.split(".", 3)[-1]
    return base if base in CLAIMS else base.partition(".")[2]
